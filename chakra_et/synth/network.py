"""A small recurrent network over sequences, as a model file holds it, and how to draw from it.

Gated recurrent units (Cho et al., 2014) read what a sequence lies between, and then its symbols,
one after the other. Symbols are tokens, then marks, then the end; inputs have as many, then what
begins sequences: the roles, BETWEEN_TURNS, BETWEEN_MARKS, and NOTHING for a mark that is not there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows

BETWEEN_TURNS, BETWEEN_MARKS, NOTHING = 0, 1, 2
"""Inputs behind those of roles."""
_STARTS: Final = 3
_MOST: Final = 1 << 24
"""No network has more weights of one kind."""

Reals: TypeAlias = npt.NDArray[np.float32]


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights by name, as base64 of float16; `width` numbers are the state, `narrow` an input."""

    width: int
    narrow: int
    weights: dict[str, str]

    def __post_init__(self) -> None:
        if not 0 < self.width <= 4096 or not 0 < self.narrow <= 4096:
            raise ValueError("a network has no width")

    def arrays(self, inputs: int) -> dict[str, Reals]:
        """The weights. Raises ValueError where they are none of so many inputs."""
        shapes = shapes_of(inputs, self.width, self.narrow)
        if set(self.weights) != set(shapes):
            raise ValueError("weights of a network are missing")
        found = {}
        for name, shape in shapes.items():
            try:
                data = base64.b64decode(self.weights[name], validate=True)
            except binascii.Error as error:
                raise ValueError(f"weights of a network are no base64: {error}") from None
            if len(data) != 2 * int(np.prod(shape)) or len(data) > _MOST:
                raise ValueError("weights of a network have another shape")
            found[name] = np.frombuffer(data, "<f2").astype(np.float32).reshape(shape)
            if not np.isfinite(found[name]).all():
                raise ValueError("a weight of a network is no number")
        return found


def shapes_of(inputs: int, width: int, narrow: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all weights; those of gates stand in PyTorch's order: reset, update, new."""
    return {
        "embedding": (inputs, narrow),
        "input": (3 * width, narrow),
        "input_bias": (3 * width,),
        "state": (3 * width, width),
        "state_bias": (3 * width,),
        "output": (narrow, width),
        "bias": (inputs,),
    }


def packed(arrays: dict[str, npt.NDArray[np.float64]], width: int, narrow: int) -> Network:
    """A network of weights."""
    weights = {
        name: base64.b64encode(np.asarray(array).astype("<f2").tobytes()).decode()
        for name, array in arrays.items()
    }
    return Network(width, narrow, weights)


class Alphabet:
    """Numbers of inputs and symbols."""

    def __init__(self, tokens: int, marks: int, roles: int) -> None:
        self.tokens, self.marks, self.roles = tokens, marks, roles
        self.end = tokens + marks
        self.inputs = self.end + 1 + roles + _STARTS

    def start(self, level: int, key: int, pair: tuple[int, int]) -> list[int]:
        """What begins a sequence: turns of a role (level 0), marks or tokens between two marks."""
        base = self.end + 1
        if level == 0:
            return [base + key]
        base += self.roles
        ends = [base + NOTHING if mark < 0 else self.tokens + mark for mark in pair]
        return [base + (BETWEEN_TURNS if level == 1 else BETWEEN_MARKS), *ends]

    def symbols(self, level: int) -> slice:
        """The symbols of a level, without the end."""
        return slice(0, self.tokens) if level == 2 else slice(self.tokens, self.end)


class Drawer:
    """Draws sequences from a network, many at once."""

    def __init__(self, network: Network, alphabet: Alphabet, longest: Sequence[int]) -> None:
        self._w = network.arrays(alphabet.inputs)
        self._alphabet = alphabet
        self._width = network.width
        self._longest = longest

    def draw(
        self, level: int, starts: Sequence[Sequence[int]], random: np.random.Generator
    ) -> list[Rows]:
        """A sequence of a level for each start, of equal lengths: its symbols, counted from 0.

        One that does not end is cut at twice the longest that was learned.
        """
        state = np.zeros((len(starts), self._width), np.float32)
        for symbols in np.array(starts, np.int64).T:
            state = self._next(state, symbols)
        own = self._alphabet.symbols(level)
        found: list[list[int]] = [[] for _ in starts]
        going = np.arange(len(starts))
        for _ in range(2 * self._longest[level]):
            drawn = self._drawn(state, own, random)
            here = drawn < self._alphabet.end
            going, state, drawn = going[here], state[here], drawn[here]
            for place, symbol in zip(going.tolist(), drawn.tolist(), strict=True):
                found[place].append(symbol - own.start)
            if len(going) == 0:
                break
            state = self._next(state, drawn)
        return [np.array(symbols, np.int64) for symbols in found]

    def _next(self, state: Reals, symbols: Rows) -> Reals:
        w, n = self._w, self._width
        given = w["embedding"][symbols] @ w["input"].T + w["input_bias"]
        held = state @ w["state"].T + w["state_bias"]
        gates = 1 / (1 + np.exp(-(given[:, : 2 * n] + held[:, : 2 * n])))
        reset, update = gates[:, :n], gates[:, n:]
        new = np.tanh(given[:, 2 * n :] + reset * held[:, 2 * n :])
        return np.asarray((1 - update) * new + update * state, np.float32)

    def _drawn(self, state: Reals, own: slice, random: np.random.Generator) -> Rows:
        """A symbol for each state, of a level or the end."""
        w, end = self._w, self._alphabet.end
        out = state @ w["output"].T
        chosen = np.append(np.arange(own.start, own.stop), end)
        logits = (out @ w["embedding"][chosen].T + w["bias"][chosen]).astype(np.float64)
        # The largest of logits with Gumbel noise is a draw of their softmax.
        noise = random.gumbel(size=logits.shape)
        return np.asarray(chosen[np.argmax(logits + noise, axis=1)], np.int64)

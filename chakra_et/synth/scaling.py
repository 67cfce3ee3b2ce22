"""What the user asks of a sample beside ranks and steps: other sizes, shares, batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.synth.model import Part, SynthModel
from chakra_et.synth.phases import PHASES
from chakra_et.synth.tokens import Token
from chakra_et.synth.view import ABSENT, COMMUNICATION

KINDS: Final = ("communication", "compute", "memory")
CONDITIONS: Final = ("world", "batch", "comm-share")
_MOST: Final = 1e6
_ACTIVATIONS: Final = frozenset(map(PHASES.index, ("forward", "prefill", "decode")))


@dataclass(frozen=True)
class Conditions:
    """What a sample should be like; None where that is left open.

    `world` chooses the part of the model that was learned from runs of the most similar number of
    ranks, `batch` from the most similar batch, and scales the rest in proportion; `comm_share` is
    the share of communication in the durations of all nodes.
    """

    world: float | None = None
    batch: float | None = None
    comm_share: float | None = None


def parse_conditions(texts: Sequence[str]) -> Conditions:
    """Conditions such as `batch=64`. Raises ChakraError for others."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in CONDITIONS or name in found:
            raise ChakraError(
                f"--condition {text!r}",
                remedy=f"Give each of {', '.join(CONDITIONS)} once, as in batch=64.",
            )
        found[name] = _number(value, f"--condition {text!r}")
    share = found.get("comm-share")
    if share is not None and not 0 < share < 1:
        raise ChakraError("comm-share lies between 0 and 1", remedy="Give one such as 0.3.")
    return Conditions(found.get("world"), found.get("batch"), share)


def parse_scales(texts: Sequence[str]) -> dict[str, float]:
    """Factors of sizes by kind of node, from `2` or `communication=0.5`."""
    found = dict.fromkeys(KINDS, 1.0)
    for text in texts:
        name, equals, value = text.rpartition("=")
        if equals and name not in KINDS:
            raise ChakraError(
                f"--scale-sizes {text!r}",
                remedy=f"Give a factor, or one of {', '.join(KINDS)}=FACTOR.",
            )
        for kind in (name,) if equals else KINDS:
            found[kind] *= _number(value, f"--scale-sizes {text!r}")
    return found


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 1 / _MOST <= number <= _MOST:
        raise ChakraError(f"{what}: {text!r} is no number from 1e-6 to 1e6", remedy="Give one.")
    return number


@dataclass(frozen=True)
class Scaling:
    """Factors of sizes and durations, by token."""

    size: npt.NDArray[np.float64]
    time: npt.NDArray[np.float64]


def choose_part(model: SynthModel, ranks: int, wanted: Conditions) -> Part:
    """The part that was learned from what is most like the wanted; the first of equal ones."""

    def apart(part: Part) -> tuple[bool, float]:
        batch, share = wanted.batch, wanted.comm_share
        far = abs(math.log((wanted.world or ranks) / math.prod(part.world.axes.values())))
        if batch is not None and part.batch:
            far += abs(math.log(batch / part.batch))
        if share is not None:
            far += abs(share - part.share)
        return bool(ranks % part.world.roles), far

    return min(model.parts, key=apart)


def scaling_of(part: Part, wanted: Conditions, scales: dict[str, float]) -> Scaling:
    """The factors that make a part what is wanted.

    Who changes a size changes the duration in proportion. A batch changes computing, and the
    communication of forward phases and of its groups, which hand activations on; gradients stay.
    Raises ChakraError for what the model does not know.
    """
    kinds = [_kind(token) for token in part.tokens]
    size = np.array([scales[kind] for kind in kinds])
    told = np.array([max(token.sizes) != ABSENT for token in part.tokens], np.bool_)
    if wanted.batch is not None:
        if part.batch is None:
            raise ChakraError(
                "the model does not know of which batch it was fitted",
                remedy="Fit it with `--batch N`.",
            )
        follows = _follows_batch(part.tokens)
        size *= np.where(follows, wanted.batch / part.batch, 1)
        told |= follows
    time = np.where(told, size, 1.0)
    if wanted.comm_share is not None:
        factor = _to_share(part, wanted.comm_share)
        talks = np.array([kind == "communication" for kind in kinds], np.bool_)
        size, time = np.where(talks, size * factor, size), np.where(talks, time * factor, time)
    return Scaling(size, time)


def _kind(token: Token) -> str:
    if token.type in COMMUNICATION:
        return "communication"
    return "memory" if token.type in (NodeType.MEM_LOAD, NodeType.MEM_STORE) else "compute"


def _follows_batch(tokens: Sequence[Token]) -> npt.NDArray[np.bool_]:
    """Whether the batch is a factor of what a node does."""
    kin = {t.kin for t in tokens if t.kin != ABSENT and t.phase in _ACTIVATIONS}
    optimizer = PHASES.index("optimizer")
    return np.array(
        [t.phase != optimizer and (t.type != NodeType.COMM_COLL or t.kin in kin) for t in tokens],
        np.bool_,
    )


def _to_share(part: Part, share: float) -> float:
    if not part.communication_ns or not part.compute_ns:
        raise ChakraError(
            "the model knows no times of communication, or none of computing",
            remedy="Fit it to recorded runs, or leave comm-share out.",
        )
    return share / (1 - share) * part.compute_ns / part.communication_ns

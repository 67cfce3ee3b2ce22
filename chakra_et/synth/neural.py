"""Learning the recurrent network of a model, with PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import numpy as np

from chakra_et.columns import Rows
from chakra_et.extras import library
from chakra_et.synth.chain import Sequences, folds
from chakra_et.synth.corpus import BEGIN, Parsed
from chakra_et.synth.network import Alphabet, Network, packed

_WIDTH, _NARROW = 128, 48
_PIECE, _READ = 128, 64
"""Long sequences are learned in pieces; each reads so many symbols before it."""
_BATCH, _LARGE_BATCH = 1024, 1 << 15
_ROUNDS: Final = 40
_LEAST_STEPS, _MOST_STEPS = 60, 800
_RATE: Final = 6e-3


def learn(
    parsed: Parsed, held: Parsed, tokens: int, roles: int, seed: int
) -> tuple[Network, float]:
    """A network of all sequences, and the bits that held-out units cost all together.

    `held` are the units to hold out, in turns, of the same corpus. Needs PyTorch.
    """
    torch = library("torch", "torch", "the neural learner", ", or take --learner markov")
    with _one_thread(torch, seed):
        bits = 0.0
        fold = folds(held.sequences.unit)
        coded = _Coded(held, tokens, roles)
        for part in np.unique(fold).tolist():
            net = _trained(torch, coded, np.flatnonzero(fold != part), seed)
            bits += _bits(torch, net, coded, np.flatnonzero(fold == part))
        coded = _Coded(parsed, tokens, roles)
        net = _trained(torch, coded, np.arange(len(parsed.sequences)), seed)
    return packed(_arrays(net), _WIDTH, _NARROW), bits


@contextmanager
def _one_thread(torch: Any, seed: int) -> Iterator[None]:
    """Sums of several threads would come out in another order each time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Coded:
    """Sequences as inputs and as symbols to foresee, -1 for what is given."""

    def __init__(self, parsed: Parsed, tokens: int, roles: int) -> None:
        self.alphabet = Alphabet(tokens, len(parsed.marks), roles)
        self._level = _levels(parsed.sequences, roles, len(parsed.spans))
        self._pairs = [*[(BEGIN, BEGIN)] * roles, *parsed.spans, *(gap[:2] for gap in parsed.gaps)]
        self._sequences = parsed.sequences

    def text(self, place: int) -> tuple[Rows, Rows, int]:
        """Inputs of a sequence, symbols to foresee, and its level."""
        s, level = self._sequences, int(self._level[place])
        key = int(s.key[place])
        start = self.alphabet.start(level, key, self._pairs[key])
        own = s.tokens[s.first[place] : s.first[place + 1]] + self.alphabet.symbols(level).start
        given = np.full(len(start) - 1, -1)
        return np.append(start, own), np.concatenate([given, own, [self.alphabet.end]]), level


def _levels(sequences: Sequences, roles: int, spans: int) -> Rows:
    return np.searchsorted([roles, roles + spans], sequences.key, side="right")


Piece: TypeAlias = tuple[Rows, Rows, int]


def _pieces(coded: _Coded, chosen: Rows) -> list[Piece]:
    """Sequences, long ones in pieces: each has read some symbols of the one before."""
    found = []
    for place in chosen.tolist():
        inputs, wanted, level = coded.text(place)
        for at in range(0, len(inputs), _PIECE):
            first = max(at - _READ, 0)
            foreseen = wanted[first : at + _PIECE].copy()
            foreseen[: at - first] = -1
            found.append((inputs[first : at + _PIECE], foreseen, level))
    return found


def _batches(pieces: list[Piece], size: int) -> list[list[Piece]]:
    """Pieces of like lengths together, up to so many symbols."""
    found: list[list[Piece]] = [[]]
    for piece in sorted(pieces, key=lambda p: len(p[0])):
        if found[-1] and (len(found[-1]) + 1) * len(piece[0]) > size:
            found.append([])
        found[-1].append(piece)
    return [batch for batch in found if batch]


def _trained(torch: Any, coded: _Coded, chosen: Rows, seed: int) -> Any:
    """A network after a number of rounds of Adam over all sequences."""
    net = _network(torch, coded.alphabet)
    batches = _batches(_pieces(coded, chosen), _BATCH)
    steps = min(max(_ROUNDS * len(batches), _LEAST_STEPS), _MOST_STEPS)
    optimizer = torch.optim.Adam(net.parameters(), lr=_RATE)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
    random = np.random.default_rng(seed)
    order: list[int] = []
    for _ in range(steps):
        order = order or random.permutation(len(batches)).tolist()
        loss, count = _loss(torch, net, coded.alphabet, batches[order.pop()])
        optimizer.zero_grad()
        (loss / max(count, 1)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        rate.step()
    return net


def _network(torch: Any, alphabet: Alphabet) -> Any:
    nn = torch.nn
    return nn.ModuleDict(
        {
            "embedding": nn.Embedding(alphabet.inputs, _NARROW),
            "units": nn.GRU(_NARROW, _WIDTH, batch_first=True),
            "output": nn.Linear(_WIDTH, _NARROW, bias=False),
            "bias": nn.Embedding(alphabet.inputs, 1),
        }
    )


def _arrays(net: Any) -> dict[str, Any]:
    """The weights by the names that models have for them."""
    units = net["units"]
    found = {
        "embedding": net["embedding"].weight,
        "input": units.weight_ih_l0,
        "input_bias": units.bias_ih_l0,
        "state": units.weight_hh_l0,
        "state_bias": units.bias_hh_l0,
        "output": net["output"].weight,
        "bias": net["bias"].weight[:, 0],
    }
    return {name: weight.detach().double().numpy() for name, weight in found.items()}


def _loss(torch: Any, net: Any, alphabet: Alphabet, batch: list[Piece]) -> tuple[Any, int]:
    """What symbols cost, in nats, and how many there are."""
    longest = max(len(inputs) for inputs, _, _ in batch)
    inputs, wanted = (np.full((len(batch), longest), fill) for fill in (0, -1))
    for row, (given, foreseen, _) in enumerate(batch):
        inputs[row, : len(given)], wanted[row, : len(given)] = given, foreseen
    told = torch.from_numpy(wanted >= 0)
    out = net["output"](net["units"](net["embedding"](torch.from_numpy(inputs)))[0][told])
    last = alphabet.end + 1
    logits = out @ net["embedding"].weight[:last].T + net["bias"].weight[:last, 0]
    in_gap = torch.tensor([level == 2 for _, _, level in batch]).unsqueeze(-1).expand_as(told)
    symbols = torch.arange(last)
    gap = in_gap[told].unsqueeze(-1)
    foreign = torch.where(gap, symbols >= alphabet.tokens, symbols < alphabet.tokens)
    logits = logits.masked_fill(foreign & (symbols < alphabet.end), float("-inf"))
    foreseen = torch.from_numpy(wanted)[told]
    loss = torch.nn.functional.cross_entropy(logits, foreseen, reduction="sum")
    return loss, int(told.sum())


def _bits(torch: Any, net: Any, coded: _Coded, chosen: Rows) -> float:
    """The bits of whole sequences."""
    texts = [coded.text(place) for place in chosen.tolist()]
    total = 0.0
    with torch.no_grad():
        for batch in _batches(texts, _LARGE_BATCH):
            total += float(_loss(torch, net, coded.alphabet, batch)[0])
    return total / float(np.log(2))

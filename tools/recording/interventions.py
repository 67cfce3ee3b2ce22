"""Pairs of programs that differ in one known way: what is done before and after an intervention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from recording.device import Machine
from recording.perceptron import Shape
from recording.pipeline import Pipeline
from recording.window import Step


class Program(Protocol):
    """What ranks run, and the machine that they run on: processors alone where that is None."""

    @property
    def machine(self) -> Machine | None:
        """Devices and links."""

    def step(self) -> Step:
        """One step of it."""


@dataclass(frozen=True)
class Intervention:
    """Two programs, and the edits that say what was changed from the first to the second.

    Where edits name a `{table}`, it is fitted to recordings of the first program, and of others,
    `known`, of which the second is none. `{number}` is that of a recording.
    """

    what: str
    before: Program
    after: Program
    edits: tuple[str, ...]
    ranks: int = 2
    known: Sequence[Program] = ()


# A product of a layer takes 2 ms, so a layer takes 4 ms forward and 8 ms backward, and the sum of
# its gradients takes 6 ms, over slow links 12 ms.
_MACHINE = Machine(flop_per_s=4.2e9, bytes_per_s=87_400_000)
_SLOW_LINKS = replace(_MACHINE, bytes_per_s=43_700_000)
_TRAINING = Shape(hidden=128, tokens=64, one_by_one=True, machine=_MACHINE)
_BOUND_BY_LINKS = replace(_TRAINING, machine=_SLOW_LINKS)
# More bytes, so that less of a transfer is what goes at once after a pause (64 KiB).
_WIDE_MACHINE = Machine(flop_per_s=7.08e9, bytes_per_s=196_600_000)
_WIDE = replace(_TRAINING, hidden=192, tokens=48, machine=_WIDE_MACHINE)
_FAST_LINKS = replace(_MACHINE, bytes_per_s=349_600_000)
_STAGES = Pipeline((256, 64, 32), machine=_MACHINE)

DEVICES: dict[str, Intervention] = {
    "slow operator": Intervention(
        "an operator of the last of three stages takes three times as long",
        replace(_STAGES, known_us=(0, 0, 3000)), replace(_STAGES, known_us=(0, 0, 9000)),
        ("time:name=known::wait=3",), ranks=3,
    ),
    "no operator": Intervention(
        "an operator of the last of three stages is not done",
        replace(_STAGES, known_us=(0, 0, 9000)), _STAGES,
        ("remove:name=known::wait=yes",), ranks=3,
    ),
    "slow rank": Intervention(
        "the last of three stages computes twice as long",
        replace(_STAGES, widths=(256, 64, 160)),
        replace(_STAGES, widths=(256, 64, 160), slower=(1.0, 1.0, 2.0)),
        ("straggler=2:2",), ranks=3,
    ),
    "late rank": Intervention(
        "rank 1 asks for each all-reduce 8 ms later",
        replace(_TRAINING, known_us=(2000, 0)),
        replace(_TRAINING, known_us=(2000, 0), late_us=(0, 8000)),
        ("delay:name=c10d::allreduce_=8000,1",),
    ),
    "slow link": Intervention(
        "links carry a third of the bytes a second",
        _WIDE, replace(_WIDE, machine=replace(_WIDE_MACHINE, bytes_per_s=65_530_000)),
        ("time:type=COMM_COLL_NODE=3",),
    ),
    "another network": Intervention(
        "links carry 40 MB a second, each message takes 100 us",
        _TRAINING, replace(_TRAINING, machine=replace(_MACHINE, bytes_per_s=40_000_000)),
        ("network=100,0.04",),
    ),
    "bucket size": Intervention(
        "gradients of four layers are summed at once",
        replace(_TRAINING, layers=8, one_by_one=False),
        replace(_TRAINING, layers=8, one_by_one=False, bucket=4),
        ("merge:type=COMM_COLL=4",),
    ),
    "micro-batches": Intervention(
        "6 micro-batches go through three stages, not 3",
        replace(_STAGES, micro_batches=3), replace(_STAGES, micro_batches=6),
        ("repeat:name=forward=6", "repeat:name=backward=6"), ranks=3,
    ),
    "layers": Intervention(
        "8 layers instead of 4",
        _BOUND_BY_LINKS, replace(_BOUND_BY_LINKS, layers=8),
        tuple(f"repeat:name=layer {part}=8" for part in ("forward", "backward", "update")),
    ),
    "batch": Intervention(
        "a batch half as large again",
        _BOUND_BY_LINKS, replace(_BOUND_BY_LINKS, tokens=96),
        ("lengths=64:96,{table}",),
        known=(replace(_BOUND_BY_LINKS, tokens=48), replace(_BOUND_BY_LINKS, tokens=128)),
    ),
    "hidden size": Intervention(
        "160 instead of 128 wide, feed-forward layers four times that",
        replace(_BOUND_BY_LINKS, known_us=(4000, 4000)),
        replace(_BOUND_BY_LINKS, known_us=(4000, 4000), hidden=160),
        ("lengths=128:160,512:640,{table}",),
        known=(replace(_BOUND_BY_LINKS, hidden=96), replace(_BOUND_BY_LINKS, hidden=192)),
    ),
    "overlap": Intervention(
        "each all-reduce is waited for at once",
        _TRAINING, replace(_TRAINING, overlap=False),
        ("overlap=off",),
    ),
    "jitter": Intervention(
        "each product takes up to 90 % longer or shorter, at random",
        replace(_TRAINING, layers=16, overlap=False, machine=_FAST_LINKS),
        replace(_TRAINING, layers=16, overlap=False, machine=replace(_FAST_LINKS, jitter=0.9)),
        ("jitter=0.9,{number}",), ranks=3,
    ),
}  # fmt: skip
"""Programs whose work leaves the processors free: devices and links do it."""

_UNEQUAL = replace(_TRAINING, layers=6, known_us=(1000, 3000, 0), one_by_one=False)
_LATE = replace(_TRAINING, layers=6, known_us=(0, 3000))

HELD_OUT: dict[str, Intervention] = {
    "fast operator": Intervention(
        "an operator of each of three stages takes half the time",
        Pipeline((128, 256, 64), (6000, 2000, 9000), micro_batches=5, machine=_MACHINE),
        Pipeline((128, 256, 64), (3000, 1000, 4500), micro_batches=5, machine=_MACHINE),
        ("time:name=known::wait=0.5",), ranks=3,
    ),
    "buckets on a slow link": Intervention(
        "three ranks sum gradients of two layers at once, over links of half the bytes a second",
        _UNEQUAL, replace(_UNEQUAL, bucket=2, machine=_SLOW_LINKS),
        ("merge:type=COMM_COLL=2", "time:type=COMM_COLL_NODE=2"), ranks=3,
    ),
    "batch and late rank": Intervention(
        "a batch half as large again, and rank 0 asks for each all-reduce 5 ms later",
        _LATE, replace(_LATE, tokens=96, late_us=(5000, 0)),
        ("lengths=64:96,{table}", "delay:name=c10d::allreduce_=5000,0"),
        known=(replace(_LATE, tokens=48), replace(_LATE, tokens=128)),
    ),
}  # fmt: skip
"""The same, written when all else was done, and recorded once."""

_SLEEPING = Shape(hidden=512, tokens=16, known_us=(5000, 5000))
"""Much to transfer beside operators that leave the processor to that."""

PROCESSORS: dict[str, Intervention] = {
    "slow operator": Intervention(
        "one operator takes twice as long",
        _SLEEPING, replace(_SLEEPING, known_us=(10_000, 10_000)),
        ("time:name=known::wait=2",),
    ),
    "no operator": Intervention(
        "one operator is not done",
        _SLEEPING, replace(_SLEEPING, known_us=(0, 0)),
        ("remove:name=known::wait=yes",),
    ),
    "bucket size": Intervention(
        "gradients of two layers are summed at once",
        replace(_SLEEPING, layers=8), replace(_SLEEPING, layers=8, bucket=2),
        ("merge:type=COMM_COLL=2",),
    ),
    "micro-batches": Intervention(
        "gradients of 6 micro-batches are accumulated, not of 3",
        Shape(micro_batches=3), Shape(micro_batches=6),
        ("repeat:name=micro-batch=6",),
    ),
    "layers": Intervention(
        "8 layers instead of 4",
        Shape(layers=4), Shape(layers=8),
        tuple(f"repeat:name=layer {part}=8"
              for part in ("forward", "backward", "sum", "update")),
    ),
    "batch": Intervention(
        "a batch half as large again",
        Shape(), Shape(tokens=288),
        ("lengths=192:288,{table}",),
        known=(Shape(tokens=144), Shape(tokens=384)),
    ),
    "overlap": Intervention(
        "each all-reduce is waited for at once",
        _SLEEPING, replace(_SLEEPING, overlap=False),
        ("overlap=off",),
    ),
}  # fmt: skip
"""Programs whose ranks and transfers compete for two processors."""

SETS = {"devices": DEVICES, "held-out": HELD_OUT, "processors": PROCESSORS}
"""The tables, by name."""

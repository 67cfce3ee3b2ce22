"""Host programs: what each thread of each rank does, in order."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Op:
    """An operation that keeps its thread busy."""

    ns: int


@dataclass(frozen=True)
class Launch:
    """A call that submits a kernel as it ends; the kernel begins `lag_ns` after it can."""

    stream: int
    call_ns: int
    kernel_ns: int
    lag_ns: int = 0
    name: str = "gemm"


@dataclass(frozen=True)
class Graph:
    """A call that submits several kernels of one stream at once."""

    stream: int
    call_ns: int
    kernels_ns: tuple[int, ...]
    lag_ns: int = 0


@dataclass(frozen=True)
class Collective:
    """A call that submits a collective of all ranks."""

    stream: int
    call_ns: int
    transfer_ns: int
    lag_ns: int = 0


@dataclass(frozen=True)
class Copy:
    """A blocking copy: submitted as the call begins, waited for, `after_ns` to return."""

    stream: int
    copy_ns: int
    after_ns: int
    lag_ns: int = 0


@dataclass(frozen=True)
class Record:
    """Record an event on a stream; `event` names it."""

    stream: int
    event: int
    ns: int


@dataclass(frozen=True)
class WaitEvent:
    """Make a stream wait for the event as it was recorded last."""

    stream: int
    event: int
    ns: int


@dataclass(frozen=True)
class SyncEvent:
    """Wait on the host for the event as it was recorded last."""

    event: int
    ns: int


@dataclass(frozen=True)
class SyncStream:
    """Wait on the host for all that a stream was given; the call itself takes `ns`."""

    stream: int
    ns: int


@dataclass(frozen=True)
class SyncDevice:
    """Wait on the host for all streams."""

    ns: int


@dataclass(frozen=True)
class Backward:
    """Hand the instructions over to the backward thread, and wait for it to finish."""

    body: tuple[Instruction, ...]


Instruction = (
    Op
    | Launch
    | Graph
    | Collective
    | Copy
    | Record
    | WaitEvent
    | SyncEvent
    | SyncStream
    | SyncDevice
)
Statement = Instruction | Backward


@dataclass
class Program:
    """One list of statements for each rank, run by its main thread."""

    ranks: list[list[Statement]] = field(default_factory=list)

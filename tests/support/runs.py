"""Small runs with known answers, built and not recorded."""

from __future__ import annotations

from collections.abc import Callable

from chakra_et.build import Rank, Workload
from chakra_et.model import TraceSet

MS = 1_000_000


def built(program: Callable[[Rank], None], ranks: int = 2) -> TraceSet:
    """The traces of all ranks that run a program."""
    return TraceSet(Workload(rank=ranks).traces(program))


def kernels(rank: Rank) -> None:
    """9 ms of kernels, then 1 ms of communication."""
    with rank.on(stream=0):
        done = rank.compute("gemm", duration_ns=6 * MS)
        done = rank.compute("softmax", duration_ns=3 * MS, after=done)
        rank.all_reduce("rank", 1 << 20, after=done, duration_ns=MS)


def transfers(rank: Rank) -> None:
    """1 ms of kernels, then 9 ms of communication."""
    with rank.on(stream=0):
        done = rank.compute("gemm", duration_ns=MS)
        rank.all_reduce("rank", 1 << 30, after=done, duration_ns=9 * MS)


def host(rank: Rank) -> None:
    """8 ms on the host, then 2 ms of kernels."""
    done = rank.compute("aten::mm", duration_ns=8 * MS, cpu=True)
    with rank.on(stream=0):
        rank.compute("gemm", duration_ns=2 * MS, after=done)


def balanced(rank: Rank) -> None:
    """4 ms on the host, 3 ms of kernels, 3 ms of communication."""
    done = rank.compute("aten::mm", duration_ns=4 * MS, cpu=True)
    with rank.on(stream=0):
        done = rank.compute("gemm", duration_ns=3 * MS, after=done)
        rank.all_reduce("rank", 1 << 20, after=done, duration_ns=3 * MS)


def straggler(rank: Rank) -> None:
    """Rank 1 computes for 8 ms, the others for 2; then all communicate for 2 ms."""
    late = rank.coordinate("rank") == 1
    with rank.on(stream=0):
        done = rank.compute("gemm", duration_ns=8 * MS if late else 2 * MS)
        rank.all_reduce("rank", 1 << 20, after=done, duration_ns=2 * MS)

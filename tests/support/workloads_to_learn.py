"""Small workloads of several ranks, to learn models from."""

from __future__ import annotations

from functools import cache

from chakra_et.build import Rank, Workload
from chakra_et.model import TraceSet
from chakra_et.synth import Fitted, fit

SIZE = 1 << 20


def training(rank: Rank) -> None:
    """Three layers forth and back over tp, gradients over dp, on two streams."""
    x = rank.tensor("secret_activations", (4, 256))
    for phase in ("forward", "backward"):
        for layer in range(3):
            with rank.on(stream=0, phase=phase, layer=layer):
                rank.compute("secret_norm", duration_ns=3_000, inputs=[x], outputs=[x])
                rank.compute("aten::mm", flops=1 << 24, duration_ns=50_000 + layer,
                             inputs=[x], outputs=[x])  # fmt: skip
            with rank.on(phase=phase):
                done = rank.all_reduce("tp", SIZE, inputs=[x], outputs=[x], duration_ns=9_000)
    with rank.on(stream=7, phase="optimizer"):
        done = rank.all_reduce("dp", 4 * SIZE, after=done, duration_ns=40_000)
        rank.compute("adam", duration_ns=20_000, after=done)


def pipeline(rank: Rank) -> None:
    """Two stages, which do different things and hand messages on."""
    last = rank.coordinate("pp") == 1
    for phase, sends in (("forward", not last), ("backward", last)):
        with rank.on(stream=0, phase=phase):
            for _ in range(2):
                if sends:
                    done = rank.compute("aten::mm", flops=1 << 20, duration_ns=70_000)
                    rank.send(rank.peer(pp=1), SIZE, after=done, duration_ns=1_000)
                else:
                    got = rank.receive(rank.peer(pp=1), SIZE, duration_ns=1_000)
                    rank.compute("aten::relu", duration_ns=5_000, after=got)


@cache
def trained() -> TraceSet:
    """Four ranks, 2 x 2."""
    return Workload(tp=2, dp=2).traces(training)


@cache
def piped() -> TraceSet:
    """Four ranks, two stages of two replicas."""
    return Workload(dp=2, pp=2).traces(pipeline)


@cache
def trained_model() -> Fitted:
    """What is learned of `trained`."""
    return fit([trained()])


@cache
def piped_model() -> Fitted:
    """What is learned of `piped`."""
    return fit([piped()])

"""Random programs."""

from __future__ import annotations

from hypothesis import strategies as st

from truth.program import (
    Backward,
    Collective,
    Copy,
    Graph,
    Launch,
    Op,
    Program,
    Record,
    Statement,
    SyncDevice,
    SyncEvent,
    SyncStream,
    WaitEvent,
)

STREAMS = st.sampled_from([7, 20, 24])
EVENTS = st.integers(0, 3)
NS = st.integers(1, 30) | st.integers(1000, 40_000)
KERNEL_NS = st.integers(500, 5000) | st.integers(5000, 300_000)
LAG_NS = st.integers(0, 4000)
NAMES = st.sampled_from(["gemm", "relu"])


def _collectives() -> st.SearchStrategy[Statement]:
    return st.builds(Collective, st.just(30), NS, st.just(50_000), LAG_NS)


@st.composite
def _steps(draw: st.DrawFn, bare: bool = True) -> list[Statement]:
    """A step; unless waits may be `bare`, the stream that waits is given work after."""
    choices = ["op", "launch", "launch", "graph", "copy", "record", "wait", "stream", "device",
               "event"]  # fmt: skip
    choice = draw(st.sampled_from(choices))
    launch = st.builds(Launch, STREAMS, NS, KERNEL_NS, LAG_NS, NAMES)
    if choice == "wait":
        if bare and draw(st.booleans()):
            return [draw(st.builds(WaitEvent, STREAMS, EVENTS, NS))]
        following = draw(launch)
        return [WaitEvent(following.stream, draw(EVENTS), draw(NS)), following]
    if choice == "copy":
        copy = draw(st.builds(Copy, STREAMS, KERNEL_NS, NS, LAG_NS))
        return [copy, Op(draw(NS))] if draw(st.booleans()) else [copy]
    made: dict[str, st.SearchStrategy[Statement]] = {
        "op": st.builds(Op, NS),
        "launch": launch,
        "graph": st.builds(
            Graph, STREAMS, NS, st.lists(KERNEL_NS, min_size=1, max_size=5).map(tuple), LAG_NS
        ),
        "record": st.builds(Record, STREAMS, EVENTS, NS),
        "stream": st.builds(SyncStream, STREAMS, NS),
        "device": st.builds(SyncDevice, NS),
        "event": st.builds(SyncEvent, EVENTS, NS),
    }
    return [draw(made[choice])]


@st.composite
def programs(draw: st.DrawFn, ranks: int = 1, bare: bool = True) -> Program:
    """A program whose ranks have the same collectives, with other work in between."""
    bodies: list[list[Statement]] = []
    count = draw(st.integers(0, 4)) if ranks > 1 else 0
    for _ in range(ranks):
        groups: list[list[Statement]] = [[Op(draw(NS))]]
        for part in range(count + 1):
            groups += draw(st.lists(_steps(bare), max_size=12))
            if part < count:
                groups.append([draw(_collectives())])
        for _ in range(draw(st.integers(0, 2)) if ranks == 1 else 0):
            body = [step for steps in draw(st.lists(_steps(bare), max_size=8)) for step in steps]
            groups.insert(draw(st.integers(1, len(groups))), [Backward(tuple(body))])
        groups.append([SyncDevice(draw(NS)), Op(draw(NS))])
        bodies.append([statement for group in groups for statement in group])
    return Program(bodies)

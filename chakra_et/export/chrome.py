"""Timelines as the JSON of Chrome's trace viewer, which Perfetto and others read as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from chakra_et.export.scene import Scene
from chakra_et.shown import encodable

_BLOCK: Final = 1 << 14
"""So many events are encoded together."""


def chrome(scene: Scene) -> Iterator[bytes]:
    """The bytes of the file, in pieces; times are microseconds from the first start."""
    slices = scene.slices
    origin = int(slices.start.min()) if len(slices) else 0
    yield msgspec.json.encode({"displayTimeUnit": "ns", "baseTimeNanoseconds": origin})[:-1]
    yield b',"traceEvents":[\n'
    separator = b""
    events = _events(scene, origin)
    while block := [event for event, _ in zip(events, range(_BLOCK), strict=False)]:
        yield separator + b",\n".join(map(msgspec.json.encode, block))
        separator = b",\n"
    yield b"\n]}\n"


def _events(scene: Scene, origin: int) -> Iterator[dict[str, Any]]:
    slices = scene.slices
    names = [str(encodable(name)) for name in slices.names]
    processes: dict[str, int] = {}
    for track in slices.tracks:
        processes.setdefault(track.process, len(processes) + 1)
    for place, (name, pid) in enumerate(processes.items()):
        yield _metadata("process_name", pid, 0, name=encodable(name))
        yield _metadata("process_sort_index", pid, 0, sort_index=place)
    pids = [processes[track.process] for track in slices.tracks]
    for number, track in enumerate(slices.tracks, 1):
        yield _metadata("thread_name", pids[number - 1], number, name=encodable(track.name))
        yield _metadata("thread_sort_index", pids[number - 1], number, sort_index=number)
    start, end = (slices.start - origin).tolist(), (slices.end - origin).tolist()
    where = [{"pid": pids[track], "tid": track + 1} for track in slices.track.tolist()]
    columns = (slices.name.tolist(), slices.category.tolist(), slices.node.tolist())
    for place, (name_code, category, node) in enumerate(zip(*columns, strict=True)):
        yield {
            "ph": "X",
            "name": names[name_code],
            "cat": slices.categories[category],
            **where[place],
            "ts": start[place] / 1000,
            "dur": (end[place] - start[place]) / 1000,
            "args": {"node": node},
        }
    flows = zip(
        scene.flows.source.tolist(), scene.flows.target.tolist(), scene.flows.kind.tolist(),
        strict=True,
    )  # fmt: skip
    number = 0
    for number, (source, target, kind) in enumerate(flows, 1):
        label = scene.flows.kinds[kind]
        # An arrow that leads back in time is not drawn: it ends where its target does.
        at = start[target] if start[target] >= start[source] else end[target]
        yield _flow("s", label, number, where[source], start[source])
        yield _flow("f", label, number, where[target], at)
    for other, members in enumerate(scene.ties, number + 1):
        ordered = sorted(members, key=lambda place: start[place])
        for turn, place in enumerate(ordered):
            phase = "s" if turn == 0 else "f" if turn == len(ordered) - 1 else "t"
            yield _flow(phase, "collective", other, where[place], start[place])


def _metadata(what: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _flow(phase: str, kind: str, number: int, where: dict[str, int], ns: int) -> dict[str, Any]:
    event = {"ph": phase, "name": kind, "cat": kind, "id": number, **where, "ts": ns / 1000}
    return {**event, "bp": "e"} if phase == "f" else event

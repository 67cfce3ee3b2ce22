"""Which calls find their targets while running, and among which device work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.model import EdgeKind
from chakra_et.replay.columns import Columns
from chakra_et.replay.resolving import Waiting

_SCOPE: Final = re.compile(
    r"device (?P<device>-?\d{1,20})|stream (?P<of>-?\d{1,20}) (?P<stream>-?\d{1,20})"
)
_SLACK_NS: Final = 10_000
"""So much later than the call that waited for it may work seem to end: its clock is another one."""


def calls_that_wait(ranks: Sequence[Columns], first: Rows) -> tuple[Waiting, Mask]:
    """The calls with the attribute `sync_on` of all ranks, in rows of the plan.

    The second part marks the edges, of all ranks one after the other, that these calls find anew.
    """
    waiting = Waiting()
    parts: list[tuple[Rows, ...]] = []
    found_anew = []
    streams = 0
    for columns, begin in zip(ranks, first.tolist(), strict=True):
        scopes, work, stream, names = _of_rank(columns)
        # Calls that wait for the same streams share one list.
        shared: dict[int, list[int]] = {}
        for row, numbers in scopes.items():
            if id(numbers) not in shared:
                shared[id(numbers)] = [streams + number for number in numbers]
            waiting.scopes[begin + row] = shared[id(numbers)]
        launch = np.full(len(columns), -1, np.int64)
        launching = columns.kind == EdgeKind.LAUNCH
        launch[columns.edges.target[launching]] = columns.edges.source[launching]
        launch[work] = np.where(
            launch[work] >= 0, launch[work], _not_before(columns, scopes, work, stream)
        )
        launched_by = np.where(launch[work] >= 0, launch[work] + begin, -1)
        own = _own_ends(columns)[np.maximum(launch[work], 0)] if len(work) else work
        parts.append((work + begin, stream + streams, launched_by, own))
        streams += names
        found_anew.append(_found_anew(columns, scopes, work, stream))
    if parts:
        columns_of_work = [np.concatenate(column) for column in zip(*parts, strict=True)]
        waiting.work, waiting.stream, waiting.launch, waiting.own = columns_of_work
    return waiting, np.concatenate(found_anew) if found_anew else np.zeros(0, np.bool_)


def _own_ends(columns: Columns) -> Rows:
    """How long after it begins each node's own part of its time ends."""
    parts, mine = columns.parts, columns.parts.own
    _, ends = parts.placed(np.zeros(len(columns), np.int64))
    own = np.zeros(len(columns), np.int64)
    own[parts.node[mine]] = ends[mine]
    return own


def _not_before(columns: Columns, scopes: dict[int, list[int]], work: Rows, stream: Rows) -> Rows:
    """The last call that waited for each work's stream and was over before the work was; else -1.

    Where nothing tells when work was launched, calls tell that did not wait for it: it counts as
    launched when the last of them has ended.
    """
    result = np.full(len(work), -1, np.int64)
    calls: dict[int, list[int]] = {}
    for row, numbers in scopes.items():
        for number in numbers:
            calls.setdefault(number, []).append(row)
    for number, rows in calls.items():
        mine = np.flatnonzero(stream == number)
        over = np.array(rows, np.int64)[np.argsort(columns.end[rows], kind="stable")]
        ended = columns.end[work[mine]] - _SLACK_NS
        place = np.searchsorted(columns.end[over], ended, "left") - 1
        result[mine] = np.where(place >= 0, over[place], -1)
    return result


def _of_rank(columns: Columns) -> tuple[dict[int, list[int]], Rows, Rows, int]:
    """Scopes by row, device work in stream order, the stream of each, and how many streams."""
    attributes = columns.trace.nodes.attributes
    calls = attributes.named("sync_on")
    if not calls:
        nothing = np.zeros(0, np.int64)
        return {}, nothing, nothing, 0
    rows = np.flatnonzero(attributes.present("stream") & columns.device)
    device = attributes.dense("device", 0, np.int64)[rows]
    number = attributes.dense("stream", 0, np.int64)[rows]
    places, place = np.unique(device, return_inverse=True)
    lines, line = np.unique(number, return_inverse=True)
    pairs, stream = np.unique(place * len(lines) + line, return_inverse=True)
    order = np.lexsort((rows, columns.start[rows], stream))
    names = [(int(places[p // len(lines)]), int(lines[p % len(lines)])) for p in pairs.tolist()]
    scopes: dict[int, list[int]] = {}
    told: dict[str, list[int] | None] = {}
    for column in calls:
        for row, text in zip(column.rows.tolist(), map(str, column.values), strict=True):
            if text not in told:
                told[text] = _streams(text, names)
            streams = told[text]
            if streams is not None:
                scopes[row] = streams
    return scopes, rows[order], stream[order], len(names)


def _streams(text: str, names: list[tuple[int, int]]) -> list[int] | None:
    """The numbers of the streams that `device 0` or `stream 0 7` stands for; None for other texts.

    Such a call keeps its recorded edges.
    """
    match = _SCOPE.fullmatch(text)
    if match is None:
        return None
    if match["device"] is not None:
        return [i for i, (device, _) in enumerate(names) if device == int(match["device"])]
    wanted = int(match["of"]), int(match["stream"])
    return [i for i, name in enumerate(names) if name == wanted]


def _found_anew(columns: Columns, scopes: dict[int, list[int]], work: Rows, stream: Rows) -> Mask:
    """The edges into calls from work in their scopes, or from a join, which stands for such."""
    stream_of = np.full(len(columns), -1, np.int64)
    stream_of[work] = stream
    edges = np.flatnonzero(columns.kind == EdgeKind.SYNC)
    mask = np.zeros(len(columns.kind), np.bool_)
    pairs = zip(
        edges.tolist(),
        columns.edges.target[edges].tolist(),
        stream_of[columns.edges.source[edges]].tolist(),
        strict=True,
    )
    joined = ~columns.device[columns.edges.source[edges]]
    into_calls = np.isin(columns.edges.target[edges], list(scopes))
    mask[edges[joined & into_calls]] = True
    mask[[edge for edge, target, lane in pairs if lane in scopes.get(target, ())]] = True
    return mask

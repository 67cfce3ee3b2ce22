"""Records of ndtimeline, the open part of MegaScale (veScale): segments of steps, on all ranks.

Three forms are read, by content: records as its handlers hand them on (JSON, a list or one a line),
the log of its raw handler, and the timeline of its local handler (a list of Chrome events). Times
in the first two are seconds, in the timeline microseconds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec

from chakra_et.analyze.segments import Segments, Span, segments_of
from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.json_text import from_json
from chakra_et.io.source import blocks, read_all

_HEAD: Final = 1 << 16
_STEP: Final = "_inner_global_step"
"""The tag with the step of a segment, where the program told it."""
_RAW: Final = re.compile(
    r"metric_name: (?P<metric>.*?), elapsed: .*?, recent_elapsed_raw_parts: (?P<took>\[.*?\]), "
    r"recent_since_start_raw_parts: (?P<start>\[.*?\]), tags: (?P<tags>\[.*\]), "
    r"step_range: range\((?P<range>[-\d, ]+)\), world_info: WorldInfo: TopoInfo\((?P<topo>[^)]*)\)"
)
_EVENT: Final = re.compile(rb'"args": ?\{"rank": ?\d')
_CANNOT: Final = (ValueError, SyntaxError, KeyError, TypeError, OverflowError, AttributeError)


class _Rank(NamedTuple):
    """Where a rank lies, and the host that it runs on, if told."""

    rank: int
    tp: int = 0
    dp: int = 0
    pp: int = 0
    host: str = ""


_Found = Iterator[tuple[_Rank, list[Span]]]


def is_ndtimeline(path: str | Path) -> bool:
    """Whether a file, or any file of a directory, holds such records."""
    return any(_form(file) is not None for file in _files(Path(path)))


def read_segments(path: str | Path) -> Segments:
    """The segments in a file, or in all files of a directory that hold such records.

    Raises FormatError for a record that is none, naming its place.
    """
    spans: list[Span] = []
    ranks: dict[int, _Rank] = {}
    skipped = []
    for file in _files(Path(path)):
        form = _form(file)
        if form is None:
            skipped.append(file.name)
            continue
        for rank, some in form(read_all(file), file):
            ranks.setdefault(rank.rank, rank)
            spans += some
    if not spans:
        raise ChakraError("no segments in these records", path=path, remedy="Record some steps.")
    axes = {
        axis: {rank: getattr(facts, axis) for rank, facts in sorted(ranks.items())}
        for axis in ("tp", "dp", "pp")
    }
    hosts = {rank: facts.host for rank, facts in ranks.items() if facts.host}
    return segments_of(spans, axes, hosts, tuple(skipped))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file())
    # What is no regular file, such as a pipe, can be read only once.
    return [path] if path.is_file() else []


def _form(file: Path) -> Callable[[bytes, Path], _Found] | None:
    """How a file is read, by how it begins."""
    try:
        head = next(iter(blocks(file)), b"")[:_HEAD]
    except ChakraError:
        # Whoever reads it otherwise says what is wrong with it.
        return None
    if b"metric_name: " in head and b"world_info: WorldInfo" in head:
        return _raw
    if b'"metric"' in head and b'"start_ts"' in head:
        return _records
    is_list = head.lstrip().startswith(b"[") and b'"ph"' in head
    return _timeline if is_list and _EVENT.search(head) else None


_LARGEST: Final = 1 << 62
_Whole: TypeAlias = Annotated[int, msgspec.Meta(gt=-_LARGEST, lt=_LARGEST)]


class _Record(msgspec.Struct):
    rank: _Whole
    metric: str
    step: _Whole
    start_ts: list[float]
    duration: list[float]
    stage: _Whole = 0
    dp_rank: _Whole = 0
    tp_rank: _Whole = 0
    ip: str = ""


def _records(data: bytes, file: Path) -> _Found:
    """Records as handlers hand them on: a list of them, or one a line."""
    if data.lstrip().startswith(b"["):
        items = enumerate(_decoded(data, list[_Record], file, 1), 1)
    else:
        lines = ((n, line) for n, line in enumerate(data.splitlines(), 1) if line.strip())
        items = ((n, _decoded(line, _Record, file, n)) for n, line in lines)  # type: ignore[assignment]
    for number, item in items:
        rank = _Rank(item.rank, item.tp_rank, item.dp_rank, item.stage, item.ip)
        try:
            times = zip(item.start_ts, item.duration, strict=True)
            spans = [Span(item.rank, item.step, item.metric, *map(_ns, pair)) for pair in times]
        except _CANNOT as error:
            raise _wrong(f"times of {item.metric!r}: {error}", file, number) from error
        yield rank, spans


def _decoded(data: bytes, kind: Any, file: Path, number: int) -> Any:
    try:
        return from_json(data, type=kind)
    except msgspec.DecodeError as error:
        raise _wrong(str(error), file, number) from error


def _raw(data: bytes, file: Path) -> _Found:
    """The log of the raw handler: one flush of a metric a line."""
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        match = _RAW.search(line)
        if match is None:
            raise _wrong("no record", file, number)
        try:
            yield _of_line(match)
        except _CANNOT as error:
            raise _wrong(f"no record: {error}", file, number) from error


def _of_line(match: re.Match[str]) -> tuple[_Rank, list[Span]]:
    took, start, tags = (ast.literal_eval(match[name]) for name in ("took", "start", "tags"))
    steps = _steps(tags, [int(part) for part in match["range"].split(",")], len(took))
    pairs = (item.partition("=") for item in match["topo"].split(","))
    topo = {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}
    rank, tp, dp, pp = (_whole(topo.get(n, 0)) for n in ("rank", "tp_rank", "dp_rank", "pp_rank"))
    spans = [
        Span(rank, step, match["metric"], _ns(begin), _ns(length))
        for step, begin, length in zip(steps, start, took, strict=True)
    ]
    return _Rank(rank, tp, dp, pp, topo.get("ip", "")), spans


def _steps(tags: Sequence[Any], bounds: list[int], count: int) -> list[int]:
    """The step of each segment: as tags tell, else as many in each step of the range."""
    told = [tag[_STEP] for tag in tags if isinstance(tag, dict) and _STEP in tag]
    if told:
        if len(told) != count:
            raise ValueError(f"{len(told)} of {count} segments tell their step")
        return [_whole(step) for step in told]
    steps = range(*map(_whole, bounds))
    if not steps or count % len(steps):
        raise ValueError(f"{count} segments in {len(steps)} steps")
    return [step for step in steps for _ in range(count // len(steps))]


def _timeline(data: bytes, file: Path) -> _Found:
    """The timeline of the local handler: `pid` is the data-parallel rank."""
    for number, event in enumerate(_decoded(data, list[dict[str, Any]], file, 1), 1):
        if event.get("ph") != "X":
            continue
        try:
            args = event["args"]
            tp, dp, pp = map(_whole, (args.get("tp", 0), event["pid"], args.get("pp", 0)))
            rank = _Rank(_whole(args["rank"]), tp, dp, pp)
            start, took = (_ns(float(event[name]) / 1e6) for name in ("ts", "dur"))
            yield rank, [Span(rank.rank, _whole(args["step"]), str(event["name"]), start, took)]
        except _CANNOT as error:
            raise _wrong(f"no event of a segment: {error}", file, number) from error


def _whole(told: Any) -> int:
    """A whole number. Raises ValueError for what is none, or is none that a column holds."""
    number = int(told)
    if abs(number) >= _LARGEST:
        raise ValueError(f"{number} is too large")
    return number


def _ns(seconds: float) -> int:
    """Whole nanoseconds. Raises ValueError for what is no time."""
    ns = round(seconds * 1e9)
    if abs(ns) >= 1 << 63:
        raise ValueError(f"{seconds} seconds")
    return ns


def _wrong(problem: str, file: Path, number: int) -> FormatError:
    return FormatError(
        problem,
        path=file,
        place=f"record {number}",
        remedy="Expected what ndtimeline's handlers write: docs/analyze.md says which forms.",
    )

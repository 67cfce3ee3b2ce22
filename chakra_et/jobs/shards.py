"""A run in shards: each converts some of its ranks, on any machine; then they are merged.

All shards see all files, find the same pairs, and take every n-th. They share only the directory of
parts, in which files appear by renaming: there is no lock, and two that do the same write the same
bytes. Each leaves a manifest of its ranks; merging reads these, lets ranks learn of each other, and
publishes the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from chakra_et.conversion import Options
from chakra_et.converters.formats import by_name
from chakra_et.errors import ChakraError
from chakra_et.inputs import Input
from chakra_et.io.json_text import from_json
from chakra_et.io.output import atomic_output
from chakra_et.jobs.crew import Crew, Result
from chakra_et.jobs.failures import Failure
from chakra_et.jobs.job import Job, outcome_of
from chakra_et.jobs.parts import Parts
from chakra_et.jobs.states import mark_of, stamp_of
from chakra_et.linker.window import Window
from chakra_et.pairing import Pair
from chakra_et.patterns import lazy_pattern
from chakra_et.search import PassedOver
from chakra_et.version import __version__

_SHARD: Final = lazy_pattern(r"(\d{1,6})/(\d{1,6})")
_NAMED: Final = 5


class Shard(msgspec.Struct, frozen=True):
    """One of `of` shards, numbered from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard that `2/8` names. Raises ChakraError."""
        match = _SHARD.fullmatch(text)
        found = cls(int(match[1]), int(match[2])) if match else cls(0, 0)
        if not 1 <= found.number <= found.of:
            raise ChakraError(
                f"--shard {text}: expected a number and of how many",
                remedy="Write --shard 1/8 to --shard 8/8 for eight shards.",
            )
        return found

    def takes(self, place: int) -> bool:
        """Whether the pair at a place is one of this shard's."""
        return place % self.of == self.number - 1

    @property
    def name(self) -> str:
        """The name of its manifest."""
        return f"shard.{self.number}.of.{self.of}.json"


class _File(msgspec.Struct):
    """An input, for another process on another day."""

    path: str
    name: str
    format: str
    pid: int | None
    rank: int | None
    world_size: int | None
    detail: str
    stamp: tuple[int, int] | None = None


class _Entry(msgspec.Struct):
    """A pair of a run, and what came of it: the key of a conversion, or an error."""

    place: int
    host: _File | None
    device: _File | None
    whole: _File | None
    rank: int | None
    key: str = ""
    error: tuple[str, str | None, str | None, str | None] | None = None


class ShardManifest(msgspec.Struct):
    """What a shard did. `run` is equal for all shards of a run: it covers its files and options."""

    run: str
    number: int
    of: int
    count: int
    strict: bool
    window: Window | None
    align_clocks: bool
    entries: list[_Entry]
    passed_over: list[PassedOver]
    unread: list[tuple[tuple[str, ...], str]]
    format: str = "chakra-et shard 1"


def convert_shard(
    work: Sequence[Job],
    shard: Shard,
    parts: Parts,
    crew: Crew,
    others: list[PassedOver],
    unread: list[Failure],
) -> tuple[list[Job], list[Result]]:
    """Convert the ranks of a shard to the parts of the run, and leave its manifest there."""
    run = _run_of(work)
    _forget_others(parts, run, shard)
    places = [place for place in range(len(work)) if shard.takes(place)]
    mine = [work[place] for place in places]
    entries = [_entry(place, job.pair) for place, job in zip(places, mine, strict=True)]
    results = crew.perform(mine)
    for entry, result in zip(entries, results, strict=True):
        _keep(entry, result)
    options = work[0].options
    manifest = ShardManifest(
        run,
        shard.number,
        shard.of,
        len(work),
        options.strict,
        options.window,
        options.align_clocks,
        entries,
        others,
        [(failure.files, failure.error.problem) for failure in unread],
    )
    parts.folder.mkdir(parents=True, exist_ok=True)
    with atomic_output(parts.folder / shard.name) as stream:
        stream.write(msgspec.json.encode(manifest))
    return mine, results


class Merged(msgspec.Struct):
    """The jobs of all shards in order, what came of each, and what is told beside."""

    work: list[Job]
    results: list[Result]
    others: list[PassedOver]
    unread: list[Failure]


def gather(parts: Parts, crew: Crew) -> Merged:
    """What all shards of a run did; conversions that are gone, or of files that have changed since,
    are performed here.

    Raises ChakraError where shards are missing.
    """
    manifests = _manifests(parts)
    first = manifests[0]
    options = Options(first.strict, first.window, first.align_clocks)
    entries = sorted((e for m in manifests for e in m.entries), key=lambda entry: entry.place)
    work = [Job(_pair(entry), options, parts, resume=True) for entry in entries]
    found = [_result(entry, parts) for entry in entries]
    missing = [place for place, result in enumerate(found) if result is None]
    again = dict(zip(missing, crew.perform([work[place] for place in missing]), strict=True))
    results = [again[p] if result is None else result for p, result in enumerate(found)]
    unread = [
        Failure(files, ChakraError(problem, path=files[0], remedy="Copy or record it again."))
        for files, problem in first.unread
    ]
    return Merged(work, results, first.passed_over, unread)


def forget_shards(parts: Parts) -> None:
    """Take away the manifests of shards that are merged."""
    for path in parts.folder.glob("shard.*.json"):
        path.unlink(missing_ok=True)


def _run_of(work: Sequence[Job]) -> str:
    """What is equal for all shards of a run: files at first sight, options, version."""
    told = [[mark_of(file) for file in job.pair.files] for job in work]
    options = work[0].options
    content = __version__, told, options.strict, options.window, options.align_clocks
    return hashlib.sha256(msgspec.msgpack.encode(content)).hexdigest()[:16]


def _forget_others(parts: Parts, run: str, shard: Shard) -> None:
    """Take away manifests of an earlier run, or of other shards of this one."""
    for path in parts.folder.glob("shard.*.json"):
        manifest = _read(path)
        if manifest is None or (manifest.run, manifest.of) != (run, shard.of):
            path.unlink(missing_ok=True)


def _manifests(parts: Parts) -> list[ShardManifest]:
    found = [_read(path) for path in sorted(parts.folder.glob("shard.*.json"))]
    manifests = {m.number: m for m in found if m is not None}
    if not manifests:
        raise ChakraError(
            "no shards of a run are here",
            path=parts.target,
            remedy="Run chakra convert DIR -o OUT --shard 1/N to N/N, with this OUT.",
        )
    of = max(manifest.of for manifest in manifests.values())
    if len({(m.run, m.of) for m in manifests.values()}) > 1:
        raise ChakraError(
            "shards of different runs are here",
            path=parts.target,
            remedy="Convert all shards of one run again, with the same files and options.",
        )
    missing = [number for number in range(1, of + 1) if number not in manifests]
    if missing:
        named = ", ".join(f"{number}/{of}" for number in missing[:_NAMED])
        raise ChakraError(
            f"{len(missing)} of {of} shards are missing ({named}{', …' * (len(missing) > _NAMED)})",
            path=parts.target,
            remedy="Run chakra convert with the same files and options and these shards.",
        )
    return [manifests[number] for number in sorted(manifests)]


def _read(path: Path) -> ShardManifest | None:
    with suppress(OSError, msgspec.DecodeError):
        return from_json(path.read_bytes(), type=ShardManifest)
    return None


def _entry(place: int, pair: Pair) -> _Entry:
    return _Entry(place, _told(pair.host), _told(pair.device), _told(pair.whole), pair.rank)


def _keep(entry: _Entry, result: Result) -> None:
    """Let the entry say what came of its pair."""
    if isinstance(result, ChakraError):
        path = None if result.path is None else str(result.path)
        entry.error = result.problem, path, result.place, result.remedy
    else:
        entry.key = result.key


def _result(entry: _Entry, parts: Parts) -> Result | None:
    """What came of a pair; None where its record is gone, or its files have changed since."""
    files = entry.host, entry.device, entry.whole
    if any(told is not None and _has_changed(told) for told in files):
        return None
    if entry.error is not None:
        problem, path, place, remedy = entry.error
        return ChakraError(problem, path=path, place=place, remedy=remedy)
    record = parts.record(entry.key)
    return None if record is None else outcome_of(parts, entry.key, record)


def _has_changed(told: _File) -> bool:
    """Whether a file is there, and not as it was; then its content is looked at again."""
    return stamp_of(Path(told.path)) not in (None, told.stamp)


def _told(given: Input | None) -> _File | None:
    if given is None:
        return None
    rest = given.pid, given.rank, given.world_size, given.detail
    stamp = stamp_of(given.path)
    return _File(str(given.path), given.name, given.format.name, *rest, stamp)


def _pair(entry: _Entry) -> Pair:
    host, device, whole = map(_input, (entry.host, entry.device, entry.whole))
    return Pair(host, device, entry.rank, whole)


def _input(told: _File | None) -> Input | None:
    if told is None:
        return None
    rest = told.pid, told.rank, told.world_size, told.detail
    return Input(Path(told.path), told.name, by_name(told.format), *rest)

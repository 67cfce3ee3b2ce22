"""From paths to what rules look at: bytes, traces, and the runs that they make up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from chakra_et.checked_files import is_et, look, read_et
from chakra_et.conversion import convert
from chakra_et.errors import ChakraError, FormatError
from chakra_et.file_facts import FileFacts
from chakra_et.inputs import Input
from chakra_et.io.guard import reading
from chakra_et.io.source import read_all
from chakra_et.model import Trace, TraceSet
from chakra_et.search import names_in
from chakra_et.validators.json_inputs import JsonFacts, json_facts
from chakra_et.validators.view import RunView, TraceView

GROUP_FILE: Final = "comm_groups.json"
_RANKED: Final = re.compile(r"(?P<prefix>.*?)\.?(?P<rank>\d+)\.(et|json)(\.gz|\.zst)?")


@dataclass
class Inputs:
    """Everything that was given, as rules want it."""

    files: list[FileFacts] = field(default_factory=list)
    documents: list[JsonFacts] = field(default_factory=list)
    runs: list[RunView] = field(default_factory=list)
    unreadable: list[ChakraError] = field(default_factory=list)
    """Paths of which no trace could be made, and why."""
    paths: list[Path] = field(default_factory=list)


def from_traces(traces: Trace | TraceSet, groups: dict[str, list[int]] | None = None) -> Inputs:
    """Inputs from what is in memory: traces, and `groups`, the content of comm_groups.json."""
    if isinstance(traces, Trace):
        traces = TraceSet({traces.rank or 0: traces})
    views = {rank: TraceView(trace, rank) for rank, trace in traces.items()}
    file = None if groups is None else (GROUP_FILE, groups)
    return Inputs(runs=[RunView(views, group_file=file)])


def from_paths(paths: Iterable[str | Path], *, skip_others: bool = False) -> Inputs:
    """Inputs from files and directories; of a directory, every file that is a trace.

    Files of one directory whose names differ by the rank alone are one run; ranks that were not
    named are read for the rules about the run. With `skip_others`, files that are no traces are
    passed over.
    """
    inputs = Inputs()
    runs: dict[tuple[Path, str], list[TraceView]] = {}
    for given in _given(paths, inputs, skip_others):
        path = given.path
        inputs.paths.append(path)
        try:
            view = _read(given, inputs)
        except ChakraError as error:
            inputs.unreadable.append(error)
            continue
        if view is not None:
            match = _RANKED.fullmatch(path.name)
            runs.setdefault((path.parent, match["prefix"] if match else path.name), []).append(view)
    parents = dict.fromkeys(parent for parent, _ in runs)
    group_files = {parent: _group_file(parent, inputs) for parent in parents}
    for (parent, prefix), views in runs.items():
        views += _others_beside(parent, prefix, views, inputs)
        inputs.runs.append(_run(views, group_files[parent]))
    return inputs


def _others_beside(
    parent: Path, prefix: str, views: list[TraceView], inputs: Inputs
) -> list[TraceView]:
    """The other ranks of a run of which only some files were named, for rules about the run.

    A hook before a commit, for one, gets the files that changed.
    """
    named = [path for path in inputs.paths if path.parent == parent]
    taken = {view.rank for view in views} | {_rank_of(path) for path in named}
    others = []
    for path in sorted(parent.iterdir()) if parent.is_dir() else ():
        match = _RANKED.fullmatch(path.name)
        if match is None or match["prefix"] != prefix or int(match["rank"]) in taken:
            continue
        given = look(path) if path.is_file() else None
        if not isinstance(given, Input) or not given.holds_trace:
            continue
        with suppress(ChakraError):
            view = _read(given, Inputs())
            if view is not None and view.rank not in taken:
                view.named = False
                others.append(view)
    return others


def _given(paths: Iterable[str | Path], inputs: Inputs, skip_others: bool) -> list[Input]:
    """Every file that was named, and of a directory every file that is a trace.

    What cannot be read becomes part of `inputs`.
    """
    found: dict[Path, Input] = {}
    for path in map(Path, paths):
        names = names_in(path)
        if names is None:
            taken = look(path)
            if isinstance(taken, Input):
                found.setdefault(path, taken)
            elif not (skip_others and path.is_file()):
                inputs.paths.append(path)
                inputs.unreadable.append(taken)
            continue
        inside = [look(path / name) for name in sorted(names)]
        taken_in = {given.path: given for given in inside if isinstance(given, Input)}
        if not taken_in:
            inputs.unreadable.append(
                ChakraError("no trace in this directory", path=path, remedy="Name another one.")
            )
        found |= taken_in
    return list(found.values())


def _read(given: Input, inputs: Inputs) -> TraceView | None:
    """Read one file into `inputs`; the view of its trace, if it is one."""
    with reading(given.path, given.format.called):
        return _read_unguarded(given, inputs)


def _read_unguarded(given: Input, inputs: Inputs) -> TraceView | None:
    path = given.path
    if given.holds_both:
        return TraceView(convert(path).trace, _rank_of(path), str(path))
    if is_et(given):
        return _read_et(path, inputs)
    if given.format.schema is not None:
        inputs.documents.append(json_facts(path, given.format.schema, read_all(path)))
    if not given.holds_trace:
        return None
    return TraceView(given.read(), _rank_of(path), str(path))


def _read_et(path: Path, inputs: Inputs) -> TraceView | None:
    facts, trace, problem = read_et(path)
    inputs.files.append(facts)
    if trace is None:
        inputs.unreadable.append(FormatError(problem or "", path=path))
        return None
    view = TraceView(trace, path=str(path))
    if view.rank is None:
        view.rank = _rank_of(path)
    return view


def _rank_of(path: Path) -> int | None:
    match = _RANKED.fullmatch(path.name)
    return int(match["rank"]) if match else None


def _run(views: list[TraceView], group_file: tuple[str, Any] | None) -> RunView:
    by_rank: dict[int, TraceView] = {}
    doubled = []
    for view in views:
        rank = view.rank
        if rank is None:
            rank = next(r for r in range(len(views)) if r not in by_rank)
        if rank in by_rank:
            doubled.append((rank, view.path or ""))
        by_rank.setdefault(rank, view)
    return RunView(by_rank, doubled, group_file, from_files=True)


def _group_file(parent: Path, inputs: Inputs) -> tuple[str, Any] | None:
    """The file of groups beside traces; one that is no JSON becomes part of `inputs`, too."""
    path = parent / GROUP_FILE
    try:
        # In an archive, a path leads to the member.
        data = path.read_bytes() if parent.is_dir() else read_all(path)
        return str(path), msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else f"not JSON: {error}"
        remedy = 'Write an object with a list of ranks for each group: {"1": [0, 2]}.'
        inputs.unreadable.append(FormatError(reason, path=path, remedy=remedy))
        return str(path), None
    except (OSError, ChakraError):
        return None

"""Which ranks of a set do the same, so that one of them stands for all.

Copies run one program, each in its own groups and with its own peers. What they do takes the same
time on each of them, so that a replay of one rank for each program gives the times of all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from chakra_et.build import Program, Workload
from chakra_et.build.output import GROUP_FILE, MANIFEST
from chakra_et.errors import ChakraError, FormatError
from chakra_et.files import read, read_set
from chakra_et.inputs import rank_in_name
from chakra_et.io.json_text import from_json
from chakra_et.io.source import read_all
from chakra_et.model import Trace
from chakra_et.search import names_in

_ET: Final = re.compile(r"\.et(\.zst|\.gz)?$")


@dataclass
class Copies:
    """One trace for each program, with the ranks that run it.

    `programs[n]` has the ranks of program n in ascending order; `traces[n]` is the trace of the
    first of them. `families` has the groups of each purpose, to tell which communicate at once.
    """

    traces: list[Trace]
    programs: list[list[int]]
    families: dict[str, list[list[int]]]

    def __post_init__(self) -> None:
        self.program_of = {rank: n for n, ranks in enumerate(self.programs) for rank in ranks}

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return len(self.program_of)


def copies_of_workload(workload: Workload, program: Program) -> Copies:
    """Of a workload that is not written anywhere."""
    traces, programs = [], []
    for columns, ranks in workload.programs(program):
        traces.append(columns.trace(int(ranks[0])))
        programs.append(ranks.tolist())
    families = {
        family.name: family.members.tolist()
        for family in workload.families.values()
        if family.size > 1
    }
    return Copies(traces, programs, families)


def copies_of_traces(traces: Mapping[int, Trace]) -> Copies:
    """Of traces of which nobody knows which are copies: each rank for itself."""
    families: dict[str, set[tuple[int, ...]]] = {}
    for trace in traces.values():
        for group in trace.groups:
            if group.ranks and group.description:
                families.setdefault(group.description, set()).add(group.ranks)
    return Copies(
        list(traces.values()),
        [[rank] for rank in traces],
        {name: [list(ranks) for ranks in sorted(found)] for name, found in families.items()},
    )


class _Copy(msgspec.Struct):
    ranks: list[int]
    program: int = 0


class _Family(msgspec.Struct):
    family: str
    first: int
    count: int


class _Manifest(msgspec.Struct):
    copies: list[_Copy]
    groups: list[_Family]


def copies_of_set(path: Path) -> Copies:
    """Of a set on disk: as its manifest says where it has one, else rank by rank.

    With a manifest, one file is read for each program. Raises as `chakra_et.files.read`.
    """
    names = names_in(path) or []
    if MANIFEST not in names or GROUP_FILE not in names:
        return copies_of_traces(read_set(path))
    told = _decode(path / MANIFEST, _Manifest)
    if not all(copy.program for copy in told.copies):
        return copies_of_traces(read_set(path))
    groups = _decode(path / GROUP_FILE, dict[str, list[int]])
    files = {rank_in_name(Path(name)): path / name for name in names if _ET.search(name)}
    of_program: dict[int, list[int]] = {}
    for copy in told.copies:
        of_program.setdefault(copy.program, []).extend(copy.ranks)
    programs = sorted(sorted(ranks) for ranks in of_program.values())
    try:
        traces = [read(files[ranks[0]]) for ranks in programs]
        families = {
            one.family: [groups[str(one.first + number)] for number in range(one.count)]
            for one in told.groups
        }
    except KeyError as error:
        raise ChakraError(
            f"{MANIFEST} names rank or group {error}, which is not there",
            path=path,
            remedy="Generate the set again, or take the manifest away.",
        ) from error
    return Copies(traces, programs, families)


def _decode(path: Path, type: Any) -> Any:
    try:
        return from_json(read_all(path), type=type)
    except msgspec.DecodeError as error:
        raise FormatError(
            str(error), path=path, remedy="Generate the set again, or take the file away."
        ) from error

"""Packed sets: all ranks of a workload in one file.

A packed set is a zip archive. `set.json` holds the grid, the families of groups and, of each
template, which ranks it is for and what its slots hold; `nodes.<n>.zst` and `slots.<n>.zst` hold
the bytes of template n and where its slots are, as little-endian int64. A rank's file comes from
these alone, byte for byte as it would have been written.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import zstandard

from chakra_et.build.operation import Peer
from chakra_et.build.output import GROUP_FILE, Written
from chakra_et.build.template import Slot, Template, templates
from chakra_et.build.workload import Program, Watch, Workload
from chakra_et.converters.et import decode_et
from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.output import atomic_output, write_json
from chakra_et.model import Trace
from chakra_et.run_directory import run_directory

FORMAT: Final = "chakra-et packed set"
_TABLE: Final = "set.json"
_DAMAGED: Final = "Write the set again, or copy it again."


class _Slot(msgspec.Struct, omit_defaults=True):
    width: int
    count: int
    family: str | None = None
    peer: dict[str, Any] | None = None


class _Template(msgspec.Struct):
    ranks: list[int]
    nodes: int
    edges: int
    slots: list[_Slot]


class _Family(msgspec.Struct):
    name: str
    groups: list[list[int]]


class _Set(msgspec.Struct):
    format: str
    grid: dict[str, int]
    facts: dict[str, str]
    families: list[_Family]
    templates: list[_Template]


def write_packed(
    workload: Workload, program: Program, path: str | Path, *, watch: Watch | None = None
) -> Written:
    """Write all ranks into one file, whole or not at all. Raises as `write_workload` does."""
    written = Written(workload)
    kept: list[_Template] = []
    with atomic_output(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for columns, ranks in workload.programs(program, watch):
            written.programs += 1
            for template in templates(columns, ranks):
                number = len(kept)
                at = [slot.offsets.astype("<i8").tobytes() for slot in template.slots]
                _store(archive, f"nodes.{number}.zst", template.data)
                _store(archive, f"slots.{number}.zst", b"".join(at))
                kept.append(_told(template))
                written.add(template, 0)
        families = [
            _Family(f.name, f.members.tolist()) for f in workload.families.values() if f.size > 1
        ]
        table = _Set(FORMAT, workload.grid.axes, workload.facts, families, kept)
        archive.writestr(zipfile.ZipInfo(_TABLE), msgspec.json.encode(table), zipfile.ZIP_DEFLATED)
    written.file_bytes = Path(path).stat().st_size
    return written


def _store(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # One date for all: equal sets give equal files.
    archive.writestr(zipfile.ZipInfo(name), zstandard.ZstdCompressor(level=3).compress(data))


def _told(template: Template) -> _Template:
    slots = [
        _Slot(s.width, len(s.offsets), s.family, None if s.peer is None else s.peer._asdict())
        for s in template.slots
    ]
    return _Template(template.ranks.tolist(), template.nodes, template.edges, slots)


class PackedSet(Mapping[int, Trace]):
    """The traces of a packed set by rank; each is made when it is asked for.

    Raises FormatError for a file that is none, and ChakraError for one that cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._archive = zipfile.ZipFile(self.path)
            table = msgspec.json.decode(self._archive.read(_TABLE), type=_Set)
            if table.format != FORMAT:
                raise ValueError(f"format {table.format!r}")
        except OSError as error:
            raise ChakraError(
                f"cannot be read: {error.strerror or error}", path=path, remedy="Name a packed set."
            ) from error
        except (zipfile.BadZipFile, KeyError, ValueError, RuntimeError) as error:
            raise FormatError(f"no packed set: {error}", path=path, remedy=_DAMAGED) from error
        self.workload = Workload(table.grid, facts=table.facts)
        for family in table.families:
            if family.name not in table.grid:
                self.workload.groups(family.name, ranks=family.groups)
        self.workload.seal()
        self._templates = table.templates
        self._of_rank = {r: n for n, told in enumerate(table.templates) for r in told.ranks}
        self._last: tuple[int, Template] | None = None

    def __getitem__(self, rank: int) -> Trace:
        return decode_et(self.file(rank))

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._of_rank))

    def __len__(self) -> int:
        return len(self._of_rank)

    def file(self, rank: int) -> bytes:
        """The file of a rank. Raises KeyError for a rank that is not in the set."""
        return self._template(self._of_rank[rank]).file(rank)

    def unpack(
        self,
        directory: str | Path,
        ranks: Iterable[int] | None = None,
        prefix: str = "trace",
        *,
        force: bool = False,
    ) -> list[Path]:
        """Write `{prefix}.{rank}.et` for some ranks (all by default), and comm_groups.json."""
        target = Path(directory)
        chosen = list(self if ranks is None else ranks)
        absent = [rank for rank in chosen if rank not in self._of_rank]
        if absent:
            raise ChakraError(
                f"no rank {absent[0]}", path=self.path, remedy=f"It has {len(self)} ranks, from 0."
            )
        with run_directory(target, prefix, force) as run:
            for rank in sorted(chosen, key=lambda rank: (self._of_rank[rank], rank)):
                run.path(f"{prefix}.{rank}.et").write_bytes(self.file(rank))
            write_json(self.workload.comm_groups(), run.path(GROUP_FILE))
        return [target / name for name in sorted(run.sources)]

    def _template(self, number: int) -> Template:
        """A template; the last one is kept."""
        if self._last is None or self._last[0] != number:
            told = self._templates[number]
            at = np.frombuffer(self._read(f"slots.{number}.zst"), "<i8")
            slots, start = [], 0
            for slot in told.slots:
                offsets = at[start : start + slot.count]
                slots.append(Slot(slot.width, offsets, slot.family, _peer(slot.peer)))
                start += slot.count
            data = self._read(f"nodes.{number}.zst")
            ranks = np.array(told.ranks, np.int64)
            template = Template(self.workload, ranks, data, slots, told.nodes, told.edges)
            self._last = number, template
        return self._last[1]

    def _read(self, name: str) -> bytes:
        try:
            return zstandard.ZstdDecompressor().decompress(self._archive.read(name))
        except (zipfile.BadZipFile, KeyError, zstandard.ZstdError) as error:
            raise FormatError(
                f"damaged: {error}", path=self.path, place=name, remedy=_DAMAGED
            ) from error


def _peer(told: dict[str, Any] | None) -> Peer | None:
    if told is None:
        return None
    steps, places = ([(str(a), int(n)) for a, n in told[key]] for key in ("offsets", "places"))
    return Peer(tuple(steps), tuple(places), told["rank"])

"""Packed sets: the files of many ranks in one zip archive, of which copies are kept once.

`set.json` lists templates. Of template n, `nodes.<n>.zst` holds the bytes behind the first record
of its ranks' files; `slots.<n>.zst` where ranks differ in them, as little-endian int64;
`values.<n>.zst` what each rank has there; `heads.<n>.zst` the first record of each rank, behind an
int64 of its length. So a packed set reads like an archive of the files `trace.<rank>.et`.
"""

from __future__ import annotations

import zipfile
import zlib
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import zstandard

from chakra_et.errors import FormatError
from chakra_et.io.json_text import from_json
from chakra_et.io.last_part import LastPart
from chakra_et.patterns import lazy_pattern

FORMAT: Final = "chakra-et packed set 1"
TABLE: Final = "set.json"
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError,
)  # fmt: skip
_FILE: Final = lazy_pattern(r"trace\.(\d+)\.et")
_REMEDY: Final = "Write the set again, or copy it again."


class SlotTable(msgspec.Struct):
    """Slots of one template that hold one value: `count` places of `width` bytes."""

    width: int
    count: int


class TemplateTable(msgspec.Struct):
    """What `set.json` says of a template; nodes and edges are those of one rank."""

    ranks: list[int]
    nodes: int
    edges: int
    slots: list[SlotTable]


class SetTable(msgspec.Struct):
    """The content of `set.json`."""

    templates: list[TemplateTable]
    format: str = FORMAT


class PackedTemplate(msgspec.Struct, frozen=True):
    """The bytes that some ranks share, and those that each of them has to itself.

    `offsets` has one array for each slot; `values` the slots of all ranks, uint8[ranks, widths].
    """

    ranks: dict[int, int]
    nodes: bytes
    offsets: list[npt.NDArray[np.int64]]
    values: npt.NDArray[np.uint8]
    heads: list[bytes]

    def file(self, rank: int) -> bytes:
        """The file of a rank."""
        place = self.ranks[rank]
        head = self.heads[place]
        file = np.frombuffer(head + self.nodes, np.uint8).copy()
        at = 0
        for offsets in self.offsets:
            width = offsets.shape[1]
            file[offsets + len(head)] = self.values[place, at : at + width]
            at += width
        return bytes(file.data)


def packed_names(archive: zipfile.ZipFile) -> list[str] | None:
    """The files that a packed set, or file, stands for; None for another archive."""
    packed = _pack(archive)
    if packed is not None:
        reading, pack = packed
        found: list[str] = reading.names_of(pack)
        return found
    table = _table(archive)
    if table is None:
        return None
    ranks = sorted(rank for template in table.templates for rank in template.ranks)
    beside = [name for name in archive.namelist() if name.endswith(".json") and name != TABLE]
    return [*(f"trace.{rank}.et" for rank in ranks), *beside]


def packed_file(path: str | Path, archive: zipfile.ZipFile, name: str) -> bytes | None:
    """A file of a packed set; None if the archive is none, or it has no such rank.

    Raises FormatError for a damaged set.
    """
    packed = _pack(archive)
    if packed is not None:
        reading, pack = packed
        data: bytes | None = reading.file_of(Path(path), archive, pack, name)
        return data
    table, match = _table(archive), _FILE.fullmatch(name)
    if table is None or match is None:
        return None
    rank = int(match[1])
    for number, template in enumerate(table.templates):
        if rank in template.ranks:
            read = partial(_template, path, archive, number, template)
            return _LAST.get(archive, number, read).file(rank)
    return None


def _pack(archive: zipfile.ZipFile) -> tuple[Any, Any] | None:
    """What reads files of `chakra pack`, and the table of one; None for another archive.

    Whoever reads bytes knows no format: what this one needs is found when such a file is met.
    """
    if "pack.json" not in archive.namelist():
        return None
    reading = import_module("chakra_et.pack.reading")
    table = reading.table_of(archive)
    return None if table is None else (reading, table)


def read_table(path: str | Path, archive: zipfile.ZipFile) -> SetTable:
    """The table of a packed set. Raises FormatError for an archive that is none."""
    table = _table(archive)
    if table is None:
        raise FormatError("not a packed set", path=path, remedy=_REMEDY)
    return table


def _table(archive: zipfile.ZipFile) -> SetTable | None:
    try:
        table = from_json(archive.read(TABLE), type=SetTable)
    except (KeyError, msgspec.DecodeError, *_BROKEN):
        return None
    return table if table.format == FORMAT else None


_LAST: Final = LastPart[PackedTemplate]()
"""The template that was read last: files are read rank by rank."""


def _template(
    path: str | Path, archive: zipfile.ZipFile, number: int, told: TemplateTable
) -> PackedTemplate:
    try:
        nodes, slots, values, heads = (
            zstandard.ZstdDecompressor().decompress(archive.read(f"{name}.{number}.zst"))
            for name in ("nodes", "slots", "values", "heads")
        )
        template = PackedTemplate(
            ranks={rank: place for place, rank in enumerate(told.ranks)},
            nodes=nodes,
            offsets=_offsets(told, np.frombuffer(slots, "<i8"), len(nodes)),
            values=np.frombuffer(values, np.uint8).reshape(
                len(told.ranks), sum(slot.width for slot in told.slots)
            ),
            heads=_heads(heads),
        )
        if len(template.heads) != len(told.ranks):
            raise ValueError(f"{len(template.heads)} first records for {len(told.ranks)} ranks")
        return template
    except (KeyError, ValueError, zstandard.ZstdError, *_BROKEN) as error:
        raise FormatError(
            f"damaged: {error}", path=path, place=f"template {number}", remedy=_REMEDY
        ) from error


def _offsets(
    told: TemplateTable, at: npt.NDArray[np.int64], size: int
) -> list[npt.NDArray[np.int64]]:
    """For each slot the places of its bytes in `size` of them, int64[places, width]."""
    ends = np.cumsum([slot.count for slot in told.slots], dtype=np.int64)
    if len(at) != (ends[-1] if len(ends) else 0):
        raise ValueError(f"{len(at)} slots")
    parts = np.split(at, ends[:-1]) if len(ends) else []
    found = [
        part[:, None] + np.arange(slot.width) for part, slot in zip(parts, told.slots, strict=True)
    ]
    if any(part.size and not 0 <= part.min() <= part.max() < size for part in found):
        raise ValueError("a slot outside the nodes")
    return found


def _heads(data: bytes) -> list[bytes]:
    heads, at = [], 0
    while at < len(data):
        start = at + 8
        at = start + int.from_bytes(data[at:start], "little")
        heads.append(data[start:at])
    return heads

"""Reading packed files: one rank without the others, or all of them back into a directory."""

from __future__ import annotations

import hashlib
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.guard import reading
from chakra_et.io.json_text import from_json
from chakra_et.io.last_part import LastPart
from chakra_et.io.output import atomic_output
from chakra_et.pack.columns import Columns, bytes_of
from chakra_et.pack.differences import decode_class, decode_rank, decompress
from chakra_et.pack.table import FORMAT, TABLE, RankEntry, Table, class_name, rank_name
from chakra_et.run_directory import is_part_of_a_name, run_directory

_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, msgspec.DecodeError, KeyError, EOFError,
    NotImplementedError, RuntimeError, ValueError, OSError,
)  # fmt: skip
_LAST: Final = LastPart[tuple[bytes, Columns]]()
"""The class that was read last: ranks of a class are read one after the other."""


def table_of(archive: zipfile.ZipFile) -> Table | None:
    """The table of a packed file; None for any other archive, or where a name leads elsewhere."""
    try:
        table = from_json(archive.read(TABLE), type=Table)
    except _BROKEN:
        return None
    return table if table.format == FORMAT and is_part_of_a_name(table.prefix) else None


def names_of(table: Table) -> list[str]:
    """The files that a packed file stands for."""
    return [table.name(entry) for entry in table.ranks]


def file_of(path: Path, archive: zipfile.ZipFile, table: Table, name: str) -> bytes | None:
    """The bytes of one of the files; None if there is no such file. Raises as `rank_of`."""
    entry = next((entry for entry in table.ranks if table.name(entry) == name), None)
    return None if entry is None else rank_of(path, archive, entry)


def rank_of(path: Path, archive: zipfile.ZipFile, entry: RankEntry) -> bytes:
    """The ET of a rank.

    Raises FormatError for a damaged one: the bytes are held against their hash.
    """
    with reading(path, f"rank {entry.rank} of a packed file"):
        data = _read(archive, entry)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise FormatError(
            "damaged: its bytes are not those that were packed",
            path=path,
            place=f"rank {entry.rank}",
            remedy="Copy it again, or pack the ETs again.",
        )
    return data


def _read(archive: zipfile.ZipFile, entry: RankEntry) -> bytes:
    packed = archive.read(rank_name(entry.rank))
    if entry.group is None:
        return decompress(packed)
    encoded, common = _LAST.get(archive, entry.group, partial(_class, archive, entry.group))
    return bytes_of(decode_rank(decompress(packed, encoded), common))


def _class(archive: zipfile.ZipFile, number: int) -> tuple[bytes, Columns]:
    """A class: its columns, and these encoded."""
    encoded = decompress(archive.read(class_name(number)))
    return encoded, decode_class(encoded)


def unpack(
    source: str | Path,
    output: str | Path,
    *,
    ranks: Iterable[int] | None = None,
    force: bool = False,
    step: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write the ETs of a packed file to a directory: those of some ranks, by default of all.

    Each is what was packed, byte for byte. Raises ChakraError for a file that is not packed or
    has no such rank, and as `run_directory` does.
    """
    path = Path(source)
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise _not_packed(path) from error
    with archive:
        table = table_of(archive)
        if table is None:
            raise _not_packed(path)
        chosen = _chosen(path, table, ranks)
        with run_directory(Path(output), table.prefix, force) as run:
            for place, entry in enumerate(chosen):
                data = rank_of(path, archive, entry)
                with atomic_output(run.path(table.name(entry))) as stream:
                    stream.write(data)
                if step is not None:
                    step(place + 1, len(chosen))
    return [Path(output) / name for name in run.sources]


def _chosen(path: Path, table: Table, ranks: Iterable[int] | None) -> list[RankEntry]:
    if ranks is None:
        return table.ranks
    entries = {entry.rank: entry for entry in table.ranks}
    wanted = list(dict.fromkeys(ranks))
    absent = [rank for rank in wanted if rank not in entries]
    if absent:
        raise ChakraError(f"no rank {absent[0]}", path=path, remedy=f"It has {len(entries)} ranks.")
    return [entries[rank] for rank in wanted]


def _not_packed(path: Path) -> ChakraError:
    if path.exists():
        problem, remedy = "this was not made by chakra pack", "Name such a file."
    else:
        problem, remedy = "no such file", "Check the path."
    return ChakraError(problem, path=path, remedy=remedy)

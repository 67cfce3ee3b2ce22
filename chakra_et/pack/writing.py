"""Packing: the ETs of many ranks into one file."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from chakra_et.errors import ChakraError
from chakra_et.inputs import open_input
from chakra_et.io.output import atomic_output
from chakra_et.io.protected import inputs_protected
from chakra_et.io.source import read_all
from chakra_et.pack.columns import Columns, bytes_of, columns_of
from chakra_et.pack.differences import (
    compress,
    decode_class,
    decode_rank,
    encode_class,
    encode_rank,
)
from chakra_et.pack.table import TABLE, RankEntry, Table, class_name, rank_name
from chakra_et.search import trace_files

_PROTOBUF: Final = "ET (protobuf)"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@dataclass
class Packed:
    """What was packed: ranks, classes of them, ranks that are kept as bytes; sizes in bytes."""

    ranks: int = 0
    classes: int = 0
    as_bytes: int = 0
    et_bytes: int = 0
    file_bytes: int = 0


@dataclass
class _Class:
    """A class of ranks: its columns, and these encoded, beside which its ranks are compressed."""

    number: int
    columns: Columns
    encoded: bytes = field(repr=False)


def pack(
    source: str | Path,
    output: str | Path,
    *,
    prefix: str = "trace",
    step: Callable[[int, int], None] | None = None,
) -> Packed:
    """Pack the ETs of a directory, by rank, into one file.

    Each comes back byte for byte; of a compressed one, the bytes within. A class are ranks whose
    columns are of the same lengths: of its first rank all is kept, of others what differs. Equal
    ETs give equal files. Raises ChakraError for JSON ETs, and as `read_set` does.
    """
    files = dict(sorted(trace_files(source).items()))
    packed, table = Packed(), Table([], prefix)
    classes: dict[str, _Class] = {}
    with (
        inputs_protected(*files.values()),
        atomic_output(output) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive,
    ):
        for place, (rank, file) in enumerate(files.items()):
            data = _bytes(file)
            packed.et_bytes += len(data)
            entry = RankEntry(rank, len(data), hashlib.sha256(data).hexdigest())
            table.ranks.append(entry)
            _add(archive, entry, data, classes)
            packed.as_bytes += entry.group is None
            if step is not None:
                step(place + 1, len(files))
        _write(archive, TABLE, msgspec.json.format(msgspec.json.encode(table)))
    packed.ranks, packed.classes = len(files), len(classes)
    packed.file_bytes = Path(output).stat().st_size if Path(output).is_file() else 0
    return packed


def _add(
    archive: zipfile.ZipFile, entry: RankEntry, data: bytes, classes: dict[str, _Class]
) -> None:
    """Write what a rank differs in from its class, and the class if it is new.

    Where the bytes would not come back so, they are kept as they are.
    """
    columns = columns_of(data)
    try:
        if columns is None:
            raise ValueError("no columns")
        shape = _shape(columns)
        found = classes.get(shape) or _new_class(len(classes), columns)
        kept = encode_rank(columns, found.columns)
        if bytes_of(decode_rank(kept, found.columns)) != data:
            raise ValueError("other bytes")
    except ValueError:
        _write(archive, rank_name(entry.rank), compress(data))
        return
    if shape not in classes:
        classes[shape] = found
        _write(archive, class_name(found.number), compress(found.encoded))
    entry.group = found.number
    _write(archive, rank_name(entry.rank), compress(kept, found.encoded))


def _new_class(number: int, columns: Columns) -> _Class:
    encoded = encode_class(columns)
    return _Class(number, decode_class(encoded), encoded)


def _shape(columns: Columns) -> str:
    """What ranks of one class have in common: how many numbers each column has."""
    return repr({n: len(c) for n, c in columns.items() if isinstance(c, np.ndarray)})


def _bytes(file: Path) -> bytes:
    form = open_input(file).format
    if form.name != _PROTOBUF:
        raise ChakraError(
            f"expected an ET in protobuf, got {form.called}",
            path=file,
            remedy="Convert it first: chakra convert FILE -o OUT.et.",
        )
    return read_all(file)


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a member without a time, so that equal ETs give equal files."""
    archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)

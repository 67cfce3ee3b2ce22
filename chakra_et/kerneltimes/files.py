"""A table of kernel times as a file: JSON, one row a line, the same bytes for the same samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np

from chakra_et.errors import FormatError
from chakra_et.io.json_text import from_json
from chakra_et.io.output import atomic_output
from chakra_et.io.source import read_all
from chakra_et.kerneltimes.features import FEATURES, Key
from chakra_et.kerneltimes.samples import Samples

VERSION: Final = 1


_Ns: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, lt=1 << 62)]


class _Row(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    operator: str
    device: str
    model: str
    count: _Count
    median_ns: _Ns
    total_ns: _Ns
    dtype: str = ""
    batch: float | None = None
    m: float | None = None
    n: float | None = None
    k: float | None = None
    flops: float | None = None
    bytes: float | None = None
    ranks: float | None = None


class _File(msgspec.Struct):
    kernel_times: int
    rows: list[_Row]


def write_samples(samples: Samples, path: str | Path) -> None:
    """Write a table; the file is whole or not there."""
    rows = (msgspec.json.encode(row) for row in _rows(samples))
    with atomic_output(path) as stream:
        stream.write(b'{"kernel_times": %d, "rows": [\n' % VERSION)
        stream.write(b",\n".join(rows))
        stream.write(b"\n]}\n")


def _rows(samples: Samples) -> Iterator[_Row]:
    columns = (samples.count, samples.median_ns, samples.total_ns)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    for key, told, model, (count, median, total) in zip(
        samples.keys, samples.features.tolist(), samples.models, numbers, strict=True
    ):
        features: dict[str, Any] = {
            name: int(value) for name, value in zip(FEATURES, told, strict=True) if value == value
        }
        yield _Row(
            key.operator, key.device, model, count, median, total, dtype=key.dtype, **features
        )


def read_samples(path: str | Path) -> Samples:
    """The samples of a table. Raises FormatError for what is none."""
    try:
        found = from_json(read_all(path), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            f"no table of kernel times: {error}",
            path=path,
            remedy="Make one: chakra fit TRACES -o TABLE.json",
        ) from error
    if found.kernel_times != VERSION:
        raise FormatError(
            f"a table of kernel times of version {found.kernel_times}; this is version {VERSION}",
            path=path,
            remedy="Make it anew: chakra fit TRACES -o TABLE.json",
        )
    return _samples(found.rows)


def _samples(rows: list[_Row]) -> Samples:
    features = [[getattr(row, name) for name in FEATURES] for row in rows]
    made = Samples(
        [Key(row.operator, row.dtype, row.device) for row in rows],
        np.array(features, np.float64).reshape(-1, len(FEATURES)),
        [row.model for row in rows],
        np.array([row.count for row in rows], np.int64),
        np.array([row.median_ns for row in rows], np.int64),
        np.array([row.total_ns for row in rows], np.int64),
    )
    return Samples.joined([made])

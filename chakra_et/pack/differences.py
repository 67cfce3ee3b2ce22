"""What one rank's columns differ in from those of its class, in few bytes.

Numbers become differences from those of the class; of these and of their own differences, what
takes fewer bits counts. Each is kept in as few bytes as the largest needs, first bytes first. Texts
are kept as they are: compression finds those of the class.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import zstandard

from chakra_et.pack.columns import Column, Columns

_LEVEL: Final = 12
_PLAIN, _DIRECT, _STEPS = range(3)
"""How numbers are kept: as they are, as differences, or as differences of differences."""
_WIDTHS: Final = (1, 2, 4, 8)


def encode_class(columns: Columns) -> bytes:
    """The columns of a class, whole."""
    return msgspec.msgpack.encode({name: _whole(column) for name, column in columns.items()})


def decode_class(data: bytes) -> Columns:
    """The columns in what `encode_class` made. Raises ValueError for anything else."""
    return {name: _again(kept) for name, kept in msgspec.msgpack.decode(data).items()}


def encode_rank(columns: Columns, common: Columns) -> bytes:
    """What of the columns of a rank is not as in its class."""
    kept = {
        name: _difference(column, common.get(name))
        for name, column in columns.items()
        if not _same(column, common.get(name))
    }
    gone = [name for name in common if name not in columns]
    return msgspec.msgpack.encode([kept, gone])


def decode_rank(data: bytes, common: Columns) -> Columns:
    """The columns of a rank. Raises ValueError for bytes that `encode_rank` did not make."""
    kept, gone = msgspec.msgpack.decode(data)
    columns = {name: column for name, column in common.items() if name not in gone}
    for name, difference in kept.items():
        columns[name] = _restored(difference, common.get(name))
    return columns


def compress(data: bytes, beside: bytes = b"") -> bytes:
    """Data in few bytes, for whoever has what is `beside` it."""
    return zstandard.ZstdCompressor(level=_LEVEL, dict_data=_dictionary(beside)).compress(data)


def decompress(data: bytes, beside: bytes = b"") -> bytes:
    """What `compress` was given. Raises zstandard.ZstdError for anything else."""
    return zstandard.ZstdDecompressor(
        dict_data=_dictionary(beside), max_window_size=1 << 31
    ).decompress(data)


def _dictionary(beside: bytes) -> zstandard.ZstdCompressionDict | None:
    if len(beside) < 8:
        return None
    return zstandard.ZstdCompressionDict(beside, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _whole(column: Column) -> Any:
    if isinstance(column, np.ndarray):
        return ["#", column.dtype.str, _planes(column.view(f"u{column.dtype.itemsize}"))]
    return column


def _again(kept: Any) -> Column:
    if isinstance(kept, list) and kept[:1] == ["#"]:
        _, dtype, planes = kept
        width = np.dtype(dtype).itemsize
        return _from_planes(planes, width).view(dtype)
    found: Column = kept
    return found


def _same(column: Column, common: Column | None) -> bool:
    if isinstance(column, np.ndarray) and isinstance(common, np.ndarray):
        return column.dtype == common.dtype and column.tobytes() == common.tobytes()
    return type(column) is type(common) and column == common


def _difference(column: Column, common: Column | None) -> Any:
    if not isinstance(column, np.ndarray):
        return column
    if (
        not isinstance(common, np.ndarray)
        or common.dtype != column.dtype
        or len(common) != len(column)
    ):
        return _whole(column)
    direct = _bits(column) - _bits(common)
    steps = np.diff(direct, prepend=np.uint64(0))
    best = min((_DIRECT, direct), (_STEPS, steps), key=lambda each: _cost(_zigzag(each[1])))
    way, numbers = best[0], _zigzag(best[1])
    width = next(w for w in _WIDTHS if int(numbers.max(initial=0)) < 1 << 8 * w)
    return ["#", way, width, _planes(numbers.astype(f"<u{width}"))]


def _restored(kept: Any, common: Column | None) -> Column:
    if not (isinstance(kept, list) and kept[:1] == ["#"]) or len(kept) == 3:
        return _again(kept)
    _, way, width, planes = kept
    if not isinstance(common, np.ndarray) or width not in _WIDTHS:
        raise ValueError("a difference from nothing")
    numbers = _unzigzag(_from_planes(planes, width).astype(np.uint64))
    if way == _STEPS:
        numbers = np.cumsum(numbers, dtype=np.uint64)
    bits = (_bits(common) + numbers).astype(f"u{common.dtype.itemsize}")
    return bits.view(common.dtype)


def _bits(column: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """The bits of numbers of any kind as integers, on which differences wrap around."""
    bits: npt.NDArray[np.uint64] = np.ascontiguousarray(column).view(f"u{column.dtype.itemsize}")
    return bits.astype(np.uint64)


def _zigzag(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    signed = numbers.astype(np.int64)
    coded: npt.NDArray[np.int64] = (signed << 1) ^ (signed >> 63)
    return coded.astype(np.uint64)


def _unzigzag(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    sign: npt.NDArray[np.uint64] = np.uint64(0) - (numbers & np.uint64(1))
    plain: npt.NDArray[np.uint64] = (numbers >> np.uint64(1)) ^ sign
    return plain


def _cost(numbers: npt.NDArray[np.uint64]) -> float:
    """About how many bits numbers take."""
    return float(np.log2(numbers.astype(np.float64) + 1).sum())


def _planes(numbers: npt.NDArray[Any]) -> bytes:
    """The first bytes of all numbers, then the second ones, and so on."""
    width = numbers.dtype.itemsize
    little = np.ascontiguousarray(numbers).astype(f"<u{width}")
    planes: bytes = little.view(np.uint8).reshape(-1, width).T.tobytes()
    return planes


def _from_planes(planes: bytes, width: int) -> npt.NDArray[Any]:
    bytes_ = np.frombuffer(planes, np.uint8).reshape(width, -1).T
    return np.ascontiguousarray(bytes_).view(f"<u{width}").reshape(-1)

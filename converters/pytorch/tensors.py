"""Tensors in the values of operations: numbers out of raw JSON text, without decoding it.

A tensor is written as `[tensor_id, storage_id, offset, num_elem, itemsize, "device"]`: offset and
number of elements in elements, item size in bytes (PyTorch, `execution_trace_observer.cpp`). Such a
list is a run of nine structural characters, `[,,,,,""]`, which is found in all texts at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows, count_up
from chakra_et.kernel import kernel
from chakra_et.recording import Tensors
from chakra_et.recording.packed_texts import PackedTexts

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_NO_MEMORY: Final = ("", "meta")
"""Devices of tensors that are undefined, or have a shape only."""
_HOST: Final = "cpu"

_PIECE: Final = 1 << 22
"""How many bytes of text are looked at together."""

_OPEN, _CLOSE, _COMMA, _QUOTE, _END = b'[],"\0'
_PATTERN: Final = bytes((_OPEN, *[_COMMA] * 5, _QUOTE, _QUOTE, _CLOSE))
_STRUCTURAL: Final = bytes(byte in b'[],"\0' for byte in range(256))
_DEPTH: Final = bytes((byte == _OPEN) - (byte == _CLOSE) & 0xFF for byte in range(256))
_BLANKS: Final = b" \t\r\n"
_ODD: Final = tuple(bytes((byte,)) for byte in _BLANKS + b"\\")
_PAD: Final = bytes(24)
"""So that eight bytes can be read before any number."""

_DIGITS: Final = 19
"""Numbers below 2**63 have no more."""

_MOST: Final = 1 << 48
_WIDEST: Final = 1 << 12
"""Above any number of elements and any item size; both together fit into 64 bits."""


def tensors_in(operands: Sequence[tuple[bytes, ...]]) -> Tensors:
    """All tensors in the values of inputs or outputs, which are the first text of each."""
    module = kernel()
    if module is not None and isinstance(operands, PackedTexts):
        values = operands.values, operands.offsets, operands.value
        found = module.find_tensors_at(*map(np.ascontiguousarray, values))
        if found is not None:
            return _tensors(found, len(operands))
    return find_tensors([operand[0] for operand in operands])


def find_tensors(texts: list[bytes]) -> Tensors:
    """All tensors in JSON texts of lists, also nested ones. Other values are passed over."""
    return _tensors(_columns(texts), len(texts))


def _tensors(columns: Sequence[npt.NDArray[Any]], texts: int) -> Tensors:
    text, argument, storage, offset, count, size, names = columns
    devices, device = _distinct(names)
    return Tensors(
        offsets=np.append(0, np.cumsum(np.bincount(text, minlength=texts))),
        argument=argument,
        storage=storage,
        begin=offset * size,
        end=(offset + count) * size,
        device=device,
        devices=devices,
        has_memory=np.array([name not in _NO_MEMORY for name in devices], np.bool_),
        on_host=np.array([name == _HOST for name in devices], np.bool_),
    )


def _columns(texts: list[bytes]) -> Sequence[npt.NDArray[Any]]:
    """What `_in_piece` gives, of all texts; by the kernel if it is there and all of it is JSON."""
    module = kernel()
    found = None if module is None else module.find_tensors(texts)
    if found is not None:
        return found  # type: ignore[no-any-return]
    parts = [_in_piece(piece, first) for first, piece in _pieces(texts)] or [_in_piece([], 0)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _distinct(words: Words) -> tuple[list[str], Rows]:
    """Distinct short texts, and a code for each; equal ones stand next to each other mostly."""
    changes = np.append(True, words[1:] != words[:-1])[: len(words)]
    distinct, code = np.unique(words[changes], return_inverse=True)
    texts = [word.tobytes().strip(b"\0").decode("utf-8", "replace") for word in distinct]
    return texts, code.ravel()[np.cumsum(changes) - 1]


def _pieces(texts: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Some megabytes of texts at a time, and the number of the first."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    first = 0
    while first < len(texts):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + _PIECE, "right")), first + 1)
        yield first, texts[first:last]
        first = last


def _in_piece(texts: list[bytes], first: int) -> tuple[npt.NDArray[Any], ...]:
    """Text, argument, four numbers, and the device of each tensor, as eight bytes."""
    joined = _bare(b"\0".join([_PAD[:-1], *texts, _PAD[:-1]]))
    place = np.flatnonzero(np.frombuffer(joined.translate(_STRUCTURAL), np.bool_))
    place = place[len(_PAD) : -len(_PAD)]
    token = np.frombuffer(joined, np.uint8)[place]
    found = _matches(token, place)
    words = np.ndarray(len(joined) - 7, np.dtype("<u8"), joined, strides=(1,))
    sound = np.ones(len(found), np.bool_)

    def numbers(field: int, rows: Rows) -> Rows:
        begin, end = place[found[rows] + field] + 1, place[found[rows] + field + 1]
        value, digits = _integers(words, begin, end)
        sound[rows] &= digits
        return value

    every = np.arange(len(found))
    storage, offset, count, size = [numbers(field, every) for field in (1, 2, 3, 4)]
    sound &= (offset < _MOST) & (count < _MOST) & (size < _WIDEST)
    without = np.flatnonzero(storage == 0)
    storage[without] = -numbers(0, without)
    device = _last_bytes(words, place[found + 6] + 1, place[found + 7])
    begins = np.append(0, np.flatnonzero(token == _END))
    text = np.searchsorted(begins[1:], found)
    commas = _outermost_commas(token)
    argument = (commas[found] - commas[begins[text]]).astype(np.int64)
    columns = [text + first, argument, storage, offset, count, size, device]
    return tuple(columns if sound.all() else [column[sound] for column in columns])


def _bare(joined: bytes) -> bytes:
    """Texts without blanks and escaped quotes, so that every quote begins or ends a string."""
    begins = [place for each in _ODD if (place := joined.find(each)) >= 0]
    if not begins:
        return joined
    # Few texts have any, and they stand close together.
    begin, end = min(begins), max(map(joined.rfind, _ODD)) + 2
    bare = joined[begin:end].translate(None, _BLANKS)
    return joined[:begin] + bare.replace(b"\\\\", b"").replace(b'\\"', b"") + joined[end:]


def _matches(token: Bytes, place: Rows) -> Rows:
    """Where the structural characters of a tensor begin."""
    count = max(len(token) - len(_PATTERN) + 1, 0)
    found = np.flatnonzero((token[6 : 6 + count] == _QUOTE) & (token[7 : 7 + count] == _QUOTE))
    for step, wanted in enumerate(_PATTERN):
        found = found[token[found + step] == wanted]
    # The device stands alone between its comma and the closing bracket.
    lone = (place[found + 6] == place[found + 5] + 1) & (place[found + 8] == place[found + 7] + 1)
    matches: Rows = found[lone]
    return matches


def _outermost_commas(token: Bytes) -> npt.NDArray[np.int32]:
    """How many commas of outermost lists stand at or before each structural character."""
    quotes = np.flatnonzero(token == _QUOTE)
    begin, end = quotes[::2], np.append(quotes[1::2], len(token))[: (len(quotes) + 1) // 2]
    within = end - begin - 1
    if within.any():  # What stands in a string is no mark.
        token = token.copy()
        token[np.repeat(begin + 1, within) + count_up(within)] = _QUOTE
    depth = np.frombuffer(token.tobytes().translate(_DEPTH), np.int8).cumsum(dtype=np.int32)
    running: npt.NDArray[np.int32] = ((token == _COMMA) & (depth == 1)).cumsum(dtype=np.int32)
    return running


def _last_bytes(words: Words, begin: Rows, end: Rows) -> Words:
    """The last eight bytes of each stretch of text, the first of them zero where it is shorter."""
    missing = np.maximum(8 - (end - begin), 0).astype(np.uint64) * np.uint64(8)
    empty = missing == 64
    kept = words[end - 8] >> np.where(empty, 0, missing) << np.where(empty, 0, missing)
    return np.where(empty, np.uint64(0), kept)


def _integers(words: Words, begin: Rows, end: Rows) -> tuple[Rows, Mask]:
    """Unsigned decimal numbers at `begin:end`, and which are such numbers below 2**63.

    Eight digits are read as one word and added up by three multiplications, which work on all
    digits, pairs and fours at once (a known trick: D. Lemire, "Quickly parsing eight digits").
    """
    value, sound = _eight_digits(words, begin, end)
    length = end - begin
    long = np.flatnonzero((length > 8) & (length <= _DIGITS))
    if len(long):
        head, digits = _integers(words, begin[long], end[long] - 8)
        small = head < (1 << 63) // 10**8
        value[long] += np.where(small, head, 0) * 10**8
        sound[long] &= digits & small
    return value, sound & (length > 0) & (length <= _DIGITS)


def _eight_digits(words: Words, begin: Rows, end: Rows) -> tuple[Rows, Mask]:
    zeros = np.uint64(0x3030303030303030)
    text = _last_bytes(words, begin, end)
    shorter = np.clip(8 - (end - begin), 0, 7).astype(np.uint64) * np.uint64(8)
    # A shorter number is led by zeros.
    digit = (text ^ zeros) >> shorter << shorter
    over = (digit + np.uint64(0x7676767676767676)) | digit
    sound = (over & np.uint64(0x8080808080808080)) == 0
    pairs = (digit * np.uint64(10) + (digit >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    eights = (fours * np.uint64(10000) + (fours >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return eights.astype(np.int64), sound

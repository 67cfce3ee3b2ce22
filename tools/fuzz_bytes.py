"""Damage to bytes of any kind, and to the containers around them."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Final, TypeAlias

import zstandard

JUNK: Final = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\x01", b"\xff", b"\n", b"NaN",
    b"null", b'{"id": ', b'"nodes": [', b'{"ph": ', b"]}", b'"traceEvents": [', b"1e999", b"-",
    b"\\u", b"\\ud800", b'{"schema": "1.1.1", "nodes": [', b"},{", b",null,", b"]]",
]  # fmt: skip
HUGE: Final = [
    b"9" * 19, b"9" * 20, b"9" * 400, b"9" * 5000, b"-" + b"9" * 19, b"1e308", b"0.1e-300", b"-0",
    b'"7"', b"18446744073709551615", b"NaN", b"-Infinity", b"true", b"null", b"[]", b"{}",
]  # fmt: skip

Mutation: TypeAlias = Callable[[random.Random, bytes, list[bytes]], bytes]


def some_place(rng: random.Random, text: bytes) -> int:
    return rng.randrange(len(text) + 1)


def cut(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    return text[: some_place(rng, text)]


def cut_out(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = some_place(rng, text)
    return text[:at] + text[at + rng.choice((1, 2, 20, 300)) :]


def flip(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    changed = bytearray(text)
    for _i in range(rng.choice((1, 1, 3, 30))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def insert(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = some_place(rng, text)
    return text[:at] + rng.choice(JUNK) * rng.choice((1, 1, 1, 50)) + text[at:]


def insert_in_name(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = text.find(b'"name": "', some_place(rng, text)) + 9
    return text[:at] + rng.choice(JUNK) + text[at:] if at > 8 else text


def repeat(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at, length = some_place(rng, text), rng.choice((1, 50, 2000))
    return text[:at] + text[at : at + length] * rng.choice((2, 5)) + text[at + length :]


def swap(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    a, b = sorted((some_place(rng, text), some_place(rng, text)))
    return text[b:] + text[a:b] + text[:a]


def splice(rng: random.Random, text: bytes, corpus: list[bytes]) -> bytes:
    other = rng.choice(corpus)
    return text[: some_place(rng, text)] + other[some_place(rng, other) :]


def join(rng: random.Random, text: bytes, corpus: list[bytes]) -> bytes:
    return text + rng.choice((b"", b"\n", b",")) + rng.choice((text, rng.choice(corpus)))


def number(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = end = some_place(rng, text)
    while at < len(text) and not text[at : at + 1].isdigit():
        at = end = at + 1
    while text[end : end + 1].isdigit():
        end += 1
    return text[:at] + rng.choice(HUGE) + text[end:]


def nest(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    depth = rng.choice((10, 150, 300, 1000, 1000, 5000))
    opening, closing = rng.choice(
        ((b"[", b"]"), (b'{"a":', b"}"), (b"[{", b"}]"), (b'[{"id":', b"}]"))
    )
    deep = opening * depth + rng.choice((b"1", b"")) + closing * rng.choice((depth, 0))
    at = text.find(b":", some_place(rng, text)) + 1
    return text[:at] + deep + rng.choice((b"", b",")) + text[at:]


BYTES: Final[list[Mutation]] = [
    cut, cut_out, flip, insert, insert_in_name, repeat, swap, splice, join, number, nest,
]  # fmt: skip


def contained(rng: random.Random, text: bytes) -> bytes:
    """A text packed or compressed, at times twice or in parts, and at times damaged then."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        text = rng.choice(CONTAINERS)(rng, text)
    return rng.choice((cut, flip, cut_out))(rng, text, []) if rng.random() < 0.4 else text


def _gzip_members(rng: random.Random, text: bytes) -> bytes:
    at = some_place(rng, text)
    parts = [gzip.compress(text[:at], 1), gzip.compress(text[at:], 1)]
    return rng.choice((b"", b"\0" * 300, b"\x1f")).join(parts)


def _zstd_frames(rng: random.Random, text: bytes) -> bytes:
    at = some_place(rng, text)
    passed = struct.pack("<II", 0x184D2A50 + rng.randrange(16), 9) + bytes(9)
    parts = [zstandard.compress(text[:at], 1), zstandard.compress(text[at:], 1)]
    return rng.choice((b"", passed)) + rng.choice((b"", passed, b"\x28\xb5")).join(parts)


def _zipped(rng: random.Random, text: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in rng.choice((["a.json"], ["a.json", "b.json"], ["../a", "dir/"], [])):
            archive.writestr(name, text)
    return target.getvalue()


def _tarred(rng: random.Random, text: bytes) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name in rng.choice((["a.json"], ["a.json", "b.json"], ["/etc/x"], ["n" * 300], [])):
            item = tarfile.TarInfo(name)
            item.size = len(text)
            archive.addfile(item, io.BytesIO(text))
    return target.getvalue()


CONTAINERS: Final = (_gzip_members, _zstd_frames, _zipped, _tarred)


def bomb(rng: random.Random, text: bytes) -> tuple[bytes, int]:
    """Some hundred megabytes that pack well, and how many bytes they are."""
    filler = rng.choice((b" ", b"\x00", b'{"ph":"X"},', b'"', b"[", b'{"id":', b'{"name":"', text))
    at = some_place(rng, text)
    block = filler * max(1, (1 << 20) // max(len(filler), 1))
    count = rng.choice((8, 64, 400))
    size = len(text) + count * len(block)
    if rng.random() < 0.5:
        compress = zstandard.ZstdCompressor(1).compressobj()
        parts = [compress.compress(text[:at]), *(compress.compress(block) for _ in range(count))]
        return b"".join([*parts, compress.compress(text[at:]), compress.flush()]), size
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=1) as stream:
        stream.write(text[:at])
        for _i in range(count):
            stream.write(block)
        stream.write(text[at:])
    return target.getvalue(), size

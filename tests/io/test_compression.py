"""Files of several compressed members are read as the command-line tools read them."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES

import chakra_et
from chakra_et.io.repairs import Repairs
from chakra_et.io.source import blocks, head, read_all

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
}


def skippable(size: int, nibble: int = 3) -> bytes:
    """A zstd frame without content, as parallel compressors write one before each other frame."""
    return struct.pack("<II", 0x184D2A50 + nibble, size) + bytes(size)


def plain(path: Path) -> bytes:
    """The content, which the careful reader gives as well, without a repair."""
    repairs = Repairs(path)
    content = read_all(path)
    assert b"".join(blocks(path, repairs)) == content == head(path, 1 << 30)
    assert not repairs
    return content


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("members") / "file"


@pytest.mark.parametrize("kind", COMPRESS)
@given(st.lists(st.integers(0, 600), min_size=1, max_size=8), st.integers(0, 9))
def test_members_of_any_sizes_are_one_content(
    path: Path, kind: str, sizes: list[int], seed: int
) -> None:
    content = [random.Random(seed + size).randbytes(size) for size in sizes]
    path.write_bytes(b"".join(map(COMPRESS[kind], content)))
    assert plain(path) == b"".join(content)


@pytest.mark.parametrize("first", [0, 1, 300])
def test_frames_without_content_are_passed(path: Path, first: int) -> None:
    frames = [skippable(first), zstandard.compress(b"one "), skippable(7, 15), skippable(0, 0)]
    path.write_bytes(b"".join([*frames, zstandard.compress(b"two"), skippable(9)]))
    assert plain(path) == b"one two"


def test_zeros_between_members_are_passed(path: Path) -> None:
    path.write_bytes(gzip.compress(b"one ") + bytes(1000) + gzip.compress(b"two") + bytes(300))
    assert plain(path) == b"one two"


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_trace_in_two_members_is_whole(path: Path, kind: str) -> None:
    content = gzip.decompress((EXAMPLES / "simple_add" / "host.json.gz").read_bytes())
    for cut in (1, 300, len(content) // 2):
        path.write_bytes(COMPRESS[kind](content[:cut]) + COMPRESS[kind](content[cut:]))
        report = chakra_et.convert(path, strict=True).report
        assert (report.host_nodes.total, report.repairs) == (38, [])

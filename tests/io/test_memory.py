"""What a file may cost of memory is bounded, by the machine, its control groups and an option."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import chakra_et
from chakra_et.errors import ChakraError, FormatError
from chakra_et.io import memory
from chakra_et.io.cgroup import cgroup_bytes
from chakra_et.io.memory import available_bytes, limit_memory, memory_limited, size_in_bytes

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "size"),
    [("8G", 8 << 30), ("500M", 500 << 20), ("1.5 GiB", 3 << 29), ("64kb", 64 << 10), ("7", 7)],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1G", "0", "1X", "G"])
def test_other_texts_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        size_in_bytes(text)


def group(folder: Path, version: int, limit: str, used: int, droppable: int) -> None:
    names = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")}
    names[2] = ("memory.max", "memory.current", "inactive_file")
    maximum, current, inactive = names[version]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / maximum).write_text(f"{limit}\n")
    (folder / current).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{inactive} {droppable}\n")


def test_the_tightest_group_of_version_2_counts(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("0::/a/b\n")
    group(tmp_path / "a" / "b", 2, "max", 10 * MIB, 0)
    group(tmp_path / "a", 2, str(100 * MIB), 40 * MIB, 10 * MIB)
    assert cgroup_bytes(tmp_path / "self", tmp_path) == 70 * MIB
    group(tmp_path / "a" / "b", 2, str(30 * MIB), 29 * MIB, 0)
    assert cgroup_bytes(tmp_path / "self", tmp_path) == 1 * MIB


def test_groups_of_version_1_count_and_a_container_sees_its_own_as_the_root(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("5:cpu:/x\n4:cpuset,memory:/docker/abc\n0::/\n")
    group(tmp_path / "memory", 1, str(9 << 60), 1, 0)
    assert cgroup_bytes(tmp_path / "self", tmp_path) is None
    group(tmp_path / "memory", 1, str(64 * MIB), 80 * MIB, 20 * MIB)
    assert cgroup_bytes(tmp_path / "self", tmp_path) == 4 * MIB


def test_no_groups_no_bound(tmp_path: Path) -> None:
    assert cgroup_bytes(tmp_path / "none", tmp_path) is None
    (tmp_path / "self").write_text("nonsense\n0::/gone\n")
    assert cgroup_bytes(tmp_path / "self", tmp_path) is None


def test_what_is_available_respects_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "cgroup_bytes", lambda: 5 * MIB)
    assert available_bytes() == 5 * MIB


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_a_limit_counts_what_is_there_and_ends_with_its_block() -> None:
    before = available_bytes()
    with memory_limited():
        limit_memory(300 * MIB)
        assert 200 * MIB < available_bytes() <= 300 * MIB
        with pytest.raises(MemoryError):
            bytearray(400 * MIB)
    assert available_bytes() > min(before, 300 * MIB) / 2
    assert len(bytearray(400 * MIB)) == 400 * MIB


@pytest.mark.parametrize(
    ("left", "what"), [(MIB, "(ulimit -v)"), (1 << 60, "--max-memory"), (None, "--max-memory")]
)
def test_where_a_limit_of_the_process_bounds_memory_that_is_to_be_raised(
    monkeypatch: pytest.MonkeyPatch, left: int | None, what: str
) -> None:
    monkeypatch.setattr(memory, "_left", lambda *_: left)
    assert what in memory.more_memory()


def packed_zeros(path: Path, mebibytes: int) -> Path:
    with gzip.open(path, "wb", 1) as stream:
        for _ in range(mebibytes):
            stream.write(bytes(MIB))
    return path


def test_a_file_that_unpacks_to_more_than_memory_is_refused_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed_zeros(tmp_path / "t.et.gz", 200)
    monkeypatch.setattr("chakra_et.io.memory.available_bytes", lambda: 300 * MIB)
    with pytest.raises(ChakraError, match=r"t\.et\.gz: not enough memory: .*free"):
        chakra_et.read(path)


def test_zeros_are_no_nodes(tmp_path: Path) -> None:
    path = packed_zeros(tmp_path / "t.et.gz", 1)
    with pytest.raises(FormatError, match="byte 1: zeros in place of nodes"):
        chakra_et.read(path)
    assert [str(error) for error in chakra_et.validate([path]).unreadable]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_the_option_bounds_a_command(tmp_path: Path) -> None:
    path = packed_zeros(tmp_path / "t.et.gz", 100)
    command = [sys.executable, "-m", "chakra_et.cli", "info", str(path), "--max-memory"]
    done = subprocess.run([*command, "120M"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "memory" in done.stderr
    assert "--max-memory SIZE" in done.stderr
    assert "Traceback" not in done.stderr
    done = subprocess.run([*command, "lots"], capture_output=True, text=True, check=False)
    assert (done.returncode, "got 'lots'" in done.stderr) == (2, True)

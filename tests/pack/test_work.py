"""What packing and reading packed ranks takes, counted: bytes that are read, classes decoded."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from et_bytes import encoded
from places import EXAMPLES

import chakra_et
from chakra_et.io.packed import packed_file
from chakra_et.pack import pack, reading, unpack

RANKS = 6


class Watched(io.BytesIO):
    """A file that keeps which of its bytes were read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.seen = np.zeros(len(data), np.bool_)

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        data = super().read(size)
        self.seen[start : start + len(data)] = True
        return data


@pytest.fixture(scope="module")
def ets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ranks of one class, whose times differ."""
    folder = tmp_path_factory.mktemp("ets")
    trace = chakra_et.convert_files(EXAMPLES / "ddp_2rank", None)[0].trace
    for rank in range(RANKS):
        trace.nodes.duration_ns[:] = np.random.default_rng(rank).integers(0, 9000, len(trace.nodes))
        (folder / f"trace.{rank}.et").write_bytes(encoded(trace))
    return folder


def test_one_rank_is_read_from_its_bytes_and_those_of_its_class_alone(
    ets: Path, tmp_path: Path
) -> None:
    pack(ets, tmp_path / "run.pack")
    file = Watched((tmp_path / "run.pack").read_bytes())
    with zipfile.ZipFile(file) as archive:
        assert packed_file("run.pack", archive, "trace.3.et") is not None
        members = {item.filename: item for item in archive.infolist()}
    touched = {
        name
        for name, item in members.items()
        if file.seen[item.header_offset : item.header_offset + item.compress_size].any()
    }
    assert touched == {"pack.json", "class.0", "rank.3"}


def test_a_class_is_decoded_once_for_all_its_ranks(
    ets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(ets, tmp_path / "run.pack")
    real, decoded = reading._class, []

    def counting(archive: zipfile.ZipFile, number: int) -> Any:
        decoded.append(number)
        return real(archive, number)

    monkeypatch.setattr(reading, "_class", counting)
    unpack(tmp_path / "run.pack", tmp_path / "back")
    assert decoded == [0]


def test_each_et_is_opened_as_often_whatever_stands_beside_it(
    ets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, opened, real = tmp_path / "few", Counter[str](), Path.open
    few.mkdir()
    (few / "trace.0.et").write_bytes((ets / "trace.0.et").read_bytes())

    def counting(path: Path, *arguments: Any, **options: Any) -> Any:
        opened[path.name] += 1
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", counting)
    pack(few, tmp_path / "few.pack")
    alone = opened["trace.0.et"]
    opened.clear()
    pack(ets, tmp_path / "run.pack")
    assert {opened[f"trace.{rank}.et"] for rank in range(RANKS)} == {alone}

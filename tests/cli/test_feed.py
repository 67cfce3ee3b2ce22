"""`chakra feed PATH` prints the order of a run, rank by rank."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from feeder_traces import N, attribute, trace

from chakra_et.cli.app import main

KINDS = attribute("edge_kinds", 29, "stream,sync?")
NODES = [N(0, type=1), N(2, ctrl=[3], name="two"), N(3, [0], duration=7), N(1, [2, 3], attrs=KINDS)]


@pytest.fixture
def feed(tmp_path: Path, monkeypatch: Any, capsys: Any) -> Any:
    """`chakra feed` on a directory of two ranks: its exit code, output and errors."""
    for rank in (0, 1):
        (tmp_path / f"t.{rank}.et").write_bytes(trace(NODES[: 4 - rank]))

    def command(*options: str, path: Path = tmp_path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["chakra", "feed", str(path), *options])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, " ".join(err.split())

    return command


def order(out: str) -> list[tuple[int, int]]:
    """Rank and id of each line."""
    return [(int(rank), int(node)) for rank, node, *_ in map(str.split, out.splitlines())]


def test_every_rank(feed: Any) -> None:
    code, out, _ = feed()
    assert (code, order(out)) == (0, [(0, 0), (0, 3), (0, 2), (0, 1), (1, 0), (1, 3), (1, 2)])
    assert "1\t2\tCOMP\t0\ttwo\n" in out
    assert "1\t3\tCOMP\t7000\t\n" in out


def test_one_file_is_of_the_rank_that_its_name_tells(feed: Any, tmp_path: Path) -> None:
    code, out, _ = feed(path=tmp_path / "t.1.et")
    assert (code, {rank for rank, _ in order(out)}) == (0, {1})


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--rank", "1"), [0, 3, 2]),
        (("--skip-metadata",), [3, 2, 1]),
        (("--gate", "data", "--gate", "call"), [0, 1, 3, 2]),
        (("--gate", "sync"), [0, 2, 3, 1]),
        (("--gate", "sync", "--ignore-inferred"), [0, 1, 2, 3]),
        (("--window", "1"), [0, 3, 2, 1]),
    ],
)
def test_options(feed: Any, options: tuple[str, ...], wanted: list[int]) -> None:
    rank = () if "--rank" in options else ("--rank", "0")
    code, out, _ = feed(*rank, *options)
    assert code == 0
    assert [node for _, node in order(out)] == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rank", "7"), "there is no rank 7 here"),
        (("--gate", "magic"), "no edge kind 'magic'"),
        (("--window", "-1"), "window is -1, less than 0"),
        (("--window", "1", "--strict-window"), "Use a larger window, or one that is not strict."),
        (("--stdio", "--grpc", "127.0.0.1:0"), "choose one of --stdio and --grpc"),
    ],
)
def test_refusals(feed: Any, options: tuple[str, ...], said: str) -> None:
    code, _, err = feed(*options)
    assert code != 0
    assert said in err


def test_the_ranks_of_an_archive_are_those_of_its_directory(feed: Any, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set", "w") as archive:
        for rank in (0, 1):
            archive.write(tmp_path / f"t.{rank}.et", f"t.{rank}.et")
    assert feed(path=tmp_path / "set") == feed()


def test_a_directory_without_ranks(feed: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = feed(path=tmp_path / "empty")
    assert code != 0
    assert "no files PREFIX.RANK.et here" in err

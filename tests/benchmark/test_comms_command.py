"""`chakra run` on several ranks, as far as it goes without PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import chakra
from traces import coll, recv, send, trace

import chakra_et
from chakra_et.cli import communication

COMMUNICATION = ("--mode", "communication")


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Three ranks: sums of all, gathers of two, and a message."""
    for rank in range(3):
        nodes = [coll(1, size=4096, dtype="Half", start=0, took=5_000 + rank)]
        nodes += [coll(2, 2, size=8, pg_name="5", start=9_000, took=2_000)] if rank < 2 else []
        nodes += [[send(3, 2, 256, start=20_000, took=7_000)], [],
                  [recv(3, 0, 256, start=20_000, took=8_000)]][rank]  # fmt: skip
        made = trace(*nodes, rank=rank, world=3, groups={"5": (0, 1)})
        chakra_et.write(made, tmp_path / f"t.{rank}.et")
    return tmp_path


def figures(*words: object) -> dict[str, dict[str, int]]:
    """Rows of the table by type, and all else under an empty name."""
    told = json.loads(chakra("run", *words, *COMMUNICATION, "--back-end", "dry", "--json").output)
    return {row["type"]: row for row in told.pop("collectives")} | {"": told}


def test_dry_tells_what_would_run(traces: Path) -> None:
    found = figures(traces)
    assert (found[""]["calls"], found[""]["ranks"], found[""]["backend"]) == (3, 3, "dry")
    sums = found["ALL_REDUCE"]
    # Of the members of a call the shortest time counts.
    assert (sums["size"], sums["dtype"], sums["recorded_ns"]) == (3, "float16", 5_000)
    assert (found["ALL_GATHER"]["message_bytes"], found["ALL_GATHER"]["size"]) == (16, 2)
    assert found["SEND_RECV"]["recorded_ns"] == 7_000
    assert sums["run_ns"] is None


def test_fewer_ranks_are_told_with_what_becomes_of_their_calls(traces: Path) -> None:
    found = figures(traces, "--shrink", 2)
    assert (found[""]["ranks"], found[""]["recorded_ranks"]) == (2, 3)
    assert (found[""]["shrunk"], found[""]["delays"]) == (2, 1)
    assert (found["ALL_REDUCE"]["size"], found["ALL_GATHER"]["size"]) == (2, 2)
    assert found["DELAY of SEND"]["recorded_ns"] == 7_000
    assert figures(traces, "--shrink", 2, "--shrink-as", "delay")[""]["delays"] == 3
    done = chakra("run", traces, *COMMUNICATION, "--back-end", "dry", "--shrink", 2)
    assert "3; of their calls 2 shrunken, 1 as delays" in done.words


def test_more_ranks_than_traces_are_refused(traces: Path) -> None:
    done = chakra("run", traces, *COMMUNICATION, "--back-end", "dry", "--shrink", 4)
    assert done.code == 2
    assert "--shrink 4, but there are traces of 3 ranks" in done.errors


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        ((*COMMUNICATION, "--emit", "benchmark.py"), "--emit: of no use with --mode communication"),
        ((*COMMUNICATION, "--record", "again", "--steps", "1"), "--steps, --record: of no use"),
        (("--one-by-one",), "--one-by-one: of no use with the operators of one rank"),
        (("--ranks", "auto", "--rank", 0), "--rank: of no use with --ranks auto"),
    ],
)
def test_an_option_that_does_nothing_is_refused(
    traces: Path, words: tuple[object, ...], unused: str
) -> None:
    done = chakra("run", traces, "--back-end", "dry", *words)
    assert done.code == 2
    assert unused in done.errors


def test_without_pytorch_the_remedy_is_told(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communication, "find_spec", lambda _: None)
    done = chakra("run", traces, *COMMUNICATION)
    assert done.code == 2
    assert "PyTorch is not installed. pip install 'chakra-et[torch]'" in done.errors

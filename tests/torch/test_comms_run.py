"""Calls over gloo: each kind brings what it must, and whatever goes wrong ends with its name."""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import gloo_calls
import msgspec
import pytest
from command import chakra, chakra_process
from traces import coll, recv, send, trace

import chakra_et
from chakra_et.benchmark.comms.call import RankOutcome
from chakra_et.benchmark.comms.values import outputs
from chakra_et.benchmark.launcher import DIRECTORY
from chakra_et.errors import ChakraError

pytest.importorskip("torch.profiler")  # plain "torch" could be the folder of this file
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ranks saw in each scenario; they are forked off where nothing has begun a thread yet."""
    made = tmp_path_factory.mktemp("calls")
    subprocess.run([sys.executable, gloo_calls.__file__, str(made)], check=True, timeout=120)
    return made


def seen(folder: Path, name: str) -> list[RankOutcome]:
    texts = [(folder / f"{name}.{rank}.json").read_bytes() for rank in range(4)]
    return [msgspec.json.decode(text, type=RankOutcome) for text in texts]


def test_every_kind_of_call_brings_what_it_must(folder: Path) -> None:
    """In all and in parts of the world, of many types, uneven, empty, of several tensors."""
    for rank, calls in gloo_calls.agreed("every_kind").items():
        saw = seen(folder, "every_kind")[rank]
        assert (saw.wrong, saw.wrong_count) == ([], 0)
        assert saw.checked == sum(bool(outputs(call, rank)) for call in calls)
        # gloo has no 16-bit integers.
        assert saw.as_bytes == sum(call.dtype == "int16" for call in calls) > 0
        assert [len(each) for each in saw.durations_ns] == [len(calls)] * 2
        assert all(took > 0 for each in saw.durations_ns for took in each)


def test_buffers_are_used_again(folder: Path) -> None:
    """As much memory as the largest call takes, where each ends before the next begins."""
    assert {saw.buffer_bytes for saw in seen(folder, "reused_buffers")} == {4 * 1000}


def test_wrong_results_are_told(folder: Path) -> None:
    for rank, saw in enumerate(seen(folder, "spoilt")):
        assert saw.wrong == [
            f"rank {rank}: ALL_REDUCE of 10 x float32 (node 0): 10 of 10 elements differ"
        ]


def test_delays_take_as_long_as_recorded(folder: Path) -> None:
    for saw in seen(folder, "delayed"):
        assert all(took >= 3_000_000 for each in saw.durations_ns for took in each)


def test_a_call_that_one_rank_does_not_make_ends_in_time(folder: Path) -> None:
    """It says which; those that wait for the rank elsewhere say that it is gone."""
    errors = [msgspec.json.decode((folder / f"missing.{r}.json").read_bytes()) for r in range(4)]
    assert errors[1] == (
        "rank 1: ALL_REDUCE of 20 x float32 in group '7' (node 1) did not end within 1 s. A rank "
        "has not made this call: it hangs, has ended, or needs more time (--timeout)."
    )
    others = {errors[rank] for rank in (0, 2, 3)}
    assert others == {"the barrier before an iteration: another rank has ended."}


def test_a_rank_that_does_not_start_is_named(tmp_path: Path) -> None:
    from chakra_et.benchmark.comms.world import take_seat

    told = {"RANK": "1", "WORLD_SIZE": "3", DIRECTORY: str(tmp_path)}
    with pytest.raises(ChakraError, match=r"rank 0, 2 did not start within 0\.3 s"):
        take_seat("gloo", 0.3, told)


def test_a_port_in_use_is_told() -> None:
    from chakra_et.benchmark.comms.world import take_seat

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = {
            "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
        }  # fmt: skip
        with pytest.raises(ChakraError, match=f"port {port} cannot be opened.*in use"):
            take_seat("gloo", 2, told)
    with pytest.raises(ChakraError, match="rank 0 cannot be reached"):
        take_seat("gloo", 1, told | {"RANK": "1", "WORLD_SIZE": "2"})


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Two ranks that sum, and of which one sends to the other, without recorded times."""
    for rank, message in enumerate((send(3, 1, 256, tag=4), recv(3, 0, 256, tag=4))):
        nodes = (coll(1, size=4096, dtype="Half"), coll(2, size=8, deps=(1,)), message)
        chakra_et.write(trace(*nodes, rank=rank, world=2), tmp_path / f"t.{rank}.et")
    return tmp_path


def expect_figures(text: str, ranks: int, calls: int) -> None:
    figures = json.loads(text)
    assert (figures["backend"], figures["ranks"], figures["calls"]) == ("gloo", ranks, calls)
    assert (figures["wrong"], len(figures["spans_ns"])) == ([], 2)
    rows = {(row["type"], row["dtype"]): row for row in figures["collectives"]}
    half = rows["ALL_REDUCE", "float16"]
    assert (half["message_bytes"], half["count"], half["recorded_ns"]) == (4096, 1, None)
    # Of two ranks, each link of a ring carries what each rank has.
    assert half["bus_bytes_per_s"] == half["algorithm_bytes_per_s"] > 0
    assert half["algorithm_bytes_per_s"] == pytest.approx(4096e9 / half["run_ns"])


RUN = ("--mode", "communication", "--iterations", 2, "--warmup", 0, "--json", "--timeout", 60)


def test_ranks_are_started_and_give_their_figures(traces: Path) -> None:
    done = chakra("run", traces, *RUN)
    assert (done.code, done.errors) == (0, "")
    expect_figures(done.output, 2, 3)


def test_under_torchrun_each_process_is_a_rank(
    traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    for name, value in (("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", port)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RANK", "1")
    other = subprocess.Popen(
        [sys.executable, "-m", "chakra_et.cli", "run", str(traces), *map(str, RUN)],
        stdout=subprocess.PIPE,
    )
    monkeypatch.setenv("RANK", "0")
    done = chakra_process("run", traces, *RUN, timeout=120)
    assert done.returncode == 0, done.stderr
    expect_figures(done.stdout, 2, 3)
    assert other.communicate(timeout=60) == (b"", None)
    assert other.returncode == 0

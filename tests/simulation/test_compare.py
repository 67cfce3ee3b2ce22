"""ASTRA-sim's log beside the traces that it ran.

`straggler.log` is its log of `runs.straggler` on a ring of two (50 GB/s, 500 ns), with
`"trace-enabled": 1`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import chakra
from runs import MS, balanced, built, straggler

from chakra_et.errors import ChakraError
from chakra_et.files import write
from chakra_et.model import TraceSet
from chakra_et.replay import replay
from chakra_et.simulation import Comparison, compare, read_astra_log

LOG = Path(__file__).parent / "straggler.log"


@pytest.fixture(scope="module")
def recorded() -> TraceSet:
    """The traces with the times of their replay, in which the transfer takes 2 ms."""
    return replay(built(straggler)).traces


@pytest.fixture(scope="module")
def found(recorded: TraceSet) -> Comparison:
    return compare(recorded, read_astra_log(LOG))


def told(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "out.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_ranks_finish_when_the_log_says(found: Comparison) -> None:
    assert [r.simulated_ns for r in found.ranks.values()] == [8_021_679, 8_024_620]
    assert [r.recorded_ns for r in found.ranks.values()] == [10 * MS, 10 * MS]
    assert found.ranks[1].ratio == pytest.approx(0.802462)
    assert (found.unfinished, found.critical, found.notes) == ([], [], [])


def test_exposed_communication_is_that_in_which_nothing_computes(found: Comparison) -> None:
    assert found.ranks[0].recorded_exposed_comm_ns == 8 * MS
    assert found.ranks[0].simulated_exposed_comm_ns == 6_021_679
    assert found.ranks[1].recorded_exposed_comm_ns == 2 * MS
    assert found.ranks[1].simulated_exposed_comm_ns == 24_620
    assert found.ranks[1].figures == {"compute_ns": 8 * MS, "comm_ns": 24_620}


def test_a_transfer_takes_what_the_member_takes_that_waits_least(found: Comparison) -> None:
    (call,) = found.calls
    assert (call.type, call.size_bytes, call.count) == ("ALL_REDUCE", 1 << 20, 1)
    assert (call.recorded_ns, call.simulated_ns) == (2 * MS, 24_620)


def test_nodes_have_the_times_of_the_log(found: Comparison) -> None:
    nodes = found.simulated[1].nodes
    times = {node.name: (node.start_ns, node.duration_ns) for node in nodes}
    assert times == {"gemm": (0, 8 * MS), "all_reduce rank": (8 * MS, 24_620)}


def test_without_events_ranks_are_compared_and_nodes_are_not(
    tmp_path: Path, recorded: TraceSet
) -> None:
    lines = [line for line in LOG.read_text().splitlines() if "[debug]" not in line]
    found = compare(recorded, read_astra_log(told(tmp_path, *lines)))
    assert found.ranks[0].simulated_ns == 8_021_679
    assert len(found.simulated) == len(found.calls) == 0


def test_a_log_of_other_traces_is_not_put_on_their_nodes() -> None:
    found = compare(built(balanced), read_astra_log(LOG))
    (note,) = found.notes
    assert note.startswith("ranks 0, 1: most nodes of the log have other names here")
    assert len(found.simulated) == 0
    assert found.ranks[0].recorded_ns is None


def test_a_rank_that_never_finished_is_told(tmp_path: Path, recorded: TraceSet) -> None:
    lines = [line for line in LOG.read_text().splitlines() if "sys[1] finished" not in line]
    found = compare(recorded, read_astra_log(told(tmp_path, *lines)))
    assert found.unfinished == [1]
    assert found.ranks[1].simulated_ns is None


def test_ranks_without_a_trace_are_told(recorded: TraceSet) -> None:
    found = compare(TraceSet({0: recorded[0]}), read_astra_log(LOG))
    assert found.notes == ["rank 1: the log tells of it, and no trace is here"]


def test_a_counter_that_fell_below_zero_says_nothing(tmp_path: Path, recorded: TraceSet) -> None:
    line = "sys[0] finished, 12000 cycles, exposed communication 18446744073709541616 cycles."
    found = compare(recorded, read_astra_log(told(tmp_path, line)))
    assert found.ranks[0].simulated_ns == 12_000
    assert found.ranks[0].simulated_exposed_comm_ns is None


def test_a_log_in_several_files_is_read_from_its_begin(tmp_path: Path, recorded: TraceSet) -> None:
    lines = LOG.read_text().splitlines(keepends=True)
    (tmp_path / "log").mkdir()
    for name, part in (
        ("log.2.log", lines[:7]),
        ("log.1.log", lines[7:10]),
        ("log.log", lines[10:]),
    ):
        (tmp_path / "log" / name).write_text("".join(part))
    assert (
        compare(recorded, read_astra_log(tmp_path)).as_dict()
        == compare(recorded, read_astra_log(LOG)).as_dict()
    )


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\xff\xfe\x00", b"sys[0] finished"])
def test_a_log_that_holds_nothing_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "log.log").write_bytes(content)
    with pytest.raises(ChakraError, match="no rank finishes in this log, and no node begins"):
        read_astra_log(tmp_path)


def test_what_failed_is_in_the_error(tmp_path: Path) -> None:
    path = told(tmp_path, "[2026] [workload] [critical] workload file: x.0.et does not exist")
    with pytest.raises(ChakraError, match=r"the simulator ran nothing: .*x\.0\.et does not exist"):
        read_astra_log(path)


def test_a_directory_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match=r"there is no log\.log in this directory"):
        read_astra_log(tmp_path)


# --- The command ---------------------------------------------------------------------------------


@pytest.fixture
def fed(tmp_path: Path, recorded: TraceSet) -> Path:
    for rank, trace in recorded.items():
        write(trace, tmp_path / f"trace.{rank}.et")
    return tmp_path


def test_the_command_shows_both(fed: Path) -> None:
    done = chakra("compare-sim", fed, LOG)
    assert done.code == 0, done.errors
    assert done.output.startswith(
        "The simulator needs 8.02 ms for what took 10 ms: 0.80 times as long."
    )
    assert "1 ALL_REDUCE of 1,048,576 bytes: recorded 2 ms, simulated 24.6 µs" in done.output


def test_all_figures_come_as_json(fed: Path, found: Comparison) -> None:
    done = chakra("compare-sim", fed, LOG, "--json")
    assert json.loads(done.output) == json.loads(json.dumps(found.as_dict()))


def test_a_page_has_both_timelines(fed: Path) -> None:
    done = chakra("compare-sim", fed, LOG, "-o", fed / "sim.html")
    assert done.code == 0, done.errors
    text = (fed / "sim.html").read_text()
    data = json.loads(text.split('id="timeline-data">')[1].split("</script>")[0])
    assert list(dict.fromkeys(lane[0] for lane in data["lanes"])) == ["0", "0 sim", "1", "1 sim"]
    assert "0.80 times as long" in text


def test_a_run_that_did_not_finish_is_a_finding(fed: Path) -> None:
    lines = [line for line in LOG.read_text().splitlines() if "sys[1]" not in line]
    done = chakra("compare-sim", fed, told(fed, *lines))
    assert done.code == 1
    assert "1 rank never finished in the simulator: 1." in done.words


def test_the_log_is_not_replaced(fed: Path) -> None:
    log = told(fed, LOG.read_text())
    done = chakra("compare-sim", fed, log, "-o", log)
    assert done.code == 2
    assert "would overwrite this input" in done.errors

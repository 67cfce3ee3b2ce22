"""`chakra doctor`: each thing that a recording can lack is found, with its remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import chakra
from recordings import HostRecording, Profile

from chakra_et.doctor import Examination, examine
from chakra_et.errors import ChakraError

EXAMPLES = Path(__file__).parents[2] / "examples"
TENSOR = ([[1, 1, 0, 4, 4, "cuda:0"]], [[4]], ["Tensor(float)"])
SCHEMA = "aten::mm(Tensor self, Tensor mat2) -> Tensor"
SHAPES = {"Input Dims": [[4], [4]]}


def host(names: tuple[str, ...] = ("aten::mm", "aten::relu"), **how: Any) -> HostRecording:
    """A host trace of some operators in a step; ids from 11 on."""
    recording = HostRecording()
    recording.op(10, "ProfilerStep#3", rf_id=10)
    for place, name in enumerate(names):
        recording.op(11 + place, name, parent=10, rf_id=11 + place, schema=SCHEMA, **how)
    return recording


def profile(
    names: tuple[str, ...] = ("aten::mm", "aten::relu"),
    *,
    step: int | None = 3,
    ids: bool = True,
    shapes: bool = True,
    at: float = 0,
    **info: Any,
) -> Profile:
    """The profile of the same, from a time on."""
    recording = Profile(info=info)
    if step is not None:
        recording.op(
            f"ProfilerStep#{step}", at, 100, rf_id=10 if ids else None, cat="user_annotation"
        )
    for place, name in enumerate(names):
        number = 11 + place if ids else None
        told = SHAPES if shapes else {}
        recording.op(name, at + 1 + 10 * place, 5, rf_id=number, **told)
    return recording


def examined(folder: Path, *ranks: tuple[HostRecording | None, Profile | None]) -> Examination:
    """What is found in the recordings of some ranks."""
    for rank, (mine, device) in enumerate(ranks):
        if mine is not None:
            mine.write(folder / f"host.{rank}.json")
        if device is not None:
            device.write(folder / f"device.{rank}.json")
    return examine(folder)


def checks(found: Examination) -> list[str]:
    return [lack.check for lack in found.findings]


def test_a_whole_recording_lacks_nothing(tmp_path: Path) -> None:
    found = examined(tmp_path, (host(), profile()))
    assert (checks(found), found.exit_code) == ([], 0)
    assert found.ranks[0]["steps"] == [3]


@pytest.mark.parametrize(
    ("check", "mine", "device"),
    [
        ("no-host-trace", None, profile),
        ("no-profile", host, None),
        ("no-ids", host, lambda: profile(ids=False)),
        ("early-pytorch", lambda: _early(), lambda: profile(ids=False)),
        ("other-window", lambda: host(("aten::mm",)), profile),
        ("no-shapes", host, lambda: profile(shapes=False)),
        ("threads-not-followed", lambda: _on_threads(), profile),
        ("no-steps", host, lambda: profile(step=None)),
        ("no-sync-events", host, lambda: _waiting()),
        ("no-device-work", host, lambda: profile().call("cudaLaunchKernel", 60, 5, 7)),
        ("no-device-work", lambda: host(inputs=TENSOR), profile),
        ("no-groups", *(lambda make=make: make(("aten::mm", "c10d::allreduce_"))
                        for make in (host, profile))),
    ],
)  # fmt: skip
def test_what_is_lacking_is_found(
    check: str,
    mine: Callable[[], HostRecording] | None,
    device: Callable[[], Profile] | None,
    tmp_path: Path,
) -> None:
    found = examined(tmp_path, (mine and mine(), device and device()))
    (lack,) = found.findings
    assert (lack.check, lack.ranks, found.exit_code) == (check, (0,), 1)
    assert lack.remedy


def test_an_operation_that_an_exception_ended_is_of_the_same_window(tmp_path: Path) -> None:
    mine = host(("aten::mm",)).op(12, "aten::relu", parent=40, rf_id=12, schema=SCHEMA)
    found = examined(tmp_path, (mine, profile().op("aten::addmm", 5, 3, rf_id=40, **SHAPES)))
    assert checks(found) == []
    # The process and the thread, the step, and two operators: what is in the file.
    assert found.ranks[0]["host_nodes"] == 5


def _waiting() -> Profile:
    return profile().call("cudaStreamSynchronize", 60, 5, 7).kernel("gemm", 62, 1, 6)


def _early() -> HostRecording:
    recording = HostRecording(flat=True)
    return recording.op(11, "aten::mm", schema=SCHEMA).op(12, "aten::relu", schema=SCHEMA)


def _on_threads() -> HostRecording:
    recording = host()
    for number in range(20, 30):
        recording.op(number, "aten::mm", rf_id=number, tid=5, schema=SCHEMA)
    return recording


def test_waits_that_are_recorded_are_not_lacking(tmp_path: Path) -> None:
    device = _waiting().wait("Stream Sync", 61, 7, stream=7)
    assert checks(examined(tmp_path, (host(), device))) == []


def test_a_host_trace_that_ends_too_early_is_found(tmp_path: Path) -> None:
    examined(tmp_path, (host(), profile()))
    path = tmp_path / "host.0.json"
    path.write_bytes(path.read_bytes()[:-150])
    (lack,) = examine(tmp_path).findings
    assert lack.check == "host-trace-damaged"
    assert "unregister_callback" in lack.remedy


def test_a_file_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    examined(tmp_path, (host(), profile()))
    path = tmp_path / "device.0.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": 5}')
    (lack,) = examine(tmp_path).findings
    assert (lack.check, lack.severity.label) == ("unreadable", "error")


def test_ranks_of_one_run_are_held_against_each_other(tmp_path: Path) -> None:
    later = profile(step=4, at=1e6)
    found = examined(tmp_path, (host(), profile(rank=0, world_size=3)), (host(), later))
    assert checks(found) == ["ranks-missing", "steps-differ", "windows-apart"]
    assert found.findings[0].evidence == "no recording of rank 2 of 3"
    assert found.findings[1].evidence == "rank 0 has step 3, rank 1 has step 4"
    assert found.findings[2].evidence == "rank 1 begins 1.000 s after rank 0 has ended"


def test_files_of_several_runs_are_told_and_nothing_else_of_the_run(tmp_path: Path) -> None:
    for place, world in enumerate((2, 4)):
        profile(rank=place, world_size=world).write(tmp_path / f"device.{place}.json")
    found = examine(tmp_path)
    assert checks(found) == ["worlds-differ", "no-host-trace"]
    assert found.findings[1].ranks == (0, 1)


def test_a_first_step_that_was_cold_is_advice(tmp_path: Path) -> None:
    recording = Profile()
    for step, lasting in enumerate((300, 100, 101)):
        recording.op(f"ProfilerStep#{step}", 400 * step, lasting, rf_id=step + 1, **SHAPES)
    mine = HostRecording()
    for step in range(3):
        mine.op(10 + step, f"ProfilerStep#{step}", rf_id=step + 1)
    found = examined(tmp_path, (mine, recording))
    assert (checks(found), found.exit_code) == (["cold"], 0)


def test_a_manifest_tells_of_steps_that_were_cut_short(tmp_path: Path) -> None:
    manifest = {"format": "chakra-et collection 1", "steps": {"recorded": 1, "wanted": 3}}
    (tmp_path / "manifest.0.json").write_text(json.dumps(manifest))
    (lack,) = examined(tmp_path, (host(), profile())).findings
    assert lack.evidence == "1 of 3 steps: the program ended before"


def test_traces_that_were_made_of_recordings_are_refused(tmp_path: Path) -> None:
    chakra("convert", EXAMPLES / "mlp", "-o", tmp_path / "et")
    with pytest.raises(ChakraError, match=r"what they lacked can be seen in them only"):
        examine(tmp_path / "et")


def test_the_command_says_what_is_lacking_and_the_cure(tmp_path: Path) -> None:
    done = chakra("doctor", EXAMPLES / "simple_add")
    assert done.code == 1
    assert "no-shapes (rank 0): no operation of the profile has shapes." in done.output
    assert "profile(record_shapes=True)" in done.output
    done = chakra("doctor", EXAMPLES / "ddp_2rank")
    assert (done.code, done.output.splitlines()[-1]) == (0, "nothing is missing in 2 ranks")
    told = json.loads(chakra("doctor", EXAMPLES / "simple_add", "--json").output)
    assert {item["check"] for item in told["findings"]} >= {"no-shapes", "no-sync-events"}

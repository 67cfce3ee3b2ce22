"""The command line: each verb on real input."""

from __future__ import annotations

import json
from pathlib import Path

from accounts import assert_sums_add_up
from command import chakra_process as chakra
from places import EXAMPLES, names_in

import chakra_et
from chakra_et.kernel import state

HOST = EXAMPLES / "simple_add" / "host.json.gz"
DEVICE = EXAMPLES / "simple_add" / "device.json.gz"


def test_convert_writes_a_trace_and_says_what_became_of_the_input(tmp_path: Path) -> None:
    output, report = tmp_path / "trace.0.et", tmp_path / "report.json"
    done = chakra("convert", "--host", HOST, "--device", DEVICE, "-o", output, "--report", report)
    assert done.returncode == 0, done.stderr
    assert "36 of 36 host operations" in " ".join(done.stdout.split())
    told = json.loads(report.read_text())
    assert_sums_add_up(told)
    trace = chakra_et.read(output)
    assert told["output"] == {
        "path": str(output),
        "bytes": output.stat().st_size,
        "nodes": len(trace.nodes),
        "edges": len(trace.edges),
    }
    assert told["host_nodes"] == {"total": 38, "kept": 38, "merged": 0, "left_out": []}
    assert told["device_events"] == {"total": 4, "kept": 4, "merged": 0, "left_out": []}
    assert {"by", "matched", "of"} <= told["joins"][0].keys()
    assert told["edges"]["launch"] == {
        "count": 4,
        "inferred": 0,
        "evidence": [{"by": "correlation id", "count": 4}],
    }
    assert told["repairs"] == []
    assert [w.split(" start")[0] for w in told["warnings"]] == ["3 device activities"]


def test_convert_of_a_directory_pairs_the_files_of_each_rank(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = chakra("convert", EXAMPLES / "ddp_2rank", "-o", tmp_path / "out", "--report", report)
    assert done.returncode == 0, done.stderr
    assert names_in(tmp_path / "out") == ["trace.0.et", "trace.1.et"]
    conversions = json.loads(report.read_text())["conversions"]
    assert [c["rank"] for c in conversions] == [0, 1]
    for rank, told in enumerate(conversions):
        assert told["inputs"]["host"]["path"].endswith(f"host.{rank}.json.gz")
        assert told["inputs"]["device"]["path"].endswith(f"device.{rank}.json.gz")


def test_rank_is_taken_from_the_command_line_if_given(tmp_path: Path) -> None:
    output = tmp_path / "trace.et"
    done = chakra("convert", "--host", HOST, "--rank", 5, "-o", output)
    assert done.returncode == 0, done.stderr
    assert chakra_et.read(output).rank == 5


def test_info_tells_each_kind_of_file_by_content(tmp_path: Path) -> None:
    odd = tmp_path / "trace.et"
    odd.write_bytes(DEVICE.read_bytes())
    assert "Kineto profile" in chakra("info", odd).stdout
    assert "PyTorch host trace" in chakra("info", HOST).stdout
    chakra_et.convert(HOST, DEVICE, tmp_path / "real.et")
    told = chakra("info", tmp_path / "real.et").stdout
    assert "ET (protobuf)" in told
    assert "4 launch" in told


def test_version() -> None:
    told = f"chakra-et {chakra_et.__version__} ({state()})"
    assert " ".join(chakra("--version").stdout.split()) == told


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.et", "b.et", "a.et.gz", "b.et.gz"):
        chakra_et.convert(HOST, DEVICE, tmp_path / name)
    assert (tmp_path / "a.et").read_bytes() == (tmp_path / "b.et").read_bytes()
    assert (tmp_path / "a.et.gz").read_bytes() == (tmp_path / "b.et.gz").read_bytes()

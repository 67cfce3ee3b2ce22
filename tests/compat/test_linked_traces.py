"""What mlc-chakra 1.0.0 links of a pair, we read; it agrees with what we link ourselves."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import mlc_env
import pairs

import chakra_et
from chakra_et.model import Trace

ROOT = Path(__file__).resolve().parents[2]


def work(trace: Trace) -> Counter[Any]:
    """Device work, with times from the base of the profile."""
    base = trace.metadata.get("base_time_ns") or 0
    facts = ("stream", "comm_type", "comm_size", "pg_name")
    return Counter(
        (node.name, node.start_ns - base, node.duration_ns, *map(node.attributes.get, facts))
        for node in trace.nodes
        if not node.attributes["is_cpu_op"]
    )


def test_a_linked_trace_has_the_device_work_of_its_pair(tmp_path: Path) -> None:
    mlc_env.mlc_python()
    facts = pairs.make_pair(1500, 1, tmp_path)
    linked = tmp_path / "linked.json"
    command = [mlc_env.command("chakra_trace_link"), "--rank", "0", "--output-file", linked]
    command += ["--chakra-host-trace", facts.host, "--chakra-device-trace", facts.device]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    result = chakra_et.convert(linked)
    ours = work(chakra_et.convert(facts.host, facts.device).trace)
    # That tool knows no memsets.
    lost = ours - work(result.trace)
    assert not work(result.trace) - ours
    assert {name for name, *_ in lost} == {"Memset (Device)"}
    assert lost.total() == facts.memsets
    assert result.report.device_events.kept == facts.kernels + facts.copies

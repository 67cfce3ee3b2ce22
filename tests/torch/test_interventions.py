"""What edits make of a recording is what the changed program does: operators, shapes, transfers."""

from __future__ import annotations

import importlib
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from chakra_et.loading import load
from chakra_et.model import TraceSet
from chakra_et.whatif import edit, parse_edit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
tool = importlib.import_module("interventions")
kinds = importlib.import_module("recording.interventions")
Machine = importlib.import_module("recording.device").Machine

SAME = ("micro-batches", "layers", "bucket size", "batch")
"""Interventions after which another program runs."""
KINDS = kinds.SETS["devices"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interventions")
    some = {name: KINDS[name] for name in (*SAME, "slow link")}
    tool.record_all(folder, some, times=1, steps=1)
    return folder


def done(traces: TraceSet) -> Counter[tuple[str, str]]:
    """Products with their shapes, and transfers with their bytes, of all ranks."""
    found: Counter[tuple[str, str]] = Counter()
    for trace in traces.values():
        for node in trace.nodes:
            if node.name == "aten::mm" and node.inputs is not None:
                found[node.name, node.inputs.shapes.decode()] += 1
            elif node.name in ("gloo:all_reduce", "gloo:send", "gloo:recv"):
                found[node.name, str(node.attributes.get("comm_size"))] += 1
    return found


@pytest.mark.parametrize("name", SAME)
def test_an_edited_run_does_what_the_other_program_did(recorded: Path, name: str) -> None:
    kind, folder = KINDS[name], recorded / name
    foretold = tool.foretell(name, kind, folder)
    assert foretold.after > 0
    assert foretold.foretold > 0
    before, after = (load([folder / f"{side}.0"]) for side in ("before", "after"))
    edits = [parse_edit(text.format(table=folder / "table.json")) for text in kind.edits]
    assert done(edit(before, edits).traces) == done(after) != done(before)


def test_the_table_has_a_line_for_each_kind(recorded: Path) -> None:
    some = {name: KINDS[name] for name in ("slow link", "batch")}
    found, failed = tool.foretell_all(recorded, some)
    text = "\n".join(tool.table(found, failed))
    assert "2 kinds, 1 recordings each side: median error" in text
    assert "| slow link: links carry a third of the bytes a second |" in text
    assert "`lengths=64:96,{table}`" in text


def test_a_product_takes_the_time_of_its_device_and_is_itself_again_afterwards() -> None:
    a, b = torch.ones(10, 20), torch.ones(20, 5)
    with Machine(flop_per_s=1e6, bytes_per_s=1_000_000).used():
        began = time.monotonic_ns()
        assert torch.mm(a, b).eq(0).all()
        assert time.monotonic_ns() - began >= 2_000_000
    assert torch.mm(a, b).eq(20).all()

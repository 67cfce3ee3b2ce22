"""What edits make of a recording is what the changed program does: operators, shapes, transfers."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path

import pytest

from chakra_et.loading import load
from chakra_et.model import TraceSet
from chakra_et.whatif import edit, parse_edit

pytest.importorskip("torch.profiler")
pytestmark = pytest.mark.torch

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
tool = importlib.import_module("interventions")
kinds = importlib.import_module("recording.interventions")

SAME = ("micro-batches", "layers", "bucket size", "batch")
"""Interventions after which another program runs."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interventions")
    tool.record_all(folder, [*SAME, "slow link"], times=1, steps=1)
    return folder


def done(traces: TraceSet) -> Counter[tuple[str, str]]:
    """Products with their shapes, and collectives with their bytes, of all ranks."""
    found: Counter[tuple[str, str]] = Counter()
    for trace in traces.values():
        for node in trace.nodes:
            if node.name == "aten::mm" and node.inputs is not None:
                found[node.name, node.inputs.shapes.decode()] += 1
            elif node.name == "gloo:all_reduce":
                found[node.name, str(node.attributes.get("comm_size"))] += 1
    return found


@pytest.mark.parametrize("name", SAME)
def test_an_edited_run_does_what_the_other_program_did(recorded: Path, name: str) -> None:
    kind, folder = kinds.INTERVENTIONS[name], recorded / name
    foretold = tool.foretell(name, folder)
    assert foretold.after > 0
    assert foretold.foretold > 0
    before, after = (load([folder / f"{side}.0"]) for side in ("before", "after"))
    edits = [parse_edit(text.format(table=folder / "table.json")) for text in kind.edits]
    assert done(edit(before, edits).traces) == done(after) != done(before)


def test_the_table_has_a_line_for_each_kind(recorded: Path) -> None:
    found = [tool.foretell(name, recorded / name) for name in ("slow link", "batch")]
    text = "\n".join(tool.table(found))
    assert "2 kinds, 1 recordings each side: median error" in text
    assert "| slow link: a link between two stages takes three times as long |" in text
    assert "`lengths=192:288,{table}`" in text

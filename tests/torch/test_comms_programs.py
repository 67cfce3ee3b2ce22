"""All operators of all ranks, over gloo: data-parallel, sharded and tensor-parallel recordings."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import gloo_programs
import pytest

from chakra_et.benchmark.certificate import times_of
from chakra_et.benchmark.choices import ShrinkAs
from chakra_et.benchmark.comms.call import RankOutcome
from chakra_et.benchmark.comms.job import prepare
from chakra_et.benchmark.plan import Choice, plan_of
from chakra_et.benchmark.running import Outcome
from chakra_et.benchmark.views import refs
from chakra_et.loading import load

pytest.importorskip("torch.profiler")  # plain "torch" could be the folder of this file
pytestmark = pytest.mark.torch

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
available = importlib.import_module("record_pairs").available()

RANKS = {
    "ddp": 2, "sharded": 2, "tensor_parallel": 2, "functional": 4, "collectives": 4, "messages": 4,
}  # fmt: skip
FEWER = {"collectives": 3, "messages": 3}
"""Recordings that run on fewer ranks, too."""
NAMES = [name for name in RANKS if name in available]

Done = dict[str, list[tuple[Outcome, RankOutcome]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def done(recordings: Path, folder: Path) -> Done:
    """What came of each rank of each recording; on fewer ranks its name ends in `-fewer`."""
    asked: list[tuple[str, str, int | None]] = [(name, name, None) for name in NAMES]
    asked += [(f"{name}-fewer", name, n) for name, n in FEWER.items() if name in NAMES]
    for title, name, ranks in asked:
        traces = load(recordings / name)
        gloo_programs.leave(folder, title, traces, prepare(traces, ranks, ShrinkAs.GROUP))
    subprocess.run([sys.executable, gloo_programs.__file__, str(folder)], check=True, timeout=240)
    return {
        title: [pickle.loads(path.read_bytes()) for path in sorted(folder.glob(f"{title}.*.done"))]
        for title, _, _ in asked
    }


@pytest.mark.parametrize("name", NAMES)
def test_all_operators_run_on_all_ranks(done: Done, name: str) -> None:
    assert len(done[name]) == RANKS[name]
    for outcome, _ in done[name]:
        assert outcome.account.left_out == []
        assert outcome.account.coverage == 1
        assert outcome.changed == []
        assert len(outcome.spans_ns) == gloo_programs.SETTINGS.iterations


@pytest.mark.parametrize("name", NAMES)
def test_recorded_calls_were_made_and_timed(recordings: Path, done: Done, name: str) -> None:
    """Also each of the parts that gloo makes of a reduce-scatter."""
    said = importlib.import_module("recording.truth").read_truth(recordings / name, 0)
    assert len(done[name][0][1].durations_ns[0]) == len(said)
    for _, saw in done[name]:
        assert len(saw.durations_ns) == gloo_programs.SETTINGS.iterations
        assert all(took > 0 for each in saw.durations_ns for took in each)


@pytest.mark.skipif("tensor_parallel" not in NAMES, reason="this PyTorch cannot record it")
def test_operators_on_distributed_tensors_run_on_the_part_of_a_rank(recordings: Path) -> None:
    """Layers of 32 to 64 and 64 to 16 columns on 2 ranks: no product is of the whole tensors."""
    plan = plan_of(load(recordings / "tensor_parallel")[0])
    taken = {
        tuple(plan.views[view].shape for view in refs(operation.inputs))
        for operation in plan.operations
        if operation.name == "aten::mm"
    }
    assert ((8, 32), (32, 32)) in taken
    assert not [shapes for shapes in taken if (32, 64) in shapes or (64, 16) in shapes]


@pytest.mark.skipif("tensor_parallel" not in NAMES, reason="this PyTorch cannot record it")
def test_operators_on_distributed_tensors_are_not_counted_beside_those_that_they_call(
    recordings: Path,
) -> None:
    """Both bear one name: a layer's product is one operator, on the part that a rank holds."""
    trace = load(recordings / "tensor_parallel")[0]
    planned = Counter(operation.name for operation in plan_of(trace).operations)
    found = times_of(trace, Choice())
    for name in ("aten::mm", "aten::add_", "aten::relu"):
        assert found.calls[name] == planned[name] > 0
    assert found.python_ns > 0


@pytest.mark.parametrize("name", [name for name in FEWER if name in NAMES])
def test_fewer_ranks_run_all_operators_as_well(done: Done, name: str) -> None:
    fewer = done[f"{name}-fewer"]
    assert len(fewer) == FEWER[name]
    for outcome, saw in fewer:
        assert outcome.account.coverage == 1
        assert all(took > 0 for each in saw.durations_ns for took in each)


@pytest.mark.usefixtures("done")
@pytest.mark.parametrize("rank", [0, 1])
def test_written_programs_run_and_need_pytorch_alone(folder: Path, rank: int) -> None:
    text = (folder / f"{gloo_programs.EMITTED}.{rank}.py").read_text()
    imports = {line.split()[1] for line in text.splitlines() if re.match("(import|from) ", line)}
    assert {name.partition(".")[0] for name in imports} <= {*sys.stdlib_module_names, "torch"}
    assert "RANKS.ask(" in text
    assert int((folder / f"{gloo_programs.EMITTED}.{rank}.span").read_text()) > 0

"""Recordings of the PyTorch at hand run again: what runs, and on which memory."""

from __future__ import annotations

import ast
import importlib
import json
import runpy
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import chakra
from host_operators import Operators, T
from places import DATA, ROOT

from chakra_et import validate, write
from chakra_et.benchmark import reasons
from chakra_et.benchmark.account import account_of
from chakra_et.benchmark.certificate import certificate
from chakra_et.benchmark.choices import BackEnd, StandIn
from chakra_et.benchmark.execution import Execution
from chakra_et.benchmark.program import Program, Style
from chakra_et.benchmark.running import Settings, emit, prepare, rehearsed, run
from chakra_et.definitions import Kind
from chakra_et.errors import ChakraError
from chakra_et.loading import load
from chakra_et.model import Trace

torch = pytest.importorskip("torch")
runtime = importlib.import_module("chakra_et.benchmark.runtime")
python_dispatch = pytest.importorskip("torch.utils._python_dispatch")
pytestmark = pytest.mark.torch

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
models = importlib.import_module("recording.models")
window = importlib.import_module("recording.window")

ONE_THREAD = Settings(threads=1, warmup=1, iterations=2)


def recorded(step: Callable[[], Any], directory: Path, steps: int = 1) -> Trace:
    """The trace of some steps."""
    window.record(step, directory, steps=steps)
    return load(directory)[0]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """A recorded step of every model."""
    directory = tmp_path_factory.mktemp("models")
    return {name: recorded(make(), directory / name) for name, make in models.TINY.items()}


def ran(trace: Trace, settings: Settings = ONE_THREAD) -> tuple[Program, Any]:
    """A program that was rehearsed, and its tensors."""
    program = prepare(trace, settings)
    return program, rehearsed(program, settings)


@pytest.mark.parametrize("name", models.TINY)
def test_every_operator_of_a_model_runs_and_the_verdict_before_says_so(
    traces: dict[str, Trace], name: str
) -> None:
    said = {o.rule.id: o.count for o in validate(traces[name], "torch-replay").outcomes}
    program, execution = ran(traces[name])
    execution.iterate()
    account = account_of(program.plan)
    assert (account.coverage, account.left_out, execution.changes()) == (1, [], [])
    assert not said.get("ET904")


def test_a_run_calls_each_operator_as_often_as_the_recording(
    traces: dict[str, Trace], tmp_path: Path
) -> None:
    """But for composite ones, of which some give way to their callees."""
    for name in ("residual", "transformer", "embedding bag"):
        _, execution = ran(traces[name])
        execution.record(tmp_path / name, 2)
        found = certificate(traces[name], load(tmp_path / name)[0])
        assert found.iterations == 2
        table = found.table(0).as_dicts()
        told = {row["name"]: (row["calls"], row["run_calls"]) for row in table}
        kernels = [n for n in told if n not in _composite_names() and n not in _SHOWS_ANEW]
        assert len(kernels) >= 8
        assert {n: told[n][0] for n in kernels} == {n: told[n][1] for n in kernels}


_SHOWS_ANEW = {f"aten::{name}" for name in ("as_strided", "resolve_conj", "empty_strided")}
"""Make views, and their number depends on who calls what."""


def _composite_names() -> set[str]:
    """Operators of which at least one overload is composite."""
    listed = importlib.import_module("composite_operators").FILE.read_text().split()
    return {name.partition(".")[0] for name in listed}


class _Peak(python_dispatch.TorchDispatchMode):  # type: ignore[misc,name-defined]
    """The most bytes of storages that are alive at once, of those that operators name."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._alive: dict[int, weakref.finalize[Any, Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in torch.utils._pytree.tree_leaves((args, kwargs, result)):
            if isinstance(value, torch.Tensor):
                self._note(value.untyped_storage())
        return result

    def _note(self, storage: Any) -> None:
        key = storage._cdata
        if key in self._alive and self._alive[key].alive:
            return
        count = storage.nbytes()
        self.now += count
        self.peak = max(self.peak, self.now)
        self._alive[key] = weakref.finalize(storage, self._forget, key, count)

    def _forget(self, key: int, count: int) -> None:
        self.now -= count
        self._alive.pop(key, None)


@pytest.mark.parametrize("name", ["perceptron", "residual", "transformer", "embedding bag"])
def test_a_run_holds_as_much_memory_at_once_as_the_model(name: str, tmp_path: Path) -> None:
    step = models.TINY[name]()
    trace = recorded(step, tmp_path)
    with _Peak() as original:
        step()
    _, execution = ran(trace)
    with _Peak() as again:
        execution.iterate()
    assert again.peak == pytest.approx(original.peak, rel=0.05)


def test_the_emitted_program_needs_pytorch_alone(traces: dict[str, Trace], tmp_path: Path) -> None:
    path = tmp_path / "benchmark.py"
    settings = Settings(threads=1)
    emit(prepare(traces["residual"], settings), settings, path)
    without_us = "import sys, runpy; sys.modules['chakra_et'] = sys.modules['numpy'] = None; "
    command = f"{without_us}sys.argv[1:] = ['--json', '--iterations', '3', '--threads', '1']; "
    command += f"runpy.run_path({str(path)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", command], capture_output=True, text=True, check=True
    )
    assert len(json.loads(done.stdout)["span_ns"]) == 3


class _Names(python_dispatch.TorchDispatchMode):  # type: ignore[misc,name-defined]
    """The operators that are called, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["transformer", "embedding bag"])
def test_the_emitted_program_calls_the_operators_of_a_run_and_imports_pytorch_alone(
    traces: dict[str, Trace], name: str, tmp_path: Path
) -> None:
    path = tmp_path / "benchmark.py"
    emit(prepare(traces[name], ONE_THREAD), ONE_THREAD, path)
    imported = {
        module.partition(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([node.module] if isinstance(node, ast.ImportFrom) else _names(node))
        if module
    }
    assert "torch" in imported
    assert imported <= {*sys.stdlib_module_names, "torch"}
    _, execution = ran(traces[name])
    written = runpy.run_path(str(path))
    written["set_up"]("cpu", 0, 1)
    tensors = written["start"]()
    with _Names() as own:
        execution.iterate()
    with _Names() as of_file:
        written["iterate"](written["PARTS"], tensors)
    assert of_file.names == own.names
    assert len(own.names) > 30


def _names(node: ast.Import) -> list[str]:
    return [alias.name for alias in node.names]


def test_the_command_records_its_run_and_compares(traces: dict[str, Trace], tmp_path: Path) -> None:
    write(traces["perceptron"], tmp_path / "trace.0.et")
    words = ("run", tmp_path / "trace.0.et", "--iterations", 2, "--threads", 1)
    done = chakra(*words, "--record", tmp_path / "again", "--json")
    told = json.loads(done.output)["certificate"]
    assert {"aten::addmm", "aten::mm"} <= {row["name"] for row in told["operators"]}
    assert told["recorded_span_ns"] > 0 < told["run_span_ns"]
    assert (tmp_path / "again" / "et" / "trace.0.et").is_file()
    done = chakra(*words, "--steps", 2)
    assert done.code == 0
    assert "46 of 46 operations run, 100.00% of the operators' time" in done.output


def test_what_was_recorded_on_a_device_lies_on_that_of_the_run() -> None:
    """The meta device stands for one: it computes shapes alone. The recording is of an A100."""
    trace = load(ROOT / "examples" / "simple_add")[0]
    program = prepare(trace, Settings(back_end=BackEnd.DRY))
    program.steps[-1].run = ["raise RuntimeError('so that the program is loaded anew')"]
    execution = Execution(program, "meta")
    execution.rehearse()
    execution.iterate()
    assert len(execution.changes()) == 1
    devices = [v.device for v in program.plan.views]
    tensors = [(t, d) for t, d in zip(execution.tensors, devices, strict=True) if t is not None]
    assert {d for _, d in tensors} == {"cuda:0", "cpu"}
    assert all(t.device.type == ("cpu" if d == "cpu" else "meta") for t, d in tensors)


def test_the_gradient_of_cudnns_batch_normalisation_runs_on_the_host(tmp_path: Path) -> None:
    schema = (
        "aten::cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, "
        "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, "
        "float epsilon, Tensor reserveSpace) -> (Tensor, Tensor, Tensor)"
    )
    shape = (2, 3, 4, 4)
    each = [T(number, (3,), device="cuda:0") for number in range(3, 12)]
    made = Operators()
    given = [T(1, shape, device="cuda:0"), T(2, shape, device="cuda:0"), *each[:5], 1e-5, each[5]]
    made.call(schema, given, [T(20, shape, device="cuda:0"), *each[6:8]])
    made.call("aten::neg(Tensor self) -> Tensor", [T(20, shape, device="cuda:0")])
    program, execution = ran(made.trace(tmp_path))
    execution.iterate()
    assert account_of(program.plan).left_out == []


def test_the_tool_that_fills_the_tables_measures(tmp_path: Path) -> None:
    tool, rounds, rows = map(
        importlib.import_module, ("benchmark_table", "benchmark_rounds", "benchmark_rows")
    )
    part = next(part for part in tool.PARTS if part.title == "Tiny models")
    make = part.programs["perceptron"]
    part.record(make, tmp_path / "first")
    samples = rounds.measure(make, tmp_path / "first", 1, 1, tmp_path)
    cells = ["perceptron", *(cell([samples]) for cell in part.columns.values())]
    assert len(cells) == len(part.head)
    assert cells[1] == "46 of 46"
    told = {("Tiny models", "perceptron"): rows.line(cells)}
    assert tool.rows_of(f"{tool.BEGIN}\n{tool.text(told, 'measured here')}\n{tool.END}") == told


@pytest.mark.parametrize(
    ("name", "share"), [("dlrm8/host.0.json.gz", 0.93), ("host_et/allgather_1.0.2.json.gz", 0.8)]
)
def test_public_host_traces_run_on_the_host(name: str, share: float) -> None:
    """But for their communication, fbgemm's operators, and what concerns a device."""
    if not (DATA / name).is_file():
        pytest.skip(f"no {name}: name the directory of real traces in CHAKRA_ET_DATA")
    program, execution = ran(load(DATA / name)[0])
    execution.iterate()
    account = account_of(program.plan)
    assert account.coverage > share
    told = ("communicates", "concerns a device", "operators of fbgemm", "<Stream>")
    assert all(any(text in item.reason for text in told) for item in account.left_out)


def test_a_seed_makes_runs_alike(traces: dict[str, Trace]) -> None:
    """Dropout draws anew in each iteration, but the same numbers in each run of one seed."""

    def values(seed: int) -> list[Any]:
        settings = Settings(threads=1, seed=seed)
        program = prepare(traces["transformer"], settings)
        execution = rehearsed(program, settings)
        execution.iterate()
        return [t for t in execution.tensors if t is not None and t.is_floating_point()]

    first, second, other = values(1), values(1), values(2)
    assert all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, second, strict=True)
    )
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_views_of_one_storage_stay_views_of_one_storage(tmp_path: Path) -> None:
    base = torch.ones(4, 6)

    def step() -> None:
        base[1:3].mul_(2)
        base.t().add_(1)
        base.sum()

    program, execution = ran(recorded(step, tmp_path))
    memory = [t for t in execution.tensors if t is not None and t.untyped_storage().nbytes() == 96]
    assert len({t.untyped_storage().data_ptr() for t in memory}) == 1
    shapes = {tuple(view.shape) for view in program.plan.views}
    assert {(2, 6), (6, 4), (4, 6)} <= shapes


def test_indices_stay_within_their_tables(tmp_path: Path) -> None:
    """Of whatever comes in, and of what is computed: there the rehearsal gives others."""
    table, rows = torch.randn(7, 3), torch.tensor([0, 6, 2])
    source = torch.randn(5, 9)

    def step() -> None:
        torch.nn.functional.embedding(rows, table)
        torch.nn.functional.embedding(rows.clamp(max=3) + 3, table)
        source.gather(1, torch.full((5, 2), 8))
        source.index_select(0, rows.clamp(max=4))
        source[rows.clamp(max=4)]

    program, execution = ran(recorded(step, tmp_path))
    for _ in range(3):
        execution.iterate()
    assert account_of(program.plan).coverage == 1


def test_shapes_that_depend_on_values_are_those_of_the_recording(tmp_path: Path) -> None:
    numbers = torch.tensor([4, 1, 4, 3, 1])

    def step() -> None:
        numbers.unique().double().mul(2.0)

    program, execution = ran(recorded(step, tmp_path))
    execution.iterate()
    assert account_of(program.plan).coverage == 1
    assert any(tuple(view.shape) == (3,) for view in program.plan.views)
    assert any("another shape" in text for text in execution.changes())


def test_a_number_of_python_does_not_decide_of_which_type_a_result_is(tmp_path: Path) -> None:
    """A recording has it as a tensor without dimensions, of double precision."""
    scores = torch.randn(4, 8, requires_grad=True)

    def step() -> None:
        (0.01 * scores.softmax(-1).mean()).backward()

    program, execution = ran(recorded(step, tmp_path))
    execution.iterate()
    assert account_of(program.plan).left_out == []
    assert any("another type" in text for text in execution.changes())
    tensors = zip(execution.tensors, program.plan.views, strict=True)
    assert all(str(t.dtype) == f"torch.{v.dtype}" for t, v in tensors if t is not None)


def test_a_recurrent_layer_keeps_what_its_gradient_reads(tmp_path: Path) -> None:
    """Its operator returns that only where gradients are on, which they are not in a run."""
    layer = torch.nn.LSTM(8, 8)

    def step() -> None:
        layer(torch.randn(4, 2, 8))[0].sum().backward()

    program, execution = ran(recorded(step, tmp_path))
    execution.iterate()
    assert (account_of(program.plan).coverage, execution.changes()) == (1, [])


def test_operators_on_wrapped_tensors_give_way_to_those_on_their_memory(tmp_path: Path) -> None:
    """What `vmap` and `grad` wrap has a shape, and no storage."""
    weight = torch.randn(8, 8)

    def loss(x: Any) -> Any:
        return torch.tanh(x @ weight).sum()

    def step() -> None:
        torch.func.vmap(torch.func.grad(loss))(torch.randn(4, 8))

    trace = recorded(step, tmp_path)
    program, execution = ran(trace)
    execution.iterate()
    left_out = account_of(program.plan).left_out
    assert {"aten::tanh", "aten::mm", "aten::tanh_backward"} <= runs_of(program)
    assert {item.reason.partition(";")[0] for item in left_out} == {reasons.NO_MEMORY}
    assert execution.changes() == []
    said = {o.rule.id: o.count for o in validate(trace, "torch-replay").outcomes}
    assert said["ET904"] == sum(item.count for item in left_out)


def runs_of(program: Program) -> set[str]:
    """The names of operators that run."""
    return {operation.name for operation in program.plan.operations if not operation.reason}


def test_operators_on_sparse_tensors_are_left_out_with_the_reason(tmp_path: Path) -> None:
    table = torch.nn.Embedding(20, 4, sparse=True)

    def step() -> None:
        table(torch.tensor([1, 2])).sum().backward()
        table.weight.grad.coalesce()

    program, execution = ran(recorded(step, tmp_path))
    execution.iterate()
    told = {item.name: item.reason for item in account_of(program.plan).left_out}
    assert reasons.NO_MEMORY in told["aten::coalesce"]
    assert execution.changes() == []


def test_overloads_whose_names_are_keywords_run(tmp_path: Path) -> None:
    def step() -> None:
        torch.empty(5).random_(2, 10)

    program, execution = ran(recorded(step, tmp_path))
    execution.iterate()
    assert (account_of(program.plan).coverage, execution.changes()) == (1, [])
    compile(program.text(), "program", "exec")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")  # Newer releases want others.
def test_quantised_tensors_are_made(tmp_path: Path) -> None:
    given = torch.quantize_per_tensor(torch.randn(4, 4), 0.1, 0, torch.quint8)

    def step() -> None:
        given.t().dequantize()

    program, execution = ran(recorded(step, tmp_path))
    execution.iterate()
    assert (account_of(program.plan).coverage, execution.changes()) == (1, [])


def test_tensors_that_cannot_be_made_are_told(traces: dict[str, Trace]) -> None:
    """What reads them is left out, and the program stays one that runs."""
    program = prepare(traces["perceptron"], ONE_THREAD)
    program.start[0] = "t[0] = torch.empty(-1)"
    execution = rehearsed(program, ONE_THREAD)
    execution.iterate()
    assert any("cannot be made" in item.reason for item in account_of(program.plan).left_out)
    assert "torch.empty(-1)" not in program.text()


def test_values_that_pytorch_refuses_give_way_to_others(tmp_path: Path) -> None:
    """Computed ones, of which the plan cannot say what they are."""
    target = torch.rand(8)

    def step() -> None:
        torch.nn.functional.binary_cross_entropy(target.sub(1).abs(), target)
        torch.multinomial(target.sub(1).abs(), 1)
        torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 4), [5, 4, 2])

    program, execution = ran(recorded(step, tmp_path))
    execution.iterate()
    assert account_of(program.plan).coverage == 1


def test_values_that_decide_shapes_are_as_many_as_were_recorded(tmp_path: Path) -> None:
    """Masks, lengths and repeats, given or computed; and nothing is divided by zero."""
    table = torch.randn(6, 5, requires_grad=True)
    mask, counts = torch.rand(6, 5) > 0.7, torch.tensor([2, 0, 4])
    layer = torch.nn.LSTM(4, 3, bidirectional=True)

    def step() -> None:
        (table[mask].sum() + table[:, table[0] > 0].sum()).backward()
        torch.nonzero(table.detach() > 1)
        torch.masked_select(table.detach(), mask)
        torch.arange(3).repeat_interleave(counts)
        counts // 3 % counts.add(1)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            torch.randn(5, 3, 4), torch.tensor([2, 5, 3]), enforce_sorted=False
        )
        torch.nn.utils.rnn.pad_packed_sequence(layer(packed)[0])[0].sum().backward()

    program, execution = ran(recorded(step, tmp_path))
    execution.iterate()
    assert account_of(program.plan).left_out == []
    assert not [text for text in execution.changes() if "refused" in text or "shape" in text]


@pytest.mark.parametrize(
    ("count", "first", "total"), [(3, 5, 10), (4, 0, 10), (1, 7, 7), (5, 4, 20), (3, 0, 0)]
)
def test_lengths_have_their_sum_and_their_largest(count: int, first: int, total: int) -> None:
    made = runtime.filled(torch.empty(count, dtype=torch.int64), "lengths", first, total).tolist()
    assert (len(made), sum(made)) == (count, total)
    assert made == sorted(made, reverse=True)
    assert made[0] == (first or -(-total // count))


@pytest.fixture
def twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """A recording of an operator that a module of the user's registers."""
    (tmp_path / "twice_operators.py").write_text(
        "import torch\n"
        "library = torch.library.Library('chakra_twice', 'DEF')\n"
        "library.define('twice(Tensor x) -> Tensor')\n"
        "library.impl('twice', lambda x: 2 * x, 'CPU')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    if "twice_operators" not in sys.modules:
        importlib.import_module("twice_operators")

    def step() -> None:
        torch.ops.chakra_twice.twice(torch.ones(3))

    return recorded(step, tmp_path / "run")


def test_an_unknown_operator_is_left_out_with_its_reason(twice: Trace) -> None:
    program, execution = ran(twice)
    execution.iterate()
    (left,) = account_of(program.plan).left_out
    assert left.name == "chakra_twice::twice"
    assert "--module" in left.reason
    said = {o.rule.id: o.count for o in validate(twice, "torch-replay").outcomes}
    assert said["ET904"] == 1
    assert left.reason.endswith("in its place")
    assert [o.name for o in program.plan.operations if not o.reason][-1] == "aten::mul"


def test_a_module_brings_its_operators(twice: Trace) -> None:
    settings = Settings(threads=1, modules=("twice_operators",), iterations=1)
    program = prepare(twice, settings)
    assert run(program, settings).account.coverage == 1
    assert "import twice_operators" in program.text()
    with pytest.raises(ChakraError, match="--module no_such_module cannot be imported"):
        prepare(twice, Settings(modules=("no_such_module",)))


def test_a_module_that_raises_is_named_with_what_it_raised(
    twice: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raising_operators.py").write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ChakraError, match=r"raising_operators raised RuntimeError.*no licence"):
        prepare(twice, Settings(modules=("raising_operators",)))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--device", "nonsense"], "--device nonsense cannot be used"),
        (["--iterations", "0"], "--iterations: 0 is less than 1"),
        (["--threads", "0"], "--threads: 0 is less than 1"),
    ],
)
def test_an_emitted_program_refuses_what_it_cannot_do(
    given: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark.py", *given])
    with pytest.raises(SystemExit) as ended:
        runtime.main(lambda: pytest.fail("it started"), ())
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_run_takes_the_threads_of_its_recording_but_no_more_than_pytorch(
    traces: dict[str, Trace],
) -> None:
    trace = traces["perceptron"]
    settings = Settings(warmup=0, iterations=1)
    before, usual = trace.metadata.get("profile_metadata"), torch.get_num_threads()
    try:
        for told, used in ((1, 1), (2, 2), (64, 4), (0, 4), ("x", 4), (None, 4)):
            torch.set_num_threads(4)
            noted = json.dumps({} if told is None else {"torch_threads": {"intra_op": told}})
            trace.metadata.set("profile_metadata", Kind.STRING, noted)
            outcome = run(prepare(trace, settings), settings)
            assert outcome.threads == used
            assert outcome.recorded_threads == (told if told in (1, 2, 64) else None)
        assert run(prepare(trace, ONE_THREAD), ONE_THREAD).threads == 1
    finally:
        torch.set_num_threads(usual)
        trace.metadata.set("profile_metadata", Kind.STRING, str(before))


def test_each_iteration_is_told(traces: dict[str, Trace]) -> None:
    told: list[tuple[int, int]] = []
    settings = Settings(warmup=1, iterations=2)
    run(prepare(traces["perceptron"], settings), settings, lambda *step: told.append(step))
    assert told == [(done, 4) for done in range(4)]


def test_what_does_not_run_can_take_its_time(traces: dict[str, Trace]) -> None:
    settings = Settings(threads=1, style=Style(StandIn.SPIN))
    program = prepare(traces["perceptron"], settings)
    for number, operation in enumerate(program.plan.operations):
        if operation.name == "aten::linear":
            program.skip(number, "for a test")
    execution = rehearsed(program, settings)
    left = account_of(program.plan).left_out[0]
    assert (left.name, left.count) == ("aten::linear", 3)
    assert execution.iterate() >= left.host_ns


def test_an_operator_that_pytorch_refuses_is_told(traces: dict[str, Trace]) -> None:
    program = prepare(traces["perceptron"], ONE_THREAD)
    place = next(n for n, o in enumerate(program.plan.operations) if o.name == "aten::linear")
    program.steps[place].run = ["raise RuntimeError('no kernel\\nand more')"]
    execution = rehearsed(program, ONE_THREAD)
    execution.iterate()
    assert execution.changes() == ["aten::linear (1): PyTorch refused it: no kernel"]


def test_a_view_that_pytorch_refuses_is_made_all_the_same(tmp_path: Path) -> None:
    base = torch.ones(4, 6)

    def step() -> None:
        base.t().add_(1)

    program = prepare(recorded(step, tmp_path), ONE_THREAD)
    program.steps[0].run = ["raise RuntimeError('no view')"]
    execution = rehearsed(program, ONE_THREAD)
    execution.iterate()
    assert [text.partition(" (")[0] for text in execution.changes()] == ["aten::t"]


def test_tensors_that_do_not_fit_are_refused_before_they_are_made(
    traces: dict[str, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chakra_et.benchmark.torch_release.available_bytes", lambda: 1000)
    with pytest.raises(ChakraError, match=r"its tensors need .* GB at once, and cpu has"):
        run(prepare(traces["residual"], ONE_THREAD), ONE_THREAD)


def test_a_machine_without_cuda_says_so(traces: dict[str, Trace]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ChakraError, match="no CUDA device"):
        prepare(traces["perceptron"], Settings(back_end=BackEnd.CUDA))


def test_the_list_of_composite_operators_is_that_of_pytorch() -> None:
    """Of the release that it was made from; others add some and drop few."""
    tool = importlib.import_module("composite_operators")
    listed, here = set(tool.FILE.read_text().split()), set(tool.composite())
    if torch.__version__.startswith("2.13."):
        assert listed == here
    assert len(listed & here) > 0.9 * len(listed)

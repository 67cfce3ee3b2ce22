"""The text of a program: what it calls, makes, frees and waits for."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from command import chakra
from host_operators import Operators, T
from places import ROOT

from chakra_et.benchmark.choices import StandIn
from chakra_et.benchmark.kernels import KernelWriter
from chakra_et.benchmark.plan import plan_of
from chakra_et.benchmark.program import Program, Style
from chakra_et.benchmark.writer import OperatorWriter
from chakra_et.loading import load
from chakra_et.model import Trace

PAIR = ROOT / "examples" / "simple_add"
RELU = "aten::relu(Tensor self) -> Tensor"
FULL = (
    "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor"
)
SPLIT = "aten::split.Tensor(Tensor(a) self, SymInt split_size, int dim=0) -> Tensor(a)[]"


def program(trace: Trace, style: Style = Style(), **options: Any) -> Program:  # noqa: B008
    return Program(plan_of(trace), [OperatorWriter(**options), KernelWriter()], style)


def lines(made: Operators, tmp_path: Path, style: Style = Style()) -> list[list[str]]:  # noqa: B008
    """The statements of each operation."""
    return [step.lines for step in program(made.trace(tmp_path), style).steps]


def test_a_chain_frees_each_tensor_after_its_last_use(tmp_path: Path) -> None:
    made = Operators()
    for number in (1, 2, 3):
        made.call(RELU, [T(number)], [T(number + 1)])
    assert lines(made, tmp_path) == [
        ["t[1] = aten_relu(t[0])"],
        ["t[2] = aten_relu(t[1])", "t[1] = None"],
        ["aten_relu(t[2])", "t[2] = None"],
    ]


def test_arguments_are_written_as_pytorch_calls_them(tmp_path: Path) -> None:
    made = Operators()
    made.call(FULL, [[2, 3], float("inf"), 6, 0, "cuda:0", True], [T(1, (2, 3))])
    made.call(RELU, [T(1, (2, 3))])
    assert lines(made, tmp_path)[0] == [
        't[0] = aten_full([2, 3], inf, dtype=torch.float32, layout=torch.strided, '
        "device=place('cuda:0'), pin_memory=False)"
    ]  # fmt: skip


def test_lists_of_tensors_are_taken_apart(tmp_path: Path) -> None:
    made = Operators()
    halves = [T(1, (2,)), T(1, (2,), offset=2)]
    made.call(SPLIT, [T(1), 2, 0], [halves])
    made.call("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", [halves, 0], [T(2)])
    assert lines(made, tmp_path) == [
        ["[t[1], t[2]] = aten_split_Tensor(t[0], 2, 0)"],
        ["aten_cat([t[1], t[2]], 0)"],
    ]


def test_a_view_that_no_operator_returned_is_made(tmp_path: Path) -> None:
    made = Operators()
    made.call(RELU, [T(1)], [T(2)])
    made.call(RELU, [T(2, (2,), offset=1)], [T(3, (2,))])
    assert lines(made, tmp_path)[1][0] == "t[2] = view(t[1], 'float32', (2,), (1,), 1)"


@pytest.mark.parametrize("stand_in", StandIn)
def test_what_does_not_run_still_leaves_its_outputs(stand_in: StandIn, tmp_path: Path) -> None:
    made = Operators()
    made.call("mine::f(Tensor x) -> Tensor", [T(1)], [T(2)])
    made.call(RELU, [T(2)], [T(3)])
    first = lines(made, tmp_path, Style(stand_in))[0]
    assert first[0].startswith("# mine::f is left out: operators of mine")
    assert first[-1] == (
        "t[1] = view(storage(16, 'float32', 'cpu', 'none'), 'float32', (4,), (1,), 0)"
    )


def test_a_view_that_an_operator_would_have_returned_is_made_where_it_is_read(
    tmp_path: Path,
) -> None:
    made = Operators()
    made.call("mine::first(Tensor(a) x) -> Tensor(a)", [T(1)], [T(1, (2,))])
    made.call(RELU, [T(1, (2,))], [T(2, (2,))])
    found = program(made.trace(tmp_path))
    assert found.start == [
        "t[1] = view(storage(16, 'float32', 'cpu', 'floats'), 'float32', (2,), (1,), 0)"
    ]
    assert [step.run[-1] for step in found.steps][1] == "aten_relu(t[1])"


def test_what_is_there_at_the_start_is_no_view_of_what_comes_later(tmp_path: Path) -> None:
    made = Operators()
    made.call("aten::t(Tensor(a) self) -> Tensor(a)", [T(1)], [T(1, (2, 2))])
    made.call(RELU, [T(1, (2, 2))], [T(2, (2, 2))])
    made.call(RELU, [T(1, (1,), offset=3)], [T(3, (1,))])
    assert program(made.trace(tmp_path)).start[1].startswith("t[3] = view(t[0], ")


def test_memory_that_python_fills_is_filled(tmp_path: Path) -> None:
    """`torch.tensor(1.0)` is an `aten::empty`, whose memory no operator writes."""
    empty = "aten::empty.memory_format(SymInt[] size) -> Tensor"
    fill = "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)"
    made = Operators()
    made.call(empty, [[4]], [T(1)])
    made.call(RELU, [T(1)], [T(2)])
    made.call(empty, [[4]], [T(3)])
    made.call(fill, [T(3), 1], [T(3)])
    steps = lines(made, tmp_path)
    assert steps[0][1] == "filled(t[0], 'floats')"
    assert not any("filled" in line for line in steps[2])


def test_recorded_gaps_are_waited_for() -> None:
    trace = load(PAIR)[0]
    told = [o.gap_ns for o in plan_of(trace).operations if o.gap_ns]
    steps = program(trace, Style(gaps=True)).steps
    waits = [line for step in steps for line in step.lines if line.startswith("wait(")]
    assert waits == [f"wait({ns})" for ns in told]
    assert told


class _Fake:
    """Stands for any object of PyTorch: notes what is called, in order."""

    def __init__(self, calls: list[str], name: str) -> None:
        self._calls, self._name = calls, name

    def __getattr__(self, name: str) -> _Fake:
        return _Fake(self._calls, f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> _Fake:
        self._calls.append(self._name)
        return self

    def __enter__(self) -> _Fake:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __neg__(self) -> _Fake:
        return self

    __floordiv__ = __rfloordiv__ = __add__ = __mul__ = lambda self, _other: self


def executed(text: str, monkeypatch: pytest.MonkeyPatch, device: str) -> list[str]:
    """What a program calls of PyTorch in one iteration on a device; nothing is computed."""
    calls: list[str] = []
    fake = types.ModuleType("torch")
    fake.__getattr__ = lambda name: _Fake(calls, name)  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "torch", fake)
    names: dict[str, Any] = {"__name__": "benchmark"}
    exec(compile(text, "benchmark.py", "exec"), names)
    names["set_up"](device, 0, None)
    tensors = names["start"]()
    calls.clear()
    names["iterate"](names["PARTS"], tensors)
    return calls


def with_streams(tmp_path: Path) -> Program:
    """Two operators on stream 7, one on stream 20 that reads what they made."""
    made = Operators()
    cuda = {"device": "cuda:0"}
    for number in (1, 2, 3):
        made.call(RELU, [T(number, **cuda)], [T(number + 1, **cuda)])
    plan = plan_of(made.trace(tmp_path))
    for operation, stream in zip(plan.operations, (7, 7, 20), strict=True):
        operation.stream = stream
    return Program(plan, [OperatorWriter(on_host=False)], Style(streams=True))


def test_operators_run_on_their_streams_which_wait_for_each_other(tmp_path: Path) -> None:
    steps = [step.lines for step in with_streams(tmp_path).steps]
    assert [line for step in steps for line in step if "use" in line or "follow" in line] == [
        "use(7)",
        "use(20)",
        "follow(20, 7)",
    ]


def test_on_cuda_a_program_chooses_streams_and_waits_for_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a PyTorch that only notes what is called: no device is at hand to measure on."""
    calls = executed(with_streams(tmp_path).text(), monkeypatch, "cuda")
    relu = "ops.aten.relu.default"
    told = [c for c in calls if c.startswith(("ops", "cuda"))]
    assert told == [
        "cuda.synchronize",
        "cuda.Stream", "cuda.set_stream", relu, relu,
        "cuda.Stream", "cuda.set_stream", "cuda.Stream.wait_stream", relu,
        "cuda.synchronize",
    ]  # fmt: skip


def test_an_operator_calls_its_stream_by_what_it_launched() -> None:
    """The recorded A100 run: its kernels are on stream 7."""
    assert {o.stream for o in plan_of(load(PAIR)[0]).operations} <= {-1, 7}


def test_generated_kernels_come_with_their_source(tmp_path: Path) -> None:
    (tmp_path / "abc.py").write_text("# the source\n")
    made = Operators()
    kernel = {"kernel_backend": "triton", "kernel_file": "abc.py"}
    made.call("triton_poi_fused", [T(1), T(2), 4, "grid(4,)", 99], **kernel)
    made.call("triton_gone", [T(1), 99], kernel_backend="triton", kernel_file="gone.py")
    plan = plan_of(made.trace(tmp_path))
    found = Program(plan, [KernelWriter(tmp_path, on_host=False)])
    assert found.steps[0].run == [
        "triton_poi_fused.run(t[0], t[1], 4, grid=grid(4,), "
        "stream=torch.cuda.current_stream().cuda_stream)"
    ]
    assert "# the source" in found.text()
    assert plan.operations[1].reason.startswith("its source gone.py is not at hand")
    assert "device only" in Program(plan, [KernelWriter(tmp_path)]).plan.operations[0].reason


CUDNN = (
    "aten::cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, "
    "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, "
    "float epsilon, Tensor reserveSpace) -> (Tensor, Tensor, Tensor)"
)


def test_what_only_a_device_has_runs_on_the_host_by_the_hosts_operator(tmp_path: Path) -> None:
    made = Operators()
    made.call(CUDNN, [*map(T, range(1, 8)), 0.5, T(8)], [T(9), T(10), T(11)])
    made.call(RELU, [T(9)])
    trace = made.trace(tmp_path)
    (host,), (device,) = (program(trace, on_host=on_host).steps[0].run for on_host in (True, False))
    assert host.endswith(
        "aten_native_batch_norm_backward(t[1], t[0], t[2], t[3], t[4], t[5], t[6], True, 0.5, "
        "[True, True, True])"
    )
    assert "aten_cudnn_batch_norm_backward(t[0], t[1]" in device


def test_dry_needs_no_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = chakra("run", PAIR, "--back-end", "dry")
    assert done.code == 0
    assert "operations run, " in done.output


def test_a_program_can_be_written_without_pytorch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compiles, and calls each operator that is to run."""
    path = tmp_path / "benchmark.py"
    assert chakra("run", PAIR, "--back-end", "dry", "--emit", path).code == 0
    calls = executed(path.read_text(), monkeypatch, "cuda")
    runs = [o for o in plan_of(load(PAIR)[0]).operations if not o.reason]
    assert sum(call.startswith("ops.") for call in calls) == len(runs) > 0


def test_running_without_pytorch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = chakra("run", PAIR)
    assert done.code == 2
    assert "pip install 'chakra-et[torch]'" in done.errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--steps", "x"), "are not a range of steps"),
        (("--steps", "99"), "nothing in the trace is steps 99"),
        (("--annotation", "no such"), "nothing in the trace is annotation 'no such'"),
        (("--rank", "3"), "no trace of rank 3"),
    ],
)
def test_what_is_not_there_is_refused(words: tuple[str, ...], message: str) -> None:
    done = chakra("run", PAIR, "--back-end", "dry", *words)
    assert done.code == 2
    assert message in done.errors

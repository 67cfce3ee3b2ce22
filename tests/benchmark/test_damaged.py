"""Whatever a trace holds, a plan is made or refused, and a program is Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from host_operators import Operators, T
from hypothesis import given
from hypothesis import strategies as st
from recordings import HostRecording
from traces import node, trace

from chakra_et.benchmark.arguments import decode
from chakra_et.benchmark.demands import _DEMANDS
from chakra_et.benchmark.plan import plan_of
from chakra_et.benchmark.program import Program
from chakra_et.benchmark.writer import OperatorWriter
from chakra_et.io.json_text import to_json

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=20,
)
TENSOR = st.lists(st.integers(-1, 9), min_size=5, max_size=5).map(lambda n: [*n, "cpu"])
VALUES = st.lists(ANY | TENSOR, max_size=6)
KINDS = st.sampled_from(
    ["Tensor(float)", "Tensor(long int)", "Tensor(?)", "Int", "None", "GenericList[Tensor(float)]",
     "GenericList[", "Tuple[Int]", "", "Double"]
)  # fmt: skip
NAMES = st.sampled_from(sorted(_DEMANDS)) | st.sampled_from(["aten::copy_", "aten::empty"])
ARGUMENTS = (
    "Tensor self, Tensor indices, Tensor offsets, int dim, Tensor index, Tensor target, "
    "Tensor weight, Tensor[] p"
)


@given(NAMES, VALUES, VALUES, st.lists(KINDS, max_size=6), VALUES)
def test_any_values_make_a_plan_and_a_program(
    name: str, values: list[Any], shapes: list[Any], kinds: list[str], strides: list[Any]
) -> None:
    texts = tuple(to_json(part).strip() for part in (values, shapes, kinds))
    schema = f"{name}({ARGUMENTS.replace(',', '=None,')}=None) -> Tensor"
    given_trace = trace(
        node(
            1,
            name=name,
            inputs=texts,  # type: ignore[arg-type]
            is_cpu_op=True,
            op_schema=schema,
            input_strides=to_json(strides).decode(),
        )
    )
    program = Program(plan_of(given_trace), [OperatorWriter()])
    compile(program.text(), "program", "exec")


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 0, 4, 4, 'cpu"); raise SystemExit #'],
        [1, 2, 0, 4, 4, "cpu\n"],
        [1, 2, -1, 4, 4, "cpu"],
        [1, 2, 1 << 60, 4, 4, "cpu"],
    ],
)
def test_a_tensor_that_cannot_be_is_unreadable(value: list[Any]) -> None:
    assert decode(to_json([value]), b"[[4]]", b'["Tensor(float)"]') is None


def test_elements_are_as_wide_as_their_type_whatever_the_trace_says() -> None:
    """Else the memory of a tensor would be too small for it."""
    [found] = decode(b'[[1, 2, 1, 3, 4, "cpu"]]', b"[[3]]", b'["Tensor(double)"]') or []
    assert (found.width, found.end) == (8, 32)


def test_names_in_a_trace_are_never_run(tmp_path: Path) -> None:
    """Nor types of elements, devices, and values."""
    attack = "x\nraise SystemExit('from the trace')"
    recording = HostRecording()
    tensor = ([[1, 2, 0, 4, 4, "cpu"]], [[4]], [f"Tensor({attack})"])
    recording.op(10, "evil", inputs=tensor, outputs=tensor, schema="evil::f(Tensor x) -> Tensor")
    made = Operators()
    made.recording = recording
    found = made.trace(tmp_path)
    found.nodes.names[found.nodes.names.index("evil")] = attack
    program = Program(plan_of(found), [OperatorWriter()])
    statements = [line for step in program.steps for line in step.lines] + program.start
    assert statements
    assert not any("\n" in line for line in statements)
    assert all(line.startswith("#") for line in statements)


def test_text_values_are_text(tmp_path: Path) -> None:
    made = Operators()
    made.call("aten::f(Tensor self, str mode) -> Tensor", [T(1), "sum'); print('no"], [T(2)])
    program = Program(plan_of(made.trace(tmp_path)), [OperatorWriter()])
    assert program.steps[0].run == ["aten_f(t[0], \"sum'); print('no\")"]

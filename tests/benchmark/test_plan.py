"""Which operators of a trace run, and on which memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_operators import Operators, T

from chakra_et.benchmark.account import account_of
from chakra_et.benchmark.demands import fills
from chakra_et.benchmark.plan import Choice, Kind, Plan, plan_of
from chakra_et.benchmark.views import refs
from chakra_et.errors import ChakraError

RELU = "aten::relu(Tensor self) -> Tensor"
ADD_ = "aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)"
T_ = "aten::t(Tensor(a) self) -> Tensor(a)"
EMBED = (
    "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, "
    "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor"
)
DROPOUT = "aten::dropout(Tensor input, float p, bool train) -> Tensor"
BERNOULLI = "aten::bernoulli_.float(Tensor(a!) self, float p=0.5) -> Tensor(a!)"
EMPTY_LIKE = "aten::empty_like(Tensor self) -> Tensor"
MUL = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"


def names(plan: Plan) -> list[str]:
    return [operation.name for operation in plan.operations]


def storages(plan: Plan, operation: int, side: str = "inputs") -> list[int]:
    """The storages that an operation takes or returns."""
    views = refs(getattr(plan.operations[operation], side))
    return [plan.views[view].storage for view in views]


def test_the_outermost_operators_run(tmp_path: Path) -> None:
    made = Operators()
    outer = made.call("aten::linear(Tensor input, Tensor weight) -> Tensor", [T(1), T(2)], [T(3)])
    made.call(T_, [T(2)], [T(2)], parent=outer)
    made.call(RELU, [T(3)], [T(4)])
    plan = plan_of(made.trace(tmp_path))
    assert names(plan) == ["aten::linear", "aten::relu"]
    assert plan.opened == 0


def test_a_freed_number_is_another_storage(tmp_path: Path) -> None:
    """The recorder gives the number of freed memory to what comes after."""
    made = Operators()
    made.call(RELU, [T(1)], [T(2)])
    made.call(RELU, [T(2)], [T(3)])
    made.call(RELU, [T(3)], [T(2, (8,))])
    plan = plan_of(made.trace(tmp_path))
    first, second = storages(plan, 0, "outputs"), storages(plan, 2, "outputs")
    assert first != second
    assert [plan.storages[s].bytes for s in (*first, *second)] == [16, 32]
    assert plan.storages[first[0]].last == 1


def test_what_is_read_before_it_is_made_is_there_at_the_start(tmp_path: Path) -> None:
    made = Operators()
    made.call(RELU, [T(1)], [T(2)])
    plan = plan_of(made.trace(tmp_path))
    assert [storage.born for storage in plan.storages] == [-1, 0]
    assert plan.external_bytes == 16


def test_views_of_one_storage_share_it(tmp_path: Path) -> None:
    made = Operators()
    made.call(RELU, [T(9)], [T(1, (2, 4))])
    made.call(T_, [T(1, (2, 4))], [T(1, (4, 2), strides=(1, 4))])
    made.call(ADD_, [T(1, (3,), offset=5), 1, 1], [T(1, (3,), offset=5)])
    plan = plan_of(made.trace(tmp_path))
    assert len({*storages(plan, 0, "outputs"), *storages(plan, 1), *storages(plan, 2)}) == 1
    assert plan.storages[storages(plan, 2)[0]].bytes == 32


@pytest.mark.parametrize("other", [T(2, (100,)), T(2, (1,), width=8), T(2, device="cuda:0")])
def test_what_cannot_be_in_the_memory_that_an_operator_made_is_other_memory(
    other: T, tmp_path: Path
) -> None:
    """A recorder may give one number to several things."""
    made = Operators()
    made.call(RELU, [T(1)], [T(2)])
    made.call(RELU, [other], [T(3)])
    plan = plan_of(made.trace(tmp_path))
    assert storages(plan, 0, "outputs") != storages(plan, 1)


def dropout(made: Operators, used: bool) -> None:
    outer = made.call(DROPOUT, [T(1), 0.1, True], [T(4)])
    made.call(EMPTY_LIKE, [T(1)], [T(2)], parent=outer)
    made.call(BERNOULLI, [T(2), 0.9], [T(2)], parent=outer)
    made.call(MUL, [T(1), T(2)], [T(4)], parent=outer)
    made.call(MUL, [T(4), T(2) if used else T(1)], [T(5)])


def test_a_composite_operator_gives_way_if_others_read_what_it_made_inside(tmp_path: Path) -> None:
    made = Operators()
    dropout(made, used=True)
    plan = plan_of(made.trace(tmp_path))
    assert names(plan) == ["aten::empty_like", "aten::bernoulli_", "aten::mul", "aten::mul"]
    assert plan.opened == 1
    assert storages(plan, 0, "outputs") == [storages(plan, 3)[1]]


def test_it_stays_whole_otherwise(tmp_path: Path) -> None:
    made = Operators()
    dropout(made, used=False)
    assert names(plan_of(made.trace(tmp_path))) == ["aten::dropout", "aten::mul"]


def test_an_operator_that_chooses_by_gradients_gives_way(tmp_path: Path) -> None:
    """`embedding_bag` would call another operator in a run, which needs no gradient."""
    arguments = "(Tensor weight, Tensor indices, Tensor offsets) -> (Tensor, Tensor)"
    bag = [T(1, (9, 4)), T(2, width=8), T(3, (2,), width=8)]
    made = Operators()
    outer = made.call(f"aten::embedding_bag{arguments}", bag, [T(4), T(5)])
    made.call(f"aten::_embedding_bag{arguments}", bag, [T(4), T(5)], parent=outer)
    assert names(plan_of(made.trace(tmp_path))) == ["aten::_embedding_bag"]


def test_an_operator_with_work_of_its_own_never_gives_way(tmp_path: Path) -> None:
    made = Operators()
    outer = made.call("aten::mm(Tensor self, Tensor mat2) -> Tensor", [T(1), T(1)], [T(3)])
    made.call(EMPTY_LIKE, [T(1)], [T(2)], parent=outer)
    made.call(RELU, [T(2)], [T(5)])
    assert names(plan_of(made.trace(tmp_path))) == ["aten::mm", "aten::relu"]


@pytest.mark.parametrize(
    ("schema", "inputs", "reason"),
    [
        ("mine::f(Tensor x) -> Tensor", [T(1)], "operators of mine are not part of PyTorch"),
        ("aten::set_(Tensor(a!) self, Storage source) -> Tensor(a!)", [T(1), "<Storage>"],
         "argument source was recorded as <Storage>, without its value"),
        ("aten::relu(Tensor self, int k) -> Tensor", [T(1)], "its inputs do not fit its schema"),
        ("aten::relu(Tensor self) -> Tensor", [], "no input values are recorded"),
        ("aten::relu(", [T(1)], "its schema cannot be read"),
        ("aten::f(int[] a) -> Tensor", [list(range(4097))], "it was given a list of which"),
        ("c10d::barrier(Tensor t) -> Tensor", [T(1)], "it communicates, and no process group"),
    ],
)  # fmt: skip
def test_what_cannot_run_says_why(
    schema: str, inputs: list[object], reason: str, tmp_path: Path
) -> None:
    made = Operators()
    made.call(schema, inputs)
    (operation,) = plan_of(made.trace(tmp_path)).operations
    assert operation.reason.startswith(reason)


def test_optional_arguments_may_be_of_any_kind(tmp_path: Path) -> None:
    made = Operators()
    made.call("aten::f(Tensor self, Generator? g=None) -> Tensor", [T(1), "<Generator>"], [T(2)])
    assert plan_of(made.trace(tmp_path)).operations[0].reason == ""


def test_operators_that_an_unknown_one_called_run_in_its_place(tmp_path: Path) -> None:
    made = Operators()
    outer = made.call("mine::f(Tensor x) -> Tensor", [T(1)], [T(2)])
    made.call(RELU, [T(1)], [T(2)], parent=outer)
    trace = made.trace(tmp_path)
    plan = plan_of(trace)
    assert names(plan) == ["aten::relu"]
    (left,) = account_of(plan).left_out
    assert left.reason.endswith("the operators that it called run in its place")
    assert names(plan_of(trace, Choice(namespaces=frozenset({"mine"})))) == ["mine::f"]


def test_generated_kernels_are_operations(tmp_path: Path) -> None:
    made = Operators()
    made.call("triton_poi_fused", [T(1), 4, 12345], kernel_backend="triton", kernel_file="a.py")
    (operation,) = plan_of(made.trace(tmp_path)).operations
    assert operation.kind is Kind.KERNEL


def test_indices_are_filled_within_the_smallest_table_that_they_reach(tmp_path: Path) -> None:
    """Also through a copy of them."""
    indices, copy = T(2, (3,), width=8), T(3, (3,), width=8)
    made = Operators()
    made.call(EMBED, [T(1, (50, 4)), indices, -1, False, False], [T(6, (3, 4))])
    made.call("aten::clone(Tensor self) -> Tensor", [indices], [copy])
    made.call(EMBED, [T(4, (20, 4)), copy, -1, False, False], [T(5, (3, 4))])
    plan = plan_of(made.trace(tmp_path))
    fill = fills(plan)[storages(plan, 0)[1]]
    assert (fill.kind, fill.low, fill.high) == ("range", 0, 20)


def test_a_recorded_range_bounds_integers(tmp_path: Path) -> None:
    made = Operators()
    made.call(RELU, [T(1, width=8)], [T(2, width=8)], tensor_range='{"0":[5,9]}')
    plan = plan_of(made.trace(tmp_path))
    fill = fills(plan)[storages(plan, 0)[0]]
    assert (fill.kind, fill.low, fill.high) == ("range", 5, 10)


INDEX = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"


@pytest.mark.parametrize(
    ("shape", "returned", "expected"),
    [((4,), (3, 6), ("some", 3)), ((4, 6), (9,), ("some", 9)), ((4,), (3,), ("flags", 0))],
)
def test_a_mask_has_as_many_true_as_were_chosen(
    shape: tuple[int, ...], returned: tuple[int, ...], expected: tuple[str, int], tmp_path: Path
) -> None:
    """What cannot have come of it (the last one) says nothing."""
    made = Operators()
    flags = T(2, shape, width=1)
    made.call(INDEX, [T(1, (4, 6)), [flags]], [T(3, returned)])
    plan = plan_of(made.trace(tmp_path))
    fill = fills(plan)[storages(plan, 0)[1]]
    assert (fill.kind, fill.low) == expected


def test_a_normalisation_begins_with_scale_one_and_shift_zero(tmp_path: Path) -> None:
    made = Operators()
    schema = "aten::layer_norm(Tensor input, SymInt[] s, Tensor? weight, Tensor? bias) -> Tensor"
    made.call(schema, [T(1, (2, 3)), [3], T(2, (3,)), T(3, (3,))], [T(4, (2, 3))])
    plan = plan_of(made.trace(tmp_path))
    _, weight, bias = (fills(plan)[place] for place in storages(plan, 0))
    assert (weight.low, weight.high, bias.low, bias.high) == (1, 2, 0, 1)


def test_peak_memory_counts_what_is_there_at_once(tmp_path: Path) -> None:
    made = Operators()
    for number in range(1, 6):
        made.call(RELU, [T(number)], [T(number + 1)])
    plan = plan_of(made.trace(tmp_path))
    assert plan.peak_bytes == 16 + 2 * 16


def test_gradients_are_kept_until_they_are_set_to_none(tmp_path: Path) -> None:
    made = Operators()
    accumulate = made.call("torch::autograd::AccumulateGrad", [])
    made.call("aten::neg(Tensor self) -> Tensor", [T(1)], [T(2)], parent=accumulate)
    made.call(RELU, [T(3)], [T(4)])
    made.call("Optimizer.zero_grad#SGD.zero_grad", [])
    made.call(RELU, [T(3)], [T(5)])
    plan = plan_of(made.trace(tmp_path))
    assert plan.storages[storages(plan, 0, "outputs")[0]].last == 1


def test_a_trace_without_operators_is_refused(tmp_path: Path) -> None:
    made = Operators()
    made.call("## step ##", [])
    made.call("record_param_comms", [])
    with pytest.raises(ChakraError, match="no operation of the host has a schema"):
        plan_of(made.trace(tmp_path))

"""What values operators ask for: indices within their table, offsets that ascend, positive roots.

A trace holds no data, so tensors are filled anew. What an operator demands of an input holds for
the memory behind it, and, through operators that only hand values on, for what these were given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Final

from chakra_et.benchmark import shaped
from chakra_et.benchmark.arguments import View
from chakra_et.benchmark.fill import RETURNED, Demand, Fill, Find, Given
from chakra_et.benchmark.plan import Operation, Plan
from chakra_et.benchmark.views import Ref, refs

_MOST: Final = 1 << 62
INTEGERS: Final = frozenset(
    {"int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"}
)


def _shape(given: Given, name: str, views: list[View]) -> tuple[int, ...] | None:
    """The shape of an argument; None where it is no tensor."""
    value = given.get(name)
    return views[value.view].shape if isinstance(value, Ref) else None


def _rows(table: str, index: str) -> Find:
    """Indices into the first dimension of a table."""

    def demand(given: Given, views: list[View]) -> Iterable[Demand]:
        if shape := _shape(given, table, views):
            yield from _within(given.get(index), shape[0])

    return demand


def _along(index: str) -> Find:
    """Indices along the dimension `dim` of `self`; without one, into all elements."""

    def demand(given: Given, views: list[View]) -> Iterable[Demand]:
        shape, dim = _shape(given, "self", views), given.get("dim")
        if dim is None and shape is not None:
            yield from _within(given.get(index), math.prod(shape))
        elif shape and isinstance(dim, int) and -len(shape) <= dim < len(shape):
            yield from _within(given.get(index), shape[dim])

    return demand


def _classes(given: Given, views: list[View]) -> Iterable[Demand]:
    """Labels of classes: the second dimension of the scores, or the only one."""
    if shape := _shape(given, "self", views):
        yield from _within(given.get("target"), shape[min(1, len(shape) - 1)])


def _each_dimension(given: Given, views: list[View]) -> Iterable[Demand]:
    """One tensor of indices for each dimension; None takes all of one, flags take one each."""
    yield from shaped.mask(given, views)
    shape, indices = _shape(given, "self", views) or (), given.get("indices")
    place = 0
    for item in indices if isinstance(indices, list) else ():
        flags = isinstance(item, Ref) and views[item.view].dtype in ("bool", "uint8")
        if place < len(shape) and not flags:
            yield from _within(item, shape[place])
        place += len(views[item.view].shape) if flags and isinstance(item, Ref) else 1


def _bags(given: Given, views: list[View]) -> Iterable[Demand]:
    """Indices into the table, and where each bag begins among them."""
    yield from _rows("weight", "indices")(given, views)
    count = _shape(given, "indices", views)
    for view in refs(given.get("offsets")):
        yield view, Fill("offsets", 0, count[0] if count else 0)


def _counted(index: str, count: str) -> Find:
    """Indices below a number that is another argument."""

    def demand(given: Given, _views: list[View]) -> Iterable[Demand]:
        if isinstance(given.get(count), int):
            yield from _within(given.get(index), given[count])

    return demand


def _pooled(given: Given, views: list[View]) -> Iterable[Demand]:
    """Where in its plane each maximum was."""
    if shape := _shape(given, "self", views):
        yield from _within(given.get("indices"), math.prod(shape[-2:]))


def _positive(name: str) -> Find:
    """Arguments of which a root or a logarithm is taken, and probabilities."""

    def demand(given: Given, views: list[View]) -> Iterable[Demand]:
        for view in refs(given.get(name)):
            if views[view].dtype not in INTEGERS:
                yield view, Fill("positive")

    return demand


def _normalised(given: Given, views: list[View]) -> Iterable[Demand]:
    """Variances; scale and shift as PyTorch begins with them.

    Of others few values would pass the ReLU behind, or nearly all, and operators that compare
    values, such as a pooling, are faster where the outcome is always the same.
    """
    yield from _positive("running_var")(given, views)
    for name, value in (("weight", 1), ("bias", 0)):
        for view in refs(given.get(name)):
            yield view, Fill("range", value, value + 1)


def _shares(given: Given, views: list[View]) -> Iterable[Demand]:
    """Probabilities that are compared with others."""
    yield from _positive("self")(given, views)
    yield from _positive("target")(given, views)


def _definite(given: Given, views: list[View]) -> Iterable[Demand]:
    """Matrices that have a root."""
    for view in refs(given.get("self")):
        if views[view].is_dense and views[view].shape:
            yield view, Fill("identity", max(views[view].shape[-1], 1))


def _divisor(given: Given, views: list[View]) -> Iterable[Demand]:
    """Integers by which others are divided: not zero."""
    for view in refs(given.get("other")):
        if views[view].dtype in INTEGERS:
            yield view, Fill("range", 1, 2)


def _within(value: Any, count: int) -> Iterable[Demand]:
    for view in refs(value):
        yield view, Fill("range", 0, max(count, 1))


_DEMANDS: Final[dict[str, Find]] = {
    **dict.fromkeys(("aten::embedding",), _rows("weight", "indices")),
    "aten::embedding_renorm_": _rows("self", "indices"),
    **dict.fromkeys(
        ("aten::embedding_bag", "aten::_embedding_bag", "aten::_embedding_bag_forward_only"), _bags
    ),
    **dict.fromkeys(
        ("aten::embedding_dense_backward", "aten::embedding_backward"),
        _counted("indices", "num_weights"),
    ),
    "aten::one_hot": _counted("self", "num_classes"),
    **dict.fromkeys(
        (
            "aten::index_select", "aten::gather", "aten::scatter", "aten::scatter_",
            "aten::scatter_add", "aten::scatter_add_", "aten::scatter_reduce",
            "aten::scatter_reduce_", "aten::index_add", "aten::index_add_", "aten::index_copy",
            "aten::index_copy_", "aten::index_fill", "aten::index_fill_", "aten::index_reduce",
        ),
        _along("index"),
    ),
    **dict.fromkeys(
        (
            "aten::nll_loss", "aten::nll_loss_nd", "aten::nll_loss_forward", "aten::nll_loss2d",
            "aten::nll_loss2d_forward", "aten::nll_loss_backward", "aten::nll_loss2d_backward",
            "aten::cross_entropy_loss", "aten::multi_margin_loss",
        ),
        _classes,
    ),
    **dict.fromkeys(
        (
            "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_",
            "aten::_unsafe_index", "aten::_unsafe_index_put",
        ),
        _each_dimension,
    ),
    **dict.fromkeys(("aten::take", "aten::put_"), _along("index")),
    "aten::take_along_dim": _along("indices"),
    **dict.fromkeys(
        ("aten::max_pool2d_with_indices_backward", "aten::max_unpool2d"), _pooled
    ),
    **dict.fromkeys(
        (
            "aten::sqrt", "aten::sqrt_", "aten::rsqrt", "aten::log", "aten::log_", "aten::log1p",
            "aten::_foreach_sqrt", "aten::_foreach_sqrt_", "aten::bernoulli", "aten::multinomial",
        ),
        _positive("self"),
    ),
    **dict.fromkeys(("aten::bernoulli_",), _positive("p")),
    "aten::_pack_padded_sequence": shaped.packed,
    "aten::repeat_interleave": shaped.repeats,
    **dict.fromkeys(("aten::linalg_cholesky", "aten::cholesky"), _definite),
    "aten::nonzero": shaped.chosen("self"),
    "aten::masked_select": shaped.chosen("mask"),
    **dict.fromkeys(
        ("aten::floor_divide", "aten::floor_divide_", "aten::remainder", "aten::remainder_",
         "aten::fmod", "aten::fmod_", "aten::div", "aten::div_"),
        _divisor,
    ),
    **dict.fromkeys(("aten::binary_cross_entropy", "aten::binary_cross_entropy_backward"), _shares),
    **dict.fromkeys(("aten::_fused_adam_", "aten::_fused_adamw_"), _positive("exp_avg_sqs")),
    **dict.fromkeys(
        (
            "aten::batch_norm", "aten::native_batch_norm", "aten::_native_batch_norm_legit",
            "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::_batch_norm_impl_index",
            "aten::instance_norm", "aten::layer_norm", "aten::native_layer_norm",
            "aten::group_norm", "aten::native_group_norm", "aten::rms_norm",
            "aten::_fused_rms_norm",
        ),
        _normalised,
    ),
}  # fmt: skip
"""What operators demand, by name."""
_PASSES: Final = frozenset(
    f"aten::{name}"
    for name in (
        "clone", "copy_", "_to_copy", "to", "contiguous", "reshape", "flatten", "cat", "stack",
        "_reshape_copy", "index_select", "repeat", "roll", "flip", "where", "lift_fresh", "index",
        "detach", "slice", "narrow", "select", "_pin_memory", "pin_memory", "permute_copy",
        "view_copy", "gather", "empty_like", "tile", "expand_as", "hstack", "vstack", "unflatten",
    )
)  # fmt: skip
"""Operators whose outputs hold values of their inputs, and no others."""


def demands(operation: Operation, views: list[View]) -> list[Demand]:
    """What an operation demands of its inputs."""
    if operation.schema is None:
        return []
    find = _DEMANDS.get(operation.schema.qualified)
    if find is None:
        return []
    return list(find({**operation.given, RETURNED: operation.outputs}, views))


def fills(plan: Plan) -> list[Fill]:
    """How the memory of each storage is to be filled, so that all that read it find what they need.

    What was recorded of the range of integers counts as a demand, too.
    """
    wanted: dict[int, Fill] = {}

    def ask(view: int, fill: Fill) -> None:
        storage = plan.views[view].storage
        wanted[storage] = wanted[storage].meet(fill) if storage in wanted else fill

    for operation in reversed(plan.operations):
        for view, fill in _handed_on(operation, plan.views, wanted):
            ask(view, fill)
        for view, fill in (*demands(operation, plan.views), *_recorded(plan, operation)):
            ask(view, fill)
    return [wanted.get(place) or usual(_dtype(plan, place)) for place in range(len(plan.storages))]


def _handed_on(
    operation: Operation, views: list[View], wanted: dict[int, Fill]
) -> Iterable[Demand]:
    """What is wanted of the outputs, for the inputs whose values they hold."""
    if operation.schema is None or operation.schema.qualified not in _PASSES:
        return
    target = operation.inputs[:1] if operation.schema.name.endswith("_") else operation.outputs
    found = [(views[v].dtype, wanted[views[v].storage]) for v in refs(target)
             if views[v].storage in wanted]  # fmt: skip
    if found:
        dtype, fill = found[0]
        for view in refs(operation.inputs):
            same = (views[view].dtype in INTEGERS) == (dtype in INTEGERS)
            if same and views[view].dtype != "bool" and fill.kind != "offsets":
                yield view, fill


def _recorded(plan: Plan, operation: Operation) -> Iterable[Demand]:
    """Ranges of integers that the recorder was asked to write."""
    text = plan.trace.nodes.attributes.get(operation.row, "tensor_range")
    if not isinstance(text, str) or not text:
        return
    try:
        found = json.loads(text)
    except ValueError:
        return
    views = refs(operation.inputs)
    for place, ends in found.items() if isinstance(found, dict) else ():
        number = int(place) if str(place).isdigit() else len(views)
        if number < len(views) and isinstance(ends, list) and len(ends) == 2:
            low, high = ends
            if type(low) is type(high) is int and abs(low) < _MOST and low <= high < _MOST:
                yield views[number], Fill("range", low, high + 1)


def usual(dtype: str) -> Fill:
    """Of memory that nobody demands anything of; zero is an index into anything."""
    if dtype in INTEGERS:
        return Fill("range", 0, 1)
    return Fill("flags") if dtype == "bool" else Fill("floats")


def _dtype(plan: Plan, storage: int) -> str:
    views = plan.storages[storage].views
    return plan.views[views[0]].dtype if views else "uint8"

"""Schemas as PyTorch writes them."""

from __future__ import annotations

import pytest

from chakra_et.benchmark.schema import parse_schema, split


def test_names_that_are_keywords_are_written_as_python_takes_them() -> None:
    schema = parse_schema("aten::random_.from(Tensor(a!) self, *, int from) -> Tensor(a!)")
    assert schema is not None
    assert schema.expression == "getattr(torch.ops.aten.random_, 'from')"
    assert parse_schema("aten::add(Tensor self) -> Tensor").expression == (  # type: ignore[union-attr]
        "torch.ops.aten.add.default"
    )
    assert parse_schema("aten::a\u00b2(Tensor self) -> Tensor") is None


def test_an_overload_with_arguments_by_place_and_by_name() -> None:
    schema = parse_schema(
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )
    assert schema is not None
    assert (schema.qualified, schema.path) == ("aten::add", "aten.add.Tensor")
    assert [(a.name, a.by_name, a.has_default) for a in schema.arguments] == [
        ("self", False, False),
        ("other", False, False),
        ("alpha", True, True),
    ]
    assert schema.returns == 1


def test_marks_of_aliases_tell_what_is_written() -> None:
    schema = parse_schema("aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()")
    assert schema is not None
    assert [(a.type, a.written) for a in schema.arguments] == [
        ("Tensor[]", True),
        ("Tensor[]", False),
    ]
    assert schema.returns == 0


def test_defaults_may_hold_commas_and_brackets() -> None:
    schema = parse_schema(
        "aten::conv2d(Tensor input, Tensor weight, SymInt[2] stride=[1, 1], str mode='a, b') "
        "-> (Tensor out, Tensor[] rest)"
    )
    assert schema is not None
    assert [a.name for a in schema.arguments] == ["input", "weight", "stride", "mode"]
    assert (schema.overload, schema.returns) == ("default", 2)


def test_classes_of_torchbind_are_types() -> None:
    schema = parse_schema("c10d::barrier(Tensor t, __torch__.torch.classes.c10d.Work? w) -> Tensor")
    assert schema is not None
    assert schema.arguments[1].type == "__torch__.torch.classes.c10d.Work?"
    assert schema.arguments[1].optional


@pytest.mark.parametrize(
    "text", ["", "aten::add", "add(Tensor self) -> Tensor", "aten::f(x) -> ()"]
)
def test_what_is_no_schema_has_none(text: str) -> None:
    assert parse_schema(text) is None


def test_commas_in_brackets_and_quotes_part_nothing() -> None:
    assert split("a, b[1, 2], (c, d), 'e, f'") == ["a", "b[1, 2]", "(c, d)", "'e, f'"]
    assert split("") == []

"""Steps of the linker that the kernel takes in one pass find what the code in Python finds."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from alike import difference
from both_ways import both_ways, needs_kernel
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.codes import search_rows
from chakra_et.columns import EVER, NEVER, NO_ROW
from chakra_et.converters.pytorch.tensors import find_tensors
from chakra_et.graph.transitive_reduction import chains
from chakra_et.kernel import kernel
from chakra_et.linker.edges.data.accesses import Actors, find_accesses
from chakra_et.linker.edges.data.call_tree import call_tree
from chakra_et.linker.edges.data.operation_work import OperationWork
from chakra_et.linker.edges.thread.host_time import _latest
from chakra_et.linker.joining.nesting import enclosing
from chakra_et.linker.time import owners
from chakra_et.linker.time.owners import moments, owned_parts
from chakra_et.model import EdgeKind, Edges
from chakra_et.model.time_parts import _told_of
from chakra_et.recording import Operators, Tensors
from chakra_et.recording.operators import ARGUMENTS

pytestmark = needs_kernel

TIME = st.integers(-3, 9) | st.sampled_from([EVER, NEVER])
ROWS = st.lists(st.tuples(st.integers(0, 2), TIME), max_size=12)


def columns(rows: list[Any], width: int) -> tuple[Any, ...]:
    return tuple(np.array(rows, np.int64).reshape(-1, width).T)


@given(ROWS, ROWS, st.sampled_from(["left", "right"]))
def test_rows_are_searched_alike(rows: list[Any], wanted: list[Any], side: str) -> None:
    fast, slow = both_ways(search_rows, columns(sorted(rows), 2), columns(wanted, 2), side)
    assert fast.tolist() == slow.tolist()


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 12), st.integers(0, 9)),
        max_size=12,
    ),
    st.sets(st.integers(0, 11)),
)
def test_times_are_owned_alike(told: list[Any], rests: set[int]) -> None:
    lane, start, lasts, own = columns(told, 4)
    end = start + lasts
    order = np.lexsort((-lasts, start, lane))
    # What is left of an activity stands behind it on its thread.
    behind = order[1:][lane[order[1:]] == lane[order[:-1]]].tolist()
    table: Any = SimpleNamespace(
        lane=lane,
        start_ns=start,
        end_ns=end,
        nested_in=enclosing(lane, start, end, order),
        host_order=order,
        rests=np.array(sorted(rests & set(behind)), np.int64),
    )
    with pytest.MonkeyPatch.context() as patch:
        # Python looks at some activities after the other.
        patch.setattr(owners, "_TOGETHER", 3)
        pieces, others = both_ways(moments, table)
        assert difference(pieces, others) == ""
        assert difference(*both_ways(owned_parts, table, pieces, start, start + own)) == ""


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, (1 << 64) - 1), st.booleans(), st.integers(1, 1 << 40)),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_parts_of_times_are_said_alike(nodes: list[Any]) -> None:
    ids, gaps, ns = zip(*(part for parts in nodes for part in parts), strict=True)
    borders = np.append(0, np.cumsum([len(parts) for parts in nodes]))
    columns = np.array(ids, np.uint64), np.array(gaps), np.array(ns, np.int64), borders
    fast, slow = both_ways(_told_of, *columns)
    assert fast == slow


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 6) | st.none()),
        max_size=12,
    ),
    st.integers(-2, 0),
)
def test_what_ended_last_is_found_alike(told: list[Any], early: int) -> None:
    # Annotations end nothing; where something ends before it begins, the kernel leaves it all.
    told.sort(key=lambda row: row[:2])
    lane, start = columns([row[:2] for row in told], 2)
    ends = [EVER if lasts is None else begun + lasts + early for _, begun, lasts in told]
    last = np.append(lane[1:] != lane[:-1], True)[: len(lane)]
    limits = np.where(last, NEVER, np.append(start[1:], 0)[: len(lane)])
    fast, slow = both_ways(_latest, lane, np.array(ends, np.int64), limits)
    assert fast.tolist() == slow.tolist()


KINDS = (EdgeKind.CALL, EdgeKind.DATA, EdgeKind.THREAD)
EDGES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5), st.sampled_from(KINDS), st.booleans()),
    max_size=12,
)


@given(EDGES, st.booleans())
def test_edges_are_put_in_rows_alike(edges: list[Any], told: bool) -> None:
    target, source, kind, lesser = np.array(edges, np.int64).reshape(-1, 4).T
    flags = [lesser.astype(np.bool_)] if told else []
    given_edges = target, source.astype(np.uint64), kind.astype(np.uint8)
    fast, slow = both_ways(Edges.in_rows, *given_edges, *flags)
    assert fast.tolist() == slow.tolist()


@given(EDGES)
def test_chains_are_found_alike(edges: list[Any]) -> None:
    pairs = {(a, b): in_order for a, b, _, in_order in edges if a < b}
    source, target = np.array([*pairs], np.int64).reshape(-1, 2).T
    fast, slow = both_ways(chains, 6, source, target, np.array([*pairs.values()], np.bool_))
    assert [column.tolist() for column in fast] == [column.tolist() for column in slow]


TOKENS = ["[", "]", "[[", ",", "[5,7,0,4,4,", '"cpu"]', '"cuda:0"', "0", "12", "9" * 18, "9" * 19,
          " ", "-1", "true", '"a,]"', '"\\""', "[1,0,2,3,8,", "[6,6,6,6,5000,"]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join), max_size=4))
def test_tensors_are_found_alike_in_whatever_looks_like_them(inner: list[str]) -> None:
    texts = [f"[{text}]".encode() for text in inner]
    sound = []
    for text in texts:
        try:
            json.loads(text)
        except ValueError:
            # The kernel leaves what has no end to Python, and is free to find what it does else.
            continue
        sound.append(text)
    assert difference(*both_ways(find_tensors, sound)) == ""
    both_ways(find_tensors, texts)


@given(st.data())
def test_trees_of_calls_are_alike(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 8))
    # Callers in circles, too.
    callers = st.lists(st.integers(NO_ROW, count - 1), min_size=count, max_size=count)
    begun = data.draw(st.permutations(range(count)))
    columns = np.array(data.draw(callers), np.int64), np.array(begun, np.int64)
    assert difference(*both_ways(call_tree, *columns)) == ""


@st.composite
def host_traces(draw: st.DrawFn) -> tuple[Any, ...]:
    """Arguments of `find_accesses`, all drawn."""
    nodes, texts = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    schemas, memories, devices = 3, 3, 3
    each = draw(st.lists(st.integers(0, 3), min_size=texts, max_size=texts))

    def numbers(count: int, most: int) -> Any:
        values = st.lists(st.integers(0, most), min_size=count, max_size=count)
        return np.array(draw(values), np.int64)

    def mask(*shape: int) -> Any:
        count = int(np.prod(shape))
        return numbers(count, 1).astype(np.bool_).reshape(shape)

    caller = np.array([draw(st.integers(NO_ROW, node - 1)) for node in range(nodes)], np.int64)
    tree = call_tree(caller, np.array(draw(st.permutations(range(nodes))), np.int64))
    count = sum(each)
    begin = numbers(count, 4)
    tensors = Tensors(
        offsets=np.append(0, np.cumsum(each)).astype(np.int64),
        argument=numbers(count, ARGUMENTS + 1) % draw(st.sampled_from([2, ARGUMENTS + 2])),
        storage=numbers(count, memories),
        begin=begin,
        end=begin + numbers(count, 4),
        device=numbers(count, devices - 1),
        devices=["cpu", "cuda:0", ""],
        has_memory=np.array([True, True, False]),
        on_host=np.array([True, False, False]),
    )
    some = np.zeros((2, schemas, ARGUMENTS), np.bool_)
    some[:, :, [0, 1, ARGUMENTS - 1]] = mask(2, schemas, 3)
    operators = Operators(mask(schemas), some[0], some[1], *(mask(schemas) for _ in range(3)))
    schema = numbers(nodes, schemas - 1).astype(np.int32)
    flags = [mask(nodes) for _ in range(6)]
    actors = Actors(operators, schema, *flags)
    host = SimpleNamespace(
        dialect=SimpleNamespace(tensors=lambda texts: tensors),
        texts=SimpleNamespace(in_order=[]),
        inputs=numbers(nodes, texts - 1).astype(np.int32),
        outputs=numbers(nodes, texts - 1).astype(np.int32),
    )
    first = numbers(nodes, 1) - 1
    return host, actors, tree, OperationWork(first, first, draw(st.booleans()))


@given(host_traces())
def test_accesses_to_memory_are_found_alike(told: tuple[Any, ...]) -> None:
    assert difference(*both_ways(find_accesses, *told)) == ""


def test_columns_with_gaps_or_of_other_types_are_taken_as_what_they_hold() -> None:
    module: Any = kernel()
    count = 5_000  # Copies of smaller ones may outlive their use by chance.
    at = np.arange(count)
    masks = ["acting", "records", "receiving", "generated", "asking", "launches"]
    nodes = {name: at % 3 == k % 3 for k, name in enumerate(masks)} | {
        **dict.fromkeys(["inputs", "outputs"], (at % 40).astype(np.int32)),
        "schema": np.zeros(count, np.int32),
        **{name: at + (name == "end") for name in ("position", "end", "begun", "last_begun")},
    }
    operators = {name: np.array([True]) for name in ("reads", "writes", "in_place", "allocates")}
    tensors = {
        "offsets": np.arange(41),
        **{name: np.arange(40) % 7 for name in ("argument", "memory", "begin", "end")},
        "device": np.zeros(40, np.int64),
        **{name: np.array([name == "has_memory"]) for name in ("has_memory", "on_host")},
    }

    def with_gaps(table: dict[str, Any]) -> dict[str, Any]:
        return {name: np.repeat(column, 2)[::2] for name, column in table.items()}

    def wider(table: dict[str, Any]) -> dict[str, Any]:
        large = {np.dtype(np.int32): np.int64, np.dtype(np.int64): np.int32}
        return {k: column.astype(large.get(column.dtype, np.uint8)) for k, column in table.items()}

    plain = module.find_accesses(nodes, operators, tensors, 7, True)
    assert len(plain[0]) > 1_000
    for other in (with_gaps, wider):
        given_ = map(other, (nodes, operators, tensors))
        assert difference(plain, module.find_accesses(*given_, 7, True)) == ""


def test_columns_that_do_not_fit_are_refused() -> None:
    module: Any = kernel()
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="columns of different lengths"):
        module.search_rows((one, two), (one, one), True)
    with pytest.raises(ValueError, match="different columns"):
        module.search_rows((one, one), (one,), True)
    with pytest.raises(IndexError):
        module.moments(two + 2, (two, two, two, two), -1)
    with pytest.raises(ValueError, match="a table has four columns"):
        module.moments(two, (two, two, two), -1)
    with pytest.raises(ValueError, match="pieces have three columns"):
        module.owned_parts((one, one), one, one, one, one)
    with pytest.raises(ValueError, match="columns of different lengths"):
        module.owned_parts((one, one, one), one, one, two, one)

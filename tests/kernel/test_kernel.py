"""The compiled kernel gives what the code in Python gives, or leaves it to that."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from alike import difference
from both_ways import both_ways, needs_kernel
from et_bytes import VERSION, framed
from fuzz_bytes import BYTES
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES
from strategies import traces

import chakra_et
import chakra_et.kernel as kernels
from chakra_et.converters.et import decode_et, encode_et
from chakra_et.converters.et.compiled_reading import compiled_nodes
from chakra_et.converters.et.compiled_writing import node_columns
from chakra_et.converters.et.wire import WireError, field_bytes, varint
from chakra_et.converters.kineto import read_device
from chakra_et.converters.kineto.compiled import profile_decoder
from chakra_et.converters.pytorch import read_host
from chakra_et.converters.pytorch.compiled import host_decoder
from chakra_et.io.json_array import JsonArray
from chakra_et.io.source import read_all
from chakra_et.io.text_buffer import SPARE_BYTES
from chakra_et.kernel import FORCE_PYTHON, INTERFACE, kernel, state
from chakra_et.linker.joining.alignment import _shortest_edit
from chakra_et.linker.joining.nesting import enclosing
from chakra_et.model import Trace

READERS = {"host": read_host, "device": read_device}
REAL = ("simple_add", "ddp_2rank")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are read in pieces of some records, so that small files have several."""
    monkeypatch.setitem(JsonArray.__init__.__kwdefaults__, "piece_bytes", 1 << 12)


def short(path: Path, key: str, count: int) -> bytes:
    """A trace with some records from its middle."""
    document = json.loads(read_all(path))
    middle = len(document[key]) // 2
    return json.dumps({**document, key: document[key][middle : middle + count]}).encode()


def padded(elements: bytes) -> tuple[memoryview, int]:
    """Elements as they stand in a text, which goes on behind them."""
    return memoryview(elements + b", {}" + bytes(SPARE_BYTES)), len(elements)


def nodes_in(text: bytes) -> Any:
    """What the kernel makes of a piece of a host trace."""
    return host_decoder().decode_elements(*padded(text))


def records_in(text: bytes) -> Any:
    """What the kernel makes of a piece of a profile."""
    return profile_decoder().decode_elements(*padded(text))


# Reading


@needs_kernel
@pytest.mark.parametrize("run", REAL)
@pytest.mark.parametrize("view", READERS)
def test_files_are_read_into_the_same_columns(run: str, view: str) -> None:
    for path in sorted((EXAMPLES / run).glob(f"{view}*.json.gz")):
        assert difference(*both_ways(READERS[view], path)) == ""


@needs_kernel
@pytest.mark.parametrize(
    ("view", "name"),
    [
        ("host", "host_et/resnet_rank1_1.1.0.json.gz"),
        ("host", "host_et/torch_compile_1.1.1.json.gz"),
        ("device", "kineto/cudagraph_a100.json.gz"),
        ("device", "kineto/legacy_v100.json.gz"),
        ("device", "kineto/train_mi250.json.gz"),
    ],
)
def test_real_traces_are_read_into_the_same_columns(data: Path, view: str, name: str) -> None:
    assert difference(*both_ways(READERS[view], data / name)) == ""


@needs_kernel
@pytest.mark.parametrize(("view", "key"), [("host", "nodes"), ("device", "traceEvents")])
@given(seed=st.integers(0, 1 << 32))
def test_damaged_files_are_read_in_the_same_way(
    tmp_path_factory: pytest.TempPathFactory, view: str, key: str, seed: int
) -> None:
    rng, path = random.Random(seed), tmp_path_factory.getbasetemp() / f"{view}.json"
    text = SHORT.setdefault(view, short(EXAMPLES / REAL[0] / f"{view}.json.gz", key, 24))
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = rng.choice(BYTES)(rng, text, [text])
    path.write_bytes(text)
    assert difference(*both_ways(READERS[view], path)) == ""


SHORT: dict[str, bytes] = {}

NODE = (
    b'{"id": 7, "name": "aten::add", "ctrl_deps": 2, "inputs": {"values": [%s], "shapes": [[2]], '
    b'"types": ["Tensor(float)"]}, "outputs": {}, "attrs": [{"name": "rf_id", "type": "uint64", '
    b'"value": %s}, {"name": "pg_name", "type": "string", "value": "dp"}]}'
)
SPAN = (
    b'{"ph": "X", "cat": "%s", "name": "k", "pid": 1, "tid": %s, "ts": %s, "dur": 2.5, "args": '
    b'{"External id": %s, "correlation": 9, "Input Dims": [[2]]}}'
)


@needs_kernel
def test_nodes_are_columns() -> None:
    piece = nodes_in(b"%b,\n %b" % (NODE % (b"1.50, 2", b"5"), NODE % (b"", b"6")))
    assert len(piece) == 2
    nodes = piece.take()
    assert nodes.columns["id"].tolist() == [7, 7]
    assert nodes.columns["rf_id"].tolist() == [5, 6]
    assert nodes.columns["seq_id"].tolist() == [-1, -1]
    assert nodes.texts[0] == (b"[1.50, 2]", b"[[2]]", b'["Tensor(float)"]')
    assert nodes.texts[1:] == [(b"[]", b"[[2]]", b'["Tensor(float)"]'), (b"[]", b"[]", b"[]")]
    assert (nodes.strides, nodes.columns["input_strides"].tolist()) == ([b""], [0, 0])
    assert nodes.told[0][:2] == ("pg_name", "string")
    assert nodes.told[0][3] == ["dp", "dp"]


NAMES = {
    "add": b"add", "": b"", "é 日 😀": "é 日 😀".encode(), "a\nb\\c/\"": b'a\\nb\\\\c\\/\\"',
    "é日": b"\\u00e9\\u65E5", "€": b"\\u20aC", "😀": b"\\ud83d\\ude00", "a" * 40: b"a" * 40,
}  # fmt: skip
"""Texts, and how they stand in a file."""


@needs_kernel
@pytest.mark.parametrize("turn", range(len(NAMES)))
def test_texts_are_what_their_characters_stand_for(turn: int) -> None:
    """One of them is for simdjson, wherever it stands: what stands around it is not lost."""
    names = [*NAMES, *NAMES][turn : turn + len(NAMES)]
    node = (
        b'{"id": 1, "name": "%s", "attrs": [{"name": "pg_name", "type": "string", "value": "%s"}]}'
    )
    piece = nodes_in(b",".join(node % (NAMES[name], NAMES[name]) for name in names))
    nodes = piece.take()
    assert [nodes.names[code] for code in nodes.columns["name"]] == names
    (_, _, rows, values) = nodes.told[0]
    assert values == [name for name in names if name]
    assert rows.tolist() == [row for row, name in enumerate(names) if name]


@needs_kernel
def test_the_types_of_attributes_are_those_of_their_own_piece() -> None:
    """How lists are written is remembered from piece to piece, what they say is not."""
    decoder, node = host_decoder(), b'{"id": 1, "name": "", "attrs": [%s, %s]}'
    one = b'{"name": "a", "type": "%s", "value": "x"}'
    two = b'{"name": "b", "type": "int64", "value": %d}'
    for kind in (b"string", b"text", b"string"):
        piece = decoder.decode_elements(*padded(node % (one % kind, two % 3)))
        (first, second) = piece.take().told
        assert (first[0], first[1].encode(), first[3]) == ("a", kind, ["x"])
        assert (second[0], second[3]) == ("b", [3])


@needs_kernel
def test_what_is_shorter_than_a_known_list_is_not_looked_at_beyond_its_end() -> None:
    # Sanitizers tell more of it; the first name makes simdjson read the piece.
    long = [{"name": "n" * 4_000, "type": "uint64", "value": 5}]
    nodes = [
        {"id": row, "name": name, "ctrl_deps": 1, "attrs": attrs}
        for row, (name, attrs) in enumerate([("\U0001f600", long), ("b", long), ("c", [])])
    ]
    piece = host_decoder().decode_elements(*padded(json.dumps(nodes)[1:-1].encode()))
    read = piece.take()
    assert [list(rows) for _, _, rows, _ in read.told] == [[0, 1]]
    assert [read.names[code] for code in read.columns["name"]] == ["\U0001f600", "b", "c"]


def test_a_text_without_zeros_behind_it_is_refused() -> None:
    elements = NODE % (b"", b"5")
    for text in (elements, elements + b" " * SPARE_BYTES, bytes(SPARE_BYTES - 1)):
        with pytest.raises(ValueError, match="zeros"):
            host_decoder().decode_elements(memoryview(text), len(text))


@needs_kernel
def test_times_are_whole_nanoseconds() -> None:
    text = SPAN % (b"kernel", b"7", b"1694128201441549.001", b"3")
    records = records_in(text).take()
    assert records.columns["start_ns"].tolist() == [1694128201441549001]
    assert records.columns["duration_ns"].tolist() == [2500]
    assert [column.tolist() for column in records.numbers][4] == [9]


@needs_kernel
@given(
    times=st.lists(
        st.from_regex(r"-?(0|[1-9]\d{0,17})(\.\d{1,5})?([eE][+-]?\d)?", fullmatch=True), max_size=6
    )
)
def test_times_of_any_digits_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, times: list[str]
) -> None:
    spans = [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": k, "dur": 1}
        for k in range(len(times))
    ]
    parts = json.dumps({"traceEvents": spans}).split('"ts": ')
    told = [parts[0], *(time + part[1:] for time, part in zip(times, parts[1:], strict=True))]
    path = tmp_path_factory.getbasetemp() / "times.json"
    path.write_text('"ts": '.join(told))
    assert difference(*both_ways(read_device, path)) == ""


@needs_kernel
@pytest.mark.parametrize(
    "text",
    [
        NODE % (b"1 2", b"5"),  # no comma, in text that is carried
        NODE % (b"01", b"5"),
        NODE % (b'"\\x"', b"5"),
        NODE % (b"[" * 100 + b"]" * 100, b"5"),
        NODE % (b"", b"5.0"),
        NODE % (b"", b"18446744073709551616"),
        NODE % (b"", b'"5"'),
        b"%b}" % NODE % (b"", b"5"),
        b"%b] []" % NODE % (b"", b"5"),
        b"%b," % NODE % (b"", b"5"),
        b"%b, 3" % NODE % (b"", b"5"),
        b'{"id": 7}',
        b'{"i\\u0064": 7, "name": ""}',
        b'{"id": 7, "name": "\xff"}',
        b'{"id": 7, "name": "\xc0\xaf"}',  # not the shortest form of a character
        b'{"id": 7, "name": "\xed\xa0\x80"}',  # half a surrogate
        b'{"id": 7, "name": "\xf4\x90\x80\x80"}',  # beyond Unicode
        b'{"id": 7, "name": "a\tb"}',
        b'{"id": 7, "name": "a\\u00g0"}',
        b'{"id": 7, "name": "a',
        b'{"id": 7, "name": "a", "dur": 2.5}',
        b'{"id": 7, "name": "a", "attrs": [%s, %s]}' % ((b'{"name": "b", "value": 1}',) * 2),
        b'{"id": 7, "name": "a", "attrs": [{"name": "op_schema", "value": 1}]}',
    ],
)  # fmt: skip
def test_nodes_that_are_unusual_are_left_to_python(text: bytes) -> None:
    """Also when they come again: how nodes are written is remembered."""
    decoder = host_decoder()
    for _ in range(2):
        assert decoder.decode_elements(*padded(text)) is None


@needs_kernel
@pytest.mark.parametrize(
    "values",
    [
        (b"kernel", b'"stream 7"', b"1", b"3"),
        (b"kernel", b"7", b'"1"', b"3"),
        (b"kernel", b"7", b"1e3", b"3"),
        (b"kernel", b"7", b"1.0005", b"3"),
        (b"kernel", b"7", b"99999999999999999999", b"3"),
        (b"kernel", b"7", b"1", b'"3"'),
        (b"kernel", b"7", b"1", b"null"),
        (b"kernel", b"7", b"1", b"3.5"),
        (b"kern\\ud800el", b"7", b"1", b"3"),
    ],
)
def test_spans_that_are_unusual_are_left_to_python(values: tuple[bytes, ...]) -> None:
    assert records_in(SPAN % values) is None


@needs_kernel
def test_nothing_is_left_of_a_piece_that_is_for_python() -> None:
    """Its records were taken in up to one that is unusual."""
    arrow = b'{"ph": "%s", "cat": "%s", "name": "ac2g", "id": 1, "pid": 1, "tid": 2, "ts": 3}'
    mark = b'{"ph": "M", "name": "%s", "pid": 1, "args": {"name": "a"}}'
    good = [
        b",".join((SPAN % (category, b"7", b"1", b"3"), arrow % (b"s", flow), mark % category))
        for category, flow in ((b"kernel", b"ac2g"), (b"cpu_op", b"fwdbwd"))
    ]
    other = b",".join(
        (SPAN.replace(b'"k"', b'"new"').replace(b"[[2]]", b"[[9]]") % (b"gpu_op", b"7", b"1", b"3"),
         arrow % (b"f", b"async_gpu"), mark % b"other", SPAN % (b"kernel", b'"7"', b"1", b"3"))
    )  # fmt: skip
    found = []
    for pieces in (good, [good[0], other, good[1]]):
        decoder = profile_decoder()
        read = [decoder.decode_elements(*padded(piece)) for piece in pieces]
        assert [piece is None for piece in read] == [piece is other for piece in pieces]
        found.append(next(filter(None, read)).take())
    assert difference(*found) == ""


# Writing


@needs_kernel
@given(trace=traces())
def test_traces_are_written_to_the_same_bytes(trace: Trace) -> None:
    fast, slow = both_ways(lambda: b"".join(encode_et(trace)))
    assert fast == slow


@needs_kernel
def test_columns_of_other_types_are_written_as_what_they_hold() -> None:
    """The kernel looks at arrays of its own types: a copy of another would be gone by then."""
    trace = chakra_et.convert_files(EXAMPLES / "simple_add", None)[0].trace
    expected = b"".join(encode_et(trace))
    table = trace.nodes.attributes
    table.layout = table.layout.astype(np.int64)
    for column in table.columns:
        column._rows = np.repeat(column.rows.astype(np.int32), 2)[::2]
    assert both_ways(lambda: b"".join(encode_et(trace))) == (expected, expected)


@needs_kernel
def test_an_et_of_many_attributes_is_read_into_the_same_trace() -> None:
    fields = [
        field_bytes(10, field_bytes(1, b"a%d" % number) + b"\x18\x01") for number in range(3000)
    ]
    nodes = (b"\x08\x01" + b"".join(fields), b"\x08\x02" + b"".join(fields[::-2]))
    trace, other = both_ways(decode_et, framed(VERSION, *nodes))
    assert len(trace.nodes.attributes.columns) == 3000
    assert_same(trace, other)


@needs_kernel
@given(trace=traces())
def test_ets_are_read_into_the_same_traces(trace: Trace) -> None:
    data = b"".join(encode_et(trace))
    assert_same(*both_ways(decode_et, data))


@needs_kernel
@given(trace=traces(), seed=st.integers(0, 1 << 32))
def test_damaged_ets_are_read_in_the_same_way(trace: Trace, seed: int) -> None:
    rng = random.Random(seed)
    data = rng.choice(BYTES)(rng, b"".join(encode_et(trace)), [b"\n\0"])
    assert_same(*both_ways(outcome_of, data))


def outcome_of(data: bytes) -> Trace | str:
    """The trace in some bytes, or what is wrong with them."""
    try:
        return decode_et(data)
    except WireError as error:
        return f"{error} at {error.at}"


def assert_same(fast: Any, slow: Any) -> None:
    """Codes into pools may differ; all else may not."""
    if not isinstance(fast, Trace):
        assert fast == slow
        return
    assert fast.nodes.same(slow.nodes)
    assert difference(fast.edges, slow.edges) == ""
    assert fast.metadata == slow.metadata


@needs_kernel
def test_records_that_are_unusual_are_left_to_python() -> None:
    plain = varint(2) + b"\x08\x01"
    assert compiled_nodes(plain, 0) is not None
    long_tag = varint(3) + b"\x88\x00\x01"
    metadata = varint(5) + b"\x0a\x03abc"
    twice = b"".join(b"\x52\x05\x0a\x01a\x48\x01" for _ in range(2))
    documented = b"\x52\x08\x0a\x01a\x12\x01b\x48\x01"
    cut = varint(9) + b"\x08\x01"
    for record in (long_tag, metadata, varint(len(twice)) + twice,
                   varint(len(documented)) + documented, cut):  # fmt: skip
        assert compiled_nodes(plain + record, 0) is None


@needs_kernel
@given(trace=traces(), name=st.sampled_from(["type", "layout", "offsets", "is_call"]))
def test_columns_of_different_lengths_are_refused(trace: Trace, name: str) -> None:
    module, columns = kernel(), node_columns(trace, 0, len(trace.nodes))
    assert module is not None
    columns[name] = columns[name][:0]
    if len(trace.nodes) and (name != "is_call" or len(trace.edges)):
        writer = module.NodeWriter([], [], [], [b""] * 13)
        with pytest.raises(ValueError, match="do not fit together"):
            writer.take(columns, [], [], [])


# Linking

NUMBERS = st.lists(st.integers(0, 3), max_size=40)


@needs_kernel
@given(left=NUMBERS, right=NUMBERS, most=st.integers(0, 20))
def test_sequences_are_aligned_alike(left: list[int], right: list[int], most: int) -> None:
    sides = np.array(left, np.int64), np.array(right, np.int64)
    fast, slow = both_ways(_shortest_edit, *sides, most)
    assert fast == slow


@needs_kernel
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 12)), max_size=30))
def test_intervals_are_nested_alike(told: list[tuple[int, int, int]]) -> None:
    lane, start, lasts = np.array(told, np.int64).reshape(-1, 3).T
    order = np.lexsort((-lasts, start, lane))
    fast, slow = both_ways(enclosing, lane, start, start + lasts, order)
    assert fast.tolist() == slow.tolist()


@needs_kernel
def test_times_at_the_ends_of_their_range_are_nested() -> None:
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    start = np.array([least, least + 1, most - 9], np.int64)
    end = np.array([most, least + 5, most - 1], np.int64)
    lane, order = np.zeros(3, np.int64), np.arange(3)
    for last in (0, 1000, 1 << 62, -(1 << 62)):
        found = kernel().enclosing(lane, start, end, order, last)  # type: ignore[union-attr]
        assert found.tolist() == [-1, 0, 0]


# Which code runs


def test_the_environment_turns_the_kernel_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_PYTHON, "1")
    assert kernel() is None
    assert state().startswith("pure Python (kernel ")


@pytest.mark.parametrize("other", [SimpleNamespace(INTERFACE=INTERFACE + 1), SimpleNamespace()])
def test_a_kernel_of_another_version_is_not_used(
    monkeypatch: pytest.MonkeyPatch, other: SimpleNamespace
) -> None:
    monkeypatch.setitem(sys.modules, "chakra_et.kernel._native", other)
    assert kernels._load() == (None, "out of date; install the package again")

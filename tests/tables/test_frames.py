"""The columns of traces as frames of other libraries, and as files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import chakra
from missing import without
from places import EXAMPLES
from traces import coll, node, run, trace

from chakra_et import ChakraError, Trace, TraceSet, write
from chakra_et.definitions import Kind
from chakra_et.loading import load
from chakra_et.tables import FRAMES, frame
from chakra_et.tables.encode import to_csv

BIG = (1 << 64) - 1
FLAGS = (Kind.BOOL_LIST, (True, False))
ODD = '\x1b[31m<b>"a,b"\nc\udcff'


@pytest.fixture
def two() -> TraceSet:
    """Two ranks: a start that is not known, ids and values at the edge, attributes of one rank."""
    return run(
        trace(
            node(BIG, name=ODD, took=5, is_cpu_op=True, correlation=7),
            node(2, start=100, took=10, deps=(BIG, 9), stream=3, id="an attribute"),
            rank=0,
            groups={"g": (0, 1)},
        ),
        trace(
            coll(1, start=50, took=7, pg_name="g", involved_dim=FLAGS),
            rank=1,
        ),
    )


def test_nodes_have_a_column_for_every_attribute(two: TraceSet) -> None:
    table = frame(two, "nodes").as_dicts()
    assert [row["id"] for row in table] == [BIG, 2, 1]
    assert [row["start_ns"] for row in table] == [None, 100, 50]
    assert [row["correlation"] for row in table] == [7, None, None]
    assert [row["attribute_id"] for row in table] == [None, "an attribute", None]
    assert [row["collective"] for row in table] == [None, None, "ALL_REDUCE"]
    assert [row["lane"] for row in table] == ["host", "stream 3", "links"]


def test_edges_to_ids_that_no_node_has_stay_visible(two: TraceSet) -> None:
    found = [(r["source"], r["target"], r["source_known"]) for r in frame(two, "edges").as_dicts()]
    assert found == [(BIG, 2, True), (9, 2, False)]


def test_attributes_are_rows_with_text_and_number(two: TraceSet) -> None:
    rows = [r for r in frame(two, "attributes").as_dicts() if r["name"] == "correlation"]
    assert rows == [
        {"rank": 0, "node": BIG, "name": "correlation", "kind": "int64", "value": "7", "number": 7}
    ]


def test_another_frame_is_refused_by_name(two: TraceSet) -> None:
    with pytest.raises(ValueError, match="no table 'rows': there are nodes, edges"):
        frame(two, "rows")


@pytest.mark.parametrize("what", FRAMES)
def test_frames_of_all_libraries_hold_the_same(two: TraceSet, what: str) -> None:
    pytest.importorskip("pyarrow")
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = [[plain(value) for value in row] for row in frame(two, what).rows()]
    arrow = two.to_arrow(what)
    assert [[plain(v) for v in row.values()] for row in arrow.to_pylist()] == expected
    assert [[plain(v) for v in row] for row in two.to_polars(what).rows()] == expected
    frames = two.to_pandas(what)
    found = frames.astype(object).where(pandas.notna(frames), None).to_numpy().tolist()
    assert [[plain(value) for value in row] for row in found] == expected


def plain(value: Any) -> Any:
    """A value that all libraries give alike; half surrogates are escaped."""
    if isinstance(value, (list, tuple, np.ndarray)) or type(value).__name__ == "Series":
        return [plain(item) for item in value]
    return value.replace("\udcff", "\\xff") if isinstance(value, str) else value


def test_one_trace_has_the_same_frames(two: TraceSet) -> None:
    pytest.importorskip("pandas")
    assert two[1].to_pandas().to_dict("records")[0]["pg_name"] == "g"


def test_a_missing_library_is_told_with_what_to_install(
    two: TraceSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "pyarrow")
    with pytest.raises(ChakraError, match=r"needs pyarrow.*pip install 'chakra-et\[tables\]'"):
        two.to_arrow()


def test_notebooks_get_a_table_in_which_names_are_text(two: TraceSet) -> None:
    page = two._repr_html_()
    assert "<table>" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "<Trace" not in two[0]._repr_html_()


def test_csv_keeps_values_exact_and_names_whole(two: TraceSet) -> None:
    first = next(csv.DictReader(io.StringIO(to_csv(frame(two, "nodes")).decode(), newline="")))
    assert first["id"] == str(BIG)
    assert first["name"] == ODD.replace("\udcff", "\\xff")
    assert first["start_ns"] == ""


# --- chakra stats --------------------------------------------------------------------------------


def test_stats_of_recordings_are_those_of_their_traces(tmp_path: Path) -> None:
    assert chakra("convert", EXAMPLES / "ddp_2rank", "-o", tmp_path / "et", "-q").code == 0
    words = ("--by", "name", "--format", "csv")
    of_traces = chakra("stats", tmp_path / "et", *words)
    assert of_traces.code == 0
    assert of_traces.raw == chakra("stats", EXAMPLES / "ddp_2rank", *words).raw
    assert of_traces.output.startswith(
        "name,on,calls,self_ns,wait_ns,total_ns,mean_ns,self_share\n"
    )


def test_stats_show_some_rows_and_say_how_many_there_are(tmp_path: Path) -> None:
    write(small(), tmp_path / "t.et")
    shown = chakra("stats", tmp_path / "t.et", "--top", 1)
    assert "operators" in shown.output
    assert "1 more row: --top 0 and --format csv have all" in shown.output
    assert "more row" not in chakra("stats", tmp_path / "t.et", "--top", 0).output


def test_json_without_by_holds_all_tables(tmp_path: Path) -> None:
    write(small(), tmp_path / "t.et")
    found = json.loads(chakra("stats", tmp_path / "t.et", "--format", "json").raw)
    assert set(found) == {"rank", "name"}
    assert found["name"][0] == {
        "name": "aten::mm", "on": "host", "calls": 1, "self_ns": 9, "wait_ns": 0,
        "total_ns": 9, "mean_ns": 9.0, "self_share": 0.75,
    }  # fmt: skip


def test_parquet_is_written_and_read_back(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write(small(), tmp_path / "t.et")
    out = tmp_path / "t.parquet"
    assert chakra("stats", tmp_path / "t.et", "--format", "parquet", "-o", out).code == 0
    assert parquet.read_table(out).to_pylist()[0]["self_ns"] == 9


def test_the_name_of_the_output_tells_the_form(tmp_path: Path) -> None:
    write(small(), tmp_path / "t.et")
    for name, begins in (("o.csv", b"name,on"), ("o.json", b"{"), ("o.txt", b"ranks")):
        done = chakra("stats", tmp_path / "t.et", "-o", tmp_path / name)
        assert (done.code, done.output) == (0, "")
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_no_output_replaces_the_trace(tmp_path: Path) -> None:
    write(small(), tmp_path / "t.et")
    before = (tmp_path / "t.et").read_bytes()
    done = chakra("stats", tmp_path / "t.et", "--format", "csv", "-o", tmp_path / "t.et")
    assert (done.code, "would overwrite this input" in done.errors) == (2, True)
    assert (tmp_path / "t.et").read_bytes() == before


def test_names_cannot_steer_a_terminal(tmp_path: Path) -> None:
    write(trace(node(1, name="\x1b[2J\nrm", is_cpu_op=True, took=5)), tmp_path / "t.et")
    shown = chakra("stats", tmp_path / "t.et").output
    assert "\\x1b[2J\\nrm" in shown
    assert "\x1b" not in shown


def test_a_file_that_is_no_trace_and_two_of_one_rank_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    assert chakra("stats", tmp_path / "x.txt").code == 2
    for name in ("a.et", "b.et"):
        write(trace(node(1), rank=3), tmp_path / name)
    done = chakra("stats", tmp_path / "a.et", tmp_path / "b.et")
    assert (done.code, "two files are of rank 3" in done.errors) == (2, True)


def test_ranks_come_from_content_then_name_then_place(tmp_path: Path) -> None:
    write(trace(node(1), rank=5), tmp_path / "x.9.et")
    write(trace(node(1)), tmp_path / "x.4.et")
    assert list(load(tmp_path)) == [4, 5]


def small() -> Trace:
    """An operator and one that it called."""
    return trace(
        node(1, name="aten::linear", is_cpu_op=True, start=0, took=3),
        node(2, name="aten::mm", is_cpu_op=True, start=3, took=9),
    )

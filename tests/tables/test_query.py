"""SQL over the columns of traces."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from command import chakra
from missing import without
from traces import coll, node, run, trace

from chakra_et import ChakraError, TraceSet, write
from chakra_et.tables.query import query

pytest.importorskip("duckdb")


@pytest.fixture
def two() -> TraceSet:
    """Two ranks with one operator and one collective each."""
    return run(
        *(
            trace(
                node(1, name="aten::mm", is_cpu_op=True, start=0, took=10 + rank),
                coll(2, start=20, took=5, deps=(1,), pg_name="g"),
                rank=rank,
                groups={"g": (0, 1)},
            )
            for rank in (0, 1)
        )
    )


def test_sums_over_ranks_are_exact_integers(two: TraceSet) -> None:
    found = query(two, "SELECT name, sum(self_ns) AS self_ns FROM nodes GROUP BY name ORDER BY 2")
    assert found.as_dicts() == [
        {"name": "node 2", "self_ns": 10},
        {"name": "aten::mm", "self_ns": 21},
    ]
    assert found["self_ns"].dtype == "int64"


def test_tables_can_be_joined(two: TraceSet) -> None:
    found = query(
        two,
        "SELECT n.rank, m.name, e.kind, len(g.ranks) AS members FROM edges e "
        "JOIN nodes n ON n.rank = e.rank AND n.id = e.target "
        "JOIN nodes m ON m.rank = e.rank AND m.id = e.source "
        "JOIN groups g ON g.pg_name = n.pg_name ORDER BY 1",
    )
    assert list(found.rows()) == [(0, "aten::mm", "data", 2), (1, "aten::mm", "data", 2)]


@pytest.mark.parametrize("table", ["nodes", "edges", "attributes", "groups", "ranks"])
def test_there_is_a_table_for_each_frame(two: TraceSet, table: str) -> None:
    assert len(query(two, f"SELECT * FROM {table}")) > 0


def test_two_columns_of_one_name_both_come(two: TraceSet) -> None:
    found = query(two, "SELECT count(*) AS n, 1.5 AS n FROM nodes")
    assert found.as_dicts()[0].keys() >= {"n"}
    assert len(found.columns) == 2


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT nme FROM nodes", "nme"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("COPY nodes TO '/tmp/out.csv'", "disabled"),
        (";", "gives no rows"),
    ],
)
def test_sql_that_cannot_be_run_is_told_with_the_tables(two: TraceSet, sql: str, says: str) -> None:
    with pytest.raises(ChakraError, match=says):
        query(two, sql)


def test_the_command_writes_the_rows(tmp_path: Path, two: TraceSet) -> None:
    write(two[0], tmp_path / "t.et")
    done = chakra("query", tmp_path / "t.et", "SELECT id, name FROM nodes", "--format", "csv")
    assert done.code == 0
    assert list(csv.reader(io.StringIO(done.output))) == [
        ["id", "name"],
        ["1", "aten::mm"],
        ["2", "node 2"],
    ]
    assert "aten::mm" in chakra("query", tmp_path / "t.et", "SELECT name FROM nodes").output


def test_without_duckdb_it_says_what_to_install(
    two: TraceSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "duckdb")
    with pytest.raises(ChakraError, match=r"needs duckdb.*pip install 'chakra-et\[query\]'"):
        query(two, "SELECT 1")

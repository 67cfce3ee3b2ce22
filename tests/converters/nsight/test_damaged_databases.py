"""Databases of Nsight Systems that are damaged, hostile, or of somebody else."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from accounts import converted
from command import chakra
from hypothesis import given
from hypothesis import strategies as st
from nsight import Export

from chakra_et.converters.nsight.database import MISSING, opened
from chakra_et.converters.nsight.reader import read_device
from chakra_et.errors import ChakraError, FormatError
from chakra_et.inputs import open_input

BIG = float(1 << 63)
"""SQLite keeps integers beyond 64 bits as floating-point numbers."""


def sample() -> Export:
    export = Export().launched("a", 100, 150, 1000, 1).nvtx("step", 0, 2000)
    export.call("cudaStreamSynchronize_v3020", 300, 1010, 2)
    return export.work("SYNCHRONIZATION", 300, 1010, 2, syncType=3, eventId=0)


ODD: list[Any] = ["soon", None, 1.5, float("nan"), BIG, b"\xff"]
LARGEST = (1 << 63) - 1


@pytest.mark.parametrize("column", ["start", "end", "deviceId", "streamId"])
def test_rows_without_a_number_they_need_are_counted(tmp_path: Path, column: str) -> None:
    export = sample()
    values = ODD + [LARGEST, -LARGEST] * (not column.endswith("Id"))
    for value in values:
        export.kernel("bad", 200, 300, 1)
        export.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1][column] = value
    path = export.write(tmp_path / "r.sqlite")
    result = converted(None, path)
    reason = "its time, or another number that it needs, is not a number"
    assert dict(result.report.records["kernel"].left_out) == {reason: len(values)}
    with pytest.raises(
        FormatError, match=rf"r\.sqlite: .*{len(values)} records of kernel: its time"
    ):
        read_device(path, strict=True)


@pytest.mark.parametrize(
    "column", ["correlationId", "globalPid", "demangledName", "shortName", "contextId"]
)
def test_rows_without_another_number_are_kept(tmp_path: Path, column: str) -> None:
    export = sample()
    for value in (*ODD, -5, LARGEST, -LARGEST - 1):
        export.kernel("odd", 200, 300, 1, **{column: value})
    device = read_device(export.write(tmp_path / "r.sqlite"))
    assert device.totals["kernel"] == 10
    assert not device.left_out


def test_names_that_are_no_texts_do_not_matter(tmp_path: Path) -> None:
    path = sample().write(tmp_path / "r.sqlite")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE StringIds SET value = CAST(x'ff61' AS TEXT) WHERE value = 'a'")
        database.execute("UPDATE StringIds SET value = 7 WHERE value LIKE 'cudaStream%'")
    database.close()
    assert "\ufffda" in read_device(path).names
    assert "cudaStreamSynchronize" not in read_device(path).names


def test_a_table_without_a_column_it_needs_is_named(tmp_path: Path) -> None:
    path = sample().write(tmp_path / "r.sqlite")
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN start TO begin")
    database.close()
    with pytest.raises(FormatError, match=r"KERNEL has no column start\. Export the report again"):
        read_device(path)


@pytest.mark.parametrize("rows", [[], [("SCHED_EVENTS", {"start": 1})], [("NVTX_EVENTS", {})]])
def test_an_export_without_calls_work_and_ranges_is_refused(
    tmp_path: Path, rows: list[tuple[str, dict[str, Any]]]
) -> None:
    export = Export()
    for table, columns in rows:
        export.row(table, **columns)
    path = export.write(tmp_path / "r.sqlite")
    done = chakra("convert", path, "-o", tmp_path / "t.et")
    assert (done.code, (tmp_path / "t.et").exists()) == (2, False)
    assert "holds no calls, no device work and no ranges" in done.errors
    assert "nsys profile --trace cuda,nvtx" in done.errors


def test_another_database_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "mlruns.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE runs (id)")
    database.close()
    done = chakra("convert", path, "-o", tmp_path / "t.et")
    assert (done.code, "but not one of Nsight Systems" in done.errors) == (2, True)


def test_a_view_in_place_of_a_table_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id, value)")
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
        database.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless}")
    database.close()
    with pytest.raises(FormatError, match="holds no calls"):
        read_device(path)


def test_a_query_without_end_is_ended(tmp_path: Path) -> None:
    path = sample().write(tmp_path / "r.sqlite")
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"
    with opened(path) as database, pytest.raises(FormatError, match="damaged: interrupted"):
        list(database._rows(endless))


@pytest.fixture(scope="module")
def small_pages(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database of many small pages."""
    path = tmp_path_factory.mktemp("whole") / "r.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA page_size = 512")
        sample().fill(database)
    database.close()
    return path.read_bytes()


@given(data=st.data())
def test_damage_anywhere_is_an_error_or_an_account_that_adds_up(
    tmp_path_factory: pytest.TempPathFactory, small_pages: bytes, data: st.DataObject
) -> None:
    content = bytearray(small_pages)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(16, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(content), len(content) - 512, 700, 100]))
    path = tmp_path_factory.mktemp("damaged") / "r.sqlite"
    path.write_bytes(content[:cut])
    device = None
    with contextlib.suppress(ChakraError):
        device = open_input(path).read()
    if device is not None:
        assert sum(device.totals.values()) == len(device) + device.left_out.total()


def test_reading_changes_nothing_and_a_missing_number_is_none(tmp_path: Path) -> None:
    path = sample().write(tmp_path / "a b?#%.sqlite")
    before = path.read_bytes()
    with opened(path) as database:
        found = database.numbers("NVTX_EVENTS", ("start",), {"rangeId": MISSING, "none": 7})
    assert (found["rangeId"].tolist(), found["none"].tolist(), found.lost) == ([MISSING], [7], 0)
    assert (path.read_bytes(), [p.name for p in tmp_path.iterdir()]) == (before, [path.name])


def test_a_report_that_is_not_exported_is_refused_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "r.nsys-rep").write_bytes(bytes(range(256)))
    done = chakra("convert", tmp_path / "r.nsys-rep", "-o", tmp_path / "t.et")
    assert (done.code, "nsys export --type sqlite" in done.errors) == (2, True)

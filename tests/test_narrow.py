"""Columns of long recordings, in few bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from both_ways import both_ways

import chakra_et
from chakra_et import narrow
from chakra_et.narrow import Numbers, holding_packed

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are packed however few entries they have."""
    monkeypatch.setattr(narrow, "MANY", 1)


@holding_packed("number")
@dataclass
class Table:
    number: npt.NDArray[np.int64]
    other: int = 0


def is_packed(table: Table) -> bool:
    return isinstance(vars(table)["number"], Numbers)


@pytest.mark.usefixtures("few_are_many")
def test_a_packed_column_is_what_was_put_in_its_place() -> None:
    table = Table(np.array([-1, 5, 300]))
    assert is_packed(table)
    for same in (table, replace(table, other=1)):
        assert same.number.dtype == np.int64
        assert same.number.tolist() == [-1, 5, 300]
    table.number = np.array([1 << 40])
    assert not is_packed(table)
    assert table.number.tolist() == [1 << 40]


@pytest.mark.usefixtures("few_are_many")
def test_what_is_written_to_a_packed_column_is_not_lost_in_silence() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Table(np.array([1, 2])).number[0] = 5


@pytest.mark.usefixtures("few_are_many")
def test_a_column_that_is_looked_at_row_by_row_is_unpacked() -> None:
    table = Table(np.arange(1000) % 7)
    assert [table.number[row] for row in range(1000)] == [row % 7 for row in range(1000)]
    assert not is_packed(table)


def test_short_columns_stay_as_they_are() -> None:
    numbers = np.array([1, 2])
    assert Table(numbers).number is numbers


@pytest.mark.parametrize("name", ["simple_add", "ddp_2rank"])
def test_long_recordings_become_the_same_ets(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long they would have to be: all columns are packed here."""

    def converted(to: str) -> list[bytes]:
        chakra_et.convert_files(EXAMPLES / name, tmp_path / to, force=True)
        return [path.read_bytes() for path in sorted((tmp_path / to).glob("*.et"))]

    expected = converted("short")
    monkeypatch.setattr(narrow, "MANY", 1)
    assert expected
    assert both_ways(lambda: converted("long")) == (expected, expected)

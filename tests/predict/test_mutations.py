"""Each kind of edge decides what a graph foretells: dropped or misdirected, it foretells wrong."""

from __future__ import annotations

import pytest
from mutation_cases import CASES
from mutation_table import CHANGES, FASTER, keep_table, measures
from predict import NOTICED

from chakra_et.model import EdgeKind

KINDS = pytest.mark.parametrize("kind", list(EdgeKind), ids=lambda kind: kind.label)


@KINDS
def test_every_kind_has_a_program_that_is_foretold_exactly(kind: EdgeKind) -> None:
    assert (CASES[kind](FASTER).edges.kind == kind).any()
    found = measures(kind)
    assert found is not None
    assert max(found) < 1e-6


@KINDS
@pytest.mark.parametrize("how", CHANGES)
def test_a_kind_that_is_dropped_or_misdirected_is_noticed(kind: EdgeKind, how: str) -> None:
    found = measures(kind, how)
    assert found is None or max(found) > 10 * NOTICED


def test_the_page_says_what_the_programs_say() -> None:
    assert keep_table(check=True) == 0, "run python tools/mutation_table.py"

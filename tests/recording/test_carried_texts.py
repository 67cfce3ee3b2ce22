"""Texts that are packed are the texts that were given, row by row."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES

import chakra_et
from chakra_et.recording.carried_texts import CarriedTexts

ANY = st.lists(st.sampled_from(["", "{}", "ä\n\0", '{"stream": 7}']) | st.text(), max_size=40)


@given(ANY)
def test_texts_are_those_that_were_given(texts: list[str]) -> None:
    packed = CarriedTexts(texts)
    assert list(packed) == texts
    assert [packed[row] for row in reversed(range(len(texts)))] == texts[::-1]
    assert packed[1:7:2] == texts[1:7:2]
    mask = np.array([row % 3 != 1 for row in range(len(texts))], np.bool_)
    chosen = [text for text, keep in zip(texts, mask.tolist(), strict=True) if keep]
    assert list(packed.select(mask)) == chosen
    assert list(pickle.loads(pickle.dumps(packed))) == texts


def test_any_block_can_be_asked_for_again() -> None:
    texts = [f'{{"correlation": {number}}}' * (number % 3) for number in range(30_000)]
    packed = CarriedTexts(texts)
    rows = np.random.default_rng(0).integers(0, len(texts), 2_000)
    assert packed.at(rows) == [texts[row] for row in rows.tolist()]


def test_a_trace_is_the_same_whether_arguments_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of long recordings are."""
    files = [EXAMPLES / "simple_add" / f"{view}.json.gz" for view in ("host", "device")]
    plain = chakra_et.convert(*files, tmp_path / "plain.et").report.as_dict()
    monkeypatch.setattr("chakra_et.converters.kineto.reader.MANY", 0)
    unpacked: list[int] = []
    at = CarriedTexts.at
    monkeypatch.setattr(
        CarriedTexts, "at", lambda self, rows: unpacked.append(len(rows)) or at(self, rows)
    )
    conversion = chakra_et.convert(*files)
    assert not unpacked  # before they are written
    conversion.write(tmp_path / "packed.et")
    packed = conversion.report.as_dict()
    assert (tmp_path / "packed.et").read_bytes() == (tmp_path / "plain.et").read_bytes()
    assert unpacked == [conversion.report.device_events.total]
    del plain["output"], packed["output"]
    assert packed == plain

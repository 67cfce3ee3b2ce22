"""Timelines in the terminal: heights are shares, names fit, nothing steers the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from command import chakra
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES
from rich.console import Console
from traces import coll, node, trace

from chakra_et import EdgeKind, Trace, write
from chakra_et.cli import timeline as show
from chakra_et.export.sketch import Sketch, sketch
from chakra_et.export.timeline import timeline

HOST = {"is_cpu_op": True, "thread": 1}


def run() -> Trace:
    """100 ns: an annotation around two operators, a kernel, and a collective at the end."""
    note = {**HOST, "category": "user_annotation"}
    launched = {"deps": (3,), "kind": EdgeKind.LAUNCH}
    return trace(
        node(1, name="forward pass", start=0, took=1, inclusive_ns=60, **note),
        node(2, name="a", start=0, took=10, inclusive_ns=10, ctrl=(1,), **HOST),
        node(3, name="b", start=20, took=5, inclusive_ns=5, ctrl=(1,), deps=(2,), **HOST),
        node(4, name="k", start=30, took=40, is_cpu_op=False, stream=7, **launched),
        coll(5, start=70, took=30, deps=(4,), pg_name="g", stream=9),
    )


def lines(drawn: Sketch) -> dict[str, str]:
    return {line.label: line.text for line in drawn.lines}


def test_the_height_of_a_character_is_the_share_in_which_a_track_is_busy() -> None:
    found = lines(sketch(timeline({0: run()}), 10))
    assert found["thread 1"] == "█ ▄       "
    assert found["stream 7"] == "   ████   "
    assert found["stream 9"] == "       ███"


def test_the_critical_path_is_in_letters() -> None:
    found = lines(sketch(timeline({0: run()}), 10))
    assert found["rank 0 (ends last)"] == "h·hkkkkccc"


def test_names_of_annotations_stand_where_they_begin_and_fit() -> None:
    assert lines(sketch(timeline({0: run()}), 50))[""].rstrip() == "forward pass"
    assert lines(sketch(timeline({0: run()}), 10))[""].rstrip() == "forwa…"
    # There is no room for so much as four letters.
    assert "" not in lines(sketch(timeline({0: run()}), 3))


def test_a_window_is_drawn_alone() -> None:
    drawn = sketch(timeline({0: run()}), 4, 60, 80)
    assert lines(drawn)["stream 7"] == "██  "
    assert "thread 1" not in lines(drawn)
    assert (drawn.begin, drawn.end) == (60, 80)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 50)), max_size=9), st.integers(1, 70))
def test_what_took_any_time_is_seen_and_all_lines_are_as_wide(
    work: list[tuple[int, int]], width: int
) -> None:
    nodes = [
        node(i, start=start, took=took, is_cpu_op=False, stream=i)
        for i, (start, took) in enumerate(work, 1)
    ]
    drawn = sketch(timeline({0: trace(*nodes)}), width)
    assert {len(line.text) for line in drawn.lines} <= {width}
    assert {len(line.categories) for line in drawn.lines} <= {width}
    seen = {line.label for line in drawn.lines if line.text.strip(" ·")}
    assert {f"stream {i}" for i, (_, took) in enumerate(work, 1) if took} <= seen


# --- chakra show ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 120, 200])
def test_lines_are_as_wide_as_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr(show, "console_for", lambda **_: console)
    assert chakra("show", EXAMPLES / "ddp_2rank").code == 0
    found = [line for line in shown.getvalue().splitlines() if line.startswith("  thread")]
    assert len(found) == 6
    assert width - 10 <= max(map(len, found)) <= width


def test_a_pipe_gets_text_without_colours() -> None:
    done = chakra("show", EXAMPLES / "ddp_2rank", "--step", 3, "--rank", 1)
    assert done.code == 0
    assert "\x1b" not in done.output
    assert "critical path  h host, c communication\n" in done.output
    assert "rank 0" not in done.output.replace("rank 0 (ends", "")
    assert max(map(len, done.output.splitlines())) <= 120


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--step", "99"), "no step 99"),
        (("--rank", "7"), "no rank 7"),
        (("--from", "5", "--to", "4"), "--to is not after --from"),
        (("--step", "3", "--from", "1"), "both --step and --from"),
    ],
)
def test_what_is_not_there_is_told(words: tuple[str, ...], says: str) -> None:
    done = chakra("show", EXAMPLES / "ddp_2rank", *words)
    assert (done.code, says in done.errors) == (2, True)


def test_many_ranks_are_shown_in_part(tmp_path: Path) -> None:
    for rank in range(10):
        write(trace(node(1, start=0, took=5), rank=rank), tmp_path / f"t.{rank}.et")
    assert "2 more ranks: --rank R shows one" in chakra("show", tmp_path).output


def test_names_cannot_steer_a_terminal_and_nothing_is_nothing(tmp_path: Path) -> None:
    note = {**HOST, "category": "user_annotation"}
    odd = node(1, name="\x1b[2J\nrm -rf", start=0, took=9, inclusive_ns=9, **note)
    write(trace(odd, node(2, start=1, took=3, **HOST)), tmp_path / "odd.et")
    shown = chakra("show", tmp_path / "odd.et").output
    assert "\\x1b[2J\\nrm -rf" in shown
    assert "\x1b" not in shown
    write(trace(), tmp_path / "empty.et")
    assert chakra("show", tmp_path / "empty.et").output == "nothing to draw\n"

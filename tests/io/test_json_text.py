"""JSON from outside: whatever it is, one error says that it cannot be decoded."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from command import chakra
from traces import node, trace

import chakra_et
from chakra_et.definitions import Kind
from chakra_et.io.json_text import from_json

DEEP = "[" * 5000


@pytest.mark.parametrize("text", [DEEP, DEEP.encode(), b'"\xff"', "\ud800", b"", "{"])
def test_a_text_that_cannot_be_decoded_is_one_kind_of_error(text: bytes | str) -> None:
    with pytest.raises(msgspec.DecodeError):
        from_json(text)


def test_a_text_is_decoded_as_its_type() -> None:
    assert from_json(b"[1, 2]", tuple[int, int]) == (1, 2)
    assert from_json('{"a": null}') == {"a": None}


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "--by", "shape"),
        ("info",),
        ("validate",),
        ("audit",),
        ("report", "-o", "page.html"),
        ("fit", "-o", "times.json"),
        ("synth", "fit", "-o", "model.json"),
        ("run", "--back-end", "dry"),
        ("whatif", "--set", "layers=4"),
        ("scale", "--dp", "1->2", "-o", "more"),
        ("estimate",),
    ],
    ids=lambda words: words[0],
)
def test_texts_in_a_trace_that_are_nested_deep_end_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Shapes, types and what a trace tells of itself are JSON, written by others."""
    monkeypatch.chdir(tmp_path)
    deep = DEEP.encode()
    op = node(1, name="aten::mm", took=5, start=0, inputs=(deep, deep, deep), is_cpu_op=True,
              op_schema="aten::mm(Tensor a, Tensor b) -> Tensor")  # fmt: skip
    made = trace(op, rank=0, groups=DEEP)
    for name in ("workload", "grid"):
        made.metadata.set(name, Kind.STRING, DEEP)
    chakra_et.write(made, "trace.0.et")
    verb = words[:2] if words[0] == "synth" else words[:1]
    assert chakra(*verb, "trace.0.et", *words[len(verb) :]).code in (0, 1, 2)

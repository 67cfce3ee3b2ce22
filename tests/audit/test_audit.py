"""The audit finds what leaks, and nothing where nothing does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from command import chakra
from places import EXAMPLES
from traces import node, trace

from chakra_et.anonymise import anonymise, load_policy
from chakra_et.audit import CHECKS, audit, likenesses
from chakra_et.audit.strings import Text, is_path, is_told, texts
from chakra_et.definitions import Kind
from chakra_et.files import read_set
from chakra_et.model import Trace, TraceSet

SECRET = b"a secret of enough bytes"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> TraceSet:
    folder = tmp_path_factory.mktemp("llama")
    done = chakra("generate", "llm", "--model", "llama2-7b", "--tp", "2", "--mbs", "1", "--gbs",
                  "1", "-o", folder)  # fmt: skip
    assert done.code == 0, done.output
    return read_set(folder)


@pytest.fixture(scope="module")
def clean(llama: TraceSet) -> TraceSet:
    return anonymise(llama, load_policy("publish"), SECRET).traces


def planted(traces: TraceSet, name: str, kind: Kind, value: object) -> TraceSet:
    """The traces with an attribute on a node of the first rank."""
    rank, trace = next(iter(traces.items()))
    nodes = trace.nodes.take(np.arange(len(trace.nodes)))
    nodes.attributes.add(name, kind, [value], np.array([5]))
    return TraceSet({**traces, rank: Trace(nodes, trace.edges, trace.metadata)})


def spoke(traces: TraceSet, originals: TraceSet | None = None) -> dict[str, str]:
    return {o.rule.id: o.findings[0].evidence for o in audit(traces, originals).outcomes}


def test_nothing_is_found_where_nothing_leaks(clean: TraceSet, llama: TraceSet) -> None:
    assert spoke(clean, llama) == {}


def test_a_path_in_an_attribute(clean: TraceSet) -> None:
    for text in ("/home/alice/model.py", "node17.acme.internal", "10.1.2.3", r"C:\work\a.py"):
        found = spoke(planted(clean, "phase", Kind.STRING, f"see {text} there"))
        assert set(found) == {"AU102"}
        assert text.split("\\")[0] in found["AU102"]


def test_a_text_and_an_attribute_that_nobody_knows(clean: TraceSet) -> None:
    found = spoke(planted(clean, "customer", Kind.STRING, "Acme"))
    assert set(found) == {"AU101", "AU104"}
    assert "'Acme'" in found["AU101"]


def test_a_text_in_an_unknown_field(clean: TraceSet) -> None:
    rank, trace = next(iter(clean.items()))
    nodes = trace.nodes.take(np.arange(len(trace.nodes)))
    nodes.extra[3] = b"\xfa\x3e\x06hidden"
    found = spoke(TraceSet({**clean, rank: Trace(nodes, trace.edges, trace.metadata)}))
    assert set(found) == {"AU103"}


def test_a_public_model_is_named_by_its_shapes(llama: TraceSet) -> None:
    kept = anonymise(llama, load_policy("partner"), SECRET).traces
    assert "is of Llama-2-7B" in spoke(kept)["AU106"]


def test_one_matrix_makes_one_think_of_a_model() -> None:
    (found,) = (like for like in likenesses({(4096, 11008): 1}) if like.name == "Llama-2-7B")
    assert not found.whole
    assert likenesses({(1000, 1000): 5}) == []


def test_what_links_a_trace_to_its_original(llama: TraceSet) -> None:
    assert {"AU109"} <= set(spoke(llama, llama))


def test_sarif_and_exit_codes(tmp_path: Path) -> None:
    done = chakra("audit", EXAMPLES / "simple_add", "--format", "sarif", "-o", tmp_path / "a.sarif")
    assert done.code == 1
    told = msgspec.json.decode((tmp_path / "a.sarif").read_bytes())
    rules = {rule["id"] for rule in told["runs"][0]["tool"]["driver"]["rules"]}
    assert "AU101" in rules
    assert rules <= {rule.id for rule in CHECKS}
    assert chakra("audit", EXAMPLES / "simple_add", "--fail-on", "never").code == 0


@pytest.mark.parametrize(
    "text", ["4096 11008", "2024-01-01 12:00:00", "+49 89 1234567", "L2hvbWUvYWxpY2U=", "7b"]
)
def test_names_that_are_no_pseudonyms(text: str) -> None:
    assert is_told(Text(text, 0, "name", 1))


@pytest.mark.parametrize(
    "text",
    ['{"owner": "alice"}', '[{"pg_name": "group_01234567", "ranks": ["alice"]}]',
     '[{"pg_name": "group_01234567", "alice": 1}]', '[["alice"]]', "alice"],
)  # fmt: skip
def test_texts_anywhere_in_the_facts_about_groups(text: str) -> None:
    assert is_told(Text(text, None, "fact process_groups", 1))


def test_long_texts_are_searched_in_linear_time() -> None:
    """Patterns that try again from every place would take hours for these."""
    assert is_told(Text("1" + ":11" * 5000 + "x", 0, "attribute time_parts", 1))
    assert is_path("a." * 50_000) is None
    assert is_path("a-" * 50_000) is None


def test_a_text_of_inputs_has_its_first_node_and_its_count() -> None:
    same = (b"[[7,9]]", b"", b"")
    given = trace(node(1), *(node(i, inputs=same) for i in (2, 3, 4)))
    given.nodes.input_code[:] = -1, 0, 0, 0
    (text,) = [text for text in texts(given) if text.what == "values of inputs"]
    assert (text.text, text.row, text.count) == ("[[7,9]]", 1, 3)

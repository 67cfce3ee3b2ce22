"""What could still leak from a trace, check by check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from chakra_et.anonymise.rules import RULES as TREATED
from chakra_et.audit.models import likenesses, matrices
from chakra_et.audit.strings import Text, is_path, is_told, texts
from chakra_et.model import UNKNOWN_NS, Trace
from chakra_et.validators.finding import Finding, Hits, Severity
from chakra_et.validators.rule import Rule, Subject

FEW: Final = 5
"""A shape that fewer nodes than this have is rare."""
_SHOWN: Final = 80
_EPOCH_NS: Final = 946_684_800_000_000_000
"""Instants later than the year 2000 are told by a clock of the world."""
_SHORT_NS: Final = 20_000
_SHORT: Final = 4
"""Texts of the original are looked for from this length on."""
_FACTS: Final = frozenset(("rank", "world_size", "process_groups", "producer", "schema"))


@dataclass(frozen=True)
class Subjects:
    """A trace that is given away, its rank and file, and what it was made from, if known."""

    trace: Trace
    rank: int
    path: str | None
    original: Trace | None

    @cached_property
    def texts(self) -> list[Text]:
        """All texts of the trace."""
        return list(texts(self.trace))

    def finding(self, evidence: str, row: int | None = None) -> Finding:
        """A finding about a node, or the trace."""
        if row is None:
            return Finding(evidence, self.rank, path=self.path)
        node = self.trace.nodes[row]
        return Finding(evidence, self.rank, int(node.id), str(node.name), self.path)


Check = Callable[[Subjects], Iterator[Finding]]


def strings(of: Subjects) -> Iterator[Finding]:
    """Texts that no public list holds."""
    for text in of.texts:
        if is_told(text) and not is_path(text.text):
            yield of.finding(f"{text.what} says {_cut(text.text)!r} ({text.count} times)", text.row)


def paths(of: Subjects) -> Iterator[Finding]:
    """Paths, hosts, addresses and accounts."""
    for text in of.texts:
        found = is_path(text.text)
        if found:
            yield of.finding(f"{text.what} holds {_cut(found)!r}", text.row)


def unknown_fields(of: Subjects) -> Iterator[Finding]:
    """Bytes of protobuf fields that the schema does not know."""
    nodes, metadata = of.trace.nodes, of.trace.metadata
    for row, data in nodes.extra.items():
        yield of.finding(f"{len(data)} bytes in unknown fields", row)
    for column in nodes.attributes.columns:
        if column.key.extra and len(column.rows):
            evidence = f"{len(column.key.extra)} bytes in unknown fields of {column.key.name}"
            yield of.finding(evidence, int(column.rows[0]))
    for code in _codes_with_extra(of.trace):
        row = int(np.argmax((nodes.input_code == code) | (nodes.output_code == code)))
        yield of.finding("unknown fields in inputs or outputs", row)
    if metadata.extra or any(a.key.extra for a in metadata.attributes):
        yield of.finding("unknown fields in the facts of the trace")


def attributes(of: Subjects) -> Iterator[Finding]:
    """Attributes and facts that no policy knows how to treat."""
    for column in of.trace.nodes.attributes.columns:
        if column.key.name not in TREATED and len(column.rows):
            evidence = f"attribute {column.key.name} on {len(column.rows)} nodes"
            yield of.finding(evidence, int(column.rows[0]))
    for attribute in of.trace.metadata.attributes:
        if attribute.key.name not in _FACTS:
            yield of.finding(f"fact {attribute.key.name} of the trace")


def instants(of: Subjects) -> Iterator[Finding]:
    """Times of day."""
    starts = of.trace.nodes.start_ns
    late = np.flatnonzero((starts != UNKNOWN_NS) & (starts > _EPOCH_NS))
    if len(late):
        yield of.finding(f"{len(late)} nodes have the time of day as their start", int(late[0]))


def models(of: Subjects) -> Iterator[Finding]:
    """Public models that the shapes of matrices tell."""
    for likeness in likenesses(matrices(of.trace)):
        shown = ", ".join(f"{a} x {b}" for a, b in likeness.found[:4])
        sure = "is of" if likeness.whole else "may be of"
        yield of.finding(f"the trace {sure} {likeness.name}: it has matrices of {shown}")


def rare_shapes(of: Subjects) -> Iterator[Finding]:
    """Shapes that few nodes have."""
    rare = {pair: n for pair, n in matrices(of.trace).items() if n < FEW}
    if rare:
        some = ", ".join(f"{a} x {b}" for a, b in sorted(rare)[-3:])
        yield of.finding(f"{len(rare)} shapes occur in fewer than {FEW} nodes, among them {some}")


def layers(of: Subjects) -> Iterator[Finding]:
    """The number of layers."""
    marked = of.trace.nodes.attributes
    if marked.named("layer"):
        numbers = marked.dense("layer", -1, np.int64)[marked.present("layer")]
        yield of.finding(f"nodes name their layer, of {len(np.unique(numbers))}")


def links_by_text(of: Subjects) -> Iterator[Finding]:
    """Texts of the original."""
    if of.original is None:
        return
    before = {text.text for text in texts(of.original) if len(text.text) >= _SHORT}
    for text in of.texts:
        if text.text in before and is_told(text):
            yield of.finding(f"{text.what} {_cut(text.text)!r} is one of the original", text.row)


def links_by_time(of: Subjects) -> Iterator[Finding]:
    """Durations that are those of the original."""
    if of.original is None:
        return
    # Short ones are alike by chance.
    long = of.trace.nodes.duration_ns > _SHORT_NS
    mine = Counter(of.trace.nodes.duration_ns[long].tolist())
    theirs = Counter(of.original.nodes.duration_ns.tolist())
    same = (mine & theirs).total()
    if 2 * same > mine.total():
        share = same / mine.total()
        yield of.finding(f"{share:.0%} of the durations are those of the original, to the ns")


def links_by_id(of: Subjects) -> Iterator[Finding]:
    """Ids of nodes that are those of the original, if they are not just counted."""
    if of.original is None:
        return
    ids = of.trace.nodes.id
    counted = np.array_equal(np.sort(ids), np.arange(len(ids), dtype=np.uint64))
    same = np.isin(ids, of.original.nodes.id).sum()
    if len(ids) and not counted and 2 * same > len(ids):
        yield of.finding(f"{same} of {len(ids)} node ids are those of the original")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _codes_with_extra(trace: Trace) -> list[int]:
    return [code for code, text in enumerate(trace.nodes.texts) if len(text) > 3 and text[3]]


def _rule(number: str, title: str, why: str, cure: str, check: Check) -> Rule:
    def hits(of: Subjects) -> Hits:
        return Hits.of(list(check(of)))

    return Rule(f"AU{number}", title, why, cure, Subject.TRACE, "audit", hits, frozenset())


_DROP: Final = "Use a policy of chakra anonymise, which keeps only what it names."
CHECKS: Final[dict[Rule, Severity]] = {
    _rule("101", "A text survives that no public list holds.",
          "Names of modules, kernels and annotations tell whose model this is.",
          _DROP, strings): Severity.ERROR,
    _rule("102", "A path, a host, an address or an account survives.",
          "It tells who recorded the trace, and where.", _DROP, paths): Severity.ERROR,
    _rule("103", "Unknown fields survive.", "Nobody knows what they say.",
          _DROP, unknown_fields): Severity.ERROR,
    _rule("104", "An attribute survives that no policy knows.",
          "What it says cannot be judged.", _DROP, attributes): Severity.WARNING,
    _rule("105", "Starts are times of day.", "They link the trace to logs of the machine.",
          _DROP, instants): Severity.WARNING,
    _rule("106", "Shapes tell a public model.",
          "Who knows the shapes of public models recognises it.",
          "Use a policy that rounds or drops shapes.", models): Severity.ERROR,
    _rule("107", "Some shapes are rare.", "A rare shape tells a model from others.",
          "Use a policy that rounds or drops shapes.", rare_shapes): Severity.INFO,
    _rule("108", "Layers are marked.", "Their number tells a model from others of its kind.",
          "Leave `layer` out of the policy.", layers): Severity.INFO,
    _rule("109", "Texts of the original survive.", "They link both traces.",
          _DROP, links_by_text): Severity.ERROR,
    _rule("110", "Durations are those of the original.",
          "Who has the original recognises the trace.",
          "Use a policy with an error of times.", links_by_time): Severity.INFO,
    _rule("111", "Ids are those of the original.", "They link both traces.",
          _DROP, links_by_id): Severity.WARNING,
}  # fmt: skip
"""Every check, and how bad what it finds is."""
COMPARING: Final = frozenset(("AU109", "AU110", "AU111"))
"""Checks that hold a trace against the original."""

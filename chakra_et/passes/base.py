"""What a pass is: a change of traces with a contract.

A contract is told in rules of the validators: a pass *requires* that some do not speak of what it
is given, and *ensures* that some do not speak of what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.shown import several
from chakra_et.validators import RULES, Profile, Severity, run_rules
from chakra_et.validators.inputs import from_traces

_LISTED: Final = 1000


@dataclass
class Change:
    """One kind of change that a pass made to one trace."""

    what: str
    """A sentence without the number: `edges to missing nodes dropped`."""
    count: int
    rank: int | None = None
    nodes: list[tuple[int, str]] = field(default_factory=list)
    """Ids and notes of the nodes that were changed: the first thousand."""

    def as_dict(self) -> dict[str, Any]:
        """The change as it stands in a report."""
        listed = [{"node": node, "note": note} for node, note in self.nodes[:_LISTED]]
        return {"what": self.what, "count": self.count, "rank": self.rank, "nodes": listed}


@dataclass
class PassResult:
    """Traces after a pass, and what it did to them."""

    traces: TraceSet
    changes: list[Change]

    @property
    def modified(self) -> bool:
        """Whether anything was changed."""
        return bool(self.changes)


@dataclass(frozen=True)
class Pass:
    """A named change of traces; calling it returns new ones and leaves those given as they are."""

    name: str
    about: str
    requires: frozenset[str]
    """Rules that must not speak of what is given."""
    ensures: frozenset[str]
    """Rules that do not speak of what comes back, if those required did not before."""
    run: Callable[[TraceSet], PassResult]

    def __call__(self, traces: TraceSet) -> PassResult:
        """Check what is required, and run. Raises ChakraError where a required rule speaks."""
        broken = speaking(traces, self.requires)
        if broken:
            rule, count, evidence = broken[0]
            raise ChakraError(
                f"{self.name} cannot work: {several(count, 'finding', 'findings')} of {rule}; "
                f"the first: {evidence}",
                remedy=RULES[rule].cure,
            )
        return self.run(traces)


def speaking(traces: TraceSet, rules: frozenset[str]) -> list[tuple[str, int, str]]:
    """Which of some rules speak of traces: id, count and the first evidence."""
    if not rules:
        return []
    chosen = Profile("contract", "", "", dict.fromkeys(rules, Severity.ERROR))
    outcomes = run_rules(from_traces(traces), chosen).outcomes
    return [(o.rule.id, o.count, o.findings[0].evidence) for o in outcomes]


def trace_pass(
    name: str, about: str, *, requires: str = "", ensures: str = ""
) -> Callable[[Callable[[Trace, int], tuple[Trace, list[Change]]]], Pass]:
    """Make a pass of a function of one trace and its rank."""

    def decorate(change: Callable[[Trace, int], tuple[Trace, list[Change]]]) -> Pass:
        def run(traces: TraceSet) -> PassResult:
            changed: dict[int, Trace] = {}
            changes: list[Change] = []
            for rank, trace in traces.items():
                changed[rank], made = change(trace, rank)
                for item in made:
                    item.rank = rank
                changes += made
            return PassResult(TraceSet(changed), changes)

        return Pass(name, about, frozenset(requires.split()), frozenset(ensures.split()), run)

    return decorate


def run_pass(
    name: str, about: str, *, requires: str = "", ensures: str = ""
) -> Callable[[Callable[[TraceSet], PassResult]], Pass]:
    """Make a pass of a function of the traces of all ranks."""

    def decorate(run: Callable[[TraceSet], PassResult]) -> Pass:
        return Pass(name, about, frozenset(requires.split()), frozenset(ensures.split()), run)

    return decorate


def run_passes(
    passes: Sequence[Pass], traces: TraceSet
) -> tuple[TraceSet, dict[str, list[Change]]]:
    """Run passes one after the other; the changes by pass, of those that made any."""
    made: dict[str, list[Change]] = {}
    for item in passes:
        result = item(traces)
        traces = result.traces
        if result.changes:
            made.setdefault(item.name, []).extend(result.changes)
    return traces, made

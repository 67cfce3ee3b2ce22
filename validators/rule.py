"""Rules and their registry.

A rule is a function with a decorator: it looks at one file's bytes (`file_rule`), at one trace
(`trace_rule`), at the traces of all ranks (`run_rule`) or at what a JSON Schema says of a file
(`json_rule`), and returns its `Hits`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from chakra_et.file_facts import FileFacts
from chakra_et.validators.finding import Hits
from chakra_et.validators.json_inputs import JsonFacts
from chakra_et.validators.view import RunView, TraceView


class Subject(Enum):
    """What a rule looks at."""

    FILE = "file"
    TRACE = "trace"
    RUN = "run"
    JSON = "json"


@dataclass(frozen=True)
class Rule:
    """One check, with the words that explain it; its severity is the profile's affair."""

    id: str
    title: str
    """One sentence: what is wrong where the rule speaks."""
    why: str
    """What goes wrong because of it."""
    cure: str
    """What to do."""
    subject: Subject
    group: str
    """The module that holds it: `graph`, say."""
    check: Callable[[Any], Hits]
    kin: frozenset[str]
    """Rules that see some of the same faults from another side and may speak along."""


RULES: Final[dict[str, Rule]] = {}
"""Every rule by its id."""

_ID: Final = re.compile(r"ET\d{3}")


def _register(
    subject: Subject, rule_id: str, title: str, why: str, cure: str, kin: str, check: Any
) -> None:
    if not _ID.fullmatch(rule_id):
        raise ValueError(f"invalid rule id {rule_id!r}")
    if rule_id in RULES:
        raise ValueError(f"two rules are called {rule_id}")
    group = check.__module__.rpartition(".")[2]
    RULES[rule_id] = Rule(rule_id, title, why, cure, subject, group, check, frozenset(kin.split()))


def file_rule(
    rule_id: str, title: str, *, why: str, cure: str, kin: str = ""
) -> Callable[[Callable[[FileFacts], Hits]], Callable[[FileFacts], Hits]]:
    """Register a rule about the bytes and the name of a file."""

    def decorate(check: Callable[[FileFacts], Hits]) -> Callable[[FileFacts], Hits]:
        _register(Subject.FILE, rule_id, title, why, cure, kin, check)
        return check

    return decorate


def trace_rule(
    rule_id: str, title: str, *, why: str, cure: str, kin: str = ""
) -> Callable[[Callable[[TraceView], Hits]], Callable[[TraceView], Hits]]:
    """Register a rule about one rank's trace."""

    def decorate(check: Callable[[TraceView], Hits]) -> Callable[[TraceView], Hits]:
        _register(Subject.TRACE, rule_id, title, why, cure, kin, check)
        return check

    return decorate


def run_rule(
    rule_id: str, title: str, *, why: str, cure: str, kin: str = ""
) -> Callable[[Callable[[RunView], Hits]], Callable[[RunView], Hits]]:
    """Register a rule about the traces of all ranks together."""

    def decorate(check: Callable[[RunView], Hits]) -> Callable[[RunView], Hits]:
        _register(Subject.RUN, rule_id, title, why, cure, kin, check)
        return check

    return decorate


def json_rule(
    rule_id: str, title: str, *, why: str, cure: str, kin: str = ""
) -> Callable[[Callable[[JsonFacts], Hits]], Callable[[JsonFacts], Hits]]:
    """Register a rule about a JSON file."""

    def decorate(check: Callable[[JsonFacts], Hits]) -> Callable[[JsonFacts], Hits]:
        _register(Subject.JSON, rule_id, title, why, cure, kin, check)
        return check

    return decorate

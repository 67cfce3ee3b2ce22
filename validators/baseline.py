"""Findings that are known and accepted, in a file of their own.

Of each rule the baseline keeps the fingerprints of the findings that were kept, and how many there
were in all. A finding is accepted if its fingerprint is known; those beyond the ones that are kept
are accepted by their number.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from chakra_et.errors import FormatError
from chakra_et.io.json_text import from_json, to_json
from chakra_et.io.output import atomic_output
from chakra_et.io.source import read_all
from chakra_et.validators.engine import Validation


class Accepted(msgspec.Struct):
    """What a baseline accepts of one rule."""

    count: int
    fingerprints: list[str]


class Baseline(msgspec.Struct):
    """The content of a baseline file."""

    rules: dict[str, Accepted]
    format: str = "chakra-et baseline 1"


def write_baseline(result: Validation, path: Path) -> None:
    """Accept everything that was found."""
    baseline = Baseline(
        {
            o.rule.id: Accepted(o.count, sorted(f.fingerprint(o.rule.id) for f in o.findings))
            for o in result.outcomes
        }
    )
    with atomic_output(path) as stream:
        stream.write(to_json(baseline, indent=1))


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file. Raises FormatError for a file that is none."""
    try:
        return from_json(read_all(path), type=Baseline)
    except msgspec.DecodeError as error:
        raise FormatError(
            f"not a baseline: {error}", path=path, remedy="Write one with --write-baseline."
        ) from error


def accept(result: Validation, baseline: Baseline) -> None:
    """Take from a validation what a baseline accepts."""
    for outcome in result.outcomes:
        known = baseline.rules.get(outcome.rule.id)
        if known is None:
            continue
        prints = set(known.fingerprints)
        unseen = outcome.count - len(outcome.findings)
        new = [f for f in outcome.findings if f.fingerprint(outcome.rule.id) not in prints]
        beyond = max(0, unseen - max(0, known.count - len(prints)))
        outcome.accepted = outcome.count - len(new) - beyond
        outcome.findings = new
        outcome.count = len(new) + beyond

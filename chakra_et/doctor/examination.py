"""Examining the recordings of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chakra_et.doctor import rank_checks, run_checks
from chakra_et.doctor.capture import Capture, captures
from chakra_et.errors import ChakraError
from chakra_et.pairing import find_pairs
from chakra_et.validators.finding import Severity


@dataclass(frozen=True)
class Lack:
    """What is lacking: the check that says so, the ranks, of the first one the evidence, a remedy.

    `ranks` is empty where it is about the run.
    """

    check: str
    severity: Severity
    ranks: tuple[int, ...]
    evidence: str
    remedy: str

    def as_dict(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "check": self.check,
            "severity": self.severity.label,
            "ranks": list(self.ranks),
            "evidence": self.evidence,
            "remedy": self.remedy,
        }


@dataclass
class Examination:
    """What was looked at, and what it lacks."""

    ranks: list[dict[str, Any]] = field(default_factory=list)
    """Of each rank: files, host nodes, profile records, steps."""
    findings: list[Lack] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """1 where something is lacking; advice alone does not count."""
        return int(any(lack.severity > Severity.INFO for lack in self.findings))

    def as_dict(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "producer": "chakra-et doctor",
            "ranks": self.ranks,
            "findings": [lack.as_dict() for lack in self.findings],
        }


def examine(source: str | Path) -> Examination:
    """Look at the recordings in a directory or an archive, or at one file.

    Raises ChakraError where there is no host trace and no profile.
    """
    pairs, _ = find_pairs([source])
    made = [pair.whole.name for pair in pairs if pair.whole is not None]
    if made:
        raise ChakraError(
            f"{made[0]} was made of recordings; what they lacked can be seen in them only",
            path=source,
            remedy="Name the directory of the host traces and profiles, or try: chakra validate",
        )
    ranks = sorted(captures(pairs), key=lambda capture: capture.rank)
    return Examination([_told(capture) for capture in ranks], list(_lacks(ranks)))


def _told(capture: Capture) -> dict[str, Any]:
    host, device = capture.host, capture.device
    return {
        "rank": capture.rank,
        "files": capture.files,
        "host_nodes": None if host is None else host.recorded,
        "profile_records": None if device is None else sum(device.counts.values()),
        "steps": capture.steps,
    }


def _lacks(ranks: list[Capture]) -> Iterator[Lack]:
    """What each check says, the ranks of which it says the same together."""
    for check in run_checks.CHECKS:
        assert check.look_at_run is not None
        evidence = check.look_at_run(ranks)
        if evidence is not None:
            yield Lack(check.name, check.severity, (), evidence, check.remedy)
            if check.severity is Severity.ERROR:
                # Files of several runs say nothing about one.
                break
    for check in rank_checks.CHECKS:
        assert check.look is not None
        found = [(capture.rank, check.look(capture)) for capture in ranks]
        told = [(rank, evidence) for rank, evidence in found if evidence is not None]
        if told:
            who = tuple(dict.fromkeys(rank for rank, _ in told))
            yield Lack(check.name, check.severity, who, told[0][1], check.remedy)

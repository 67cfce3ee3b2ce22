"""What of a plan runs and what does not, in figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chakra_et.benchmark.plan import Operation, Plan, Replaced


@dataclass
class LeftOut:
    """Operations of one name that do not run for one reason."""

    name: str
    reason: str
    count: int = 0
    host_ns: int = 0
    device_ns: int = 0


@dataclass(frozen=True)
class Account:
    """How much of a recording runs. Times are those of the recording.

    `host_ns` is the time of operators on the host, with what they called; `device_ns` that of the
    device work that they launched.
    """

    operations: int
    runs: int
    host_ns: int
    host_run_ns: int
    device_ns: int
    device_run_ns: int
    opened: int
    opened_ns: int
    recorded_span_ns: int
    gaps_ns: int
    peak_bytes: int
    external_bytes: int
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def timed(self) -> bool:
        """Whether the recording tells times; if not, shares are of the number of operations."""
        return self.host_ns > 0

    @property
    def coverage(self) -> float:
        """The share of the operators' time (without times: of their number) that runs."""
        return self.host_run_ns / self.host_ns if self.timed else self.runs / self.operations

    def share(self, item: LeftOut) -> float:
        """The share that operations take which do not run."""
        return item.host_ns / self.host_ns if self.timed else item.count / self.operations

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "operations": self.operations,
            "run": self.runs,
            "coverage_share": self.coverage,
            "coverage_of": "host_ns" if self.timed else "operations",
            "host_ns": self.host_ns,
            "host_run_ns": self.host_run_ns,
            "device_ns": self.device_ns,
            "device_run_ns": self.device_run_ns,
            "opened": self.opened,
            "opened_ns": self.opened_ns,
            "recorded_span_ns": self.recorded_span_ns,
            "recorded_gaps_ns": self.gaps_ns,
            "planned_peak_bytes": self.peak_bytes,
            "external_bytes": self.external_bytes,
            "left_out": [
                {
                    "name": item.name,
                    "reason": item.reason,
                    "count": item.count,
                    "host_ns": item.host_ns,
                    "device_ns": item.device_ns,
                    "share": self.share(item),
                }
                for item in self.left_out
            ],
        }


def account_of(plan: Plan) -> Account:
    """The account of a plan as it is now."""
    all_of, runs = plan.operations, [o for o in plan.operations if not o.reason]
    return Account(
        operations=len(all_of) + len(plan.replaced),
        runs=len(runs),
        host_ns=sum(o.duration_ns for o in all_of) + sum(r.own_ns for r in plan.replaced),
        host_run_ns=sum(o.duration_ns for o in runs),
        device_ns=sum(o.device_ns for o in all_of),
        device_run_ns=sum(o.device_ns for o in runs),
        opened=plan.opened,
        opened_ns=plan.opened_ns,
        recorded_span_ns=max((o.start_ns + o.duration_ns for o in all_of), default=0),
        gaps_ns=sum(o.gap_ns for o in all_of),
        peak_bytes=plan.peak_bytes,
        external_bytes=plan.external_bytes,
        left_out=_left_out([o for o in all_of if o.reason], plan.replaced),
    )


def _left_out(operations: list[Operation], replaced: list[Replaced]) -> list[LeftOut]:
    found: dict[tuple[str, str], LeftOut] = {}
    for operation in operations:
        key = (operation.name, operation.reason)
        item = found.setdefault(key, LeftOut(*key))
        item.count += 1
        item.host_ns += operation.duration_ns
        item.device_ns += operation.device_ns
    for part in replaced:
        reason = f"{part.reason}; the operators that it called run in its place"
        item = found.setdefault((part.name, reason), LeftOut(part.name, reason))
        item.count += 1
        item.host_ns += part.own_ns
    return sorted(found.values(), key=lambda item: (-item.host_ns, -item.count, item.name))

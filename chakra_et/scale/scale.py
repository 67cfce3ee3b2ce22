"""Writing the set that a plan describes, with an account of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chakra_et.build import Written
from chakra_et.build.grid import Ranks
from chakra_et.build.output import write_programs
from chakra_et.build.packed import pack_programs
from chakra_et.scale.families import Kin, spans
from chakra_et.scale.plan import ScalePlan, Step
from chakra_et.scale.programs import GrownColumns, grown_programs
from chakra_et.scale.proofs import Proofs, Prover


@dataclass
class Scaled:
    """What was written, what was changed in it, and what was proved of it."""

    plan: ScalePlan
    written: Written
    proofs: Proofs
    changed: Counter[str]
    left_out: Counter[str]

    def as_dict(self) -> dict[str, Any]:
        """All of it, for other programs."""
        plan, proofs = self.plan, self.proofs
        return {
            "ranks": {"from": len(plan.sources), "to": plan.workload.grid.world_size},
            "axes": [
                {"axis": axis, "from": size, "to": plan.workload.grid.axes[axis],
                 "evidence": plan.layout.evidence[axis]}
                for axis, size in plan.layout.grid.axes.items()
            ],
            "families": [_family(plan, kin) for kin in plan.kin],
            "programs": self.written.programs,
            "nodes": self.written.nodes,
            "edges": self.written.edges,
            "file_bytes": self.written.file_bytes,
            "changed": dict(self.changed),
            "left_out": dict(self.left_out),
            "proofs": {
                "members": proofs.members, "sequences": proofs.sequences, "peers": proofs.peers,
                "bytes": proofs.bytes,
            },
            "communication": [
                {"family": family, "type": type, "bytes_of_copies": proofs.before[family, type],
                 "bytes": total}
                for (family, type), total in sorted(proofs.after.items())
            ],
        }  # fmt: skip


def _family(plan: ScalePlan, kin: Kin) -> dict[str, Any]:
    family = plan.workload.families[kin.name]
    rules = plan.growth[kin.name].rules if kin.name in plan.growth else {}
    return {
        "family": kin.name,
        "axes": spans(kin, plan.layout.grid),
        "groups": {"from": len(kin.groups), "to": len(family.members)},
        "size": {"from": kin.size, "to": family.size},
        "rules": {str(type): rule.value for type, rule in rules.items()},
    }


def write_scaled(
    plan: ScalePlan, output: str | Path, *, pack: bool = False, compressed: bool = False,
    force: bool = False, step: Step = lambda _done, _of: None,
) -> Scaled:  # fmt: skip
    """Write the set that a plan describes: a directory of files, or one packed file.

    Nothing appears unless all proofs hold. Raises OutputError where it cannot be written.
    """
    prover = Prover(plan.workload, plan.sources, plan.growth)
    changed: Counter[str] = Counter()
    left_out: Counter[str] = Counter()

    def programs() -> Iterator[tuple[GrownColumns, Ranks]]:
        made = grown_programs(plan.alike, plan.workload, plan.growth)
        for done, (columns, ranks) in enumerate(made):
            step(done, len(plan.alike))
            for total, part in (
                (changed, columns.resized.changed), (left_out, columns.resized.left_out)
            ):  # fmt: skip
                for what, count in part.items():
                    total[what] += count * len(ranks)
            yield columns, ranks
        prover.finish()

    if pack:
        written = pack_programs(plan.workload, programs(), output, seen=prover.add)
    else:
        written = write_programs(
            plan.workload, programs(), output, compressed=compressed, force=force, seen=prover.add
        )
    if plan.workload.dropped:
        left_out["workload (it describes the old set)"] += plan.workload.grid.world_size
    return Scaled(plan, written, prover.proofs, changed, left_out)

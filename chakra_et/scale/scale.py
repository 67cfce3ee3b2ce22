"""From few ranks to many: the whole way, from files to files."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from chakra_et.build import Grid, Written
from chakra_et.build.checks import Checks
from chakra_et.build.grid import Ranks
from chakra_et.build.output import write_programs
from chakra_et.build.packed import pack_programs
from chakra_et.build.places import BuildError
from chakra_et.errors import ChakraError
from chakra_et.scale.families import Kin, find_kin, spans
from chakra_et.scale.grown import GrownWorkload
from chakra_et.scale.layout import Layout, find_layout
from chakra_et.scale.programs import (
    Alike,
    GrownColumns,
    check_messages,
    family_names,
    find_alike,
    grown_programs,
    told,
)
from chakra_et.scale.proofs import Proofs, Prover
from chakra_et.scale.resize import Growth
from chakra_et.scale.sizes import Gathered, Rule, refuse_axis, rules_of
from chakra_et.scale.sources import Source, read_sources

LARGEST_WORLD: Final = 1 << 20
"""Most ranks of a set: each file lists the members of its groups."""
_DEGREE: Final = re.compile(r"(?:(\d+)->)?(\d+)")
Step = Callable[[int, int], None]


@dataclass(frozen=True)
class Degree:
    """How many ranks an axis is to have; `old` is what the user believes that it has."""

    new: int
    old: int | None = None


def parse_degree(axis: str, text: str) -> Degree:
    """The degree that `4->512` or `512` says. Raises ChakraError for another text."""
    match = _DEGREE.fullmatch(text.replace(" ", ""))
    if match is None or int(match[2]) < 1:
        raise ChakraError(
            f"--{axis} {text!r} is no degree",
            remedy="Write 512, or '4->512' in quotes: the shell takes a bare > for itself.",
        )
    return Degree(int(match[2]), None if match[1] is None else int(match[1]))


@dataclass
class ScalePlan:
    """What is to be written, and how it was found: nothing is written yet."""

    layout: Layout
    kin: list[Kin]
    sizes: dict[str, int]
    growth: dict[str, Growth]
    workload: GrownWorkload
    alike: list[Alike]
    sources: list[Source]


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


def plan_scale(
    path: str | Path,
    degrees: Mapping[str, Degree],
    *,
    grid: Grid | None = None,
    gathered: Gathered | None = None,
    step: Step = lambda _done, _of: None,
) -> ScalePlan:
    """Find out how the ranks of a set lie, and what becomes of them when axes grow.

    `degrees` has the ranks of `dp` and `tp` that are wanted, `grid` says how the ranks lie where
    that is known, `gathered` what all-gathers of unknown purpose keep. Raises ChakraError where the
    set cannot be read, or its pattern is not recognised.
    """
    sources = read_sources(Path(path), step)
    try:
        kin = find_kin(sources)
        layout = find_layout(sources, kin, grid)
        sizes = _sizes(layout, degrees)
        growth = _growth(kin, layout.grid, sizes, gathered)
        alike = find_alike(sources, family_names(kin), layout.grid)
        for axis in sizes:
            check_messages(alike, layout.grid, axis)
        _check_old(sources, kin, layout.grid, alike)
        workload = GrownWorkload(sources, kin, layout.grid, sizes)
    except ChakraError as error:
        if error.path is None:
            error = ChakraError(error.problem, path=path, place=error.place, remedy=error.remedy)
        raise error from None
    return ScalePlan(layout, kin, sizes, growth, workload, alike, sources)


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


def _sizes(layout: Layout, degrees: Mapping[str, Degree]) -> dict[str, int]:
    """The new sizes of the grid's axes. Raises ChakraError for degrees that it cannot have."""
    sizes: dict[str, int] = {}
    grid = layout.grid
    if grid.world_size == 1:
        raise ChakraError(
            "this is a set of one rank: nothing tells what more ranks would communicate",
            remedy="Record or generate two at least.",
        )
    for name, degree in degrees.items():
        axis, inner = name, 1
        if name == "dp" and "dp" not in grid.axes and "edp" in grid.axes:
            axis, inner = "edp", grid.axes.get("ep", 1)
        if axis not in grid.axes:
            raise _no_axis(name, layout)
        refuse_axis(axis)
        sizes[axis] = _size(name, degree, grid.axes[axis], inner)
    ranks = math.prod({**grid.axes, **sizes}.values())
    if ranks > LARGEST_WORLD:
        raise ChakraError(
            f"that would be {ranks:,} ranks", remedy=f"{LARGEST_WORLD:,} are the most there can be."
        )
    return sizes


def _no_axis(name: str, layout: Layout) -> ChakraError:
    told = ", ".join(f"{axis}: {why}" for axis, why in layout.evidence.items())
    return ChakraError(
        f"no axis of this set is known to be {name}: its ranks lie as {layout.grid} ({told})",
        remedy="Say what the axes are with --grid, neighbours first, as in --grid tp2-dp4.",
    )


def _size(name: str, degree: Degree, size: int, inner: int) -> int:
    """The new size of one axis, of which each place stands for `inner` ranks of the degree."""
    old = size * inner
    if degree.old not in (None, old):
        raise ChakraError(
            f"--{name} {degree.old}->{degree.new}, but {name} is {old} in this set",
            remedy=f"Write --{name} {old}->{degree.new}.",
        )
    if size == 1:
        raise ChakraError(
            f"{name} is {old}: nothing in the set tells what more ranks of it would communicate",
            remedy="Record or generate two of them at least.",
        )
    if degree.new <= old:
        raise ChakraError(
            f"{name} is {old} already, and {degree.new} are wanted: a set can only grow",
            remedy=f"Give more than {old}.",
        )
    if degree.new % inner:
        raise ChakraError(
            f"{name} {degree.new} is no multiple of the {inner} expert-parallel ranks in it",
            remedy=f"Give a multiple of {inner}.",
        )
    return degree.new // inner


def _growth(
    kin: Sequence[Kin], grid: Grid, sizes: Mapping[str, int], gathered: Gathered | None
) -> dict[str, Growth]:
    """How each family grows that spans an axis which does."""
    found: dict[str, Growth] = {}
    for family in kin:
        old, rules = family.size, dict[int, Rule]()
        new = old
        for axis, size in sizes.items():
            if axis in spans(family, grid):
                rules |= rules_of(family, axis, gathered)
                new = new // grid.axes[axis] * size
        if new != old:
            found[family.name] = Growth(old, new, rules)
    return found


def _check_old(
    sources: Sequence[Source], kin: Sequence[Kin], grid: Grid, alike: list[Alike]
) -> None:
    """Raise ChakraError where the ranks of the set do not fit together as they are."""
    checks = Checks(GrownWorkload(sources, kin, grid, {}))
    for program in alike:
        calls = told(program.source.calls, program.operations, str(program.source.path))
        checks.add(calls, np.array(program.ranks, np.int64))
    try:
        checks.finish()
    except BuildError as error:
        raise ChakraError(
            f"the set does not fit together as it is: {error.problem}",
            remedy="See `chakra validate`, and mend it first.",
        ) from error

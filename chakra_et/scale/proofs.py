"""What must hold of a set that has grown, checked on the bytes that are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.build.checks import Checks
from chakra_et.build.places import BuildError
from chakra_et.build.template import Template
from chakra_et.converters.et import decode_et
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import Trace
from chakra_et.scale.calls import COMMUNICATION, MESSAGES, Call, Calls, GroupKey, read_calls
from chakra_et.scale.collectives import Growth
from chakra_et.scale.grown import GrownWorkload
from chakra_et.scale.programs import operations_of, told
from chakra_et.scale.shapes import Texts
from chakra_et.scale.sizes import Rule
from chakra_et.scale.sources import Source

_LARGEST_ELEMENT: Final = 8
Sums = Counter[tuple[str, str]]


@dataclass
class Proofs:
    """How often each obligation was checked, and the bytes of collectives by family and type."""

    members: int = 0
    sequences: int = 0
    peers: int = 0
    bytes: int = 0
    before: Sums = field(default_factory=Counter)
    after: Sums = field(default_factory=Counter)


class Prover:
    """Reads files of the new set back, and holds them against its groups and the old set."""

    def __init__(
        self, workload: GrownWorkload, sources: Sequence[Source], growth: Mapping[str, Growth]
    ) -> None:
        self.proofs = Proofs()
        self._workload = workload
        self._sources = sources
        self._growth = growth
        self._checks = Checks(workload)
        self._family_of: dict[GroupKey, str] = {}
        everyone = tuple(range(workload.grid.world_size))
        for family in workload.families.values():
            for index, ranks in enumerate(family.members.tolist()):
                name = str(family.first_number + index)
                self._family_of[name, tuple(ranks)] = family.name
                if not workload.kin[family.name].named:
                    self._family_of["", everyone] = family.name
        self._prove_members()

    def _prove_members(self) -> None:
        """Every group has as many different ranks as its family's groups, no two share one."""
        for family in self._workload.families.values():
            ranks = family.members.ravel()
            if (
                len(np.unique(ranks)) != ranks.size
                or ranks.min() < 0
                or (ranks.max() >= self._workload.grid.world_size)
            ):
                raise _broken(f"the groups of {family.name!r} share a rank, or lack one")
            self.proofs.members += len(family.members)

    def add(self, template: Template) -> None:
        """Read the files of the first and the last rank of a template."""
        ranks = template.ranks.tolist()
        found = None
        for rank in dict.fromkeys((ranks[0], ranks[-1])):
            trace = decode_et(template.file(rank))
            if (trace.rank, trace.world_size) != (rank, self._workload.grid.world_size):
                raise _broken(f"the file of rank {rank} says that it is rank {trace.rank}")
            calls = read_calls(trace, rank, self._workload.grid.world_size, self._sources[0].path)
            operations = operations_of(calls.calls, rank, self._family_of, self._workload.grid)
            self._prove_bytes(rank, trace, calls)
            if found is not None and _in_order(operations, calls) != found:
                raise _broken(f"ranks {ranks[0]} and {rank} are copies, and do not do the same")
            found = _in_order(operations, calls)
        self._checks.add(told(calls, operations, f"rank {ranks[0]}"), template.ranks)
        self._count(operations, calls, template.ranks)

    def finish(self) -> Proofs:
        """Compare what all ranks do. Raises ChakraError where two do not fit."""
        try:
            self._checks.finish()
        except BuildError as error:
            raise _broken(error.problem) from error
        return self.proofs

    # -----------------------------------------------------------------------------------------

    def _count(self, operations: list[Any], calls: Calls, ranks: npt.NDArray[np.int64]) -> None:
        counts = np.bincount(calls.call_of, minlength=len(calls.calls)).tolist()
        source = self._sources[int(self._workload.source_of[ranks[0]])]
        for operation, count in zip(operations, counts, strict=True):
            if operation.type in MESSAGES:
                self.proofs.peers += count * len(ranks)
            elif operation.type == NodeType.COMM_COLL:
                self.proofs.sequences += count * len(ranks)
        _sum(self.proofs.after, calls, len(ranks), self._family_of)
        _sum(self.proofs.before, source.calls, len(ranks), self._old_names)

    @property
    def _old_names(self) -> dict[GroupKey, str]:
        return {key: kin.name for kin in self._workload.kin.values() for key in kin.groups}

    def _prove_bytes(self, rank: int, trace: Trace, calls: Calls) -> None:
        """Each communication has the bytes that its rule wants of those of the old rank."""
        before = self._sources[int(self._workload.source_of[rank])].calls
        if not np.array_equal(before.rows, calls.rows):
            raise _broken(f"rank {rank} has other communication than the rank that it copies")
        texts = Texts(trace.nodes)
        given = trace.nodes.input_code[calls.rows]
        kinds = np.stack([before.call_of, calls.call_of, given])
        distinct, counts = np.unique(kinds, axis=1, return_counts=True)
        tensors = [len(texts.lengths(code)) for code in distinct[2].tolist()]
        # A gather does not tell of how many pieces it is; no more than the largest sum.
        pieces = max([1, *tensors])
        for (old, new, _), count in zip(distinct.T.tolist(), counts.tolist(), strict=True):
            self._prove_pair(before.calls[old], calls.calls[new], pieces, rank)
            self.proofs.bytes += count * (calls.calls[new].type in COMMUNICATION)

    def _prove_pair(self, old: Call, new: Call, pieces: int, rank: int) -> None:
        same = (old.type, old.collective, old.tag, old.phase)
        if same != (new.type, new.collective, new.tag, new.phase):
            raise _broken(f"rank {rank} has another communication than the rank that it copies")
        grows = None
        if new.group is not None and new.peer is None:
            grows = self._growth.get(self._family_of[new.group])
        rule = Rule.KEPT
        if grows is not None and old.collective is not None:
            rule = grows.rules[old.collective]
        a, b = old.size_bytes, new.size_bytes
        if rule is Rule.KEPT or grows is None or a is None or b is None:
            right = a == b
        else:
            whole, many = (a * grows.old, b * grows.new) if rule is Rule.DIVIDED else (a, b)
            # Each piece is padded for as many ranks as there are, and was for fewer.
            most = pieces * _LARGEST_ELEMENT
            right = many % grows.new == 0 and -most * grows.old < many - whole < most * grows.new
        if not right:
            raise _broken(f"rank {rank}: a {_called(old)} of {a} bytes became one of {b}")


def _in_order(operations: list[Any], calls: Calls) -> list[Any]:
    return [operations[code] for code in calls.call_of[calls.order].tolist()]


def _called(call: Call) -> str:
    if call.collective is not None:
        return CollectiveType(call.collective).name
    return NodeType(call.type).name


def _sum(sums: Sums, calls: Calls, ranks: int, family_of: Mapping[GroupKey, str]) -> None:
    counts = np.bincount(calls.call_of, minlength=len(calls.calls)).tolist()
    for call, count in zip(calls.calls, counts, strict=True):
        if call.type not in COMMUNICATION:
            continue
        family = (
            "messages" if call.group is None or call.peer is not None else (family_of[call.group])
        )
        sums[family, _called(call)] += count * ranks * (call.size_bytes or 0)


def _broken(problem: str) -> ChakraError:
    return ChakraError(
        f"the new set does not fit together: {problem}",
        remedy="This is a fault of the program; nothing was written.",
    )

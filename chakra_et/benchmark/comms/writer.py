"""Operations that communicate, as lines of a program: the same operators, on groups made anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from chakra_et.benchmark import reasons
from chakra_et.benchmark.comms.call import DELAY, SEND, Call, Group
from chakra_et.benchmark.comms.fewer import can_be_fewer, fewer
from chakra_et.benchmark.fill import Fill
from chakra_et.benchmark.plan import Kind, Operation, Plan
from chakra_et.benchmark.program import Program, made
from chakra_et.benchmark.schema import Argument
from chakra_et.benchmark.selection import COMMUNICATION
from chakra_et.benchmark.views import Ref, refs
from chakra_et.benchmark.writer import literal, returned
from chakra_et.definitions import CollectiveType
from chakra_et.recording.libraries import FUNCTIONAL, RECORD

_RUNTIME: Final = Path(__file__).with_name("program_ranks.py")
_WAIT: Final = "_c10d_functional::wait_tensor"
_WRAP: Final = "_c10d_functional::_wrap_tensor_autograd"
_GROUP: Final = "ProcessGroup"
_FROM_ROOT: Final = (CollectiveType.GATHER.name, CollectiveType.SCATTER.name)
_REDUCTION: Final = "ReduceOp"
_FILL: Final = Fill("floats")


@dataclass
class CommunicationWriter:
    """Writes communication for one of the ranks that run.

    `recorded` has the collectives and messages of the trace by the id of their nodes, `calls` what
    becomes of them on the ranks that run. `members` are the processes of each group, `process` that
    of each rank of the recording.
    """

    recorded: Mapping[int, Call]
    calls: Mapping[int, Call]
    members: Mapping[Group, tuple[int, ...]]
    process: Mapping[int, int]
    timeout_s: float = 60.0
    present: Callable[[str], bool] | None = None
    kinds: frozenset[Kind] = frozenset({Kind.COMMUNICATION})
    nodes: dict[int, list[int]] = field(default_factory=dict)
    """The nodes of the communication that each operation asks for."""

    def __post_init__(self) -> None:
        self._carried: dict[int, list[int]] | None = None
        names = Counter(group.name for group in self.members)
        self._label = {
            group: group.name if names[group.name] == 1 else f"{group.name} of {group.ranks}"
            for group in self.members
        }

    def refuses(self, plan: Plan, operation: Operation) -> str:
        """Why an operation cannot be written; empty if it can."""
        schema = operation.schema
        if schema is None:
            return (
                ""
                if operation.name == RECORD and not self._nodes(plan, operation)
                else reasons.NO_SCHEMA
            )
        if operation.name == _WRAP:
            return ""
        if len(operation.inputs) > len(schema.arguments):
            return reasons.OTHER_COUNT
        if not all(map(_is_given, schema.arguments, operation.inputs)):
            return reasons.UNREADABLE
        if self.present is not None and not self.present(schema.path):
            return reasons.absent(schema.path)
        if operation.name == _WAIT or self._group(plan, operation) is not None:
            return ""
        return "its process group is not known"

    def statements(self, plan: Plan, number: int) -> list[str]:
        """The lines of an operation: its call, or the time that it took."""
        operation = plan.operations[number]
        target = returned(operation)
        if operation.schema is None or (operation.name == _WRAP and not target):
            return ["pass"]
        if operation.name == _WRAP:
            return [f"{target} = t[{refs(operation.inputs)[0]}]"]
        self.nodes[number] = self._nodes(plan, operation)
        became = [self.calls[node] for node in self.nodes[number] if node in self.calls]
        if any(self._is_delay(call, operation) for call in became):
            took = sum(call.recorded_ns or 0 for call in became) or operation.duration_ns
            return [f"RANKS.delay({number}, {took})", *_memory(plan, number)]
        if any(call.is_message for call in became):
            call = self._message(operation, became[0])
            return [f"RANKS.ask({number}, {_waits(operation)}, {call})"]
        call = f"torch.ops.{operation.schema.path}, {self._arguments(plan, operation)}"
        if operation.name == _WAIT:
            call = f"RANKS.wait({number}, {call})"
        elif operation.name.startswith(FUNCTIONAL):
            call = f"RANKS.functional({number}, {call})"
        else:
            call = f"RANKS.ask({number}, {_waits(operation)}, {call})"
        return [f"{target} = {call}" if target else call]

    def prelude(self) -> list[str]:
        """The text of `program_ranks`, and the groups of the recording."""
        text = _RUNTIME.read_text(encoding="utf-8").partition('"""\n\n')[2]
        groups = "".join(
            f'    "{self._label[group]}": {ranks},\n' for group, ranks in self.members.items()
        )
        return [
            text,
            "REDUCTION = torch.classes.c10d.ReduceOp()  # the sum: recordings do not name it",
            'if "RANKS" not in globals():',
            f"    RANKS = Ranks({{\n{groups}    }}, {self.timeout_s})",
        ]

    def _nodes(self, plan: Plan, operation: Operation) -> list[int]:
        """The nodes of the communication that an operation asks for."""
        if self._carried is None:
            self._carried = _carried(plan)
        return self._carried.get(operation.row, [])

    def _group(self, plan: Plan, operation: Operation) -> Group | None:
        """The group that an operation communicates in, of those that run."""
        for node in self._nodes(plan, operation):
            if node in self.calls:
                return self.calls[node].group
        if len(self.members) == 1 and not self._nodes(plan, operation):
            return next(iter(self.members))
        return None

    def _is_delay(self, call: Call, operation: Operation) -> bool:
        """Whether a call only takes its time, as too few ranks are there for its operator."""
        if call.kind == DELAY or not call.shrunk_from:
            return call.kind == DELAY
        # Another rank than the root has no tensors for what a root gets or hands out.
        other_root = call.root != self.recorded[call.node].root and call.kind in _FROM_ROOT
        return other_root or not can_be_fewer(operation)

    def _message(self, operation: Operation, call: Call) -> str:
        """A message as one of the group of all ranks, from the sender that was recorded.

        Recordings do not always tell the group that a message went through, and both sides have
        to go through the same.
        """
        assert operation.schema is not None
        name = "send" if call.kind == SEND else "recv_"
        tensors = literal(operation.inputs[0], operation.schema.arguments[0])
        peer = self.process[int(call.peer or 0)]
        return f'torch.ops.c10d.{name}.default, {tensors}, RANKS.boxed(""), {peer}, {call.tag}'

    def _arguments(self, plan: Plan, operation: Operation) -> str:
        assert operation.schema is not None
        group = self._group(plan, operation)
        label = "" if group is None else self._label.get(group, "")
        pairs = zip(operation.schema.arguments, operation.inputs, strict=False)
        texts = []
        for argument, value in pairs:
            text = self._shrunken(plan, operation, argument)
            texts.append(_argument(argument, value, label) if text is None else text)
        return ", ".join(texts)

    def _shrunken(self, plan: Plan, operation: Operation, argument: Argument) -> str | None:
        node = next((n for n in self._nodes(plan, operation) if n in self.calls), None)
        if node is None or self.calls[node] == self.recorded[node]:
            return None
        return fewer(operation, argument, self.recorded[node], self.calls[node])


def _carried(plan: Plan) -> dict[int, list[int]]:
    """The nodes of the communication that each operation asks for, by the operation's row.

    No edge need lead to each: of the parts that gloo makes of a reduce-scatter, later ones follow
    the first on its thread. Such belong to the operation that was called last before them.
    """
    nodes = plan.trace.nodes
    asks = [o for o in plan.operations if o.kind is Kind.COMMUNICATION and o.schema is not None]
    found = {o.row: list(o.carries) for o in asks}
    called = nodes.attributes.dense("rf_id", 0, np.int64)
    first = {int(called[o.row]): o.row for o in asks if called[o.row]}
    order = np.array(sorted(first), np.int64)
    every = np.flatnonzero(np.isin(nodes.type, COMMUNICATION) & (called > 0))
    for row in np.setdiff1d(every, [row for rows in found.values() for row in rows]).tolist():
        place = int(np.searchsorted(order, called[row])) - 1
        if place >= 0:
            found[first[int(order[place])]].append(row)
    return {row: nodes.id[rows].astype(np.int64).tolist() for row, rows in found.items()}


def _is_given(argument: Argument, value: Any) -> bool:
    """Whether a value can be given: tensors, where the argument is of tensors."""
    if not argument.type.startswith("Tensor") or value is None:
        return True
    if isinstance(value, list):
        return all(_is_given(argument, each) for each in value)
    return isinstance(value, Ref)


def _memory(plan: Plan, number: int) -> list[str]:
    """What an operation returns that does not run, in memory of its own."""
    taken = set(refs(plan.operations[number].inputs))
    new = [view for view in refs(plan.operations[number].outputs) if view not in taken]
    return [f"t[{view}] = {made(plan, view, _FILL)}" for view in dict.fromkeys(new)]


def _argument(argument: Argument, value: Any, group: str) -> str:
    if _GROUP in argument.type:
        return f'RANKS.boxed("{group}")'
    if argument.name == "group_name":
        return f'RANKS.name("{group}")'
    return "REDUCTION" if _REDUCTION in argument.type else literal(value, argument)


def _waits(operation: Operation) -> bool:
    """Whether the program that was recorded waited at once."""
    assert operation.schema is not None
    pairs = zip(operation.schema.arguments, operation.inputs, strict=False)
    return any(argument.type == "bool" and value is False for argument, value in pairs)


def wait_where_needed(program: Program) -> None:
    """Let each operation wait for communication under way that works on the same memory.

    What nobody needs has ended when the iteration does.
    """
    plan = program.plan
    under_way: dict[int, set[int]] = {}
    for number, operation in enumerate(plan.operations):
        given, got = (_storages(plan, part) for part in (operation.inputs, operation.outputs))
        for other, storages in list(under_way.items()):
            if operation.name == _WRAP and storages & given:
                storages |= got
            elif storages & (given | got):
                if operation.name != _WAIT:
                    program.steps[number].before.insert(0, f"RANKS.finish({other})")
                del under_way[other]
        if _goes_on(operation):
            functional = operation.name.startswith(FUNCTIONAL)
            under_way[number] = got if functional else given | got
    if program.steps:
        program.steps[-1].after.append("RANKS.finish_all()")


def _storages(plan: Plan, value: Any) -> set[int]:
    return {plan.views[view].storage for view in refs(value)}


def _goes_on(operation: Operation) -> bool:
    """Whether communication may be under way when its operation has ended."""
    if operation.kind is not Kind.COMMUNICATION or operation.reason or operation.schema is None:
        return False
    return operation.name not in (_WAIT, _WRAP) and not _waits(operation)

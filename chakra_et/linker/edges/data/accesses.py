"""Which operations read and write which memory, and when: what tensors in the host trace tell.

An operation that calls others lists the same tensors as they do. It reads and writes itself only
what none of them does for it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import asdict

from chakra_et.codes import codes, order_of
from chakra_et.columns import NEVER, NO_ROW, Mask, Rows, count_up
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.kernel import kernel
from chakra_et.linker.communication.communication import Communication
from chakra_et.linker.edges.data.call_tree import CallTree
from chakra_et.linker.edges.data.operation_work import OperationWork
from chakra_et.recording import HostTrace, Kind, Operators, Tensors
from chakra_et.recording.operators import ARGUMENTS, PYTHON

_IN_PLACE: Final = frozenset({CollectiveType.ALL_REDUCE, CollectiveType.BROADCAST})
"""Collectives that leave their result in what they are given."""


class Accesses(msgspec.Struct):
    """One entry of each column for each access of an operation to memory, in order of time.

    `node` is the row of the host trace, `memory` numbers storages (of one device), `begin` and
    `end` are bytes of it. An access `writes` or else reads. One that `renews` is the first to a
    memory that was handed out anew, and one that is not `told` leaves there what no record tells.
    `on_device` tells where the memory is.
    """

    node: Rows
    memory: Rows
    begin: Rows
    end: Rows
    writes: Mask
    renews: Mask
    told: Mask
    on_device: Mask

    def __len__(self) -> int:
        return len(self.node)

    def select(self, chosen: Rows) -> Accesses:
        """Some of the accesses."""
        return Accesses(**{name: column[chosen] for name, column in asdict(self).items()})


def find_accesses(host: HostTrace, actors: Actors, tree: CallTree, work: OperationWork) -> Accesses:
    """All accesses to memory.

    Memory of a device is read and written by operations that launched work there; the others only
    describe it anew. `work` tells which did.
    """
    tensors = host.dialect.tensors(host.texts.in_order)
    if (module := kernel()) is not None:
        return _by_kernel(module, host, tensors, actors, tree, work)
    found = _Uses.of(host, tensors, actors).accesses()
    seen = found.on_device & work.known
    launched = work.launches[found.node]
    idle = seen & ~launched
    found.told &= ~idle
    used = (found.writes | ~idle) & ~_done_by_callees(found, tree, seen, launched)
    found = found.select(np.flatnonzero(used))
    when = np.where(found.writes, 2 * tree.last_begun[found.node] + 1, 2 * tree.begun[found.node])
    return found.select(order_of(found.memory, when, -tree.begun[found.node]))


def _by_kernel(
    module: ModuleType,
    host: HostTrace,
    tensors: Tensors,
    actors: Actors,
    tree: CallTree,
    work: OperationWork,
) -> Accesses:
    """What `find_accesses` finds."""
    memory = _memory(tensors)
    nodes = {
        "inputs": host.inputs,
        "outputs": host.outputs,
        "schema": actors.schema,
        "acting": actors.acting,
        "records": actors.records,
        "receiving": actors.receiving,
        "generated": actors.generated,
        "asking": actors.asking,
        "launches": work.launches,
        **asdict(tree),
    }
    operators = {name: column.ravel() for name, column in asdict(actors.operators).items()}
    found = module.find_accesses(
        nodes, operators, asdict(tensors) | {"memory": memory}, len(memory), work.known
    )
    numbers, flags = found[:4], [flag.view(np.bool_) for flag in found[4:]]
    return Accesses(*numbers, *flags)


def _memory(tensors: Tensors) -> Rows:
    """A number for the memory of each tensor; an id on two devices is of two storages."""
    return codes(tensors.storage * max(len(tensors.devices), 1) + tensors.device)


class Actors(msgspec.Struct):
    """Which host nodes read and write, and what is known of them beside their schema.

    These have a schema, communicate, or are generated kernels; labels, and the wrappers of the
    backward pass, only pass on what others read and write. So do operators that are `handed_over`
    to the Python of a class of tensors, whose tensors have no memory (a DTensor). `records` have
    lists of inputs and of outputs, which they write; `spans` are what a backend recorded of
    communication on the host, `receiving` those that write what they are given, `asking` the
    operations that asked for them; `generated` are kernels that write any of their arguments.
    """

    operators: Operators
    schema: npt.NDArray[np.int32]
    records: Mask
    spans: Mask
    receiving: Mask
    asking: Mask
    generated: Mask
    handed_over: Mask

    @classmethod
    def of(cls, host: HostTrace, communication: dict[int, Communication], tree: CallTree) -> Actors:
        known = host.dialect.operators(host.op_schemas.in_order)
        records, generated = host.kind == Kind.COLLECTIVE, host.kind == Kind.GENERATED
        spans, receiving = (np.zeros(len(host), np.bool_) for _ in range(2))
        spans[[row for row in communication if row < len(host)]] = True
        spans &= ~records & ~known.known[host.op_schema]
        in_place = [
            row
            for row, told in communication.items()
            if told.collective in _IN_PLACE or told.type is NodeType.COMM_RECV
        ]
        receiving[[row for row in in_place if row < len(host)]] = True
        asking = known.asks[host.op_schema] & spans.any()
        in_python = host.name == host.names.get(PYTHON, NO_ROW)
        return cls(
            known,
            host.op_schema,
            records,
            spans,
            spans & receiving,
            asking,
            generated,
            tree.calls(in_python) if in_python.any() else in_python,
        )

    @property
    def acting(self) -> Mask:
        """Which nodes read and write."""
        known: Mask = self.operators.known[self.schema] & ~self.handed_over
        return known | self.records | self.spans | self.generated


class _Uses(msgspec.Struct):
    """The tensors of operations: one entry of each column for each, inputs first."""

    actors: Actors
    tensors: Tensors
    node: Rows
    tensor: Rows
    memory: Rows
    inputs: int

    @classmethod
    def of(cls, host: HostTrace, tensors: Tensors, actors: Actors) -> _Uses:
        taken, given = (
            _expand(tensors, column, np.flatnonzero(actors.acting))
            for column in (host.inputs, host.outputs)
        )
        node, tensor = np.append(taken[0], given[0]), np.append(taken[1], given[1])
        memory = _memory(tensors)[tensor]
        kept = tensors.has_memory[tensors.device[tensor]]
        inputs = int(np.count_nonzero(kept[: len(taken[0])]))
        return cls(actors, tensors, node[kept], tensor[kept], memory[kept], inputs)

    def accesses(self) -> Accesses:
        """Who reads and writes what, not yet in order."""
        actors, known = self.actors, self.actors.operators
        taken = np.arange(len(self.node)) < self.inputs
        schema = actors.schema[self.node]
        place = np.minimum(self.tensors.argument[self.tensor], ARGUMENTS - 1)
        generated, record = actors.generated[self.node], actors.records[self.node]
        renews = ~taken & ~self._among_inputs() & ~record
        reads = taken & known.reads[schema, place]
        writes = taken & (known.writes[schema, place] | actors.receiving[self.node] | generated)
        writes |= renews | (~taken & (record | known.in_place[schema]))
        asking = actors.asking[self.node]
        writes &= ~asking | (taken & ~reads)
        told = ~generated & ~asking & ~(renews & known.allocates[schema])
        reads &= ~self._views(taken, writes)[self.node]
        use = np.concatenate((np.flatnonzero(reads), np.flatnonzero(writes)))
        tensor = self.tensor[use]
        writing = np.arange(len(use)) >= np.count_nonzero(reads)
        return Accesses(
            node=self.node[use],
            memory=self.memory[use],
            begin=self.tensors.begin[tensor],
            end=self.tensors.end[tensor],
            writes=writing,
            renews=writing & renews[use],
            told=told[use] | ~writing,
            on_device=~self.tensors.on_host[self.tensors.device[tensor]],
        )

    def _among_inputs(self) -> Mask:
        """Which outputs are of a memory that the same operation was given; all inputs are."""
        pair = self.node * (int(self.memory.max(initial=0)) + 1) + self.memory
        given = np.append(np.sort(pair[: self.inputs], kind="stable"), NEVER)
        place = np.searchsorted(given, pair[self.inputs :])
        return np.append(np.ones(self.inputs, np.bool_), given[place] == pair[self.inputs :])

    def _views(self, taken: Mask, writes: Mask) -> Mask:
        """Which nodes write nothing, and return what they were given: they describe it anew."""
        returning, writing = (np.zeros(len(self.actors.schema), np.bool_) for _ in range(2))
        returning[self.node[~taken]] = True
        writing[self.node[writes]] = True
        return returning & ~writing & ~self.actors.asking


def _expand(tensors: Tensors, text: npt.NDArray[np.int32], rows: Rows) -> tuple[Rows, Rows]:
    """Node and tensor of each tensor in the texts of some nodes."""
    first = tensors.offsets[text[rows]]
    count = tensors.offsets[text[rows] + 1] - first
    within = count_up(count)
    return np.repeat(rows, count), np.repeat(first, count) + within


def _done_by_callees(found: Accesses, tree: CallTree, seen: Mask, launched: Mask) -> Mask:
    """Which accesses something that the operation calls makes for it.

    What an operation that works itself returns is its own, whatever those that it calls wrote there
    before. Where device work is `seen`, it works if it `launched` some, else if it reads something
    that nothing below it reads.
    """
    done = np.zeros(len(found), np.bool_)
    reads = np.flatnonzero(~found.writes)
    done[reads] = _again_below(found, tree, reads, (~seen | launched)[reads])
    works = np.zeros(len(tree.position), np.bool_)
    works[found.node[reads[~done[reads]]]] = True
    writes = np.flatnonzero(found.writes)
    below = _again_below(found, tree, writes, found.told[writes])
    own = np.where(seen, launched, works[found.node])
    done[writes] = below & ~own[writes]
    return done


def _again_below(found: Accesses, tree: CallTree, rows: Rows, counts: Mask) -> Mask:
    """For some accesses, whether one that `counts`, of something called, is to the same memory."""
    memory, position = found.memory[rows], tree.position[found.node[rows]]
    order = order_of(memory, position)
    width = len(tree.position) + 1
    key = (memory * width + position)[order]
    those = key[counts[order]]
    following = np.append(those, NEVER)[np.searchsorted(those, key, "right")]
    below = np.empty(len(rows), np.bool_)
    below[order] = following < (memory * width + tree.end[found.node[rows]])[order]
    return below

"""One rank at work: operators become nodes, and tensors move between parallel ranks."""

from __future__ import annotations

from typing import Final

from chakra_et.build import Rank, Tensor
from chakra_et.build.operation import Operation, texts_of
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.workloads.durations import Durations
from chakra_et.workloads.operators import Operator, Shape
from chakra_et.workloads.plan import Plan


class Stream:
    """What runs on one stream runs in order. Communication is ordered by what it is for."""

    COMPUTE: Final = 0
    TP: Final = "tp"
    CP: Final = "cp"
    CP_IN: Final = "cp in"
    EP: Final = "ep"
    DP: Final = "dp"
    FORWARD_OUT: Final = "forward out"
    FORWARD_IN: Final = "forward in"
    BACKWARD_OUT: Final = "backward out"
    BACKWARD_IN: Final = "backward in"


class Worker:
    """Runs operators and collectives on a rank of a plan."""

    def __init__(
        self, rank: Rank, plan: Plan, durations: Durations, *, count_pointwise: bool = False
    ) -> None:
        self.rank = rank
        self.plan = plan
        self._durations = durations
        self._count_pointwise = count_pointwise
        self._operations: dict[Operator, Operation] = {}
        self._scope = ""
        self._named = 0

    # -----------------------------------------------------------------------------------------
    # Operators

    def tensor(self, name: str, shape: Shape, dtype: str | None = None) -> Tensor:
        """A new tensor; its name is unique where tensors are written out."""
        if self.rank.workload.tensors:
            self._named += 1
            name = f"{name}#{self._named}"
        return Tensor(name, shape, dtype or self.plan.dtype)

    def run(self, operator: Operator, *inputs: Tensor) -> Tensor:
        """Run an operator; its first output, which is new."""
        outputs = [self.tensor(operator.name, s, operator.dtype) for s in operator.outputs]
        self.run_into(operator, inputs, outputs)
        return outputs[0]

    def run_into(
        self, operator: Operator, inputs: tuple[Tensor, ...], outputs: list[Tensor]
    ) -> int:
        """Run an operator that writes tensors which are there."""
        operation = self._operations.get(operator)
        if operation is None:
            operation = self._operations[operator] = self._operation(operator)
        return self.rank.append(operation, inputs, outputs)

    def _operation(self, operator: Operator) -> Operation:
        flops = operator.flops + (operator.pointwise if self._count_pointwise else 0)
        inputs, outputs = (
            texts_of([Tensor("", shape, operator.dtype) for shape in shapes])
            for shapes in (operator.inputs, operator.outputs)
        )
        return Operation(
            NodeType.COMP, operator.name, operator.op_type, self._durations(operator) or 0, False,
            flops or None, operator.moved_bytes, inputs=inputs, outputs=outputs,
        )  # fmt: skip

    # -----------------------------------------------------------------------------------------
    # Collectives

    def collective(
        self,
        type: CollectiveType,
        family: str,
        size_bytes: int,
        name: str,
        stream: str,
        inputs: list[Tensor],
        outputs: list[Tensor],
    ) -> None:
        """Take part in a collective on a stream of its own."""
        if size_bytes == 0:
            return
        with self.rank.on(stream=stream):
            self.rank.collective(
                type, family, size_bytes, name=name, inputs=inputs, outputs=outputs
            )

    def all_reduce(self, family: str, x: Tensor, name: str, stream: str) -> Tensor:
        """Sum a tensor in place."""
        self.collective(CollectiveType.ALL_REDUCE, family, x.size_bytes, name, stream, [x], [x])
        return x

    def all_gather(self, family: str, x: Tensor, name: str, stream: str) -> Tensor:
        """A tensor of the parts of all ranks, joined on the first dimension."""
        parts = self.rank.size(family)
        whole = self.tensor(name, (x.shape[0] * parts, *x.shape[1:]), x.dtype)
        self.collective(CollectiveType.ALL_GATHER, family, x.size_bytes, name, stream, [x], [whole])
        return whole

    def reduce_scatter(self, family: str, x: Tensor, name: str, stream: str) -> Tensor:
        """This rank's part of the sum, cut on the first dimension."""
        parts = self.rank.size(family)
        part = self.tensor(name, (x.shape[0] // parts, *x.shape[1:]), x.dtype)
        self.collective(
            CollectiveType.REDUCE_SCATTER, family, x.size_bytes, name, stream, [x], [part]
        )
        return part

    # -----------------------------------------------------------------------------------------
    # Between split layers: Megatron's pairs of conjugate operators

    def enter(self, x: Tensor, name: str) -> Tensor:
        """Before a layer split by outputs: all tokens, where sequence parallelism has a part."""
        if not self.plan.sequence_parallel:
            return x
        return self.all_gather("tp", x, f"{name}.all_gather", Stream.TP)

    def enter_gradient(self, dx: Tensor, name: str) -> Tensor:
        """The gradient of `enter`: summed over the ranks that each have a part of the outputs."""
        if not self.plan.sequence_parallel:
            return self.all_reduce("tp", dx, f"{name}.gradient.all_reduce", Stream.TP)
        return self.reduce_scatter("tp", dx, f"{name}.gradient.reduce_scatter", Stream.TP)

    def leave(self, y: Tensor, name: str) -> Tensor:
        """Behind a layer split by inputs: the sum, of which sequence parallelism keeps a part."""
        if not self.plan.sequence_parallel:
            return self.all_reduce("tp", y, f"{name}.all_reduce", Stream.TP)
        return self.reduce_scatter("tp", y, f"{name}.reduce_scatter", Stream.TP)

    def leave_gradient(self, dy: Tensor, name: str) -> Tensor:
        """The gradient of `leave`."""
        if not self.plan.sequence_parallel:
            return dy
        return self.all_gather("tp", dy, f"{name}.gradient.all_gather", Stream.TP)

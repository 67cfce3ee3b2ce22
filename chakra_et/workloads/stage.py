"""One pipeline rank of training: its parts of the model, and micro-batches that pass through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chakra_et.build import Peer, Rank, Tensor
from chakra_et.definitions import CollectiveType
from chakra_et.workloads.attention import attention_steps
from chakra_et.workloads.durations import Durations
from chakra_et.workloads.ends import Embedding, Head, norm
from chakra_et.workloads.gathering import gather
from chakra_et.workloads.gradients import Gradients
from chakra_et.workloads.mlp import feed_forward_steps
from chakra_et.workloads.operators import Operator
from chakra_et.workloads.parameters import Part, Unit
from chakra_et.workloads.plan import Gather, Plan, Recompute
from chakra_et.workloads.schedule import Kind, Pass, schedule
from chakra_et.workloads.steps import Chain, Plain
from chakra_et.workloads.worker import Stream, Worker

_FORWARD, _BACKWARD = 0, 1


def layer_steps(plan: Plan, layer: int, queries: int, keys: int) -> Chain:
    """A layer: norm, attention, norm, MLP. Norms add the residual stream as well."""
    shape = (queries // plan.sharded, plan.micro_batch, plan.model.hidden)
    attention_norm, mlp_norm = (
        Plain.of(norm(f"{name}.norm", shape, plan.dtype), weighted=True)
        for name in ("attention", "mlp")
    )
    return Chain(
        (
            attention_norm,
            *attention_steps(plan, queries, keys).steps,
            mlp_norm,
            feed_forward_steps(plan, layer, queries),
        )
    )


class TrainingStage:
    """Runs all passes of a step on one pipeline rank."""

    def __init__(self, worker: Worker, stage: int) -> None:
        self.worker = worker
        self.plan = plan = worker.plan
        self.stage = stage
        self.parts = [Part(plan, stage + plan.pp * chunk) for chunk in range(plan.chunks)]
        self.gradients = Gradients(worker, [unit for part in self.parts for unit in part.all()])
        self.chains = {
            kind: layer_steps(plan, layer, plan.tokens_of_rank, plan.sequence)
            for layer in range(plan.model.layers)
            if (kind := plan.model.is_expert_layer(layer)) is not None
        }
        self.embedding = Embedding.of(plan, plan.tokens_of_rank)
        self.head = Head.of(plan, plan.tokens_of_rank)
        self.saved: dict[tuple[int, int], dict[Any, Any]] = {}
        self.deferred: dict[tuple[int, int], list[Callable[[], None]]] = {}

    def run(self) -> None:
        """All passes, and the end of the step."""
        rank = self.worker.rank
        with rank.on(stream=Stream.COMPUTE):
            for one in schedule(self.plan, self.stage):
                with rank.on(micro_batch=one.micro_batch):
                    self._pass(one)
            self._share_embedding()
            self.gradients.finish()

    def _pass(self, one: Pass) -> None:
        rank = self.worker.rank
        part = self.parts[one.chunk]
        key = (one.chunk, one.micro_batch)
        if one.kind is Kind.FORWARD:
            with rank.on(phase="forward"):
                self.saved[key] = self._forward(part, one.micro_batch)
        elif one.kind is Kind.WEIGHT_GRADIENT:
            with rank.on(phase="backward"):
                for run in self.deferred.pop(key):
                    run()
        else:
            put_off = self.deferred.setdefault(key, []) if one.kind is Kind.INPUT_GRADIENT else None
            with rank.on(phase="backward"):
                self._backward(part, one.micro_batch, self.saved.pop(key), put_off)

    # -----------------------------------------------------------------------------------------
    # Passes

    def _forward(self, part: Part, micro_batch: int) -> dict[Any, Any]:
        """The forward pass of a part; what its backward pass needs."""
        saved: dict[Any, Any] = {}
        site = Site(self, part, micro_batch)
        places: list[Any] = [*part.layers, *(["head"] if part.last else [])]
        x = None
        if part.first:
            self._gather(part, ["embedding"], None)
            x, saved["embedding"] = self.embedding.forward(site)
        else:
            x = self._receive(part.number - 1, micro_batch, _FORWARD)
        self._gather(part, places[:1], None)
        for place, following in zip(places, [*places[1:], None], strict=True):
            self._gather(part, [following], x)
            if place == "head":
                # Megatron averages the loss for its log; DeepSpeed leaves it to each rank.
                average = None if self.plan.zero >= 2 else self.plan.gradient_family(expert=False)
                saved[place] = self.head.forward(site, x, average)
            else:
                x, saved[place] = self._layer_forward(site, place, x)
        if not part.last:
            self._send(x, part.number, micro_batch, _FORWARD)
        return saved

    def _layer_forward(self, site: Site, layer: int, x: Tensor) -> tuple[Tensor, Any]:
        chain = self.chains[self.plan.model.is_expert_layer(layer)]
        with self.worker.rank.on(layer=layer):
            y, kept = chain.forward(site.at(layer), x)
        return y, x if self.plan.recompute is Recompute.FULL else kept

    def _backward(
        self,
        part: Part,
        micro_batch: int,
        saved: dict[Any, Any],
        put_off: list[Callable[[], None]] | None,
    ) -> None:
        site = Site(self, part, micro_batch, put_off)
        places: list[Any] = [*reversed(part.layers), *(["embedding"] if part.first else [])]
        if part.last:
            self._gather(part, ["head"], None)
            dx = self.head.backward(site, saved["head"])
        else:
            dx = self._receive(part.number, micro_batch, _BACKWARD)
        self._gather(part, places[:1], None)
        for place, following in zip(places, [*places[1:], None], strict=True):
            # The embedding's gradient needs no weight, but DeepSpeed gathers what a module has.
            needed = following != "embedding" or self.plan.gather is Gather.MODULE
            self._gather(part, [following] if needed else [], dx)
            if place == "embedding":
                self.embedding.backward(site, saved[place], dx)
            else:
                dx = self._layer_backward(site, place, saved[place], dx)
        if not part.first:
            self._send(dx, part.number - 1, micro_batch, _BACKWARD)

    def _layer_backward(self, site: Site, layer: int, kept: Any, dx: Tensor) -> Tensor:
        chain = self.chains[self.plan.model.is_expert_layer(layer)]
        here = site.at(layer)
        with self.worker.rank.on(layer=layer):
            if self.plan.recompute is Recompute.FULL:
                with self.worker.rank.on(phase="recompute"):
                    _, kept = chain.forward(here, kept)
            return chain.backward(here, kept, dx)

    def _gather(self, part: Part, places: Sequence[Any], since: Tensor | None) -> None:
        """Under ZeRO-3, gather the weights that some places need."""
        if self.plan.zero < 3:
            return
        for place in places:
            if place is not None:
                with self.worker.rank.on(layer=place if isinstance(place, int) else None):
                    gather(self.worker, part.used_at(place), since=since)

    # -----------------------------------------------------------------------------------------
    # Between stages

    def _tag(self, boundary: int, micro_batch: int, direction: int) -> int:
        return 2 * (micro_batch * self.plan.stages + boundary) + direction

    def _peer(self, step: int) -> Peer:
        return self.worker.rank.peer(pp=step)

    def _send(self, x: Tensor, boundary: int, micro_batch: int, direction: int) -> None:
        """Send over the boundary behind part `boundary`: activations on, gradients back."""
        rank = self.worker.rank
        on = Stream.FORWARD_OUT if direction == _FORWARD else Stream.BACKWARD_OUT
        with rank.on(stream=on):
            rank.send(
                self._peer(1 if direction == _FORWARD else -1), x.size_bytes, inputs=[x],
                tag=self._tag(boundary, micro_batch, direction),
                name="activations.send" if direction == _FORWARD else "gradients.send",
            )  # fmt: skip

    def _receive(self, boundary: int, micro_batch: int, direction: int) -> Tensor:
        rank = self.worker.rank
        on = Stream.FORWARD_IN if direction == _FORWARD else Stream.BACKWARD_IN
        name = "activations.receive" if direction == _FORWARD else "gradients.receive"
        plan = self.plan
        shape = (plan.tokens_of_rank // plan.sharded, plan.micro_batch, plan.model.hidden)
        x = self.worker.tensor(name, shape)
        with rank.on(stream=on):
            rank.receive(
                self._peer(-1 if direction == _FORWARD else 1), x.size_bytes, outputs=[x],
                tag=self._tag(boundary, micro_batch, direction), name=name,
            )  # fmt: skip
        return x

    def _share_embedding(self) -> None:
        """Where the head is the embedding, and on another rank, sum their gradients."""
        plan = self.plan
        if not plan.model.tied or plan.pp == 1 or self.stage not in (0, plan.pp - 1):
            return
        part = self.parts[0] if self.stage == 0 else self.parts[-1]
        unit = part.unit(None, "embedding" if self.stage == 0 else "head")
        size = unit.sizes[0] * plan.gradient_element
        with self.worker.rank.on(phase="gradients"):
            self.worker.collective(
                CollectiveType.ALL_REDUCE, "embedding", size, "embedding_gradient.all_reduce",
                Stream.DP, [unit.gradient], [unit.gradient],
            )  # fmt: skip


class Site:
    """Where a step runs: a layer of a part, for one micro-batch."""

    def __init__(
        self,
        stage: TrainingStage,
        part: Part,
        micro_batch: int,
        deferred: list[Callable[[], None]] | None = None,
        layer: int | None = None,
    ) -> None:
        self.worker = stage.worker
        self._stage = stage
        self._part = part
        self._micro_batch = micro_batch
        self._deferred = deferred
        self._layer = layer

    def at(self, layer: int) -> Site:
        """The same for a layer."""
        return Site(self._stage, self._part, self._micro_batch, self._deferred, layer)

    def unit(self, name: str) -> Unit:
        """The weights of an operator."""
        return self._part.unit(self._layer, name)

    def put_off(self, operator: Operator, inputs: tuple[Tensor, ...], unit: Unit) -> None:
        """Run the gradient of a weight: at once, or when its pass comes."""

        def run() -> None:
            with self.worker.rank.on(layer=self._layer):
                # Gradients that are summed for each micro-batch are new, others are added to.
                adds = () if self._stage.plan.zero >= 2 else (unit.gradient,)
                self.worker.run_into(operator, (*inputs, *adds), [unit.gradient])
            # A head that is the embedding leaves the gradient to be completed there.
            if not (operator.name.startswith("head") and unit.name == "embedding"):
                self.ready(unit)

        if self._deferred is None:
            run()
        else:
            self._deferred.append(run)

    def ready(self, unit: Unit) -> None:
        """Say that the gradients of a unit are complete for this micro-batch."""
        self._stage.gradients.ready(unit, self._micro_batch)


def train(plan: Plan, durations: Durations, *, count_pointwise: bool) -> Callable[[Rank], None]:
    """The program of a training step."""

    def program(rank: Rank) -> None:
        worker = Worker(rank, plan, durations, count_pointwise=count_pointwise)
        TrainingStage(worker, rank.coordinate("pp")).run()

    return program

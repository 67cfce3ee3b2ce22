"""Inference: prompts are read (prefill), tokens made (decode), by one set of ranks or two."""

from __future__ import annotations

from collections.abc import Callable

from chakra_et.build import Peer, Rank, Tensor
from chakra_et.workloads.attention import kv_bytes
from chakra_et.workloads.durations import Durations
from chakra_et.workloads.ends import Embedding, Head, next_tokens
from chakra_et.workloads.operators import Operator
from chakra_et.workloads.parameters import Part, Unit
from chakra_et.workloads.plan import Phase, Plan
from chakra_et.workloads.stage import layer_steps
from chakra_et.workloads.steps import Chain
from chakra_et.workloads.worker import Stream, Worker

PREFILL, DECODE = 0, 1
"""Places on the axis `role`, where two sets of ranks serve."""


class InferenceStage:
    """One pipeline rank: its layers, for batches of requests."""

    def __init__(self, worker: Worker, stage: int) -> None:
        self.worker = worker
        self.plan = worker.plan
        self.part = Part(self.plan, stage)
        self._head = Head.of(self.plan, 1)
        self._chains: dict[tuple[bool, int, int], Chain] = {}
        self._tokens: dict[int, Tensor] = {}
        self._cache: dict[tuple[int, int], Tensor] = {}

    def prefill(self, batch: int) -> None:
        """Read the prompts of a batch, and make the first token of each."""
        plan, part = self.plan, self.part
        queries, keys = plan.tokens_of_rank, plan.sequence
        x = self._enter(batch, queries)
        for layer in part.layers:
            x = self._layer(layer, x, queries, keys)
            if plan.phase is Phase.SERVE:
                self._send_cache(layer, x)
        if part.last:
            # One token follows, from the last one of the prompt.
            view = Tensor("", (1, *x.shape[1:]), x.dtype)
            view.writers = x.writers
            self._make(batch, view, on_role=DECODE if plan.phase is Phase.SERVE else None)
        else:
            self._send("activations", 1, x)

    def decode(self, batch: int, step: int) -> None:
        """Make one token for each request of a batch; `step` have been made before."""
        plan, part = self.plan, self.part
        past = plan.sequence if plan.phase is Phase.SERVE else plan.context
        x = self._enter(batch, 1)
        for layer in part.layers:
            cache = self._cache.pop((batch, layer), None)
            if cache is not None:
                x.writers = (*x.writers, *cache.writers)
            x = self._layer(layer, x, 1, past + step)
        if part.last:
            self._make(batch, x, returns=step + 1 < plan.tokens)
        else:
            self._send("activations", 1, x)

    def receive_cache(self, batch: int) -> None:
        """Take over the keys and values, and the first token, of a batch's prompts."""
        worker = self.worker
        for layer in self.part.layers:
            kv = worker.tensor("kv", (kv_bytes(self.plan, self.plan.sequence),), "uint8")
            with worker.rank.on(stream="cache in", layer=layer):
                worker.rank.receive(
                    worker.rank.peer(role=-1), kv.size_bytes, name="kv.receive", outputs=[kv]
                )
            self._cache[batch, layer] = kv
        if self.part.first:
            self._receive_tokens(batch, worker.rank.peer_at(role=PREFILL, pp=self.plan.pp - 1))

    # -----------------------------------------------------------------------------------------

    def _layer(self, layer: int, x: Tensor, queries: int, keys: int) -> Tensor:
        kind = (self.plan.model.is_expert_layer(layer), queries, keys)
        if kind not in self._chains:
            self._chains[kind] = layer_steps(self.plan, layer, queries, keys)
        with self.worker.rank.on(layer=layer):
            return self._chains[kind].forward(InferenceSite(self, layer), x)[0]

    def _enter(self, batch: int, queries: int) -> Tensor:
        """What the first layer of the rank works on."""
        shape = (queries, self.plan.micro_batch, self.plan.model.hidden)
        if not self.part.first:
            return self._receive("activations", -1, shape)
        embedding = Embedding.of(self.plan, queries)
        return embedding.forward(InferenceSite(self, None), self._tokens.get(batch))[0]

    def _make(
        self, batch: int, x: Tensor, *, returns: bool = False, on_role: int | None = None
    ) -> None:
        """Choose the next tokens, and bring them to where they are embedded."""
        rank = self.worker.rank
        tokens = next_tokens(self.worker, self._head, InferenceSite(self, None), x)
        self._tokens[batch] = tokens
        if on_role is None and (not returns or self.plan.pp == 1):
            return
        first = rank.peer_at(pp=0) if on_role is None else rank.peer_at(role=on_role, pp=0)
        with rank.on(stream="tokens"):
            rank.send(first, tokens.size_bytes, tag=_TOKENS + batch, name="tokens.send",
                      inputs=[tokens])  # fmt: skip

    def receive_tokens(self, batch: int) -> None:
        """On the first stage, take what the last one chose."""
        if self.part.first and self.plan.pp > 1:
            self._receive_tokens(batch, self.worker.rank.peer_at(pp=self.plan.pp - 1))

    def _receive_tokens(self, batch: int, peer: Peer) -> None:
        rank = self.worker.rank
        tokens = self.worker.tensor("tokens", (1, self.plan.micro_batch), "int64")
        with rank.on(stream="tokens in"):
            rank.receive(peer, tokens.size_bytes, tag=_TOKENS + batch, name="tokens.receive",
                         outputs=[tokens])  # fmt: skip
        self._tokens[batch] = tokens

    def _send_cache(self, layer: int, x: Tensor) -> None:
        """Hand the keys and values of a layer over to the rank that decodes."""
        rank = self.worker.rank
        size = kv_bytes(self.plan, self.plan.sequence)
        with rank.on(stream="cache out", layer=layer):
            rank.send(rank.peer(role=1), size, name="kv.send", inputs=[x])

    def _send(self, name: str, step: int, x: Tensor) -> None:
        rank = self.worker.rank
        with rank.on(stream=Stream.FORWARD_OUT):
            rank.send(rank.peer(pp=step), x.size_bytes, name=f"{name}.send", inputs=[x])

    def _receive(self, name: str, step: int, shape: tuple[int, ...]) -> Tensor:
        rank = self.worker.rank
        x = self.worker.tensor(name, shape)
        with rank.on(stream=Stream.FORWARD_IN):
            rank.receive(rank.peer(pp=step), x.size_bytes, name=f"{name}.receive", outputs=[x])
        return x


_TOKENS = 1 << 24
"""Tags of messages with tokens begin here; others are numbered from 0."""


class InferenceSite:
    """Where a step runs; there are no gradients."""

    def __init__(self, stage: InferenceStage, layer: int | None) -> None:
        self.worker = stage.worker
        self._part = stage.part
        self._layer = layer

    def unit(self, name: str) -> Unit:
        """The weights of an operator."""
        return self._part.unit(self._layer, name)

    def put_off(self, operator: Operator, inputs: tuple[Tensor, ...], unit: Unit) -> None:
        """Never called: inference has no backward pass."""
        raise AssertionError(operator.name)

    def ready(self, unit: Unit) -> None:
        """Never called: inference has no backward pass."""
        raise AssertionError(unit.name)


def infer(plan: Plan, durations: Durations, *, count_pointwise: bool) -> Callable[[Rank], None]:
    """The program of prefill, decode, or both on two sets of ranks."""

    def program(rank: Rank) -> None:
        worker = Worker(rank, plan, durations, count_pointwise=count_pointwise)
        stage = InferenceStage(worker, rank.coordinate("pp"))
        role = None if plan.phase is not Phase.SERVE else rank.coordinate("role")
        batches = range(plan.micro_batches)
        with rank.on(stream=Stream.COMPUTE):
            if plan.phase is Phase.PREFILL or role == PREFILL:
                for batch in batches:
                    with rank.on(phase="prefill", micro_batch=batch):
                        stage.prefill(batch)
                return
            for batch in batches if role == DECODE else ():
                with rank.on(phase="decode", micro_batch=batch):
                    stage.receive_cache(batch)
            for step in range(plan.tokens):
                for batch in batches:
                    with rank.on(phase="decode", micro_batch=batch):
                        if step:
                            stage.receive_tokens(batch)
                        stage.decode(batch, step)

    return program

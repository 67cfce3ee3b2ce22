"""The two ends of a model: the embedding, and the head with its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chakra_et.build import Tensor
from chakra_et.definitions import CollectiveType
from chakra_et.workloads.operators import (
    Operator,
    gradient,
    linear,
    lookup,
    lookup_gradient,
    pointwise,
)
from chakra_et.workloads.plan import Plan
from chakra_et.workloads.steps import Column, Plain, Site
from chakra_et.workloads.worker import Stream, Worker


def norm(name: str, shape: tuple[int, ...], dtype: str) -> Operator:
    """A norm over the last dimension."""
    return pointwise(name, "norm", (shape, shape[-1:]), shape, dtype, 5)


@dataclass(frozen=True)
class Embedding:
    """Tokens to vectors; every tensor-parallel rank knows a part of the words.

    With sequence parallelism the sum over ranks is scattered. Learned positions are added to the
    whole sum, as Megatron does, and each rank keeps its part.
    """

    words: Operator
    positions: Operator | None
    scattered: bool

    @classmethod
    def of(cls, plan: Plan, queries: int) -> Embedding:
        """The embedding of `queries` tokens of each sequence."""
        model = plan.model
        tokens = (queries, plan.micro_batch)
        table = (plan.padded_vocabulary // plan.tp, model.hidden)
        words = lookup("embedding", tokens, table, plan.dtype)
        if not model.positions:
            return cls(words, None, plan.sequence_parallel)
        whole = words.outputs[0]
        part = (queries // plan.sharded, *whole[1:])
        rows = (queries, model.hidden)
        add = pointwise("embedding.positions", "embedding", (whole, rows), part, plan.dtype)
        return cls(words, add, False)

    def forward(self, site: Site, given: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The vectors, and the tokens; without given ones, they are there from the start."""
        worker = site.worker
        tokens = given or worker.tensor("tokens", self.words.inputs[0], "int64")
        unit = site.unit("embedding")
        x = worker.run(self.words, tokens, unit.weight)
        if self.scattered:
            return worker.leave(x, "embedding"), tokens
        x = worker.all_reduce("tp", x, "embedding.all_reduce", Stream.TP)
        if self.positions is not None:
            x = worker.run(self.positions, x, unit.weight)
        return x, tokens

    def backward(self, site: Site, tokens: Tensor, dy: Tensor) -> None:
        """Gradients of the table; there is no input to have one."""
        dy = site.worker.leave_gradient(dy, "embedding")
        site.put_off(lookup_gradient(self.words), (dy, tokens), site.unit("embedding"))


@dataclass(frozen=True)
class Head:
    """The last norm, the logits of each rank's words, and the loss over all of them.

    The parallel loss takes three all-reduces of an fp32 number for each token: the largest logit,
    the logit of the right word, the sum of exponentials.
    """

    norm: Plain
    logits: Column
    parts: tuple[Operator, ...]
    loss: Operator

    @classmethod
    def of(cls, plan: Plan, queries: int) -> Head:
        """The head for `queries` tokens of each sequence."""
        model, dtype = plan.model, plan.dtype
        tokens = (queries, plan.micro_batch)
        shape = (queries // plan.sharded, plan.micro_batch, model.hidden)
        words = plan.padded_vocabulary // plan.tp
        logits = linear("head", (*tokens, model.hidden), words, dtype)
        seen = ((*tokens, words),)
        names = ("maximum", "target", "exponentials") if plan.tp > 1 else ()
        return cls(
            Plain.of(norm("norm", shape, dtype), weighted=True),
            Column(logits),
            tuple(pointwise(f"loss.{name}", "loss", seen, tokens, dtype, 2) for name in names),
            pointwise("loss", "loss", seen, tokens, dtype, 1 if names else 5),
        )

    def forward(self, site: Site, x: Tensor, average: str | None) -> Any:
        """Run to the loss, and average that over the groups of a family."""
        worker = site.worker
        normed, saved = self.norm.forward(site, x)
        logits, kept = self.logits.forward(site, normed)
        sums: list[Tensor] = []
        for part in self.parts:
            each = worker.tensor(part.name, part.outputs[0], "fp32")
            worker.run_into(part, (logits, *sums), [each])
            sums.append(worker.all_reduce("tp", each, f"{part.name}.all_reduce", Stream.TP))
        worker.run_into(self.loss, (logits, *sums), [loss := worker.tensor("loss", (1,), "fp32")])
        if average is not None:
            worker.all_reduce(average, loss, "loss.average.all_reduce", Stream.DP)
        return saved, kept, logits

    def backward(self, site: Site, state: Any) -> Tensor:
        """From the loss to the gradient of the last layer's output."""
        saved, kept, logits = state
        dlogits = site.worker.run(gradient(self.loss), logits, logits)
        return self.norm.backward(site, saved, self.logits.backward(site, kept, dlogits))


def next_tokens(worker: Worker, head: Head, site: Site, x: Tensor) -> Tensor:
    """The words that follow: logits of all ranks, gathered, and the choice among them."""
    normed, _ = head.norm.forward(site, x)
    logits, _ = head.logits.forward(site, normed)
    plan = worker.plan
    whole = worker.tensor("logits", (logits.shape[0], logits.shape[1], plan.padded_vocabulary))
    worker.collective(
        CollectiveType.ALL_GATHER, "tp", logits.size_bytes, "logits.all_gather", Stream.TP,
        [logits], [whole],
    )  # fmt: skip
    out = (1, plan.micro_batch)
    choose = pointwise("sample", "sample", (whole.shape,), out, plan.dtype)
    tokens = worker.tensor("tokens", out, "int64")
    worker.run_into(choose, (whole,), [tokens])
    return tokens

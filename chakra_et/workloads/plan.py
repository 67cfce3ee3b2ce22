"""How a model is run: the degrees of parallelism and the options, and what they divide."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final

import msgspec

from chakra_et.build import DTYPES, Workload
from chakra_et.errors import ChakraError
from chakra_et.workloads.model import Model, Split, Weight

ORDER: Final = "tp-cp-ep-dp-pp"
"""Megatron's order of ranks: tensor-parallel ranks are neighbours, stages are farthest apart."""


_POSITIVE: Final = (
    "tp", "pp", "dp", "cp", "ep", "micro_batch", "sequence", "chunks", "tokens",
    "vocabulary_multiple",
)  # fmt: skip


class Recompute(str, Enum):
    """What the backward pass computes again."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Schedule(str, Enum):
    """The order of a stage's forward and backward passes."""

    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    GPIPE = "gpipe"
    ZERO_BUBBLE = "zero-bubble"


class Phase(str, Enum):
    """What is run: a training step, or a part of inference."""

    TRAIN = "train"
    PREFILL = "prefill"
    DECODE = "decode"
    SERVE = "serve"


class Exchange(str, Enum):
    """How context-parallel ranks get each other's keys and values."""

    RING = "ring"
    ALL_GATHER = "all-gather"


class Gather(str, Enum):
    """What ZeRO-3 gathers at once: a module's weights (DeepSpeed) or a layer's (FSDP)."""

    MODULE = "module"
    LAYER = "layer"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Degrees of parallelism, batch and options; the command line has one option for each.

    `micro_batch` and `global_batch` count sequences, `sequence` tokens, `bucket` elements (0: all
    in one). `context` is the length of the past when decoding, `tokens` how many are decoded.
    """

    model: Model
    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    sequence_parallel: bool = False
    micro_batch: int = 1
    global_batch: int = 0
    sequence: int = 2048
    zero: int = 1
    recompute: Recompute = Recompute.NONE
    schedule: Schedule = Schedule.ONE_F_ONE_B
    chunks: int = 1
    phase: Phase = Phase.TRAIN
    context: int = 2048
    tokens: int = 1
    dtype: str = "bf16"
    gradient_bytes: int = 0
    overlap: bool = False
    bucket: int = -1
    gather: Gather = Gather.MODULE
    exchange: Exchange = Exchange.RING
    vocabulary_multiple: int = 1
    causal: bool = False
    order: str = ORDER

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise ChakraError(f"{name} is {getattr(self, name)}", remedy="Give 1 or more.")
        for name in ("global_batch", "context", "gradient_bytes"):
            if getattr(self, name) < 0:
                raise ChakraError(f"{name} is {getattr(self, name)}", remedy="Give 0 or more.")
        if self.global_batch == 0:
            # As many micro-batches as fill the pipeline.
            object.__setattr__(self, "global_batch", self.micro_batch * self.dp * self.pp)
        for problem in self._problems():
            raise ChakraError(problem, remedy="Choose degrees and shapes that divide each other.")

    def _problems(self) -> list[str]:
        """What does not fit together, most basic first."""
        model, found = self.model, []

        def divides(part: int, whole: int, what: str, of: str) -> None:
            if whole % part:
                found.append(f"{what} {part} does not divide {of} {whole}")

        divides(self.tp, model.heads, "tp", "the number of heads,")
        if model.kv % self.tp and self.tp % model.kv:
            found.append(f"tp {self.tp} and {model.kv} heads of keys and values do not divide")
        divides(self.tp, model.ffn, "tp", "ffn")
        divides(self.tp, model.expert_ffn, "tp", "expert_ffn")
        divides(self.cp, self.sequence, "cp", "the sequence of")
        if self.sequence_parallel:
            divides(self.tp * self.cp, self.sequence, "tp x cp", "the sequence of")
        divides(self.ep, self.dp, "ep", "dp")
        divides(self.ep, model.experts or self.ep, "ep", "the number of experts,")
        if self.ep > 1 and not model.experts:
            found.append(f"ep {self.ep}, but {model.name} has no experts")
        divides(self.micro_batch * self.dp, self.global_batch, "micro-batch x dp", "global batch")
        if self.pp * self.chunks > model.layers:
            found.append(f"{self.pp * self.chunks} stages for {model.layers} layers")
        if self.schedule is Schedule.INTERLEAVED:
            divides(self.pp, self.micro_batches, "pp", "the number of micro-batches,")
            if self.pp == 1 or self.chunks == 1:
                found.append("the interleaved schedule needs pp and chunks above 1")
        elif self.chunks > 1:
            found.append(f"{self.chunks} chunks, but the schedule is {self.schedule.value}")
        if model.positions and self.sequence > model.positions:
            found.append(f"a sequence of {self.sequence}, but {model.positions} positions")
        if self.dtype not in DTYPES:
            found.append(f"no type {self.dtype!r}")
        if not 0 <= self.zero <= 3:
            found.append(f"ZeRO stage {self.zero}")
        if self.phase in (Phase.DECODE, Phase.SERVE) and self.cp > 1:
            found.append("decoding has one token at a time, but cp is above 1")
        if self.phase is not Phase.TRAIN and (self.sequence_parallel or self.chunks > 1):
            found.append("sequence parallelism and chunks are for training")
        if sorted(self.order.split("-")) != sorted(ORDER.split("-")):
            found.append(f"order {self.order!r}, which is not an order of {ORDER}")
        return found

    # -----------------------------------------------------------------------------------------
    # What is divided

    @property
    def element(self) -> int:
        """Bytes of an element of activations and weights."""
        return DTYPES[self.dtype][0]

    @property
    def world_size(self) -> int:
        """Number of ranks; serving has as many again for decoding."""
        return self.tp * self.cp * self.dp * self.pp * (2 if self.phase is Phase.SERVE else 1)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a step on each rank."""
        return self.global_batch // (self.micro_batch * self.dp)

    @property
    def tokens_of_rank(self) -> int:
        """Tokens of a sequence that a context-parallel rank has."""
        return self.sequence // self.cp

    @property
    def sharded(self) -> int:
        """By how much sequence parallelism divides what lies between the split layers."""
        return self.tp if self.sequence_parallel else 1

    @property
    def padded_vocabulary(self) -> int:
        """The vocabulary, padded to a multiple for each tensor-parallel rank (Megatron: 128)."""
        multiple = self.vocabulary_multiple * self.tp
        return -(-self.model.vocabulary // multiple) * multiple

    @property
    def gradient_element(self) -> int:
        """Bytes of a gradient as it is communicated: Megatron's fp32, DeepSpeed's 16 bit."""
        return self.gradient_bytes or (4 if self.zero <= 1 else self.element)

    @property
    def bucket_elements(self) -> int:
        """Most elements of a bucket of gradients; 0 for all in one."""
        if self.bucket >= 0:
            return self.bucket
        if self.zero >= 2:
            return 1_000_000_000
        return max(40_000_000, 1_000_000 * self.dp * self.cp) if self.overlap else 0

    def local(self, weight: Weight) -> tuple[int, ...]:
        """The shape of a rank's part of a weight, of one expert."""
        shape = list(weight.shape)
        if weight.vocabulary:
            shape[0] = self.padded_vocabulary // self.tp
        elif weight.split is Split.OUTPUTS:
            shape[0] = max(shape[0] // self.tp, weight.unit)
        elif weight.split is Split.INPUTS:
            shape[1] //= self.tp
        return tuple(shape)

    def copies(self, weight: Weight) -> int:
        """How many experts' copies of a weight a rank has."""
        return weight.copies // self.ep if weight.expert else 1

    def elements(self, weight: Weight) -> int:
        """How many elements of a weight a rank has."""
        return self.copies(weight) * math.prod(self.local(weight))

    def replicas(self, weight: Weight) -> int:
        """How many ranks have the same part of a weight, and share its gradient."""
        return self.cp * (self.dp // self.ep if weight.expert else self.dp)

    # -----------------------------------------------------------------------------------------
    # Stages

    @property
    def stages(self) -> int:
        """Parts that the model is cut into: `chunks` on each pipeline rank."""
        return self.pp * self.chunks

    @cached_property
    def layers_of(self) -> list[range]:
        """The layers of each part, as even as can be; the first and the last get no more."""
        least, more = divmod(self.model.layers, self.stages)
        # The first and last stage have the embedding and the head already.
        inner = sorted(range(self.stages), key=lambda s: (s in (0, self.stages - 1), s))
        sizes = [least + (stage in inner[:more]) for stage in range(self.stages)]
        starts = [sum(sizes[:stage]) for stage in range(self.stages)]
        return [range(a, a + n) for a, n in zip(starts, sizes, strict=True)]

    def head_of_last(self) -> list[Weight]:
        """The head's weight on the last stage: a copy of the embedding where that is elsewhere."""
        if self.model.tied and self.stages > 1:
            return [Weight("head", (self.model.vocabulary, self.model.hidden), Split.OUTPUTS,
                           vocabulary=True)]  # fmt: skip
        return self.model.head_weights()

    # -----------------------------------------------------------------------------------------
    # Ranks

    @property
    def axes(self) -> dict[str, int]:
        """The axes of the grid in the order of ranks; with experts, dp becomes ep and edp."""
        sizes = {"tp": self.tp, "cp": self.cp, "dp": self.dp, "pp": self.pp}
        if self.ep > 1:
            sizes |= {"ep": self.ep, "dp": self.dp // self.ep}
        named = {"edp" if a == "dp" and self.ep > 1 else a: sizes[a]
                 for a in self.order.split("-") if a in sizes}  # fmt: skip
        return named | ({"role": 2} if self.phase is Phase.SERVE else {})

    def workload(self, *, tensors: bool = False) -> Workload:
        """The ranks and their groups."""
        workload = Workload(self.axes, facts=self.facts, tensors=tensors)
        data = ("ep", "edp") if self.ep > 1 else ("dp",)
        if self.ep > 1:
            workload.groups("dp", axes=data)
        if self.cp > 1:
            workload.groups("dp_cp", axes=("cp", *data))
            if self.ep > 1:
                workload.groups("edp_cp", axes=("cp", "edp"))
        if self.tp > 1 and self.pp > 1:
            workload.groups("mp", axes=("tp", "pp"))
        if self.model.tied and self.pp > 1:
            ends = workload.grid.groups(["pp"])[:, [0, -1]]
            workload.groups("embedding", ranks=ends.tolist())
        return workload

    @property
    def facts(self) -> dict[str, str]:
        """The plan as a text for the metadata."""
        return {"workload": _json({"kind": "llm", **_told(self)})}

    def gradient_family(self, *, expert: bool) -> str:
        """The groups over which gradients are summed."""
        name = "edp" if expert and self.ep > 1 else "dp"
        return f"{name}_cp" if self.cp > 1 else name

    @property
    def model_family(self) -> str | None:
        """The groups of ranks that have the model's parts, None where one rank has all."""
        if self.tp > 1 and self.pp > 1:
            return "mp"
        return "tp" if self.tp > 1 else "pp" if self.pp > 1 else None


def _told(plan: Plan) -> dict[str, Any]:
    told = asdict(plan)
    told["model"] = {field: getattr(plan.model, field) for field in plan.model.__struct_fields__}
    return told


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

"""Transformer models as shapes: a file of numbers, and the weights that follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from chakra_et.errors import ChakraError

_MODELS: Final = files("chakra_et.workloads") / "models"


class Split(Enum):
    """How tensor parallelism divides a weight; stated here and nowhere else.

    A weight has the shape (outputs, inputs), as PyTorch's linear layers have it.
    """

    WHOLE = "on every rank"
    OUTPUTS = "by outputs: Megatron's column-parallel layer"
    INPUTS = "by inputs: Megatron's row-parallel layer"


@dataclass(frozen=True)
class Weight:
    """One weight of the whole model; `copies` counts the experts that have their own.

    A split leaves at least `unit` outputs on a rank: heads of keys and values are not cut.
    """

    name: str
    shape: tuple[int, ...]
    split: Split = Split.WHOLE
    copies: int = 1
    vocabulary: bool = False
    unit: int = 1

    @property
    def size(self) -> int:
        """Elements, in all copies."""
        return self.copies * math.prod(self.shape)

    @property
    def expert(self) -> bool:
        """Whether it belongs to an expert, and so is divided by expert parallelism."""
        return self.copies > 1


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The shapes of a decoder-only transformer.

    `kv_heads` below `heads` is grouped-query attention. `gated` is an MLP of three matrices, else
    two. `norm_bias` makes norms layer norms; `positions` is the length of a table of learned
    positions, 0 for rotary ones. `dropout` has masks that take memory. `tied` uses the embedding as
    the head. `experts` replaces the MLP, but in the first `dense_layers`. `q_rank` and `kv_rank`
    make latent attention (DeepSeek-V2), with heads of `head_size`, and `rope_size` more for
    positions.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    ffn: int
    vocabulary: int
    kv_heads: int = 0
    head_size: int = 0
    gated: bool = True
    bias: bool = False
    norm_bias: bool = False
    tied: bool = False
    positions: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_ffn: int = 0
    shared_experts: int = 0
    dense_layers: int = 0
    router_bias: bool = False
    dropout: bool = False
    q_rank: int = 0
    kv_rank: int = 0
    rope_size: int = 0

    @property
    def kv(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads

    @property
    def head(self) -> int:
        """Width of a head's values; of queries and keys too, without latent attention."""
        return self.head_size or self.hidden // self.heads

    @property
    def latent(self) -> bool:
        """Whether keys and values are kept compressed."""
        return self.kv_rank > 0

    def is_expert_layer(self, layer: int) -> bool:
        """Whether a layer has experts."""
        return self.experts > 0 and layer >= self.dense_layers

    # -----------------------------------------------------------------------------------------
    # Weights

    def norm(self, name: str, width: int | None = None) -> list[Weight]:
        """A norm's weights."""
        shape = (width or self.hidden,)
        return [Weight(name, shape)] + [Weight(f"{name}.bias", shape)] * self.norm_bias

    def linear(
        self, name: str, outputs: int, inputs: int, split: Split, unit: int = 1
    ) -> list[Weight]:
        """A linear layer's weights. The bias of a layer split by inputs is whole."""
        of_bias = split if split is Split.OUTPUTS else Split.WHOLE
        bias = Weight(f"{name}.bias", (outputs,), of_bias, unit=unit)
        return [Weight(name, (outputs, inputs), split, unit=unit)] + [bias] * self.bias

    def attention(self) -> dict[str, list[Weight]]:
        """The weights of attention by the operator that uses them."""
        h, a, d = self.hidden, self.heads, self.head
        if not self.latent:
            return {
                "qkv": [
                    *self.linear("q", a * d, h, Split.OUTPUTS),
                    *self.linear("k", self.kv * d, h, Split.OUTPUTS, unit=d),
                    *self.linear("v", self.kv * d, h, Split.OUTPUTS, unit=d),
                ],
                "projection": self.linear("o", h, a * d, Split.INPUTS),
            }
        q, kv, r = self.q_rank, self.kv_rank, self.rope_size
        return {
            "down": [
                *self.linear("q_down", q, h, Split.WHOLE),
                *self.linear("kv_down", kv + r, h, Split.WHOLE),
            ],
            "down_norm": [*self.norm("q_norm", q), *self.norm("kv_norm", kv)],
            "q_up": self.linear("q_up", a * (d + r), q, Split.OUTPUTS),
            "kv_up": self.linear("kv_up", a * 2 * d, kv, Split.OUTPUTS),
            "projection": self.linear("o", h, a * d, Split.INPUTS),
        }

    def mlp(self, ffn: int, prefix: str = "") -> dict[str, list[Weight]]:
        """The weights of an MLP by operator."""
        up = ["gate", "up"] if self.gated else ["up"]
        return {
            f"{prefix}up": [
                weight
                for name in up
                for weight in self.linear(prefix + name, ffn, self.hidden, Split.OUTPUTS)
            ],
            f"{prefix}down": self.linear(f"{prefix}down", self.hidden, ffn, Split.INPUTS),
        }

    def feed_forward(self, layer: int) -> dict[str, list[Weight]]:
        """The weights behind attention: of an MLP, or of router, experts and shared experts."""
        if not self.is_expert_layer(layer):
            return self.mlp(self.ffn)
        router = [Weight("router", (self.experts, self.hidden))]
        router += [Weight("router.bias", (self.experts,))] * self.router_bias
        experts = {
            operator: [Weight(w.name, w.shape, w.split, copies=self.experts) for w in weights]
            for operator, weights in self.mlp(self.expert_ffn, "expert.").items()
        }
        shared = self.mlp(self.expert_ffn * self.shared_experts, "shared.")
        return {"router": router, **experts, **(shared if self.shared_experts else {})}

    def layer(self, layer: int) -> dict[str, list[Weight]]:
        """All weights of a layer by operator, in the order of the modules."""
        return {
            "attention.norm": self.norm("attention_norm"),
            **{f"attention.{name}": weights for name, weights in self.attention().items()},
            "mlp.norm": self.norm("mlp_norm"),
            **{f"mlp.{name}": weights for name, weights in self.feed_forward(layer).items()},
        }

    def embedding(self) -> list[Weight]:
        """Words and, if they are learned, positions."""
        table = (self.vocabulary, self.hidden)
        words = Weight("embedding", table, Split.OUTPUTS, vocabulary=True)
        return [words] + [Weight("positions", (self.positions, self.hidden))] * bool(self.positions)

    def head_weights(self) -> list[Weight]:
        """The head's own weight; none if it is tied."""
        table = (self.vocabulary, self.hidden)
        return [Weight("head", table, Split.OUTPUTS, vocabulary=True)] * (not self.tied)

    def weights(self) -> Iterator[Weight]:
        """All weights of the model in the order of its modules."""
        yield from self.embedding()
        for layer in range(self.layers):
            for weights in self.layer(layer).values():
                yield from weights
        yield from self.norm("norm")
        yield from self.head_weights()

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(weight.size for weight in self.weights())


def model_names() -> list[str]:
    """The models that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _MODELS.iterdir())


def load_model(name: str | Path) -> Model:
    """A model by its name, or from a TOML file. Raises ChakraError for one that is none."""
    path = Path(name)
    if str(name) in model_names():
        path = Path(str(_MODELS / f"{name}.toml"))
    elif not path.is_file():
        raise ChakraError(
            f"no model {str(name)!r}",
            remedy=f"It is one of {', '.join(model_names())}, or a TOML file like theirs.",
        )
    try:
        model = msgspec.toml.decode(path.read_bytes(), type=Model)
    except msgspec.DecodeError as error:
        raise ChakraError(
            f"not a model: {error}", path=path, remedy="docs/generate.md lists what a model has."
        ) from error
    return _checked(model, path)


def _checked(model: Model, path: Path) -> Model:
    for wrong, remedy in (
        (_out_of_range(model), "Give a whole number that is large enough."),
        (unfit(model), "docs/generate.md lists what a model has."),
    ):
        if wrong:
            raise ChakraError(wrong, path=path, remedy=remedy)
    return model


def _out_of_range(model: Model) -> str:
    """Which number of a model is too small to be one; empty if none is."""
    for name in ("layers", "hidden", "heads", "ffn", "vocabulary"):
        if getattr(model, name) < 1:
            return f"{name} is below 1"
    negative = [name for name in model.__struct_fields__ if _is_negative(getattr(model, name))]
    return f"{negative[0]} is negative" if negative else ""


def unfit(model: Model) -> str:
    """Which numbers of a model do not go together; empty if all do."""
    if not model.head_size and model.hidden % model.heads:
        return f"hidden {model.hidden} is not a multiple of {model.heads} heads"
    if model.heads % model.kv:
        return f"{model.heads} heads are not a multiple of {model.kv} kv_heads"
    if model.experts and not 1 <= model.experts_per_token <= model.experts:
        return f"{model.experts_per_token} experts_per_token of {model.experts} experts"
    if model.experts and model.expert_ffn < 1:
        return "experts without expert_ffn"
    if model.latent and not (model.q_rank and model.head_size and model.rope_size):
        return "kv_rank without q_rank, head_size and rope_size"
    return ""


def _is_negative(value: object) -> bool:
    return isinstance(value, int) and value < 0

"""Programs of one process: models, a compiled one, a data loader, threads."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call,misc"

from __future__ import annotations

import threading
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from recording.window import Step

THREADS = 2
"""Threads of its own that `threads` starts in a step."""
THREAD_PRODUCTS = 3
"""Products of matrices that each of them computes."""
LOADER_WORKERS = 2
BATCHES = 4


def mlp(*widths: int, bias: bool = True) -> nn.Sequential:
    """Linear layers of these widths with a ReLU after each but the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs, bias=bias), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def training_step(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> Step:
    """Forward, backward, and a step of SGD."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def mlp_step() -> Step:
    """A three-layer perceptron."""
    torch.manual_seed(0)
    return training_step(mlp(32, 64, 64, 10), torch.randn(16, 32), torch.randint(10, (16,)))


def compiled_step() -> Step:
    """The same, through the compiler's front end; its back end needs no C++ compiler."""
    torch.manual_seed(0)
    model = torch.compile(mlp(32, 64, 64, 10), backend="aot_eager")
    return training_step(model, torch.randn(16, 32), torch.randint(10, (16,)))


def transformer_step(vocabulary: int = 128, width: int = 64, length: int = 16) -> Step:
    """A two-block language model with causal attention, and a step of AdamW."""
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    model = nn.ModuleDict(
        {
            "embedding": nn.Embedding(vocabulary, width),
            "blocks": nn.TransformerEncoder(block, 2),
            "head": nn.Linear(width, vocabulary),
        }
    )
    tokens = torch.randint(vocabulary, (4, length + 1))
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        hidden = model["blocks"](model["embedding"](tokens[:, :-1]), mask=mask, is_causal=True)
        logits = model["head"](hidden)
        functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()

    return step


class _Numbers(Dataset[torch.Tensor]):
    """Tensors that the workers of a loader compute."""

    def __len__(self) -> int:
        return 8 * BATCHES

    def __getitem__(self, place: int) -> torch.Tensor:
        return torch.full((16,), float(place)).mul(2)


def loader_step() -> Step:
    """Batches from a data loader whose workers are forked while the observer records."""
    torch.manual_seed(0)
    model = mlp(16, 8)

    def step() -> None:
        for batch in DataLoader(_Numbers(), batch_size=8, num_workers=LOADER_WORKERS):
            model(batch)

    return step


def threads_step() -> Step:
    """Products of matrices on threads of the program's own, one after the other on each."""
    matrix = torch.eye(64)

    def work() -> None:
        for _ in range(THREAD_PRODUCTS):
            torch.mm(matrix, matrix)

    def step() -> None:
        started = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in started:
            thread.start()
        torch.add(matrix, 1)
        for thread in started:
            thread.join()

    return step

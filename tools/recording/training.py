"""Distributed training: data-parallel, sharded, and in pipeline stages."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call,misc"

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from recording.single import mlp, training_step
from recording.truth import Communication, message
from recording.window import Step

STAGE = (8, 32)
"""Shape of what pipeline stages hand over: rows, and columns."""
MICROBATCHES = 3


def ddp_model() -> nn.Sequential:
    """The model of `ddp_step`; its smallest layer fills a bucket."""
    return mlp(32, 64, 64, 16, bias=False)


def ddp_step() -> Step:
    """A perceptron under DistributedDataParallel, one bucket for each layer."""
    everyone = tuple(range(dist.get_world_size()))
    model = ddp_model()
    sizes = [p.numel() * p.element_size() for p in model.parameters()]
    parallel = DistributedDataParallel(model, bucket_cap_mb=min(sizes) / 2**20)
    train = training_step(parallel, torch.randn(16, 32), torch.randint(16, (16,)))

    def step() -> list[Communication]:
        train()
        # The gradient of the last layer is there first.
        return [Communication("ALL_REDUCE", size, everyone) for size in reversed(sizes)]

    return step


def sharded_step() -> Step:
    """A layer whose parameters are sharded: gathered for use, gradients reduced and scattered."""
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    ranks = dist.get_world_size()
    everyone = tuple(range(ranks))
    model = nn.Linear(32, 16 * ranks, bias=False)
    whole = sum(p.numel() * p.element_size() for p in model.parameters())
    fully_shard(model)
    train = training_step(model, torch.randn(16, 32), torch.randint(16, (16,)))

    def step() -> list[Communication]:
        train()
        return [
            Communication("ALL_GATHER", whole // ranks, everyone),
            Communication("REDUCE_SCATTER", whole, everyone),
        ]

    return step


def tensor_parallel_step() -> Step:
    """Two layers whose weights are split by columns, then by rows: partial results are summed."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    torch.manual_seed(0)
    everyone = tuple(range(dist.get_world_size()))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    mesh = init_device_mesh("cpu", (len(everyone),))
    model = parallelize_module(mlp(32, 64, 16, bias=False), mesh, plan)
    inputs = torch.randn(8, 32)
    train = training_step(model, inputs, torch.randint(16, (8,)))

    def step() -> list[Communication]:
        train()
        return [Communication("ALL_REDUCE", 4 * 8 * 16, everyone)]

    return step


def async_step() -> Step:
    """All-reduces that are all asked for before any is waited for."""
    everyone = tuple(range(dist.get_world_size()))

    def step() -> list[Communication]:
        tensors = [torch.ones(100 + place) for place in range(8)]
        for work in [dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
            work.wait()
        return [Communication("ALL_REDUCE", t.numel() * 4, everyone) for t in tensors]

    return step


def pipeline_step() -> Step:
    """Stages of a model, one on each rank: micro-batches forward, gradients backward."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    stage = mlp(STAGE[1], STAGE[1])
    size = 4 * STAGE[0] * STAGE[1]

    def receive(source: int, tag: int) -> tuple[torch.Tensor, Communication]:
        tensor = torch.empty(STAGE)
        dist.recv(tensor, source, tag=tag)
        return tensor, message("RECV", size, source, tag)

    def send(tensor: torch.Tensor, target: int, tag: int) -> Communication:
        dist.send(tensor.contiguous(), target, tag=tag)
        return message("SEND", size, target, tag)

    def step() -> list[Communication]:
        told, done = [], []
        for tag in range(MICROBATCHES):
            inputs = torch.ones(STAGE)
            if rank > 0:
                inputs, communication = receive(rank - 1, tag)
                told.append(communication)
            outputs = stage(inputs.requires_grad_())
            done.append((inputs, outputs))
            if rank < last:
                told.append(send(outputs.detach(), rank + 1, tag))
        for tag, (inputs, outputs) in enumerate(done, MICROBATCHES):
            gradient = torch.ones(STAGE)
            if rank < last:
                gradient, communication = receive(rank + 1, tag)
                told.append(communication)
            outputs.backward(gradient)
            if rank > 0 and inputs.grad is not None:
                told.append(send(inputs.grad, rank - 1, tag))
        return told

    return step


def functional_step() -> Step:
    """Functional collectives, which name their group, on halves of the ranks."""
    import torch.distributed._functional_collectives as functional

    ranks = dist.get_world_size()
    halves = [tuple(range(ranks // 2)), tuple(range(ranks // 2, ranks))]
    groups = [dist.new_group(list(half)) for half in halves]
    place = 0 if dist.get_rank() in halves[0] else 1
    mine, group = halves[place], groups[place]

    def step() -> list[Communication]:
        tensor = torch.ones(64)
        functional.wait_tensor(functional.all_reduce(tensor, "sum", group))
        functional.wait_tensor(functional.all_gather_tensor(tensor, 0, group))
        return [Communication("ALL_REDUCE", 256, mine), Communication("ALL_GATHER", 256, mine)]

    return step

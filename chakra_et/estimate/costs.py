"""What each task takes: on the device or the network, and on the host that launches it.

A time has parts: what a trace has recorded, what follows from peak rates and a network, and what
constants add that were fitted to measured steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.estimate.constants import Constants
from chakra_et.estimate.table import Task
from chakra_et.estimate.traffic import Traffic
from chakra_et.workloads.durations import Device

Times = npt.NDArray[np.float64]


class Source(IntEnum):
    """Where a time comes from."""

    RECORDED = 0
    ROOFLINE = 1
    NETWORK = 2
    FITTED = 3


WORDS: Final = ("recorded", "roofline", "network", "fitted")
_MESSAGES: Final = (NodeType.COMM_SEND, NodeType.COMM_RECV)
_SCORE_BYTES: Final = 2
"""Of an element of the matrix of scores, in 16 bit."""


@dataclass
class Costs:
    """Times in ns of the tasks of one program.

    `device[t, s]` is what task t takes on the device or the network, by source s; `host[t]` what
    the host takes to launch it.
    """

    device: Times
    host: Times


def costs_of(
    tasks: Sequence[Task], device: Device, traffic: Traffic, constants: Constants
) -> Costs:
    """The times of tasks. Raises ChakraError where the device has no rate for a type."""
    costs = Costs(np.zeros((len(tasks), len(Source))), np.zeros(len(tasks)))
    for number, task in enumerate(tasks):
        if task.type == NodeType.COMM_COLL or task.type in _MESSAGES:
            _transfer(costs, number, task, traffic, constants)
        elif task.cpu or not (task.flops or task.moved_bytes):
            costs.device[number, Source.RECORDED] = task.duration_ns
        else:
            _compute(costs, number, task, device, constants)
    return costs


def _transfer(
    costs: Costs, number: int, task: Task, traffic: Traffic, constants: Constants
) -> None:
    if len(task.group) < 2:
        # Nobody knows who takes part.
        costs.device[number, Source.RECORDED] = task.duration_ns
        return
    costs.device[number, Source.NETWORK] = traffic.transfer_ns(task)
    is_message = task.type in _MESSAGES
    costs.host[number] = (
        constants.message_ns if is_message else constants.jitter_ns * traffic.neighbours(task)
    )


def _compute(costs: Costs, number: int, task: Task, device: Device, constants: Constants) -> None:
    """An operator: its products at the device's rate, all else at that of its memory.

    Without attention, an operator with products takes the longer of both: its bytes pass while it
    computes.
    """
    per_byte = 1e9 / device.bytes_per_second
    memory = task.moved_bytes * per_byte / constants.memory_efficiency
    products = _products_ns(task, device) if task.flops else 0.0
    expected = products / constants.matrix_efficiency
    fitted = constants.kernel_ns
    kernels = 1
    if task.pairs:
        kernels = constants.attention_kernels
        fitted = kernels * constants.kernel_ns
        fitted += constants.score_passes * task.pairs * _SCORE_BYTES * per_byte
    elif is_head(task):
        fitted += products / constants.head_efficiency - expected
    costs.device[number, Source.ROOFLINE] = max(expected, memory)
    costs.device[number, Source.FITTED] = fitted
    costs.host[number] = kernels * constants.launch_ns


def _products_ns(task: Task, device: Device) -> float:
    """Products at the peak of their type; 16 bit where the trace does not say."""
    rates = device.flops_per_second
    dtype = task.dtype if task.dtype not in ("", "int64", "int32") else "bf16"
    if dtype == "bf16" and "bf16" not in rates:
        dtype = "fp16"
    if dtype not in rates:
        raise ChakraError(
            f"{device.name} has no rate for {dtype}", remedy=f"It has one for {', '.join(rates)}."
        )
    return task.flops / rates[dtype] * 1e9


def is_head(task: Task) -> bool:
    """Whether a product is with the vocabulary."""
    return task.op_type == "matmul" and task.name.split(".")[0] == "head"

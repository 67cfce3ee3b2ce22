"""Workloads of models: their shapes, how parallelism divides them, and traces of all ranks.

>>> from chakra_et.workloads import Plan, generate, load_model
>>> traces = generate(Plan(model=load_model("llama2-7b"), tp=2, pp=2))
>>> len(traces)
4
"""

from chakra_et.workloads.durations import Device, Durations, Roofline, Table, device, devices
from chakra_et.workloads.generate import count, generate, program
from chakra_et.workloads.memory import Memory, memory, peak_of_tensors
from chakra_et.workloads.model import Model, load_model, model_names
from chakra_et.workloads.operators import Operator
from chakra_et.workloads.plan import Exchange, Gather, Phase, Plan, Recompute, Schedule

__all__ = [
    "Device",
    "Durations",
    "Exchange",
    "Gather",
    "Memory",
    "Model",
    "Operator",
    "Phase",
    "Plan",
    "Recompute",
    "Roofline",
    "Schedule",
    "Table",
    "count",
    "device",
    "devices",
    "generate",
    "load_model",
    "memory",
    "model_names",
    "peak_of_tensors",
    "program",
]

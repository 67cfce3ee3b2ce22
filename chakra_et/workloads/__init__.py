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
from chakra_et.workloads.text_layout import lay_out
from chakra_et.workloads.text_program import text_program
from chakra_et.workloads.texts import Dialect, read_text

__all__ = [
    "Device",
    "Dialect",
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
    "lay_out",
    "load_model",
    "memory",
    "model_names",
    "peak_of_tensors",
    "program",
    "read_text",
    "text_program",
]

"""Estimates: how long a step of a set would take on a machine, and how much of that is fitted.

>>> from chakra_et.estimate import Machine, estimate_plan, load_constants
>>> from chakra_et.network import load_topology
>>> from chakra_et.workloads import Plan, device, load_model
>>> machine = Machine(device("a100"), load_topology("dgx-a100"), load_constants())
>>> done = estimate_plan(Plan(model=load_model("llama2-7b"), tp=2), machine)
>>> round(sum(done.path_ns.values()) / done.step_ns, 3)
1.0
"""

from chakra_et.estimate.constants import FITTED, ROOFLINE, Constants, load_constants
from chakra_et.estimate.copies import (
    Copies,
    copies_of_set,
    copies_of_traces,
    copies_of_workload,
)
from chakra_et.estimate.estimate import Case, Estimate, Machine, case_of_plan, estimate_plan
from chakra_et.estimate.fitting import Measured, fit

__all__ = [
    "FITTED",
    "ROOFLINE",
    "Case",
    "Constants",
    "Copies",
    "Estimate",
    "Machine",
    "Measured",
    "case_of_plan",
    "copies_of_set",
    "copies_of_traces",
    "copies_of_workload",
    "estimate_plan",
    "fit",
    "load_constants",
]

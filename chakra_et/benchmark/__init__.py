"""A recording becomes a program that runs the same work, without the model, its code or its data.

From the trace to the program, one room after the other:

- `schema`, `arguments`: what a node tells of the operator that it called, and with what
- `calls`: whether that can be called again
- `host_tree`, `window`, `hidden`, `composite`, `selection`: which operators run
- `views`, `lifetimes`: their tensors over time
- `plan`: all of that
- `demands`, `unwritten`: what values tensors must hold
- `writer`, `equivalents`, `kernels`, `streams`, `program`: the program, as text
- `runtime`: what each program holds of it; needs PyTorch alone
- `threads`: how many an operator had in the recording
- `account`: what runs and what does not, in figures
- `choices`: what a run can be asked for

So far nothing needs PyTorch. What follows does:

- `torch_release`, `execution`, `running`: rehearsal and iterations
- `certificate`: the run beside the recording
- `comms`: the communication of all ranks
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.benchmark.plan import Choice, Plan, plan_of

__all__ = ["Choice", "Plan", "plan_of"]

_HOMES: Final = {"Choice": "plan", "Plan": "plan", "plan_of": "plan"}

__getattr__ = lazily(__name__, _HOMES)

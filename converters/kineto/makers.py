"""Chrome traces of other programs: who is likely to have written one, and what to do instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import numpy as np

from chakra_et.converters.kineto.categories import ANNOTATION, LEFT_OUT, ROLE_ENDINGS, ROLES
from chakra_et.errors import FormatError
from chakra_et.recording import DeviceTrace, Role

RECORD: Final = (
    "Record the run with torch.profiler.profile and export_chrome_trace (docs/recording.md)."
)
_NONE: Final = "No converter for it is known."
_SHOWN: Final = 4
_TEXT_OF_OTHERS: Final = "systemTraceEvents"
"""The key of records that are text, of the operating system's tracer."""
_MAKERS: Final = (
    (
        r"(CPU|CUDA) functions|cpu_to_cuda",
        "torch.autograd.profiler without Kineto (PyTorch before 1.8.1, or use_kineto=False)",
        RECORD,
    ),
    (
        r"(\S.*)?/(device|host):.*|XLA (Modules|Ops)|PjitFunction\(.*|highres-ticks",
        "XLA or TensorFlow (the profilers of JAX and TensorFlow)",
        f"{_NONE} For a PyTorch run: {RECORD}",
    ),
    (
        r"(GROUP|COLL|P2P|KERNEL_LAUNCH)(_API)?|PROXY|KERNEL_CH|NCCL(_\w+)?",
        "a profiler plug-in of NCCL",
        f"It holds collectives without the work around them. {RECORD}",
    ),
    (r"NPKIT\w*", "NPKit", f"It holds collectives without the work around them. {RECORD}"),
    (r"NEGOTIATE_\w+|QUEUE|MEMCPY_IN_FUSION_BUFFER|HOROVOD\w*", "Horovod's timeline", RECORD),
    (r"viztracer_metadata|FEE", "VizTracer", f"It holds only Python functions. {RECORD}"),
    (
        r"(disabled-by-default-)?(devtools|blink|v8|toplevel)\b.*|__metadata",
        "Chromium, Node.js or another program built on V8",
        RECORD,
    ),
    (
        r"Session|\w+_kernel_time|model_run|session_initialization",
        "ONNX Runtime",
        f"{_NONE} For a PyTorch run: {RECORD}",
    ),
    (r"ExecuteCompiler|Total (Frontend|Backend|Source)", "Clang (-ftime-trace)", RECORD),
    (r"(CPU|GPU|Thread) HIP\b.*|COPY|HIP_API|HSA_API|KERNEL_DISPATCH", "rocprof", RECORD),
    (r"CUDA_?(HW|API).*|nvtx|NVTX.*|nsys\b.*", "a converter of Nsight Systems reports", RECORD),
    (
        r"systemTraceEvents|sched(_\w+)?|swapper(/\d+)?",
        "ftrace or perf (Catapult, systrace)",
        RECORD,
    ),
    (r"MPI_\w+", "a tracer of MPI", f"{_NONE} It holds calls of MPI without the work around them."),
)
"""What marks a maker: a pattern for one category, process, key of the metadata or name."""


def expect_records(device: DeviceTrace, marks: Iterable[str]) -> None:
    """Refuse a file of which no record becomes a node, and warn of one that has none at all.

    `marks` are names, processes and threads of its first records. Raises FormatError, which names
    the likely maker.
    """
    count = sum(device.counts.values()) + device.repairs.left_out
    if np.any(device.role != Role.SYNC):
        return
    if not count and _TEXT_OF_OTHERS not in device.metadata:
        device.warnings.append("the profile holds no records: nothing ran while it was recorded")
        return
    categories = {category for category, _ in device.counts}
    if categories & (ROLES.keys() | LEFT_OUT.keys()):
        raise FormatError(
            f"nothing is left of {count} records: none is an operation, a call or device work "
            "with a time",
            path=device.path,
            remedy="Let the profiler run around the work, with activities=[ProfilerActivity.CPU, "
            "ProfilerActivity.CUDA]; the host trace alone (--host) converts without it.",
        )
    maker, remedy = _likely_maker(device, [*categories, *marks])
    raise FormatError(
        f"a Chrome trace, but not of PyTorch's profiler: none of its {count} records has a "
        f"category that is known here{_named(categories)}; {maker}",
        path=device.path,
        remedy=remedy,
    )


def _likely_maker(device: DeviceTrace, marks: list[str]) -> tuple[str, str]:
    marks += [*device.process_names.values(), *device.metadata]
    metadata = device.metadata.get("metadata")
    marks += list(metadata) if isinstance(metadata, dict) else []
    maker = maker_by(marks)
    if maker is None:
        return "its writer is unknown", RECORD
    return f"it seems to be of {maker[0]}", maker[1]


def maker_by(marks: Iterable[str]) -> tuple[str, str] | None:
    """Who writes such categories, processes, keys or names, and what to do; None if unknown."""
    marks = list(marks)
    for pattern, maker, remedy in _MAKERS:
        wanted = re.compile(pattern)
        if any(wanted.fullmatch(mark) for mark in marks):
            return maker, remedy
    return None


def is_known(category: str) -> bool:
    """Whether a category is one of PyTorch's profiler, or named like one."""
    known = category in ROLES or category in LEFT_OUT or ANNOTATION in category
    return known or category.endswith(tuple(ROLE_ENDINGS))


def _named(categories: set[str]) -> str:
    names = sorted(category for category in categories if category)
    if not names:
        return " (they have no category)"
    shown = ", ".join(names[:_SHOWN]) + ", …" * (len(names) > _SHOWN)
    return f" (they have {shown})"

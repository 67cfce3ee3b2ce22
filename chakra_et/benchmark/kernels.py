"""Kernels that PyTorch's compiler generated in Triton, from the sources that a recording keeps.

They lie in a directory beside the host trace if it was recorded with
ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS=1; a node names its file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from chakra_et.benchmark import reasons
from chakra_et.benchmark.plan import Kind, Operation, Plan
from chakra_et.benchmark.views import Ref

_GRID: Final = re.compile(r"grid\([\d, ]*\)")
"""How releases up to 2.6 record the grid of a launch."""


@dataclass
class KernelWriter:
    """Writes launches of generated kernels; their sources become part of the program."""

    folder: Path | None = None
    on_host: bool = True
    kinds: frozenset[Kind] = frozenset({Kind.KERNEL})
    _sources: dict[str, str] = field(default_factory=dict)
    _grids: bool = False

    def refuses(self, plan: Plan, operation: Operation) -> str:
        """Kernels run on a device, and need their source."""
        if self.on_host:
            return reasons.KERNEL
        if not operation.name.isidentifier():
            return reasons.NO_NAME
        source = self._source(plan, operation)
        if source is None or not source.is_file():
            return reasons.no_source("" if source is None else source.name)
        return ""

    def statements(self, plan: Plan, number: int) -> list[str]:
        """One launch. The last recorded value is a stream, the one before it perhaps a grid."""
        operation = plan.operations[number]
        source = self._source(plan, operation)
        assert source is not None
        self._sources[operation.name] = source.read_text(encoding="utf-8")
        values = list(operation.inputs[:-1])
        words = []
        if values and isinstance(values[-1], str) and _GRID.fullmatch(values[-1]):
            self._grids = True
            words.append(f"grid={values.pop()}")
        words.append("stream=torch.cuda.current_stream().cuda_stream")
        return [f"{operation.name}.run({', '.join([*map(_literal, values), *words])})"]

    def prelude(self) -> list[str]:
        """The sources, compiled when the program starts."""
        if not self._sources:
            return []
        lines = ["from torch._inductor.async_compile import AsyncCompile", ""]
        if self._grids:
            lines.insert(1, "from torch._inductor.runtime.triton_heuristics import grid")
        lines.append("compiling = AsyncCompile()")
        for name, source in self._sources.items():
            lines.append(f"{name} = compiling.triton({name!r}, {source!r})")
        return [*lines, "compiling.wait(globals())"]

    def _source(self, plan: Plan, operation: Operation) -> Path | None:
        name = plan.trace.nodes.attributes.get(operation.row, "kernel_file")
        if self.folder is None or not isinstance(name, str) or not name:
            return None
        return self.folder / Path(name).name


def _literal(value: Any) -> str:
    return f"t[{value.view}]" if isinstance(value, Ref) else repr(value)

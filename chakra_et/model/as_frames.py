"""The frames of traces: what `Trace` and `TraceSet` offer to pandas, Polars and Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chakra_et.model.trace import Trace
    from chakra_et.tables.table import Table


class AsFrames(ABC):
    """One trace or several, as frames. They need the extra `tables`."""

    @abstractmethod
    def _by_rank(self) -> Mapping[int, Trace]:
        """The traces whose rows the frames have, by rank."""

    def to_arrow(self, what: str = "nodes") -> Any:
        """The nodes (or edges, attributes, groups, ranks) as a `pyarrow.Table`."""
        return self._frame(what).to_arrow()

    def to_pandas(self, what: str = "nodes") -> Any:
        """The nodes (or edges, attributes, groups, ranks) as a `pandas.DataFrame`."""
        return self._frame(what).to_pandas()

    def to_polars(self, what: str = "nodes") -> Any:
        """The nodes (or edges, attributes, groups, ranks) as a `polars.DataFrame`."""
        return self._frame(what).to_polars()

    def _frame(self, what: str) -> Table:
        from chakra_et.tables.frames import frame

        return frame(self._by_rank(), what)

    def _repr_html_(self) -> str:
        from chakra_et.tables.html import traces_html

        return traces_html(repr(self), self._by_rank())

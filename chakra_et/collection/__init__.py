"""Recording: both files of one window of a training run, from a script or from around it.

What runs beside the training (all but `launch` and `converting`) needs PyTorch and the standard
library only: `chakra collect` may be installed elsewhere than what it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.collection.collecting import Collection, collect

__all__ = ["Collection", "collect"]

_HOMES: Final = {"Collection": "collecting", "collect": "collecting"}

__getattr__ = lazily(__name__, _HOMES)

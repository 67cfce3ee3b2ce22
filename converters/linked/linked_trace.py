"""A linked trace, taken apart again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace
from chakra_et.converters.pytorch import HostTrace

Rows = npt.NDArray[np.int64]

NONE = -1


@dataclass
class LinkedTrace:
    """The host nodes, the times and device nodes that were linked into them, and how they tie.

    `device` has a record for each host node with a time, and one for each device node.
    `record[h]` is the row in `device` of the time of host node h, `launcher[d]` the host node that
    launched device node d; `NONE` where there is none. After device node `synced[0, k]` had ended,
    host node `synced[1, k]` began. `warnings` says what of the file is not carried.
    """

    host: HostTrace
    device: DeviceTrace
    record: Rows
    launcher: Rows
    synced: Rows
    warnings: list[str] = field(default_factory=list)

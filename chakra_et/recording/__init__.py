"""A recording as the linker reads it, whoever wrote it: tables that converters fill.

`Recording` holds one rank's two views, `HostTrace` (operations, callers, tensors) and `DeviceTrace`
(operations, calls, device work), and what the files say themselves of the ties between them. What
only some rows tell stands in tables beside the columns: `Waits`, `Flows`, `Facts` of collectives
and messages, `Request`s, `Operands`, `GroupEntry`s. Converters know their dialect; nothing here
does.
"""

from chakra_et.recording.device_trace import NO_ID, DeviceTrace
from chakra_et.recording.facts import Facts, Request
from chakra_et.recording.flows import Ends, Flows
from chakra_et.recording.groups import GroupEntry
from chakra_et.recording.host_trace import HostAttribute, HostTrace
from chakra_et.recording.id_set import IdSet
from chakra_et.recording.operands import Operand, Operands
from chakra_et.recording.operators import Operators
from chakra_et.recording.recording import Recording, Stated
from chakra_et.recording.roles import Kind, Role
from chakra_et.recording.sparse import Sparse
from chakra_et.recording.tensors import Tensors
from chakra_et.recording.waits import Waits

__all__ = [
    "NO_ID",
    "DeviceTrace",
    "Ends",
    "Facts",
    "Flows",
    "GroupEntry",
    "HostAttribute",
    "HostTrace",
    "IdSet",
    "Kind",
    "Operand",
    "Operands",
    "Operators",
    "Recording",
    "Request",
    "Role",
    "Sparse",
    "Stated",
    "Tensors",
    "Waits",
]

"""Execution traces of machine-learning workloads: read, link, write, check and feed them.

>>> import chakra_et
>>> result = chakra_et.convert(host="host.json.gz", device="device.json.gz", output="trace.0.et")
>>> result.report.joins[0].matched, len(result.trace.nodes)
>>> trace = chakra_et.read("trace.0.et")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

__version__ = "0.1.0"

from chakra_et.conversion import Conversion, convert, convert_directory
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.errors import ChakraError, FormatError, LinkError, OutputError
from chakra_et.files import read, write
from chakra_et.model import EdgeKind, Trace, TraceSet

if TYPE_CHECKING:
    from chakra_et.feeder import Feeder, FeederSet
    from chakra_et.passes import cure
    from chakra_et.validators import validate

__all__ = [
    "ChakraError",
    "CollectiveType",
    "Conversion",
    "EdgeKind",
    "Feeder",
    "FeederSet",
    "FormatError",
    "LinkError",
    "NodeType",
    "OutputError",
    "Trace",
    "TraceSet",
    "__version__",
    "convert",
    "convert_directory",
    "cure",
    "read",
    "validate",
    "write",
]

_ON_DEMAND: Final = {
    "Feeder": "chakra_et.feeder",
    "FeederSet": "chakra_et.feeder",
    "cure": "chakra_et.passes",
    "validate": "chakra_et.validators",
}


def __getattr__(name: str) -> Any:
    """What a conversion does without is imported when it is asked for."""
    module = _ON_DEMAND.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)

"""Execution traces of machine-learning workloads: read, link, write, check and feed them.

>>> import chakra_et
>>> result = chakra_et.convert(host="host.json.gz", device="device.json.gz", output="trace.0.et")
>>> result.report.joins[0].matched, len(result.trace.nodes)
>>> trace = chakra_et.read("trace.0.et")
"""

from __future__ import annotations

# Only what every interpreter has loaded: the command line takes care of Ctrl-C behind this.
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# Where a checkout has no symbolic links (Git for Windows, an sdist), `chakra_et.converters`,
# `chakra_et.validators` and `chakra_et.schema` are the folders beside this one.
_HERE: Final = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
if not os.path.isdir(os.path.join(_HERE, "converters")):  # noqa: PTH112, PTH118
    __path__.append(os.path.dirname(_HERE))  # noqa: PTH120

if TYPE_CHECKING:
    from chakra_et.collection import Collection, collect
    from chakra_et.conversion import Conversion, convert
    from chakra_et.definitions import CollectiveType, NodeType
    from chakra_et.directory import convert_directory, convert_files, merge_shards
    from chakra_et.errors import ChakraError, FormatError, LinkError, OutputError
    from chakra_et.feeder import Feeder, FeederSet
    from chakra_et.files import read, read_set, write
    from chakra_et.model import EdgeKind, Trace, TraceSet
    from chakra_et.passes import cure
    from chakra_et.times import OperatorTime, operator_times
    from chakra_et.validators import validate
    from chakra_et.version import __version__

__all__ = [
    "ChakraError",
    "Collection",
    "CollectiveType",
    "Conversion",
    "EdgeKind",
    "Feeder",
    "FeederSet",
    "FormatError",
    "LinkError",
    "NodeType",
    "OperatorTime",
    "OutputError",
    "Trace",
    "TraceSet",
    "__version__",
    "collect",
    "convert",
    "convert_directory",
    "convert_files",
    "cure",
    "merge_shards",
    "operator_times",
    "read",
    "read_set",
    "validate",
    "write",
]

_HOMES: Final = {
    "chakra_et.collection": ("Collection", "collect"),
    "chakra_et.conversion": ("Conversion", "convert"),
    "chakra_et.definitions": ("CollectiveType", "NodeType"),
    "chakra_et.directory": ("convert_directory", "convert_files", "merge_shards"),
    "chakra_et.errors": ("ChakraError", "FormatError", "LinkError", "OutputError"),
    "chakra_et.feeder": ("Feeder", "FeederSet"),
    "chakra_et.files": ("read", "read_set", "write"),
    "chakra_et.model": ("EdgeKind", "Trace", "TraceSet"),
    "chakra_et.times": ("OperatorTime", "operator_times"),
    "chakra_et.passes": ("cure",),
    "chakra_et.validators": ("validate",),
    "chakra_et.version": ("__version__",),
}
_HOME: Final = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A module is imported when something of it is asked for: nobody needs all of them."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    __import__(_HOME[name])
    return getattr(sys.modules[_HOME[name]], name)


def __dir__() -> list[str]:
    return __all__

"""All rules; importing this registers them."""

from chakra_et.validators.rules import (
    astra_sim,
    attributes,
    capture,
    deadlock,
    file,
    graph,
    groups,
    json_files,
    mlc_chakra,
    ranks,
    time,
    torch_replay,
)

__all__ = [
    "astra_sim",
    "attributes",
    "capture",
    "deadlock",
    "file",
    "graph",
    "groups",
    "json_files",
    "mlc_chakra",
    "ranks",
    "time",
    "torch_replay",
]

"""All rules; importing this registers them."""

from chakra_et.validators.rules import (
    astra_sim,
    astra_sim_communication,
    astra_sim_groups,
    astra_sim_modes,
    attributes,
    capture,
    communication,
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
    "astra_sim_communication",
    "astra_sim_groups",
    "astra_sim_modes",
    "attributes",
    "capture",
    "communication",
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

"""How many cores this process may use."""

from __future__ import annotations

import os

from chakra_et.io.cgroup import cgroup_cores


def usable_cores() -> int:
    """The cores that this process may run on and its control groups give time on, at least 1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    given = cgroup_cores()
    return max(1, cores if given is None else min(cores, int(given)))

"""How many cores this process may use, and what does not need them."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

from chakra_et.io.cgroup import cgroup_cores

_BLAS: Final = "OPENBLAS_NUM_THREADS"


def usable_cores() -> int:
    """The cores that this process may run on and its control groups give time on, at least 1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    given = cgroup_cores()
    return max(1, cores if given is None else min(cores, int(given)))


def load_numpy() -> None:
    """Load NumPy before modules that import each other, without threads for large matrices.

    There are no large matrices here, and each of these threads waits in a loop, which takes as long
    as all else of loading NumPy. It is loaded from here, since deep within imports it may take half
    as long again: CPython keeps its frames in chunks, and where one ends, each call maps the next
    chunk and gives it back. Programs that are started later get the environment as it was.
    """
    if _BLAS in os.environ:
        import_module("numpy")
        return
    os.environ[_BLAS] = "1"
    try:
        import_module("numpy")
    finally:
        del os.environ[_BLAS]

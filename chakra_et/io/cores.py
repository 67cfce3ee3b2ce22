"""How many cores this process may use, and what does not need them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def small_matrices() -> Iterator[None]:
    """Within it, NumPy is loaded without threads for large matrices, which there are none of here.

    Each of these threads waits in a loop, which takes as long as all else of loading NumPy.
    Programs that are started later get the environment as it was.
    """
    if _BLAS in os.environ:
        yield
        return
    os.environ[_BLAS] = "1"
    try:
        yield
    finally:
        del os.environ[_BLAS]

"""How much work a conversion is, counted: sorting, and memory at the most."""

import tracemalloc

import numpy as np
import pytest
from pairs import make_pair

from chakra_et import convert

SORTS = ("unique", "lexsort", "argsort", "sort")


def sorted_items(monkeypatch, pair):
    """How many items a conversion sorts, counted once for each sorting."""
    counts = []
    with monkeypatch.context() as patched:
        for name in SORTS:
            real = getattr(np, name)

            def counting(values, *args, real=real, name=name, **options):
                counts.append(len(values[0]) if name == "lexsort" else np.size(values))
                return real(values, *args, **options)

            patched.setattr(np, name, counting)
        convert(pair / "host.json", pair / "device.json")
    return sum(counts)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Directories of pairs by the number of operations."""
    made = {size: tmp_path_factory.mktemp(str(size)) for size in (1000, 4000)}
    for size, directory in made.items():
        make_pair(size, 0, directory, False)
    return made


def test_linking_sorts_in_proportion_to_the_operations(pairs, monkeypatch):
    few, many = (sorted_items(monkeypatch, pairs[size]) / size for size in (1000, 4000))
    assert many < 1.1 * few
    assert many < 84


def test_memory_is_in_proportion_to_the_input(pairs):
    peaks = {}
    for size in (1000, 4000, 4000):  # what is imported and made once counts for the first
        tracemalloc.start()
        convert(pairs[size] / "host.json", pairs[size] / "device.json")
        peaks[size] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    given = sum(file.stat().st_size for file in pairs[4000].iterdir())
    assert peaks[4000] < 1.3 * given

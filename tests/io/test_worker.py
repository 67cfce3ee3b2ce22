"""A function at work in another interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from places import EXAMPLES

from chakra_et import ChakraError
from chakra_et.converters.kineto import read_device
from chakra_et.io.worker import Worker


def test_its_result_is_that_of_the_function() -> None:
    path = EXAMPLES / "simple_add" / "device.json.gz"
    with Worker("chakra_et.converters.kineto", "read_device", path) as worker:
        there = worker.result()
    here = read_device(path)
    assert np.array_equal(there.start_ns, here.start_ns)
    assert there.names == here.names
    assert there.args == here.args


def test_its_error_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.json"
    with pytest.raises(ChakraError) as own:
        read_device(path)
    with (
        Worker("chakra_et.converters.kineto", "read_device", path) as worker,
        pytest.raises(ChakraError) as raised,
    ):
        worker.result()
    assert raised.value.path == path
    assert str(raised.value) == str(own.value)

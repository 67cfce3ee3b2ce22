"""What the package offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import chakra_et


@pytest.mark.parametrize("name", chakra_et.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(chakra_et, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = chakra_et.nonsense  # type: ignore[attr-defined]


def test_a_conversion_imports_neither_validators_nor_feeder_nor_protobuf() -> None:
    code = "import sys, chakra_et; chakra_et.convert; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"chakra_et.validators", "chakra_et.feeder", "chakra_et.passes"}
    assert not loaded & {"google.protobuf", "grpc", "torch", "jsonschema"}


def test_a_name_brings_only_its_own_module() -> None:
    code = "import sys, chakra_et; chakra_et.ChakraError; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numpy", "chakra_et.linker"}

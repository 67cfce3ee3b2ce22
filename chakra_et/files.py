"""Reading and writing ETs (a first form, about to be replaced by the full one)."""

from pathlib import Path

from chakra_et.converters.et import decode_et, encode_et
from chakra_et.io.output import atomic_output
from chakra_et.io.source import read_all
from chakra_et.model import Trace


def read(path: str | Path) -> Trace:
    return decode_et(read_all(path))


def write(trace: Trace, path: str | Path) -> None:
    with atomic_output(path) as stream:
        for block in encode_et(trace):
            stream.write(block)

"""What a plain conversion imports: nothing that it does without, and would start later for."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

PAIR = Path(__file__).parents[2] / "examples" / "simple_add"
NOT_NEEDED = {
    "asyncio",
    "filecmp",
    "gzip",
    "hashlib",
    "importlib.metadata",
    "jsonschema",
    "multiprocessing",
    "numpy.ma",  # which np.unique and the like load, and which takes longer than they do
    "random",
    "rich",
    "secrets",
    "tarfile",
    "tempfile",
    "tomllib",
    "zipfile",
    "zstandard",
}
"""Libraries that other commands use, and other files."""
ELSEWHERE = {
    "chakra_et.converters.et.decoder",
    "chakra_et.converters.linked.reader",
    "chakra_et.converters.linked.timed",
    "chakra_et.converters.nsight.reader",
    "chakra_et.io.archive",
    "chakra_et.io.mended_array",
    "chakra_et.io.salvage",
    "chakra_et.jobs",
    "chakra_et.passes",
    "chakra_et.rewriting",
    "chakra_et.run_directory",
    "chakra_et.validators",
}
"""Modules for damaged files, other formats, and runs of several ranks."""


@pytest.mark.parametrize("pure", ["", "1"])
def test_a_conversion_of_one_pair_imports_only_what_it_uses(tmp_path: Path, pure: str) -> None:
    for name in ("host.json", "device.json"):
        (tmp_path / name).write_bytes(gzip.decompress((PAIR / f"{name}.gz").read_bytes()))
    code = (
        "import sys; from chakra_et.cli.app import command_line; "
        "command_line(['convert'])(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    )
    words = ["convert", "host.json", "device.json", "-o", "trace.et", "--quiet"]
    told = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "CHAKRA_ET_PURE_PYTHON": pure},
    )
    loaded = set(told.stdout.split())
    assert "chakra_et.linker.linking" in loaded
    assert (tmp_path / "trace.et").stat().st_size > 1000
    assert not loaded & NOT_NEEDED
    assert not loaded & ELSEWHERE

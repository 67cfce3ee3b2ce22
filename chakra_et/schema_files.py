"""Where the files of `schema/` lie, in an installed package and in a checkout."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def schema_file(name: str) -> Path:
    """The path of a file of `schema/`, such as `et_def.proto`."""
    # A namespace package of one folder; a wheel is unpacked, so that its files are paths.
    return Path(str(resources.files("chakra_et.schema").joinpath(name)))

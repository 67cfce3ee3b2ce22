"""Families of operators: all that a model learns of names."""

from __future__ import annotations

import re
from typing import Final

from chakra_et.anonymise.pseudonyms import FAMILIES, family

_KNOWN: Final = re.compile(rf"({'|'.join(FAMILIES)})(_[0-9a-f]{{8}})?")


def operator_family(name: str, node_type: int) -> str:
    """The family of a node: one of `FAMILIES`, also of pseudonyms and of names of samples."""
    told = _KNOWN.fullmatch(name)
    return told[1] if told else family(name, node_type)

"""What operators do with their arguments: read them, write them, or only look at them anew."""

from __future__ import annotations

from typing import Final

import msgspec

from chakra_et.columns import Mask

PYTHON: Final = "PythonSubclass"
"""What PyTorch calls the Python of a class of tensors, to which an operator was handed."""
ARGUMENTS: Final = 64
"""How many arguments are told apart; the last and those beyond it are read only."""


class Operators(msgspec.Struct):
    """What each operator of a list does: row s of each column belongs to operator s.

    `known` is false where nothing is known of it. `reads[s, k]` and `writes[s, k]` tell whether it
    reads and writes argument k; `in_place` whether it writes what it returns although its
    declaration does not say so; `allocates` whether it writes nothing into new memory that it
    returns; `asks` whether it hands communication to a backend and returns at once.
    """

    known: Mask
    reads: Mask
    writes: Mask
    in_place: Mask
    allocates: Mask
    asks: Mask

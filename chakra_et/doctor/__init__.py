"""What a recording lacks, and which setting of the recorder fixes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.doctor.examination import Examination, Lack, examine

__all__ = ["Examination", "Lack", "examine"]

_HOMES: Final = dict.fromkeys(__all__, "examination")

__getattr__ = lazily(__name__, _HOMES)

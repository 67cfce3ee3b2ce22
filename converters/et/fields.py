"""Field numbers of the messages of an ET; `schema/et_def.proto` says what they mean."""

from __future__ import annotations

from typing import Final

METADATA_VERSION: Final = 1
METADATA_ATTR: Final = 2

ID: Final = 1
NAME: Final = 2
TYPE: Final = 3
CTRL_DEPS: Final = 4
DATA_DEPS: Final = 5
START_MICROS: Final = 6
DURATION_MICROS: Final = 7
INPUTS: Final = 8
OUTPUTS: Final = 9
ATTR: Final = 10

IO_VALUES: Final = 1
IO_SHAPES: Final = 2
IO_TYPES: Final = 3

"""Who writes: the name and version that traces carry."""

from typing import Final

__version__ = "0.1.0"

PROGRAM: Final = "chakra-et"
PRODUCER: Final = f"{PROGRAM} {__version__}"

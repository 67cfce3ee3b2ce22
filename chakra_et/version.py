"""Who writes: the name and version that traces carry."""

from typing import Final

from chakra_et import __version__

PROGRAM: Final = "chakra-et"
PRODUCER: Final = f"{PROGRAM} {__version__}"

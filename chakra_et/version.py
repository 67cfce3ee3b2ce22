"""Who writes: the name and version that traces carry."""

from typing import Final

from chakra_et import __version__

PRODUCER: Final = f"chakra-et {__version__}"

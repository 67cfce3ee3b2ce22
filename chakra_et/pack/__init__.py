"""Many ranks in one file: what a class of them has in common once, and what each differs in.

`columns` takes a trace apart into columns and puts it together again, `differences` holds those of
one rank against those of its class, `writing` and `reading` are the file: `docs/pack.md`.
"""

from chakra_et.pack.reading import unpack
from chakra_et.pack.writing import Packed, pack

__all__ = ["Packed", "pack", "unpack"]

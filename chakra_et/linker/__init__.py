"""Linking: one trace from the host's and the device's view of the same run.

Two stages: *join* finds which records of both files belong together, *edges* find who waits for
whom. Each kind of edge has its own module.
"""

from chakra_et.linker.linking import Linked, link

__all__ = ["Linked", "link"]

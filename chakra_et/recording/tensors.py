"""Tensors that operations take and return."""

from __future__ import annotations

import msgspec

from chakra_et.columns import Mask, Rows


class Tensors(msgspec.Struct):
    """The tensors in a list of texts, in order: one entry of each column for each.

    Those of text t stand at `offsets[t]:offsets[t + 1]`. `argument` is the place in the outermost
    list, `storage` the id of its storage (of a tensor without one, minus its own id), `begin` and
    `end` bytes of the storage (taken to lie together from the offset on), `device` a code into
    `devices`. By that code, `has_memory` is false for tensors that are undefined or have a shape
    only, and `on_host` true for those in memory of the host.
    """

    offsets: Rows
    argument: Rows
    storage: Rows
    begin: Rows
    end: Rows
    device: Rows
    devices: list[str]
    has_memory: Mask
    on_host: Mask

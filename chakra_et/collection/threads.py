"""How many threads PyTorch takes for its work on the host."""

from __future__ import annotations

from typing import Final

KEY: Final = "torch_threads"
"""Under this name the profile and the manifest say it."""


def thread_counts() -> dict[str, int]:
    """The threads of one operator, and those for operators beside each other."""
    import torch

    return {"intra_op": torch.get_num_threads(), "inter_op": torch.get_num_interop_threads()}

"""Write the list of PyTorch's composite operators, which do nothing but call others.

    python tools/composite_operators.py [--check]

The list is `chakra_et/benchmark/composite.txt`: overloads of `aten` with a kernel for
CompositeImplicitAutograd, by the PyTorch at hand. With `--check` the file is compared, not written.
"""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

import sys
from pathlib import Path

FILE = Path(__file__).parents[1] / "chakra_et" / "benchmark" / "composite.txt"


def composite() -> list[str]:
    """The overloads, such as `aten::to.dtype`, by name."""
    from torch import _C

    has = _C._dispatch_has_kernel_for_dispatch_key
    names = [name for name in _C._dispatch_get_all_op_names() if name.startswith("aten::")]
    return sorted(name for name in names if has(name, "CompositeImplicitAutograd"))


def main() -> int:
    text = "\n".join(composite()) + "\n"
    if "--check" in sys.argv[1:]:
        return int(FILE.read_text() != text)
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

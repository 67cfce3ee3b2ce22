"""Make everything that is derived from schema/.

    python tools/generate.py            write
    python tools/generate.py --check    compare with what is there; exit 1 where it differs

Derived are chakra_et/proto/*_pb2.py and .pyi, chakra_et/definitions.py, docs/attributes.md, and the
numbers of the C++ and C headers, of the codec and of the feeder.
"""

from __future__ import annotations

import argparse
import sys

from derive import definitions, numbers, protobuf, reference, registry
from page_parts import difference


def derive() -> dict[str, str]:
    """Every derived file, by its path in the repository."""
    attributes = registry.load()
    return {
        "chakra_et/definitions.py": definitions.render(attributes),
        "docs/attributes.md": reference.render(attributes),
        **numbers.render(attributes),
        **{f"chakra_et/proto/{name}": text for name, text in protobuf.generate().items()},
    }


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description="Make everything that is derived from schema/.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    try:
        derived = derive()
    except (registry.SchemaError, protobuf.ProtocError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    stale = 0
    for name, text in derived.items():
        path = registry.ROOT / name
        old = path.read_text("utf-8") if path.exists() else ""
        if old == text:
            print(f"current  {name}")
        elif check:
            stale += 1
            print(f"stale    {name}\n{difference(name, old, text)}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"written  {name}")
    if stale:
        print(f"{stale} of {len(derived)} derived files are stale: run python tools/generate.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

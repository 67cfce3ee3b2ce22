"""Print an ET as mlc-chakra's own classes read it: JSON, one line for the metadata and each node.

python mlc_nodes.py FILE      with the Python of mlc-chakra's environment
"""

from __future__ import annotations

import json
import sys
from typing import Any

from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata, Node  # type: ignore[import-not-found]
from chakra.src.third_party.utils.protolib import (  # type: ignore[import-not-found]
    decodeMessage,
    openFileRd,
)


def value_of(attribute: Any) -> Any:
    """An attribute's value; bytes as hex digits, lists as lists."""
    case = attribute.WhichOneof("value")
    if case is None:
        return None
    value = getattr(attribute, case)
    plain = list(value.values) if case.endswith("_list") else value
    if isinstance(plain, list):
        return [x.hex() if isinstance(x, bytes) else x for x in plain]
    return plain.hex() if isinstance(plain, bytes) else plain


def attributes(owner: Any) -> list[tuple[str, str | None, Any]]:
    return [(a.name, a.WhichOneof("value"), value_of(a)) for a in owner.attr]


def texts(io: Any) -> list[str]:
    return [io.values, io.shapes, io.types]


def main() -> None:
    file = openFileRd(sys.argv[1])
    head = GlobalMetadata()
    decodeMessage(file, head)
    print(json.dumps({"version": head.version, "attributes": attributes(head)}))
    node = Node()
    while decodeMessage(file, node):
        print(
            json.dumps(
                {
                    "id": node.id,
                    "name": node.name,
                    "type": node.type,
                    "ctrl_deps": list(node.ctrl_deps),
                    "data_deps": list(node.data_deps),
                    "start_micros": node.start_time_micros,
                    "duration_micros": node.duration_micros,
                    "inputs": texts(node.inputs),
                    "outputs": texts(node.outputs),
                    "attributes": attributes(node),
                }
            )
        )
        node = Node()


if __name__ == "__main__":
    main()

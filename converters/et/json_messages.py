"""The messages of the schema as the JSON mapping names them."""

from __future__ import annotations

from typing import Final

from chakra_et.converters.et.json_mapping import Enumeration, Field, Message
from chakra_et.definitions import Kind, NodeType

NODE_TYPES: Final = Enumeration({value.value: f"{value.name}_NODE" for value in NodeType})


def _enumeration(prefix: str, *names: str) -> Enumeration:
    """Names that count from 0; "" leaves a number without a name."""
    return Enumeration({number: prefix + name for number, name in enumerate(names) if name})


DATA_OPS: Final = _enumeration("DATA_OP_", "UNKNOWN", "DATALOADER", "CHECKPOINT", "KV_TRANSFER")
STORAGE_LEVELS: Final = _enumeration("STORAGE_LEVEL_", "UNKNOWN", "FS", "PAGE", "BLOCK", "DEVICE")
_FS_OPS: Final = _enumeration(
    "FS_OP_", "UNKNOWN", "OPEN", "CLOSE", "READ", "WRITE", "PREAD", "PWRITE", "FSYNC", "FDATASYNC",
    "SYNC_FILE_RANGE",
)  # fmt: skip
_PAGE_OPS: Final = _enumeration(
    "PAGE_OP_", "UNKNOWN", "ADD_TO_CACHE", "DIRTY", "READAHEAD_SYNC", "", "", "READAHEAD_ASYNC"
)
_BLOCK_OPS: Final = _enumeration("BLOCK_OP_", "UNKNOWN", "READ", "WRITE", "FLUSH")
_BLOCK_EVENTS: Final = _enumeration(
    "BLOCK_EVENT_", "UNKNOWN", "QUEUE", "GET", "INSERT", "DISPATCH", "COMPLETE"
)


def value_name(kind: Kind) -> str:
    """The name of the field of AttributeProto that holds values of `kind`."""
    word, _, ending = kind.name.lower().partition("_")
    return word + (ending.capitalize() or "Val")


def _value_field(kind: Kind) -> Field:
    if kind.name.endswith("_LIST"):
        items = Message({1: Field("values", Kind(kind - 1), repeated=True)}, exact=True)
        return Field(value_name(kind), items, choice="value")
    return Field(value_name(kind), kind, choice="value")


ATTRIBUTE: Final = Message(
    {
        1: Field("name", Kind.STRING),
        2: Field("docString", Kind.STRING),
        **{int(kind): _value_field(kind) for kind in Kind},
    }
)
METADATA: Final = Message(
    {1: Field("version", Kind.STRING), 2: Field("attr", ATTRIBUTE, repeated=True)}
)
_IO: Final = Message(
    {
        1: Field("values", Kind.STRING),
        2: Field("shapes", Kind.STRING),
        3: Field("types", Kind.STRING),
    },
    exact=True,
)
_FS: Final = Message(
    {
        1: Field("op", _FS_OPS),
        2: Field("pathname", Kind.STRING),
        3: Field("fd", Kind.INT32),
        4: Field("offset", Kind.UINT64),
        5: Field("sizeBytes", Kind.UINT64),
        6: Field("flags", Kind.UINT32),
    },
    exact=True,
)
_PAGE: Final = Message(
    {
        1: Field("op", _PAGE_OPS),
        2: Field("inode", Kind.UINT64),
        3: Field("pageIndex", Kind.UINT64),
        4: Field("nrPages", Kind.UINT32),
    },
    exact=True,
)
_BLOCK: Final = Message(
    {
        1: Field("op", _BLOCK_OPS),
        2: Field("queueEvent", _BLOCK_EVENTS),
        3: Field("device", Kind.STRING),
        4: Field("lba", Kind.UINT64),
        5: Field("nrSectors", Kind.UINT32),
        6: Field("reqOpFlags", Kind.UINT32),
    },
    exact=True,
)
_STORAGE: Final = Message(
    {
        1: Field("level", STORAGE_LEVELS),
        10: Field("fs", _FS, choice="detail"),
        11: Field("page", _PAGE, choice="detail"),
        12: Field("block", _BLOCK, choice="detail"),
    },
    exact=True,
)
PLAIN_NODE: Final = Message(
    {
        1: Field("id", Kind.UINT64),
        2: Field("name", Kind.STRING),
        3: Field("type", NODE_TYPES),
        4: Field("ctrlDeps", Kind.UINT64, repeated=True),
        5: Field("dataDeps", Kind.UINT64, repeated=True),
        6: Field("startTimeMicros", Kind.UINT64),
        7: Field("durationMicros", Kind.UINT64),
        8: Field("inputs", _IO),
        9: Field("outputs", _IO),
        10: Field("attr", ATTRIBUTE, repeated=True),
    }
)
"""A node without the fields that the model keeps as unknown ones."""
NODE: Final = Message(
    {
        **PLAIN_NODE.fields,
        11: Field("storage", _STORAGE, choice="op_info"),
        12: Field("dataOp", DATA_OPS, choice="op_info"),
    }
)

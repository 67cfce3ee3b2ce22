from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Restart(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NO_RESTART: _ClassVar[Restart]
    REWIND: _ClassVar[Restart]
    RESET: _ClassVar[Restart]

class Next(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MORE: _ClassVar[Next]
    PENDING: _ClassVar[Next]
    FINISHED: _ClassVar[Next]
    BLOCKED: _ClassVar[Next]
NO_RESTART: Restart
REWIND: Restart
RESET: Restart
MORE: Next
PENDING: Next
FINISHED: Next
BLOCKED: Next

class Request(_message.Message):
    __slots__ = ("tag", "rank", "open", "restart", "done", "push_back", "take", "next", "run", "ready", "blocked", "count")
    TAG_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    PUSH_BACK_FIELD_NUMBER: _ClassVar[int]
    TAKE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    tag: int
    rank: int
    open: Options
    restart: Restart
    done: _containers.RepeatedScalarFieldContainer[int]
    push_back: _containers.RepeatedScalarFieldContainer[int]
    take: _containers.RepeatedScalarFieldContainer[int]
    next: int
    run: bool
    ready: int
    blocked: int
    count: bool
    def __init__(self, tag: _Optional[int] = ..., rank: _Optional[int] = ..., open: _Optional[_Union[Options, _Mapping]] = ..., restart: _Optional[_Union[Restart, str]] = ..., done: _Optional[_Iterable[int]] = ..., push_back: _Optional[_Iterable[int]] = ..., take: _Optional[_Iterable[int]] = ..., next: _Optional[int] = ..., run: bool = ..., ready: _Optional[int] = ..., blocked: _Optional[int] = ..., count: bool = ...) -> None: ...

class Options(_message.Message):
    __slots__ = ("order", "missing_parent", "self_edge", "gate", "ignore_inferred", "skip_metadata", "window", "strict_window", "repeat")
    class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ID: _ClassVar[Options.Order]
        START: _ClassVar[Options.Order]
    ID: Options.Order
    START: Options.Order
    class Fault(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FAIL: _ClassVar[Options.Fault]
        DROP: _ClassVar[Options.Fault]
        WAIT: _ClassVar[Options.Fault]
    FAIL: Options.Fault
    DROP: Options.Fault
    WAIT: Options.Fault
    ORDER_FIELD_NUMBER: _ClassVar[int]
    MISSING_PARENT_FIELD_NUMBER: _ClassVar[int]
    SELF_EDGE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    IGNORE_INFERRED_FIELD_NUMBER: _ClassVar[int]
    SKIP_METADATA_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    STRICT_WINDOW_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    order: Options.Order
    missing_parent: Options.Fault
    self_edge: Options.Fault
    gate: _containers.RepeatedScalarFieldContainer[str]
    ignore_inferred: bool
    skip_metadata: bool
    window: int
    strict_window: bool
    repeat: int
    def __init__(self, order: _Optional[_Union[Options.Order, str]] = ..., missing_parent: _Optional[_Union[Options.Fault, str]] = ..., self_edge: _Optional[_Union[Options.Fault, str]] = ..., gate: _Optional[_Iterable[str]] = ..., ignore_inferred: bool = ..., skip_metadata: bool = ..., window: _Optional[int] = ..., strict_window: bool = ..., repeat: _Optional[int] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("tag", "rank", "error", "nodes", "next", "ready", "blocked", "counts")
    TAG_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    tag: int
    rank: int
    error: Error
    nodes: Nodes
    next: Next
    ready: _containers.RepeatedScalarFieldContainer[int]
    blocked: str
    counts: Counts
    def __init__(self, tag: _Optional[int] = ..., rank: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., nodes: _Optional[_Union[Nodes, _Mapping]] = ..., next: _Optional[_Union[Next, str]] = ..., ready: _Optional[_Iterable[int]] = ..., blocked: _Optional[str] = ..., counts: _Optional[_Union[Counts, _Mapping]] = ...) -> None: ...

class Nodes(_message.Message):
    __slots__ = ("id", "message")
    ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    id: _containers.RepeatedScalarFieldContainer[int]
    message: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, id: _Optional[_Iterable[int]] = ..., message: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Counts(_message.Message):
    __slots__ = ("waiting", "ready", "taken", "done", "held", "peak_held", "all_read")
    WAITING_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    PEAK_HELD_FIELD_NUMBER: _ClassVar[int]
    ALL_READ_FIELD_NUMBER: _ClassVar[int]
    waiting: int
    ready: int
    taken: int
    done: int
    held: int
    peak_held: int
    all_read: bool
    def __init__(self, waiting: _Optional[int] = ..., ready: _Optional[int] = ..., taken: _Optional[int] = ..., done: _Optional[int] = ..., held: _Optional[int] = ..., peak_held: _Optional[int] = ..., all_read: bool = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "node", "other", "offset")
    class Code(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OK: _ClassVar[Error.Code]
        IO: _ClassVar[Error.Code]
        TRUNCATED: _ClassVar[Error.Code]
        MALFORMED: _ClassVar[Error.Code]
        TOO_LARGE: _ClassVar[Error.Code]
        OLD_SCHEMA: _ClassVar[Error.Code]
        DUPLICATE_ID: _ClassVar[Error.Code]
        MISSING_PARENT: _ClassVar[Error.Code]
        SELF_EDGE: _ClassVar[Error.Code]
        UNKNOWN_NODE: _ClassVar[Error.Code]
        NOT_READY: _ClassVar[Error.Code]
        NOT_TAKEN: _ClassVar[Error.Code]
        BLOCKED: _ClassVar[Error.Code]
        IN_FLIGHT: _ClassVar[Error.Code]
        NOT_SEEKABLE: _ClassVar[Error.Code]
        WINDOW_FULL: _ClassVar[Error.Code]
        OUT_OF_MEMORY: _ClassVar[Error.Code]
        UNSUPPORTED: _ClassVar[Error.Code]
        INVALID_OPTION: _ClassVar[Error.Code]
        MISMATCH: _ClassVar[Error.Code]
        BAD_GROUPS: _ClassVar[Error.Code]
    OK: Error.Code
    IO: Error.Code
    TRUNCATED: Error.Code
    MALFORMED: Error.Code
    TOO_LARGE: Error.Code
    OLD_SCHEMA: Error.Code
    DUPLICATE_ID: Error.Code
    MISSING_PARENT: Error.Code
    SELF_EDGE: Error.Code
    UNKNOWN_NODE: Error.Code
    NOT_READY: Error.Code
    NOT_TAKEN: Error.Code
    BLOCKED: Error.Code
    IN_FLIGHT: Error.Code
    NOT_SEEKABLE: Error.Code
    WINDOW_FULL: Error.Code
    OUT_OF_MEMORY: Error.Code
    UNSUPPORTED: Error.Code
    INVALID_OPTION: Error.Code
    MISMATCH: Error.Code
    BAD_GROUPS: Error.Code
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    node: int
    other: int
    offset: int
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., node: _Optional[int] = ..., other: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

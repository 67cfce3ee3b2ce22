"""The generated protobuf messages. The codec is the only module that needs them."""

try:
    import google.protobuf
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "the protobuf messages need the protobuf package: pip install 'chakra-et[protobuf]'",
        name="google.protobuf",
    ) from error

__all__ = ["et_def_pb2"]

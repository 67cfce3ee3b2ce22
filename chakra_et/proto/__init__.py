"""The generated protobuf messages, for those who want messages. The core does not import them."""

__all__ = ["et_def_pb2", "feeder_pb2"]

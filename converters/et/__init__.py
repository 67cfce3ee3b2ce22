"""Execution traces as files: protobuf (`.et`) and JSON."""

from chakra_et.converters.et.decoder import decode_et
from chakra_et.converters.et.encoder import encode_et
from chakra_et.converters.et.json_form import decode_json, encode_json

__all__ = ["decode_et", "decode_json", "encode_et", "encode_json"]

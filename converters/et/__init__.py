"""Execution traces as files: protobuf (`.et`) and JSON."""

from typing import TYPE_CHECKING

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.converters.et.decoder import decode_et as decode_et
    from chakra_et.converters.et.encoder import encode_et as encode_et
    from chakra_et.converters.et.json_form import decode_json as decode_json
    from chakra_et.converters.et.json_form import encode_json as encode_json

_HOMES = {
    "decode_et": "decoder",
    "decode_json": "json_form",
    "encode_et": "encoder",
    "encode_json": "json_form",
}
__getattr__ = lazily(__name__, _HOMES)
__all__ = ["decode_et", "decode_json", "encode_et", "encode_json"]

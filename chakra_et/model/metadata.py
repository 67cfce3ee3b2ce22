"""What a trace says of itself as a whole: version and attributes."""

from __future__ import annotations

import msgspec

from chakra_et.definitions import Kind
from chakra_et.model.attribute_values import AttributeKey, AttributeValue, check_values, same_value


class MetadataAttribute(msgspec.Struct):
    """One attribute of the whole trace."""

    key: AttributeKey
    value: AttributeValue

    def __post_init__(self) -> None:
        check_values(self.key, [self.value])


class Metadata(msgspec.Struct):
    """Schema version and attributes of a trace; `extra` holds protobuf fields not known here."""

    version: str = ""
    attributes: list[MetadataAttribute] = msgspec.field(default_factory=list)
    extra: bytes = b""

    def get(self, name: str) -> AttributeValue:
        """The value of attribute `name`, or None."""
        for attribute in self.attributes:
            if attribute.key.name == name:
                return attribute.value
        return None

    def set(self, name: str, kind: Kind, value: AttributeValue) -> None:
        """Replace attribute `name`, or append it; None removes it."""
        others = [a for a in self.attributes if a.key.name != name]
        if value is not None:
            others.append(MetadataAttribute(AttributeKey(name, kind), value))
        self.attributes = others

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Metadata):
            return NotImplemented
        return (
            self.version == other.version
            and self.extra == other.extra
            and [a.key for a in self.attributes] == [a.key for a in other.attributes]
            and all(
                same_value(a.value, b.value)
                for a, b in zip(self.attributes, other.attributes, strict=True)
            )
        )

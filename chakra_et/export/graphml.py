"""Pictures of graphs as GraphML, which Gephi, yEd and networkx read."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final
from xml.etree import ElementTree

from chakra_et.export.picture import Arrow, Box, Picture
from chakra_et.shown import encodable, shown

_TYPES: Final = {"str": "string", "int": "long", "bool": "boolean"}
_NODE: Final = [f for f in fields(Box) if f.name != "key"]
_EDGE: Final = [f for f in fields(Arrow) if f.name not in ("source", "target")]


def graphml(picture: Picture) -> bytes:
    """A directed graph: the fields of `Box` and of `Arrow` are data of nodes and edges."""
    root = ElementTree.Element("graphml", xmlns="http://graphml.graphdrawing.org/xmlns")
    for domain, of in (("node", _NODE), ("edge", _EDGE)):
        for field in of:
            told = {"for": domain, "attr.name": field.name, "attr.type": _TYPES[str(field.type)]}
            ElementTree.SubElement(root, "key", {"id": f"{domain}_{field.name}", **told})
    graph = ElementTree.SubElement(root, "graph", edgedefault="directed")
    for box in picture.boxes:
        node = ElementTree.SubElement(graph, "node", id=box.key)
        _data(node, "node", {field.name: getattr(box, field.name) for field in _NODE})
    for arrow in picture.arrows:
        edge = ElementTree.SubElement(graph, "edge", source=arrow.source, target=arrow.target)
        _data(edge, "edge", {field.name: getattr(arrow, field.name) for field in _EDGE})
    text: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return text


def _data(element: ElementTree.Element, domain: str, content: dict[str, Any]) -> None:
    for name, value in content.items():
        text = str(value).lower() if isinstance(value, bool) else shown(str(encodable(str(value))))
        ElementTree.SubElement(element, "data", key=f"{domain}_{name}").text = text

"""No module imports itself through others."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest

grimp = pytest.importorskip("grimp", reason="import-linter is for development")

FOR_PEOPLE = ("chakra_et.model.as_frames", "chakra_et.tables.table")
"""Methods of a trace make tables of it, and those of a table other forms: imported when called."""


def test_imports_have_no_circle() -> None:
    graph = grimp.build_graph("chakra_et", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert imports["chakra_et.linker.linking"]
    for module, imported in imports.items():
        if module in FOR_PEOPLE:
            imports[module] = {other for other in imported if "chakra_et.tables" not in other}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle

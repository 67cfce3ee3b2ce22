"""Runs when a Python of `chakra collect` starts: waits for PyTorch's optimizers, and does no more.

The folder of this file is on PYTHONPATH, which the processes that a program starts inherit.
"""

import os
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location

_HERE = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))  # noqa: PTH120


def _package() -> None:
    """Make `chakra_et` that of the command, whether the Python that runs this has one or not."""
    spec = spec_from_file_location(
        "chakra_et",
        os.path.join(_PACKAGE, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[_PACKAGE],
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["chakra_et"] = module_from_spec(spec)
    spec.loader.exec_module(module)


def _next() -> None:
    """Run the `sitecustomize` that this one hides, as if this one were not there."""
    sys.path[:] = [place for place in sys.path if os.path.realpath(place or ".") != _HERE]
    own = sys.modules.pop("sitecustomize", None)
    spec = find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        if own is not None:
            sys.modules["sitecustomize"] = own
        return
    module = sys.modules["sitecustomize"] = module_from_spec(spec)
    spec.loader.exec_module(module)


if "CHAKRA_COLLECT" in os.environ:
    try:
        if sys.version_info < (3, 10):  # noqa: UP036 - the program may run on an older one
            raise RuntimeError("Python 3.10 or newer is needed")
        _package()
        from chakra_et.collection.hook import install

        install(os.environ["CHAKRA_COLLECT"])
    except Exception as error:
        print(f"chakra: this process cannot be recorded: {error}", file=sys.stderr)
_next()

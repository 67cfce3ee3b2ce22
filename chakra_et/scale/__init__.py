"""Few ranks, recorded or generated, to many: copies of them, with the groups and sizes of more.

>>> from chakra_et.scale import Degree, plan_scale, write_scaled
>>> plan = plan_scale("run-of-4", {"dp": Degree(512)})  # doctest: +SKIP
>>> scaled = write_scaled(plan, "run-of-512")  # doctest: +SKIP
"""

from chakra_et.scale.degrees import Degree, parse_degree
from chakra_et.scale.layout import Layout, parse_grid
from chakra_et.scale.plan import ScalePlan, plan_scale
from chakra_et.scale.proofs import Proofs
from chakra_et.scale.scale import Scaled, write_scaled
from chakra_et.scale.sizes import Gathered

__all__ = [
    "Degree",
    "Gathered",
    "Layout",
    "Proofs",
    "ScalePlan",
    "Scaled",
    "parse_degree",
    "parse_grid",
    "plan_scale",
    "write_scaled",
]

"""Models of workloads: learned from traces, sampled to new sets, and sets compared.

>>> from chakra_et.synth import Sampler, compare_sets, fit, load_model, save_model
>>> model = fit([chakra_et.load("run/")]).model
>>> Sampler(model, ranks=64, steps=10, seed=1).write("set")
"""

from chakra_et.synth.compare import Measure, SetComparison, compare_sets
from chakra_et.synth.fit import LEARNERS, Fitted, fit
from chakra_et.synth.model import SynthModel, load_model, save_model
from chakra_et.synth.sample import Sampler
from chakra_et.synth.scaling import Conditions, parse_conditions, parse_scales

__all__ = [
    "LEARNERS",
    "Conditions",
    "Fitted",
    "Measure",
    "Sampler",
    "SetComparison",
    "SynthModel",
    "compare_sets",
    "fit",
    "load_model",
    "parse_conditions",
    "parse_scales",
    "save_model",
]

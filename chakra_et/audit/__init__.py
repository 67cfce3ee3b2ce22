"""What could still leak from a trace that is given away."""

from chakra_et.audit.audit import audit
from chakra_et.audit.checks import CHECKS
from chakra_et.audit.models import Likeness, likenesses, matrices

__all__ = ["CHECKS", "Likeness", "audit", "likenesses", "matrices"]

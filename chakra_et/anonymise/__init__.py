"""Traces to give away: only what a policy allows stays, under pseudonyms that a key tells."""

from chakra_et.anonymise.anonymise import Anonymised, anonymise
from chakra_et.anonymise.policy import READY, Policy, load_policy

__all__ = ["READY", "Anonymised", "Policy", "anonymise", "load_policy"]

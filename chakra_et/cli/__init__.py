"""The command line: one module for each verb, all of it through the public library."""

from chakra_et.cli.app import main

__all__ = ["main"]

"""`python -m chakra_et.cli`, the same as the command `chakra`."""

from chakra_et.cli import main

main()

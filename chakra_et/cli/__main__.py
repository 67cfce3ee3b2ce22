"""`python -m chakra_et.cli`, the same as the command `chakra`."""

from chakra_et.cli.app import main

main()

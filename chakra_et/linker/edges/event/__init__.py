"""Events: device work that waits for what another stream had been given."""

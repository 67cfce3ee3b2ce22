"""What is derived from schema/, one module per derived file."""

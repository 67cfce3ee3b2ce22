"""Checks of traces against rules and schemas."""

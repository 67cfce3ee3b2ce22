"""Waits for devices: the calls that wait, and what had been launched when they did."""

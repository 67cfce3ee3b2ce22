"""A window of a recording: what of both views lies in it."""

from chakra_et.linker.window.cut import Window, cut_device, cut_host, window

__all__ = ["Window", "cut_device", "cut_host", "window"]

"""The version of the package, kept where every room can read it."""

__version__ = "0.1.0"

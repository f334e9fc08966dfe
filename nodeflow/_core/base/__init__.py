"""Tools for every room: checks of arguments, immutable objects, names of types."""

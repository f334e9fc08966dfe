"""Stores: named arrays whose rows change by commits of all processes that hold them, all of a
commit or nothing of it.

- ``store``: commits, and arrays in memory. ``files``: arrays in a folder, with a ``journal`` of
  what a commit replaces.
"""

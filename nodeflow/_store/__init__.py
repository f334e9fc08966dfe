"""Stores: named arrays whose rows change by commits of all processes that hold them, all of a commit or nothing of it.

- ``store``: what all stores share: commits, and the rows that travel to and from the processes that own them.
- ``memory``: arrays in memory. ``files``: arrays in a folder, with a ``journal`` of what a commit replaces.
"""

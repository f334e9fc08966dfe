"""A counter-based random number generator: every number is a pure function of a key, an id and the
number of the draw.
"""

from nodeflow._core.random import Random, derive_key, hash_ids

__all__ = ["Random", "derive_key", "hash_ids"]

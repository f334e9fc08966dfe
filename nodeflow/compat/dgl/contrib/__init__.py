"""Contributed modules of DGL 0.4, of which there is ``sampling``."""

from functools import partial

from nodeflow.compat.dgl._queries import refuse
from nodeflow.compat.dgl.contrib import sampling

__all__ = ["sampling"]
__getattr__ = partial(refuse, "dgl.contrib")

"""The decoders by name, for settings, tests and tables: one entry adds one."""

from __future__ import annotations

from typing import Final

from nodeflow.nn._decoder import Decoder
from nodeflow.nn._distance_decoders import MLPDecoder, RotatE, TransE
from nodeflow.nn._product_decoders import Bilinear, ComplEx, DistMult, DotProduct

DECODERS: Final[dict[str, type[Decoder]]] = {
    "dot": DotProduct,
    "distmult": DistMult,
    "complex": ComplEx,
    "bilinear": Bilinear,
    "transe": TransE,
    "rotate": RotatE,
    "mlp": MLPDecoder,
}
"""Classes of decoders; those with a method ``n3`` have the N3 regularisation."""

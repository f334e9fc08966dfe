"""Convolutions, models, and the base classes for your own; the files are short, to be read and
copied.

- Convolutions: ``_conv`` is their base; with a sum times a matrix ``_linear_conv``, ``_sage``,
  ``_gcn``, ``_rgcn``; with attention ``_gat``; around a network of the user's ``_gin``.
- Models: ``_model`` is their base, ``_zoo`` has those of the literature, ``_vr`` those with control
  variates; ``_between`` has what stands between convolutions.
- Several node types: ``_typed_model``, ``_typed_conv``, ``_hgt``; ``_rgcn`` takes a schema too.
- Links: ``_decoder_base`` and ``_decoders`` (``DECODERS`` lists them, also for the command),
  ``_link_losses``.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.nn._between import NodeDropout
from nodeflow.nn._conv import FlowConv, IgnoredWeightWarning
from nodeflow.nn._decoder_base import Decoder
from nodeflow.nn._decoders import (
    DECODERS as DECODERS,
    Bilinear,
    ComplEx,
    DistMult,
    DotProduct,
    MLPDecoder,
    RotatE,
    TransE,
)
from nodeflow.nn._gat import AttentionConv, GATConv, GATv2Conv
from nodeflow.nn._gcn import GraphConv
from nodeflow.nn._gin import EdgeConv, GINConv, GINEConv
from nodeflow.nn._hgt import HGTConv, RelativeTime
from nodeflow.nn._linear_conv import LinearConv, flop_counter
from nodeflow.nn._link_losses import (
    logistic_loss,
    margin_loss,
    one_vs_all_loss,
    self_adversarial_loss,
    softmax_loss,
)
from nodeflow.nn._model import FlowModel, Jumping, inference
from nodeflow.nn._rgcn import RGCNConv
from nodeflow.nn._sage import SAGEConv
from nodeflow.nn._typed_conv import TypedConv, module_name as module_name
from nodeflow.nn._typed_model import EncodedRows as EncodedRows, TypedLinear, TypedModel
from nodeflow.nn._vr import VRGCN, PropagationConv, VRGraphSAGE, VRModel
from nodeflow.nn._zoo import GAT, GCN, GIN, RGCN, GATv2, GraphSAGE

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "RGCN",
    "VRGCN",
    "AttentionConv",
    "Bilinear",
    "ComplEx",
    "Decoder",
    "DistMult",
    "DotProduct",
    "EdgeConv",
    "FlowConv",
    "FlowModel",
    "GATConv",
    "GATv2",
    "GATv2Conv",
    "GINConv",
    "GINEConv",
    "GraphConv",
    "GraphSAGE",
    "HGTConv",
    "IgnoredWeightWarning",
    "Jumping",
    "LinearConv",
    "MLPDecoder",
    "NodeDropout",
    "PropagationConv",
    "RGCNConv",
    "RelativeTime",
    "RotatE",
    "SAGEConv",
    "TransE",
    "TypedConv",
    "TypedLinear",
    "TypedModel",
    "VRGraphSAGE",
    "VRModel",
    "flop_counter",
    "inference",
    "logistic_loss",
    "margin_loss",
    "one_vs_all_loss",
    "self_adversarial_loss",
    "softmax_loss",
]

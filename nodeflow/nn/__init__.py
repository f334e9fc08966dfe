"""Convolutions and models; each file is short enough to be the example one copies."""

from nodeflow.nn.conv import FlowConv
from nodeflow.nn.flops import flop_counter
from nodeflow.nn.gcn import GraphConv
from nodeflow.nn.gin import GINConv
from nodeflow.nn.linear import LinearConv
from nodeflow.nn.models import GCN, FlowModel, GraphSAGE
from nodeflow.nn.sage import SAGEConv
from nodeflow.nn.vr import VRGCN, PropagationConv, VRGraphSAGE, VRModel

__all__ = [
    "GCN",
    "VRGCN",
    "FlowConv",
    "FlowModel",
    "GINConv",
    "GraphConv",
    "GraphSAGE",
    "LinearConv",
    "PropagationConv",
    "SAGEConv",
    "VRGraphSAGE",
    "VRModel",
    "flop_counter",
]

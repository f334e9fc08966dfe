"""Convolutions and models; each file is short enough to be the example one copies."""

from nodeflow.nn.conv import FlowConv
from nodeflow.nn.edge import EdgeConv, GINEConv
from nodeflow.nn.flops import flop_counter
from nodeflow.nn.gat import AttentionConv, GATConv, GATv2Conv
from nodeflow.nn.gcn import GraphConv
from nodeflow.nn.gin import GINConv
from nodeflow.nn.jumping import Jumping
from nodeflow.nn.linear import LinearConv
from nodeflow.nn.models import GAT, GCN, RGCN, FlowModel, GATv2, GraphSAGE
from nodeflow.nn.rgcn import RGCNConv
from nodeflow.nn.sage import SAGEConv
from nodeflow.nn.vr import VRGCN, PropagationConv, VRGraphSAGE, VRModel

__all__ = [
    "GAT",
    "GCN",
    "RGCN",
    "VRGCN",
    "AttentionConv",
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
    "Jumping",
    "LinearConv",
    "PropagationConv",
    "RGCNConv",
    "SAGEConv",
    "VRGraphSAGE",
    "VRModel",
    "flop_counter",
]

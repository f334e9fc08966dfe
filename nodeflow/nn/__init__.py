"""Convolutions and models; each file is short enough to be the example one copies."""

from nodeflow.nn.conv import FlowConv
from nodeflow.nn.edge import EdgeConv, GINEConv
from nodeflow.nn.gat import AttentionConv, GATConv, GATv2Conv
from nodeflow.nn.gcn import GraphConv
from nodeflow.nn.models import GCN, FlowModel, GraphSAGE
from nodeflow.nn.rgcn import RGCNConv
from nodeflow.nn.sage import SAGEConv
from nodeflow.nn.vr import VRGCN, PropagationConv, VRGraphSAGE, VRModel

__all__ = [
    "GCN",
    "VRGCN",
    "AttentionConv",
    "EdgeConv",
    "FlowConv",
    "FlowModel",
    "GATConv",
    "GATv2Conv",
    "GINEConv",
    "GraphConv",
    "GraphSAGE",
    "PropagationConv",
    "RGCNConv",
    "SAGEConv",
    "VRGraphSAGE",
    "VRModel",
]

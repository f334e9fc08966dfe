"""nodeflow: layered computation graphs for sampled graph neural networks."""

from nodeflow import fn
from nodeflow._check import ALL
from nodeflow.build import create_full_node_flow, create_node_flow, flow_from_csr, flow_from_edges
from nodeflow.flow import Flow, Layer
from nodeflow.frame import Frame
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.node_flow import NodeFlow
from nodeflow.sampling import FullSampler, NeighborSampler, Sampler

__all__ = [
    "ALL",
    "Flow",
    "Frame",
    "FullSampler",
    "Graph",
    "Layer",
    "NeighborSampler",
    "NodeFlow",
    "NodeFlowLoader",
    "Sampler",
    "create_full_node_flow",
    "create_node_flow",
    "flow_from_csr",
    "flow_from_edges",
    "fn",
]

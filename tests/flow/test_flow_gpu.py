"""On a GPU, message passing, layers and loading give what they give on the CPU."""

from __future__ import annotations

import itertools

import pytest
import scipy.sparse
import torch
from _support.graphs import sparse_column

from nodeflow import Graph, NeighborSampler, NodeFlow, NodeFlowLoader, fn
from nodeflow.nn import GCN, GraphSAGE
from nodeflow.transform import add_reverse_edges

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use"),
]


def random_graph(nodes: int = 60, edges: int = 400) -> Graph:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(0, nodes, (2, edges), generator=generator)
    columns = {"h": torch.rand(nodes, 3, 4, generator=generator, dtype=torch.float64) + 0.5}
    weights = {"w": torch.rand(edges, 3, 4, generator=generator, dtype=torch.float64) + 0.5}
    return Graph.from_edges(*ends, num_nodes=nodes + 5, ndata={"h": torch.cat([columns["h"], columns["h"][:5]])},
                            edata=weights)  # fmt: skip


@pytest.fixture(scope="module")
def batch() -> NodeFlow:
    found = NeighborSampler(random_graph(), [4, 6], seed=1)(range(0, 65, 3))
    found.copy_from_parent()
    return found


def on(batch: NodeFlow, device: str) -> NodeFlow:
    moved = batch.to(device)
    for frame in itertools.chain(moved.ldata, moved.fdata):
        for name in list(frame):
            frame[name] = frame[name].detach().clone().requires_grad_()
    return moved


def test_user_defined_functions_and_subsets(batch):
    results = []
    for device in ("cpu", "cuda"):
        moved = on(batch, device)
        moved.flow_compute(
            0,
            lambda edges: {"m": edges.src["h"] * edges.data["w"] + edges.dst["h"]},
            lambda nodes: {"out": nodes.mailbox["m"].logsumexp(1)},
            lambda nodes: {"out": nodes.data["out"] * 2},
            v=[3, 1, 7],
        )
        moved.flow_send_and_recv(1, [0, 5, 2], fn.u_mul_e("h", "w", "m"), fn.sum("m", "out"))
        moved.apply_flows(0, fn.u_dot_v("h", "h", "score"))
        soft = moved.flows[0].softmax(moved.fdata[0]["score"])
        results.append([moved.ldata[1]["out"], moved.ldata[2]["out"], soft])
    for cpu, cuda in zip(*results, strict=True):
        torch.testing.assert_close(cuda.cpu(), cpu)


@pytest.mark.parametrize("model", [GraphSAGE, GCN])
@pytest.mark.parametrize("sparse", [False, True])
def test_models(model, sparse):
    graph = add_reverse_edges(random_graph())
    x = graph.ndata["h"].flatten(1)
    x = x * (x > 0.9)
    net = model(12, 8, 3, num_layers=2).double()
    found = NeighborSampler(graph, [3, 4])(range(20))
    rows = x[found.layers[0].parent_nid]
    results = []
    for device in ("cpu", "cuda"):
        net = net.to(device)
        net.zero_grad()
        h = (sparse_column(scipy.sparse.csr_array(rows.numpy())) if sparse else rows).to(device)
        out = net(found.to(device), h)
        out.square().sum().backward()
        results.append([out, *(parameter.grad.clone() for parameter in net.parameters())])
    for cpu, cuda in zip(*results, strict=True):
        torch.testing.assert_close(cuda.cpu(), cpu)
    torch.testing.assert_close(
        net.inference(graph, x.to("cuda")).cpu(), net.cpu().inference(graph, x)
    )


def test_loader_moves_batches(batch):
    graph = random_graph()
    sampler = NeighborSampler(graph, [3, 3])
    plain = NodeFlowLoader(sampler, range(60), 16, ndata={0: ["h"]})
    pinned = NodeFlowLoader(
        sampler, range(60), 16, ndata={0: ["h"]}, num_workers=2, pin_memory=True, device="cuda"
    )
    for one, two in zip(plain, pinned, strict=True):
        assert two.device.type == "cuda"
        assert torch.equal(one.ldata[0]["h"], two.ldata[0]["h"].cpu())
        assert torch.equal(one.flows[0].indices, two.flows[0].indices.cpu())

"""Adaptive layer sampling: the edges of sampled layers are weighted by learned attention. DGL 0.4
style.
"""

import torch
import torch.nn.functional as F
from torch import nn

import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.compat.dgl import DGLGraph


class Net(nn.Module):
    def __init__(self, in_feats, n_hidden, n_classes):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(in_feats, n_hidden), nn.Linear(n_hidden, n_classes)])
        self.attention = nn.Parameter(torch.zeros(in_feats, 2))

    def edge_weight(self, edges):
        near, own = (
            end["features"] @ self.attention[:, k] for k, end in enumerate((edges.src, edges.dst))
        )
        return {"w": edges.src["importance"] * (F.relu(near + own) + 1)}

    def forward(self, nf):
        nf.register_apply_edge_func(self.edge_weight)
        nf.register_message_func(fn.src_mul_edge(src="h", edge="w", out="m"))
        nf.register_reduce_func(fn.sum(msg="m", out="h"))
        for i, layer in enumerate(self.layers):

            def update(node, layer=layer, last=layer is self.layers[-1]):
                total = node.data["total"].clamp(min=1e-6).unsqueeze(1)
                h = layer(node.data["h"] / total)
                return {"h": h if last else F.relu(h)}

            nf.register_apply_node_func(update, i)
            nf.apply_block(i)
            nf.block_compute(i, fn.copy_edge(edge="w", out="m"), fn.sum(msg="m", out="total"), None)
        nf.layers[0].data["h"] = nf.layers[0].data["features"]
        nf.prop_flow()
        return nf.layers[-1].data["h"]


def importance(g, nf, i):
    """How much of the graph every node of layer i stands for: candidates drawn seldom count
    more.
    """
    degree = g.in_degrees(nf.layer_parent_nid(i)).float()
    return 1.0 / degree.sqrt()


def main(data, n_epochs=8, n_hidden=16, layer_sizes=(300, 300), batch_size=100):
    g = DGLGraph(data.adj, readonly=True)
    labels = torch.LongTensor(data.labels)
    g.ndata["features"] = torch.FloatTensor(data.features)
    model = Net(data.features.shape[1], n_hidden, data.num_labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03, weight_decay=5e-4)

    def flows(seeds, sizes, shuffle):
        for nf in dgl.contrib.sampling.LayerSampler(
            g,
            batch_size,
            list(sizes),
            neighbor_type="in",
            seed_nodes=seeds,
            shuffle=shuffle,
            num_workers=4,
        ):
            nf.copy_from_parent()
            for i in range(nf.num_blocks):
                src, dst, eid = nf.block_edges(i)
                assert bool(nf.has_edges_between(src, dst).all())
                assert torch.equal(nf.map_to_parent_eid(eid), nf.block_parent_eid(i))
                nf.layers[i].data["importance"] = importance(g, nf, i)
            yield nf

    for _ in range(n_epochs):
        for nf in flows(data.train_nid, layer_sizes, True):
            loss = F.cross_entropy(model(nf), labels[nf.layer_parent_nid(-1)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    num_acc = 0.0
    for nf in flows(data.test_nid, (3000, 3000), False):
        with torch.no_grad():
            num_acc += (model(nf).argmax(dim=1) == labels[nf.layer_parent_nid(-1)]).sum().item()
    return (num_acc / len(data.test_nid),)

"""A GCN with control variates and skip connections, and an inference pass that refreshes the
history: DGL 0.4 style.
"""

import torch
import torch.nn.functional as F
from torch import nn

import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.compat.dgl import DGLGraph

L = 2


class Update(nn.Module):
    def __init__(self, layer_id, in_feats, out_feats, activation=None, test=False, concat=False):
        super().__init__()
        self.layer_id = layer_id
        self.activation = activation
        self.test = test
        self.concat = concat
        self.linear = nn.Linear(in_feats, out_feats)

    def forward(self, node):
        h = node.data["h"]
        h = h * node.data["norm"] if self.test else h + node.data[f"agg_h_{self.layer_id - 1}"]
        h = self.linear(h)
        if self.concat:
            h = torch.cat((h, self.activation(h)), dim=1)
        return {"activation": h}


class GCN(nn.Module):
    def __init__(self, in_feats, n_hidden, n_classes, test=False):
        super().__init__()
        self.test = test
        self.linear = nn.Linear(in_feats, n_hidden)
        self.layers = nn.ModuleList(
            [
                Update(1, n_hidden, n_hidden, F.relu, test, concat=True),
                Update(2, 2 * n_hidden, n_classes, test=test),
            ]
        )

    def forward(self, nf):
        h = F.relu(self.linear(nf.layers[0].data["preprocess"]))
        for i, layer in enumerate(self.layers):
            history = f"h_{i}"
            new_history = h.clone().detach()
            nf.layers[i].data["h"] = h if self.test else h - nf.layers[i].data[history]
            if self.test:
                nf.block_compute(i, fn.copy_src(src="h", out="m"), fn.sum(msg="m", out="h"), layer)
            else:
                nf.block_compute(
                    i,
                    fn.copy_src(src="h", out="m"),
                    lambda n: {"h": n.mailbox["m"].mean(dim=1)},
                    layer,
                )
            nf.layers[i].data[history] = new_history
            h = nf.layers[i + 1].data.pop("activation")
        return h


def main(data, n_epochs=8, n_hidden=16, num_neighbors=2, batch_size=100):
    g = DGLGraph(data.adj, readonly=True)
    labels = torch.LongTensor(data.labels)
    g.ndata["features"] = torch.FloatTensor(data.features)
    g.ndata["norm"] = 1.0 / g.in_degrees().float().unsqueeze(1)
    g.update_all(
        fn.copy_src(src="features", out="m"),
        fn.sum(msg="m", out="preprocess"),
        lambda node: {"preprocess": node.data["preprocess"] * node.data["norm"]},
    )
    for i, width in enumerate((n_hidden, 2 * n_hidden)):
        g.ndata[f"h_{i}"] = torch.zeros(g.number_of_nodes(), width)
    model = GCN(data.features.shape[1], n_hidden, data.num_labels)
    infer_model = GCN(data.features.shape[1], n_hidden, data.num_labels, test=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03, weight_decay=5e-4)
    for _ in range(n_epochs):
        for nf in dgl.contrib.sampling.NeighborSampler(
            g, batch_size, num_neighbors, neighbor_type="in", shuffle=True, num_workers=32, num_hops=L,
            seed_nodes=data.train_nid,
        ):  # fmt: skip
            for i in range(L):
                agg_history = f"agg_h_{i}"
                g.pull(
                    nf.layer_parent_nid(i + 1).long(),
                    fn.copy_src(src=f"h_{i}", out="m"),
                    fn.sum(msg="m", out=agg_history),
                    lambda node, name=agg_history: {name: node.data[name] * node.data["norm"]},
                )
            nf.copy_from_parent(
                node_embed_names=[["preprocess", "h_0"], ["h_1", "agg_h_0"], ["agg_h_1"]]
            )
            loss = F.cross_entropy(model(nf), labels[nf.layer_parent_nid(-1)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            nf.copy_to_parent(node_embed_names=[["h_0"], ["h_1"], []])
    infer_model.load_state_dict(model.state_dict())
    nf = dgl.contrib.sampling.sampler.create_full_nodeflow(g, L)
    nf.copy_from_parent(node_embed_names=[["preprocess"], ["norm"], ["norm"]])
    with torch.no_grad():
        pred = infer_model(nf)
    # the history of all nodes is that of the final weights
    nf.copy_to_parent(node_embed_names=[["h_0"], ["h_1"], []])
    stale = (g.ndata["h_0"] - F.relu(infer_model.linear(g.ndata["preprocess"]))).abs().max()
    return (
        pred.argmax(dim=1)[data.test_nid] == labels[data.test_nid]
    ).float().mean().item(), stale.item()

"""A GCN with skip connections, trained on sampled neighbours: a program for DGL 0.4 with other import lines."""

import torch
import torch.nn.functional as F
from torch import nn

import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.compat.dgl import DGLGraph


class Update(nn.Module):
    def __init__(self, in_feats, out_feats, activation=None, test=False, concat=False):
        super().__init__()
        self.linear = nn.Linear(in_feats, out_feats)
        self.activation, self.test, self.concat = activation, test, concat

    def forward(self, node):
        h = node.data["h"]
        if self.test:
            h = h * node.data["norm"]
        h = self.linear(h)
        if self.concat:
            h = torch.cat((h, self.activation(h)), dim=1)
        elif self.activation:
            h = self.activation(h)
        return {"activation": h}


class GCN(nn.Module):
    def __init__(self, in_feats, n_hidden, n_classes, test=False):
        super().__init__()
        self.test = test
        self.layers = nn.ModuleList(
            [Update(in_feats, n_hidden, F.relu, test, concat=True), Update(2 * n_hidden, n_classes, test=test)]
        )

    def forward(self, nf):
        nf.layers[0].data["activation"] = nf.layers[0].data["features"]
        for i, layer in enumerate(self.layers):
            nf.layers[i].data["h"] = nf.layers[i].data.pop("activation")
            if self.test:
                nf.block_compute(i, fn.copy_src(src="h", out="m"), fn.sum(msg="m", out="h"), layer)
            else:
                nf.block_compute(i, fn.copy_src(src="h", out="m"), lambda n: {"h": n.mailbox["m"].mean(dim=1)}, layer)
        return nf.layers[-1].data.pop("activation")


def main(data, n_epochs=8, n_hidden=16, num_neighbors=4, batch_size=100):
    g = DGLGraph(data.adj, readonly=True)
    labels = torch.LongTensor(data.labels)
    g.ndata["features"] = torch.FloatTensor(data.features)
    g.ndata["norm"] = 1.0 / g.in_degrees().float().unsqueeze(1)
    model = GCN(data.features.shape[1], n_hidden, data.num_labels)
    infer_model = GCN(data.features.shape[1], n_hidden, data.num_labels, test=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03, weight_decay=5e-4)
    for _ in range(n_epochs):
        for nf in dgl.contrib.sampling.NeighborSampler(
            g, batch_size, num_neighbors, neighbor_type="in", shuffle=True, num_workers=32, num_hops=2,
            seed_nodes=data.train_nid,
        ):  # fmt: skip
            nf.copy_from_parent()
            loss = F.cross_entropy(model(nf), labels[nf.layer_parent_nid(-1)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    infer_model.load_state_dict(model.state_dict())
    num_acc = 0.0
    for nf in dgl.contrib.sampling.NeighborSampler(
        g, batch_size, g.number_of_nodes(), neighbor_type="in", num_workers=32, num_hops=2, seed_nodes=data.test_nid
    ):
        nf.copy_from_parent()
        with torch.no_grad():
            num_acc += (infer_model(nf).argmax(dim=1) == labels[nf.layer_parent_nid(-1)]).sum().item()
    return num_acc / len(data.test_nid)

"""What the converters rely on in DGL. ``python dgl_contract.py`` checks it where DGL is installed;
torch is enough.

``python dgl_contract.py FILE`` also writes blocks that DGL's samplers drew, as in
``tests/convert/dgl_blocks.npz``.

The ordinary tests run ``check`` on ``dgl_double.py``. With ``NODEFLOW_DGL_PYTHON`` set to an
interpreter that has DGL they run this file there too.
"""

from __future__ import annotations

from typing import Any

import torch


def check(dgl: Any) -> None:
    """Fail unless the module ``dgl`` does what the converters rely on."""
    check_graphs(dgl)
    check_types(dgl)
    check_blocks(dgl)
    assert dgl.NID == dgl.EID == "_ID"
    mixed = dgl.heterograph({("user", "buys", "item"): (torch.tensor([0]), torch.tensor([1]))})
    assert not mixed.is_homogeneous
    assert not mixed.is_block


def check_graphs(dgl: Any) -> None:
    """Ids, repeated edges, self-loops, isolated nodes, and columns of all types stay."""
    src = torch.tensor([2, 0, 0, 3])
    dst = torch.tensor([1, 1, 1, 3])
    graph = dgl.graph((src, dst), num_nodes=6)
    assert graph.is_homogeneous
    assert not graph.is_block
    assert (graph.num_nodes(), graph.num_edges()) == (6, 4)
    assert [end.tolist() for end in graph.edges(order="eid")] == [src.tolist(), dst.tolist()]
    assert all(end.dtype == torch.int64 for end in graph.edges(order="eid"))
    types = (
        torch.bool,
        torch.int8,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    )
    for dtype in types:
        column = torch.tensor([[0, 1]] * 6).to(dtype)
        graph.ndata["x"] = column
        graph.edata["x"] = column[:4]
        for frame, rows in ((graph.ndata, column), (graph.edata, column[:4])):
            assert dict(frame)["x"].dtype == dtype
            assert torch.equal(dict(frame)["x"], rows)
    try:
        graph.ndata["short"] = torch.ones(5)
    except Exception as error:
        assert type(error).__name__ == "DGLError"  # noqa: PT017
    else:
        raise AssertionError("a column of a wrong length was taken")
    empty = dgl.graph(([], []), num_nodes=0)
    assert (
        empty.num_nodes(),
        empty.num_edges(),
        [len(end) for end in empty.edges(order="eid")],
    ) == (0, 0, [0, 0])


def check_types(dgl: Any) -> None:
    """Types are sorted by name, and each has its size, ids and columns; a relation without edges
    stays too.
    """
    edges = {
        ("user", "buys", "item"): (torch.tensor([2, 0, 2]), torch.tensor([1, 1, 0])),
        ("user", "buys", "user"): (
            torch.tensor([], dtype=torch.int64),
            torch.tensor([], dtype=torch.int64),
        ),
        ("item", "is", "item"): (torch.tensor([3]), torch.tensor([0])),
    }
    graph = dgl.heterograph(edges, {"user": 3, "item": 4, "alone": 2, "none": 0})
    assert (graph.ntypes, graph.canonical_etypes) == (
        ["alone", "item", "none", "user"],
        sorted(edges),
    )
    assert [graph.num_nodes(name) for name in graph.ntypes] == [2, 4, 0, 3]
    for relation, ends in edges.items():
        for end, other in zip(graph.edges(order="eid", etype=relation), ends):  # noqa: B905 - DGL's Python may be older
            assert end.dtype == torch.int64
            assert torch.equal(end, other)
        graph.edges[relation].data["w"] = torch.arange(len(ends[0]))
    for name in graph.ntypes:
        graph.nodes[name].data["x"] = torch.ones(graph.num_nodes(name), 2)
    assert [len(dict(graph.edges[r].data)["w"]) for r in edges] == [3, 0, 1]
    assert [len(dict(graph.nodes[name].data)["x"]) for name in graph.ntypes] == [2, 4, 0, 3]
    plain = dgl.graph(([0], [1]), num_nodes=3)
    assert (plain.ntypes, plain.canonical_etypes) == (["_N"], [("_N", "_E", "_N")])
    same = dgl.heterograph({("_N", "_E", "_N"): (torch.tensor([0]), torch.tensor([1]))}, {"_N": 3})
    assert same.is_homogeneous
    same.ndata["x"] = torch.ones(3)
    same.edata["x"] = torch.ones(1)
    assert (list(same.nodes["_N"].data), list(same.edges["_N", "_E", "_N"].data)) == (["x"], ["x"])


def check_blocks(dgl: Any) -> None:
    """A block keeps the order of its edges, and its two sides have frames of their own."""
    block = dgl.create_block(
        (torch.tensor([1, 2, 0]), torch.tensor([1, 0, 1])), num_src_nodes=4, num_dst_nodes=2
    )
    assert block.is_block
    assert not block.is_homogeneous
    assert (block.num_src_nodes(), block.num_dst_nodes(), block.num_edges()) == (4, 2, 3)
    assert [end.tolist() for end in block.edges(order="eid")] == [[1, 2, 0], [1, 0, 1]]
    block.srcdata["x"] = torch.ones(4)
    block.dstdata["x"] = torch.zeros(2)
    block.edata["w"] = torch.ones(3)
    block.srcdata[dgl.NID] = torch.tensor([5, 6, 7, 8])
    assert sorted(dict(block.srcdata)) == ["_ID", "x"]
    assert dict(block.srcdata)["x"].tolist() == [1, 1, 1, 1]
    assert dict(block.dstdata)["x"].tolist() == [0, 0]
    assert list(dict(block.dstdata)) == ["x"]
    assert list(dict(block.edata)) == ["w"]


def check_samplers(dgl: Any) -> None:
    """What DGL's own samplers hand out (not part of the stand-in)."""
    torch.manual_seed(0)
    graph = dgl.graph((torch.randint(0, 30, (200,)), torch.randint(0, 30, (200,))), num_nodes=30)
    graph.ndata["x"] = torch.arange(30.0)
    graph.edata["w"] = torch.arange(200.0)
    for sampler in (
        dgl.dataloading.NeighborSampler([2, 3]),
        dgl.dataloading.LaborSampler([2, 3], importance_sampling=1),
    ):
        inputs, outputs, blocks = sampler.sample(graph, torch.tensor([3, 4]))
        assert outputs.tolist() == [3, 4]
        assert torch.equal(dict(blocks[0].srcdata)["_ID"], inputs)
        for low, high in zip(blocks[:-1], blocks[1:]):  # noqa: B905, RUF007 - DGL's Python may be older
            assert torch.equal(dict(low.dstdata)["_ID"], dict(high.srcdata)["_ID"])
        for block in blocks:
            src, dst = block.edges(order="eid")
            nodes = dict(block.srcdata)["_ID"]
            ids = dict(block.edata)["_ID"]
            assert torch.equal(dict(block.dstdata)["_ID"], nodes[: block.num_dst_nodes()])
            assert torch.equal(
                torch.stack([nodes[src], nodes[dst]]), torch.stack(graph.find_edges(ids))
            )
            assert torch.equal(dict(block.edata)["w"], ids.float())
            weighted = "edge_weights" in dict(block.edata)
            assert weighted == isinstance(sampler, dgl.dataloading.LaborSampler)


def write_blocks(dgl: Any, path: str) -> None:
    """Write a graph, and the arrays of the blocks that two samplers of DGL draw from it."""
    import numpy as np

    torch.manual_seed(1)
    graph = dgl.graph((torch.randint(0, 30, (200,)), torch.randint(0, 30, (200,))), num_nodes=30)
    arrays = dict(zip(("src", "dst"), graph.edges(order="eid")))  # noqa: B905 - DGL's Python may be older
    samplers = {"neighbor": dgl.dataloading.NeighborSampler([2, 3])}
    samplers["labor"] = dgl.dataloading.LaborSampler([2, 3], importance_sampling=1)
    for name, sampler in samplers.items():
        for i, block in enumerate(sampler.sample(graph, torch.tensor([3, 17, 4]))[2]):
            ends = block.edges(order="eid")
            frames = (block.srcdata, block.dstdata, block.edata)
            arrays |= {f"{name}.{i}.{end}": ids for end, ids in zip(("src", "dst"), ends)}  # noqa: B905
            arrays |= {
                f"{name}.{i}.{part}_ids": f["_ID"]
                for part, f in zip(("src", "dst", "edge"), frames)  # noqa: B905
            }
            if "edge_weights" in dict(block.edata):
                arrays[f"{name}.{i}.weights"] = block.edata["edge_weights"]
    np.savez_compressed(path, **{name: array.numpy() for name, array in arrays.items()})


if __name__ == "__main__":
    import sys

    import dgl

    check(dgl)
    check_samplers(dgl)
    print(f"DGL {dgl.__version__} does what the converters rely on")
    if len(sys.argv) > 1:
        write_blocks(dgl, sys.argv[1])

"""Parts of graphs of several node types: what is drawn, fetched and computed on them is that of the
whole graph.
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from _support.file_formats import changed_manifest
from _support.partition_tools import check_parts, cut_into, in_small_pieces
from _support.ranks import HALOS, Parts, ThreadTransport, group, run_ranks
from _support.sampler_families import fingerprint
from _support.typed_nn import typed_graph
from _support.views import viewed
from hypothesis import given, settings, strategies as st

from nodeflow import (
    BernoulliSampler,
    FullSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LinkSampler,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    SeedTable,
    ShadowSampler,
    TemporalNeighborSampler,
    nn,
)
from nodeflow.distributed import DistributedGraph, GraphParts
from nodeflow.propagation import Propagation
from nodeflow.sampling.base import SamplerBase
from nodeflow.storage import EmbeddingTable
from nodeflow.testing import typed_graphs

Make = Callable[[Graph], SamplerBase]


def with_columns(graph: Graph) -> Graph:
    """Columns of all nodes and edges, of some types and of some relations, of other widths for
    each.
    """
    graph.ndata["all"], graph.edata["w"] = (
        torch.arange(graph.num_nodes),
        torch.rand(graph.num_edges) + 0.1,
    )
    for i, part in enumerate(graph.nodes.values()):
        part.data["x"] = torch.arange(len(part) * (i + 2.0)).view(len(part), i + 2)
        if i % 2 == 0:
            part.data["time"] = torch.arange(len(part)) % 5
    for i, edges in enumerate(graph.relations.values()):
        edges.data["y"] = torch.arange(len(edges) * (i + 1.0)).view(len(edges), i + 1)
        if i % 2:
            edges.data["time"] = torch.arange(len(edges)) % 7
        else:
            edges.data["v"], edges.data["kept"] = (
                torch.rand(len(edges)) + 0.1,
                torch.arange(len(edges)) % 2 == 0,
            )
    return graph


def whole() -> Graph:
    torch.manual_seed(4)
    return with_columns(typed_graph())


WHOLE = whole()
OWNER = [(7 * v) % 3 if v % 4 else 2 for v in range(WHOLE.num_nodes)]
THREE = Parts(WHOLE, OWNER, 3)
SEEDS = [[1, 12, 7, 17], [], [18, 3, 12, 12]]


def drawn(batch: NodeFlow) -> str:
    """A hash of a batch with all columns of its graph, those of types and relations too."""
    batch.copy_from_parent()
    digest = hashlib.sha256(fingerprint(batch).encode())
    assert batch.parent is not None
    parts = [layer.of(name) for layer in batch.layers for name in batch.parent.schema.nodes]
    parts += [
        flow.of(name) for _, flow in batch.flows.items() for name in batch.parent.schema.relations
    ]
    for part in parts:
        for column in sorted(part.data):
            digest.update(f"{column}{part.data[column].tolist()}".encode())
    return digest.hexdigest()


SAMPLERS: dict[str, Make] = {
    "full": lambda g: FullSampler(g, 2),
    "neighbor": lambda g: NeighborSampler(g, [2, 1]),
    "neighbor, replace": lambda g: NeighborSampler(g.view(weight="w"), [2, 2], replace=True),
    "neighbor, some relations": lambda g: NeighborSampler(
        g, [{"writes": 1, "cites": -1}, {"knows": 2, "of": 1}]
    ),
    "neighbor, filter": lambda g: NeighborSampler(
        g.view(where=np.arange(g.num_edges) % 3 > 0), [2, 2], prob="w"
    ),
    "neighbor, reuse": lambda g: NeighborSampler(g, [2, 2], reuse=True),
    "neighbor, columns of relations": lambda g: NeighborSampler(
        g.view(where="kept", weight="v"), [2, 1], prob="v"
    ),
    "bernoulli": lambda g: BernoulliSampler(g, [2, 1]),
    "labor": lambda g: LaborSampler(g, [2, 1]),
    "labor, 1": lambda g: LaborSampler(g, [2, 1], iterations=1),
    "ladies": lambda g: LadiesSampler(g, [{"author": 3, "paper.x": 2}, 4]),
    "ladies, weighted": lambda g: LadiesSampler(g.view(weight="w"), [3, 4]),
    "shadow": lambda g: ShadowSampler(g, 2, depth=2, fanout=2),
    "temporal": lambda g: TemporalNeighborSampler(g, [2, 3], time="time"),
    "temporal, recent": lambda g: TemporalNeighborSampler(
        g, [2, 3], time="time", strategy="recent"
    ),
}


def called(sampler: SamplerBase, seeds: list[int], **which: int) -> str:
    more = {"times": [(5 * seed) % 7 for seed in seeds]} if sampler.takes_times else {}
    return drawn(sampler(seeds, **more, **which))


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_draw_as_in_one_process(name):
    left = [[0, 30, 77], [], [12]]

    def work(graph: Graph, rank: int) -> list[str]:
        sampler: Any = SAMPLERS[name](graph)
        out = sampler.without_edges(left[rank])
        return [
            called(sampler, SEEDS[rank]),
            called(sampler, SEEDS[rank], epoch=3),
            called(out, SEEDS[rank]),
        ]

    assert THREE.run(work) == [work(WHOLE, rank) for rank in range(3)]


@settings(max_examples=25)
@given(typed_graphs(), st.data())
def test_any_graph_any_cut(graph, data):
    size = data.draw(st.integers(1, 4))
    few = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=7))
    direction = data.draw(st.sampled_from(["in", "out"]))
    owner = [few[v % len(few)] for v in range(graph.num_nodes)]
    halo = data.draw(st.sampled_from(HALOS))
    parts = Parts(with_columns(graph), owner, size, direction, halo)
    some = st.lists(
        st.integers(0, max(graph.num_nodes - 1, 0)), max_size=5 if graph.num_nodes else 0
    )
    seeds = [data.draw(some) for _ in range(size)]

    def work(graph: Graph, rank: int) -> list[str]:
        kinds = [NeighborSampler, LaborSampler, TemporalNeighborSampler]
        return [
            called(viewed(kind, graph, [2, 1, -1], direction=direction), seeds[rank])
            for kind in kinds
        ]

    assert parts.run(work) == [work(graph, rank) for rank in range(size)]


@pytest.mark.parametrize("edges", ["in", "out"])
def test_a_folder_holds_types_and_their_columns(tmp_path, edges):
    graph = whole()
    sparse = torch.eye(9)[:, :4].to_sparse_csr()
    graph.nodes["paper.x"].data["words"] = sparse
    with in_small_pieces():
        parts = cut_into(graph, tmp_path / "parts", 3, method=OWNER, edges=edges, train=[12, 3])
    check_parts(graph, parts)
    assert parts.schema == graph.schema
    assert "19 nodes (author 7, type 3, paper.x 9, empty 0), 125 edges" in repr(parts)
    opened = GraphParts.open(tmp_path / "parts", verify=True)

    def work(transport: ThreadTransport) -> None:
        peers = group(transport, opened)
        held = DistributedGraph(opened, opened.part(transport.rank), peers)
        for mine, known in ((held.nodes, graph.nodes), (held.relations, graph.relations)):
            assert list(mine) == list(known)
            for name, part in mine.items():
                assert sorted(part.data) == sorted(known[name].data)
                for column, rows in part.data.items():
                    ids = (
                        torch.randint(len(part), (4,))
                        if len(part) and transport.rank
                        else torch.arange(0)
                    )
                    expected = known[name].data[column]
                    expected = expected.to_dense() if column == "words" else expected
                    got = rows.fetch(ids)
                    assert torch.equal(got.to_dense() if column == "words" else got, expected[ids])
        papers = held.nodes["paper.x"]
        local = (
            held.masters[(held.masters >= papers.ids.start) & (held.masters < papers.ids.stop)]
            - papers.ids.start
        )
        assert torch.equal(papers.data["x"].held_rows, graph.nodes["paper.x"].data["x"][local])
        with pytest.raises(IndexError, match="ids"):
            papers.data["x"].fetch([9])

    run_ranks(3, work)


def test_columns_are_chosen_by_name(tmp_path):
    parts = cut_into(WHOLE, tmp_path / "some", 2, ndata=["x"], edata=[])
    frames = parts.part(0).frames
    assert [list(frames[f"nodes{i}_"]) for i in range(4)] == [["x"]] * 4
    assert not any(frames[f"edges{i}_"] for i in range(6))


@pytest.mark.parametrize("edges", ["in", "out"])
def test_one_part_is_the_graph_itself(tmp_path, edges):
    cut_into(WHOLE, tmp_path / "one", 1, edges=edges)
    graph = DistributedGraph.open(tmp_path / "one")
    assert type(graph) is Graph
    assert graph.masters.tolist() == list(range(WHOLE.num_nodes))
    assert not graph.in_parts
    assert graph.schema == WHOLE.schema
    assert drawn(NeighborSampler(graph, [2, 2])(SEEDS[0])) == drawn(
        NeighborSampler(WHOLE, [2, 2])(SEEDS[0])
    )


def test_loaders_tables_and_links():
    table = {
        "nodes": [8, 0, 3, 5, 2],
        "cited": torch.arange(5.0),
        "time": torch.tensor([1, 5, 6, 2, 3]),
    }

    def work(graph: Graph, rank: int, share: Any) -> list[str]:
        papers = SeedTable(graph, "paper.x", "nodes", time="time", data=dict(table))
        sampler = TemporalNeighborSampler(graph, [2, 2])
        batches = [
            *NodeFlowLoader(
                sampler,
                papers,
                1,
                shuffle=True,
                ndata=["x"],
                edata=["y"],
                num_workers=1,
                **(share or {}),
            )
        ]
        pairs = {"writes": [[1, 2], [0, 0]], "knows": [[0, 3]]}
        for options in (
            {},
            {"negatives": "degree", "corrupt": "both"},
            {"pairs": pairs, "filter_known": True, "known": pairs},
        ):
            links = LinkSampler(
                NeighborSampler(graph, [2, 2]), num_negatives=3, exclude="reverse", **options
            )
            batches.append(links([2, 0] if "pairs" in options else [0, 26, 60][rank:]))
        timed = LinkSampler(sampler, num_negatives=2, exclude="self")
        batches.append(timed([3, 30][rank:], times=[6, 5][rank:]))
        words = [
            f"{[(name, column.tolist()) for name, column in batch.seed_data.items()]}"
            for batch in batches
        ]
        return [drawn(batch) for batch in batches] + words

    expected = [work(WHOLE, rank, {"rank": rank, "world_size": 3}) for rank in range(3)]
    assert THREE.run(lambda graph, rank: work(graph, rank, None)) == expected


@pytest.mark.parametrize("exclude", ["reverse", ["cites"], ["extends", "rev_cites"]])
def test_links_leave_out_the_relations_that_they_name(exclude):
    ring = [0, 1, 2, 3], [1, 2, 3, 0]
    edges = {("p", "cites", "p"): ring, ("p", "extends", "p"): ring}
    graph = Graph.typed({"p": 4}, edges, reverse=True)

    def work(graph: Graph, rank: int) -> list[int]:
        return sorted(
            LinkSampler(FullSampler(graph, 1), exclude=exclude)([rank, 2])
            .flows[0]
            .parent_eid.tolist()
        )

    one_process = [work(graph, rank) for rank in range(2)]
    assert Parts(graph, [0, 1, 0, 1], 2).run(work) == one_process
    hidden = {"cites", "rev_cites"} if exclude == "reverse" else {*exclude}
    names = [name for _, name, _ in graph.schema.relations]
    drawn = Counter(names[i] for i in graph.schema.relations_of(torch.tensor(one_process[0])))
    # of both seeds, in a ring of 4
    assert drawn == {name: 2 if name in hidden else 4 for name in names}


@pytest.mark.parametrize("kind", ["hgt", "rgcn", "typed"])
@pytest.mark.parametrize("chunk_size", [None, 2])
def test_full_passes(kind, chunk_size):
    schema = WHOLE.schema
    torch.manual_seed(2)
    convs = {
        "hgt": lambda: nn.HGTConv(4, 4, schema, heads=2),
        "rgcn": lambda: nn.RGCNConv(4, 4, schema),
        "typed": lambda: nn.TypedConv({r: nn.SAGEConv(4, 4) for r in schema.relations}),
    }
    encoder = nn.TypedLinear(
        {"author": 2, "type": 3, "paper.x": torch.nn.Embedding(9, 4), "empty": 5}, 4
    )
    model = nn.TypedModel(encoder, [convs[kind]() for _ in range(2)], 3, norm="layer")
    expected = model.inference(WHOLE, chunk_size=chunk_size)

    def work(graph: Graph, rank: int) -> None:
        own = copy.deepcopy(model)
        torch.testing.assert_close(
            own.inference(graph, chunk_size=chunk_size), expected[graph.masters]
        )
        some = SEEDS[rank]
        torch.testing.assert_close(
            own.inference(graph, nodes=some, chunk_size=chunk_size), expected[some]
        )
        assert torch.equal(own.encoder(graph), encoder(WHOLE))

    THREE.run(work)


def test_a_table_of_all_nodes_serves_several_types():
    def learned(graph: Graph, ranks: list[int]) -> torch.Tensor:
        table = EmbeddingTable(graph, 4, lr=0.1, dtype=torch.float64, seed=3)
        encoder = nn.TypedLinear(
            {"author": table, "paper.x": table, "type": 3, "empty": table}, 4
        ).double()
        # ranks are threads here, which share torch's random numbers
        for weight in encoder.parameters():
            torch.nn.init.constant_(weight, 0.3)
        for _ in range(2):
            rows = []
            for rank in ranks:
                batch = NeighborSampler(graph, [2])(SEEDS[rank])
                batch.copy_from_parent(["x"])
                rows.append(encoder(batch).pow(2).sum())
            torch.stack(rows).sum().backward()
            table.step()
        return encoder(graph)

    expected = learned(WHOLE, [0, 1, 2])
    for rows in THREE.run(lambda graph, rank: learned(graph, [rank])):
        torch.testing.assert_close(rows, expected, rtol=1e-12, atol=1e-12)
    encoder = nn.TypedLinear({"author": EmbeddingTable(8, 4, lr=0.1)}, 4)
    with pytest.raises(
        ValueError, match="the table of 'author' must have a row per node of the type, 7, or of the"
    ):
        encoder(WHOLE)


def test_folders_of_before_have_one_type(tmp_path):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], ndata={"x": torch.rand(3)})
    cut_into(graph, tmp_path / "parts", 2)
    with changed_manifest(tmp_path / "parts") as manifest:
        del manifest["facts"]["schema"]
    parts = GraphParts.open(tmp_path / "parts")
    assert parts.schema == graph.schema
    assert list(parts.part(0).ndata) == ["x"]
    with changed_manifest(tmp_path / "parts") as manifest:
        manifest["facts"]["schema"] = WHOLE.schema.to_json()
    with pytest.raises(ValueError, match="sizes and arrays do not fit together"):
        GraphParts.open(tmp_path / "parts")


def test_full_flows_have_the_columns_of_relations():
    def work(graph: Graph, rank: int) -> None:
        flow = Propagation(graph).flow(0, len(graph.masters))
        for name, edges in WHOLE.relations.items():
            of = flow.of(name)
            assert torch.equal(of.data["y"], edges.data["y"][of.parent_eid - edges.ids.start])

    THREE.run(work)

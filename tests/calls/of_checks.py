"""Calls that users get wrong, of ids in every form, of words of other libraries and of checks."""

from __future__ import annotations

_Rows = list[tuple[str, str, str]]

_IDS = (
    ("[0, 1, 20]", "IndexError", "v[2] is 20, but node ids go from 0 to 19"),
    ("[0, -1]", "IndexError", "v[1] is -1, but node ids go from 0 to 19"),
    ("np.array([2**64 - 1], np.uint64)", "IndexError", "v[0] is 18446744073709551615"),
    ("np.array([50], np.int8)", "IndexError", "v[0] is 50"),
    ("[1.0]", "TypeError", "integer node ids, got dtype float64"),
    ("torch.tensor([1.0])", "TypeError", "integer node ids, got dtype float32"),
    ("torch.ones(1).bfloat16()", "TypeError", "v must be dense integers, got"),
    ("torch.tensor([1]).to_sparse()", "TypeError", "v must be dense integers, got"),
    ("[True, False]", "TypeError", "a bool in it"),
    ("[2, True]", "TypeError", "a bool in it"),
    ("[np.True_, 1]", "TypeError", "a bool in it"),
    ("[[0, 1]]", "ValueError", "one-dimensional, got shape (1, 2)"),
    ("[[0], [1, 2]]", "ValueError", "v must be one-dimensional"),
    ("torch.tensor(1)", "(TypeError, ValueError)", "v must be"),
    ("3", "TypeError", "v must be a tensor, an array or a list of node ids, got int 3"),
    ("'12'", "TypeError", "v must be a tensor, an array or a list"),
    ("{0: 1}", "TypeError", "v must be a tensor, an array or a list"),
    ("None", "TypeError", "got NoneType None"),
    ("['a']", "TypeError", "integer node ids"),
    ("[None]", "TypeError", "integer node ids"),
    ("[2**70]", "TypeError", "integer node ids"),
)
_COUNTS = ("True", "np.True_", "1.0", "'1'", "torch.tensor(True)", "np.array(1.5)", "[1]")
OF_CHECKS: dict[str, _Rows] = {
    "Ids in every form": [
        *((f"graph.in_edges({value})", error, words) for value, error, words in _IDS),
        ("Graph([0], []).in_edges([0])", "IndexError", "v[0] is 0, but there is no node at all"),
        *(
            (f"FullSampler(graph, {value})", "TypeError", "num_flows must be an integer, got ")
            for value in _COUNTS
        ),
    ],
    "Words of other libraries": [
        (
            "nn.GraphSAGE(in_channels=4, hidden=4, out_features=2)",
            "TypeError",
            "'in_channels'; it is called in_features=",
        ),
        ("nn.GraphSAGE(4, 4)", "TypeError", "missing a required argument: 'out_features'"),
        (
            "nn.GraphSAGE(4, aggregator='mean')",
            "TypeError",
            "GraphSAGE: missing a required argument: 'hidden'",
        ),
        (
            "nn.GAT(4, 4, 4, num_heads=2)",
            "TypeError",
            "'num_heads'; it is called heads= here",
        ),
        ("nn.DistMult(64, num_rels=4)", "TypeError", "'num_rels'; it is called num_relations="),
        (
            "nn.TransE(4, gamma=1)",
            "TypeError",
            "'gamma'; it takes width, num_relations, inverse, norm",
        ),
        ("nn.SAGEConv(4, 4, aggregator_type='mean')", "TypeError", "it is called aggregator="),
        (
            "nn.SAGEConv(1, 2, 'mean', False, True, 'auto', 3)",
            "TypeError",
            "SAGEConv: too many positional",
        ),
        ("LinkSampler(sampler, neg_ratio=3)", "TypeError", "it is called num_negatives="),
        ("NodeFlowLoader(sampler, input_nodes=[1])", "TypeError", "it is called seeds="),
        ("nn.GraphSAGE('a', 4, 4)", "TypeError", "in_features must be an integer, got str 'a'"),
        ("batch.chunks", "AttributeError", "only batches of a LinkSampler"),
    ],
    "Checks of samplers and layers": [
        ("testing.assert_unbiased(sampler, [])", "ValueError", "seeds must not be empty"),
        (
            "testing.assert_unbiased(sampler, [0], draws=1)",
            "ValueError",
            "draws must be at least 2",
        ),
        *(
            (
                f"testing.assert_unbiased(sampler, [0], false_alarm={rate})",
                "ValueError",
                "false_alarm must be above 0",
            )
            for rate in ("0.0", "1.0")
        ),
        (
            "testing.assert_unbiased(sampler, [0], nodes=[0])",
            "TypeError",
            "nodes and batch_size are for samplers of subgraphs, NeighborSampler is none",
        ),
        (
            "testing.assert_unbiased(SaintSampler(graph, 1, kind='node', budget=1), [])",
            "ValueError",
            "seeds must not be empty",
        ),
        (
            "testing.assert_unbiased(SaintSampler(graph, 1, kind='node', budget=1), [0], nodes=[0], draws=150)",
            "ValueError",
            "none of the 1 nodes is in 100 of the 150 draws; take more draws",
        ),
        *(
            (
                f"testing.assert_unbiased({other}, [0])",
                "TypeError",
                "sampler must be a nodeflow.Sampler or a nodeflow.sampling.base.SubgraphSampler",
            )
            for other in ("ShadowSampler(graph, 1, 1, 2)", "LinkSampler(sampler)")
        ),
        ("testing.assert_reproducible(timed, [])", "TypeError", "pass a time for every seed"),
        (
            "testing.check_sampler(sampler, expect_fail={'colour': 'none'})",
            "ValueError",
            "a name in expect_fail must be",
        ),
        ("testing.check_sampler(3)", "TypeError", "sampler must be a sampler, or a function"),
        (
            "testing.check_sampler(sampler, budget=8.0)",
            "TypeError",
            "budget must be an integer, got",
        ),
        (
            "testing.check_sampler(sampler, budget=-1)",
            "ValueError",
            "budget must be at least 0, got -1",
        ),
        (
            "testing.check_sampler(sampler, checks=['future'])",
            "AssertionError",
            "no check ran, so nothing is known",
        ),
        (
            "testing.check_layer(lambda: 3, 4)",
            "TypeError",
            "layer must be a torch.nn.Module",
        ),
        ("testing.check_layer(conv, 0)", "ValueError", "in_features must be at least 1"),
        (
            "testing.check_layer(conv, 4, graph=graph, schema=graph.schema)",
            "TypeError",
            "schema is for the graph that is made without graph=",
        ),
    ],
}
"""Rows by what they are about, as in ``by_hand``."""

"""Wrong calls of samplers, and of the edges and columns that they read."""

from __future__ import annotations

OF_SAMPLERS: dict[str, list[tuple[str, str, str]]] = {
    "Arguments of samplers": [
        ("NeighborSampler(graph, torch.zeros(0, dtype=torch.int64))", "ValueError", "got none"),
        (
            "NeighborSampler(graph, [0])",
            "ValueError",
            "fanouts[0] must be -1 (all neighbours) or at least 1, got 0",
        ),
        (
            "NeighborSampler(graph, [3, -2])",
            "ValueError",
            "fanouts[1] must be -1 (all neighbours) or at least 1, got -2",
        ),
        ("NeighborSampler(graph, [2 ** 63])", "ValueError", "fanouts[0]"),
        (
            "NeighborSampler(graph, 5)",
            "TypeError",
            "fanouts must be a list with one number per flow, as in [10, 25], or a dict",
        ),
        ("NeighborSampler(graph, True)", "TypeError", "fanouts must be a list"),
        ("NeighborSampler(graph, None)", "TypeError", "are needed, or num_neighbors"),
        ("NeighborSampler(graph, '12')", "TypeError", "fanouts must be a list"),
        ("NeighborSampler(graph, {1: 2})", "TypeError", "fanouts must be a list"),
        (
            "NeighborSampler(graph, np.ones((1, 2), np.int64))",
            "TypeError",
            "fanouts must be a list",
        ),
        (
            "NeighborSampler(graph, [2.0])",
            "TypeError",
            "fanouts[0] must be an integer, got float 2.0",
        ),
        (
            "NeighborSampler(graph, [1, True])",
            "TypeError",
            "fanouts[1] must be an integer, got bool True",
        ),
        ("NeighborSampler(graph, [[1, 2]])", "TypeError", "fanouts[0] must be an integer"),
        (
            "NeighborSampler((graph.indptr, graph.indices), [2])",
            "TypeError",
            "graph must be a nodeflow.Graph",
        ),
        ("NeighborSampler(graph.view(None), [2])", "ValueError", "direction must be"),
        (
            "NeighborSampler(graph, [2], reuse=True, include_dst=False)",
            "ValueError",
            "needs include_dst=True",
        ),
        (
            "FullSampler(graph, 1, reuse=True, include_dst=False)",
            "ValueError",
            "needs include_dst=True",
        ),
        ("NeighborSampler(graph, [2], seed=0.5)", "TypeError", "seed must be an integer"),
        ("NeighborSampler(graph, [2], True)", "TypeError", "positional"),
        ("FullSampler(graph, 0)", "ValueError", "num_flows must be at least 1, got 0"),
        ("NeighborSampler(graph, [2])([1], epoch=0.5)", "TypeError", "epoch must be an integer"),
        (
            "NeighborSampler(graph, [2])([1], batch_number='a')",
            "TypeError",
            "batch_number must be an integer",
        ),
        ("NeighborSampler(Graph([0], []), [2])([0])", "IndexError", "there is no node at all"),
        (
            "NeighborSampler(graph, [2 ** 62], replace=True)",
            "ValueError",
            "with replacement must be at most 16777216",
        ),
        (
            "NeighborSampler(graph, [1])({0, 1})",
            "TypeError",
            "must be ordered, got a set; pass sorted(seeds)",
        ),
        (
            "BernoulliSampler(graph)",
            "ValueError",
            "takes either fanouts, as in [10, 25], or rates, as in [0.1, 0.5]; got "
            "fanouts=None and",
        ),
        ("BernoulliSampler(graph, fanouts=[1], rates=[0.5])", "ValueError", "got fanouts=[1] and"),
        (
            "BernoulliSampler(graph, rates=0.5)",
            "TypeError",
            "rates must be a list with one number per flow, as in [0.1, 0.5], or a dict of "
            "them by relation, got",
        ),
        ("BernoulliSampler(graph, rates={0: 0.5})", "TypeError", "rates must be a list"),
        (
            "BernoulliSampler(graph, rates=[])",
            "ValueError",
            "rates must have one number per flow, got none",
        ),
        (
            "BernoulliSampler(graph, rates=[0.5, 0.0])",
            "ValueError",
            "rates[1] must be above 0 and at most 1, got 0.0",
        ),
        (
            "BernoulliSampler(graph, rates=[1.5])",
            "ValueError",
            "rates[0] must be above 0 and at most 1, got 1.5",
        ),
        (
            "BernoulliSampler(graph, rates=torch.tensor([-0.5]))",
            "ValueError",
            "rates[0] must be above 0 and at most 1, got -0.5",
        ),
        (
            "BernoulliSampler(graph, rates=[float('nan')])",
            "ValueError",
            "rates[0] must be above 0 and at most 1, got nan",
        ),
        (
            "BernoulliSampler(graph, rates=[True])",
            "TypeError",
            "rates[0] must be a number, got bool True",
        ),
        (
            "BernoulliSampler(graph, rates=['a'])",
            "TypeError",
            "rates[0] must be a number, got str 'a'",
        ),
        (
            "ClusterSampler(graph, 2, [0, 1])",
            "ValueError",
            "parts must have one entry per node (20), got 2",
        ),
        (
            "ClusterSampler(graph, 2, [0] * 39 + [-1])",
            "IndexError",
            "parts[39] is -1, but part ids go from 0",
        ),
        (
            "ClusterSampler(graph, 2, np.zeros(40))",
            "TypeError",
            "parts must hold integer part ids, got dtype float64",
        ),
        (
            "ClusterSampler(graph, 2, np.zeros(40, np.bool_))",
            "TypeError",
            "parts must hold part ids, got a bool mask",
        ),
        (
            "ClusterSampler(graph, 2, np.zeros((2, 20), np.int64))",
            "ValueError",
            "parts must be one-dimensional",
        ),
        ("ClusterSampler(graph, 2, 0)", "ValueError", "parts must be at least 1, got 0"),
        (
            "ClusterSampler(graph, 2, 41)",
            "ValueError",
            "num_parts must be at most the number of nodes 20, got 41",
        ),
        ("ClusterSampler(graph, 2, 2.5)", "TypeError", "parts must be an integer, got float 2.5"),
        ("ClusterSampler(graph, 2, True)", "TypeError", "parts must be an integer, got bool True"),
        (
            "ClusterSampler(graph, 2, 'metis')",
            "TypeError",
            "parts must be a tensor, an array or a list",
        ),
        ("clusters([0, 2])", "IndexError", "seeds[1] is 2, but part ids go from 0 to 1"),
        (
            "NodeFlowLoader(clusters, range(3), 2)",
            "IndexError",
            "seeds[2] is 2, but part ids go from 0 to 1",
        ),
        ("sampling.partition(None, 2)", "TypeError", "graph must be a nodeflow.Graph"),
        ("sampling.partition(graph, 2, seed=0.5)", "TypeError", "seed must be an integer"),
        ("sampler.estimate([5], pilot=0)", "ValueError", "pilot must be at least 1, got 0"),
        ("sampler.estimate([400])", "IndexError", "seeds[0] is 400"),
        ("sampler.estimate([5], ndata=['y'])", "KeyError", "no column 'y'"),
        (
            "LaborSampler(graph, [2], iterations=-2)",
            "ValueError",
            "iterations must be 0 to 100, or 'converged'",
        ),
        (
            "LaborSampler(graph, [2], iterations='all')",
            "ValueError",
            "iterations must be 0 to 100, or 'converged'",
        ),
        (
            "LaborSampler(graph, [2], iterations=True)",
            "TypeError",
            "iterations must be an integer, got bool True",
        ),
        (
            "LaborSampler(graph, [2], method='exact')",
            "ValueError",
            "method must be 'poisson' or 'sequential', got 'exact'",
        ),
        (
            "LaborSampler(graph, [2], estimator='ht')",
            "ValueError",
            "estimator must be 'horvitz-thompson' or 'hajek', got 'ht'",
        ),
        ("LaborSampler(graph, [2], batch_dependency=0)", "ValueError", "from 1 to 2**31, or None"),
        (
            "LaborSampler(graph, [2], batch_dependency=2.5)",
            "TypeError",
            "batch_dependency must be an integer, got float 2.5",
        ),
        (
            "LaborSampler(graph, [2], iterations=2, reuse=True)",
            "ValueError",
            "reuse=True needs iterations=0, got iterations=2",
        ),
        (
            "LaborSampler(graph, [2], batch_dependency=3, iterations=0)([1])",
            "ValueError",
            "batch_dependency=3 needs the number of the batch",
        ),
        (
            "LayerSampler(graph, 5)",
            "TypeError",
            "layer_sizes must be a list with one number per flow, as in [64, 64], or a dict "
            "of them by node",
        ),
        (
            "LayerSampler(graph, [])",
            "ValueError",
            "layer_sizes must have one number per flow, got none",
        ),
        ("LayerSampler(graph, [3, 0])", "ValueError", "layer_sizes[1] must be at least 1, got 0"),
        (
            "LayerSampler(graph, [2.0])",
            "TypeError",
            "layer_sizes[0] must be an integer, got float 2.0",
        ),
        (
            "LayerSampler(graph, [2 ** 31])",
            "ValueError",
            "layer_sizes with replacement must be at most 16777216,",
        ),
        (
            "LayerSampler(graph, [2], draw='with')",
            "ValueError",
            "draw must be 'replacement', 'poisson' or 'systematic', got 'with'",
        ),
        ("LayerSampler(graph, [2], reuse=True)", "TypeError", "reuse"),
        (
            "LayerSampler(graph.view(weight='p'), [2])",
            "KeyError",
            "weight: graph.edata has no column 'p'",
        ),
        (
            "sampling.base.inclusion_probabilities([1.0, -2.0], [0, 2], 1)",
            "ValueError",
            "weight must be finite and not negative, but entry 1 is -2",
        ),
        (
            "sampling.base.inclusion_probabilities([float('nan')], [0, 1], 1)",
            "ValueError",
            "entry 0 is nan",
        ),
        (
            "sampling.base.inclusion_probabilities([1.0, 2.0], [0, 1], 1)",
            "ValueError",
            "indptr must go from 0 to the number of edges 2, got 0 to 1",
        ),
        (
            "sampling.base.inclusion_probabilities([1.0, 2.0], [0, 2], [1, 2])",
            "ValueError",
            "k must be an integer, or one per row (1), got shape (2,)",
        ),
        (
            "sampling.base.inclusion_probabilities([1.0, 2.0], [0, 1, 2], [1, -2])",
            "ValueError",
            "k must be at least 0, or -1 for all edges, but k of row 1 is -2",
        ),
        (
            "sampling.base.inclusion_probabilities([1.0, 2.0], [0, 2], 1.5)",
            "TypeError",
            "k must be an integer, or one per row, got",
        ),
        (
            "sampling.base.inclusion_probabilities([[1.0], [2.0]], [0, 2], 1)",
            "TypeError",
            "weight must be one-dimensional numbers",
        ),
        (
            "RandomWalkSampler(graph, 2, num_neighbors=0)",
            "ValueError",
            "num_neighbors[0] must be -1 (all neighbours) or at least 1, got 0",
        ),
        (
            "RandomWalkSampler(graph, 2, num_neighbors=[3])",
            "ValueError",
            "num_neighbors must have one number per flow (2), got 1",
        ),
        (
            "RandomWalkSampler(graph, 2, num_neighbors=[3, -2])",
            "ValueError",
            "num_neighbors[1] must be -1 (all neighbours) or at least 1, got -2",
        ),
        (
            "RandomWalkSampler(graph, 2, num_neighbors=2.5)",
            "TypeError",
            "num_neighbors[0] must be an integer, got float 2.5",
        ),
        (
            "RandomWalkSampler(graph, 2, num_neighbors='12')",
            "TypeError",
            "num_neighbors must be a list with one number per flow",
        ),
        (
            "RandomWalkSampler(graph, num_flows=0)",
            "ValueError",
            "num_flows must be at least 1, got 0",
        ),
        (
            "RandomWalkSampler(graph, 2, num_walks=0)",
            "ValueError",
            "num_walks must be at least 1, got 0",
        ),
        (
            "RandomWalkSampler(graph, 2, walk_length=0)",
            "ValueError",
            "walk_length must be at least 1, got 0",
        ),
        (
            "RandomWalkSampler(graph, 2, num_walks=2 ** 20, walk_length=2 ** 11)",
            "ValueError",
            "at most 16777216, since every single draw is made, got 2147483648",
        ),
        (
            "RandomWalkSampler(graph, 2, restart=1.5)",
            "ValueError",
            "restart must be at least 0 and at most 1, got 1.5",
        ),
        (
            "RandomWalkSampler(graph, 2, restart=-0.1)",
            "ValueError",
            "restart must be at least 0 and at most 1, got -0.1",
        ),
        (
            "RandomWalkSampler(graph, 2, restart=float('nan'))",
            "ValueError",
            "restart must be at least 0 and at most 1, got nan",
        ),
        (
            "RandomWalkSampler(graph, 2, restart=True)",
            "TypeError",
            "restart must be a number, got bool True",
        ),
        (
            "RandomWalkSampler(graph, 2, restart='0.5')",
            "TypeError",
            "restart must be a number, got str '0.5'",
        ),
        (
            "RandomWalkSampler(graph, 2, restart=None)",
            "TypeError",
            "restart must be a number, got NoneType None",
        ),
        (
            "RandomWalkSampler(graph.view(weight='w'), 2)",
            "ValueError",
            "leave weight='w' out of the view",
        ),
        (
            "RandomWalkSampler(graph.view('up'), 2)",
            "ValueError",
            "direction must be 'in', 'out' or 'both', got 'up'",
        ),
        (
            "RandomWalkSampler(graph, 2, include_dst=False, reuse=True)",
            "ValueError",
            "needs include_dst=True",
        ),
        (
            "RandomWalkSampler(graph, 1).estimand()",
            "TypeError",
            "estimates no sum over edges of the graph",
        ),
        (
            "testing.assert_unbiased(RandomWalkSampler(graph, 1), [0])",
            "TypeError",
            "estimates no sum over edges of the graph",
        ),
        (
            "SaintSampler(zeros, 2, kind='nodes', budget=1)",
            "ValueError",
            "kind must be 'node', 'edge' or 'walk', got 'nodes'",
        ),
        (
            "SaintSampler(zeros, 2, kind='node', budget=0)",
            "ValueError",
            "budget must be at least 1, got 0",
        ),
        (
            "SaintSampler(zeros, 2, kind='node', budget=2.0)",
            "TypeError",
            "budget must be an integer",
        ),
        (
            "SaintSampler(zeros, 2, kind='node', budget=2 ** 31)",
            "ValueError",
            "budget with all steps of walks must be at most 16777216",
        ),
        (
            "SaintSampler(zeros, 2, kind='walk', budget=2 ** 29, walk_length=3)",
            "ValueError",
            "budget with all steps of walks must be at most 16777216",
        ),
        ("SaintSampler(zeros, 2, kind='walk', budget=2)", "ValueError", "needed for kind='walk'"),
        (
            "SaintSampler(zeros, 2, kind='edge', budget=2, walk_length=2)",
            "ValueError",
            "needed for kind='walk'",
        ),
        (
            "SaintSampler(zeros, 2, kind='walk', budget=2, walk_length=-1)",
            "ValueError",
            "walk_length must be at least 0, got -1",
        ),
        (
            "SaintSampler(zeros, 2, kind='walk', budget=2, walk_length=1, coefficients='exact')",
            "ValueError",
            "no closed form",
        ),
        (
            "SaintSampler(zeros, 2, kind='edge', budget=2, coefficients='best')",
            "ValueError",
            "coefficients must be 'exact', 'presampl",
        ),
        (
            "SaintSampler(zeros, 2, kind='edge', budget=2, num_presamples=2)",
            "ValueError",
            "num_presamples goes with coefficients=",
        ),
        (
            "SaintSampler(zeros, 2, **{'walk': {'kind': 'walk', 'budget': 2, 'walk_length': "
            "2}}['walk'], num_presamples=0)",
            "ValueError",
            "num_presamples must be at least 1, got 0",
        ),
        (
            "SaintSampler(zeros.view(weight='zero'), 2, kind='node', budget=2)",
            "ValueError",
            "squared edge weights, but all are 0",
        ),
        (
            "SaintSampler(zeros.view(weight='huge'), 2, kind='node', budget=2)",
            "ValueError",
            "multiply it by a constant",
        ),
        ("SaintSampler(zeros, 2, budget=2)", "TypeError", "kind"),
        ("SaintSampler(zeros, 2, kind='node')", "TypeError", "budget"),
        (
            "NodeFlowLoader(SaintSampler(graph, 1, kind='node', budget=3), range(4), batch_size=2)",
            "ValueError",
            "batch_size must be at most 1 for SaintSampler, got 2",
        ),
        (
            "NeighborSampler(graph, num_samples=1)",
            "TypeError",
            "called fanouts= here, one number per flow in flow order",
        ),
        ("LadiesSampler(graph, fanouts=1)", "TypeError", "called layer_sizes= here"),
        ("NeighborSampler(graph, random_state=1)", "TypeError", "called seed= here"),
        ("NeighborSampler(graph, includedst=1)", "TypeError", "called include_dst= here"),
        ("FullSampler(graph, seed=1)", "TypeError", "it takes graph, num_flows, include_dst"),
        ("LadiesSampler(graph, reuse=1)", "TypeError", "it takes graph, layer_sizes, draw"),
        (
            "RandomWalkSampler(graph, weight=1)",
            "TypeError",
            "a view of the graph says it, as in NeighborSampler",
        ),
        ("LinkSampler(graph, neg_ratio=1)", "TypeError", "called num_negatives= here"),
        (
            "NeighborSampler(graph, [1], replace='no')",
            "TypeError",
            "replace must be True or False, got str 'no'",
        ),
        (
            "NeighborSampler(graph, [1], disjoint='no')",
            "TypeError",
            "disjoint must be True or False, got str 'no'",
        ),
        (
            "NeighborSampler(graph, [1], include_dst='no')",
            "TypeError",
            "include_dst must be True or False, got str 'no'",
        ),
        (
            "NeighborSampler(graph, [1], reuse='no')",
            "TypeError",
            "reuse must be True or False, got str 'no'",
        ),
        (
            "SaintSampler(graph, 1, kind='node', budget=3)([])",
            "ValueError",
            "got 0; in a NodeFlowLoader set batch_size=1",
        ),
        (
            "SaintSampler(graph, 1, kind='node', budget=3)([1, 2])",
            "ValueError",
            "seeds must be the number of one subgraph, ",
        ),
        (
            "SaintSampler(graph, 1, kind='node', budget=3)([-1])",
            "IndexError",
            "seeds[0] is -1, but subgraph ids go from 0",
        ),
        (
            "SaintSampler(graph, 1, kind='node', budget=3)([2 ** 62])",
            "IndexError",
            "seeds[0] is 46116",
        ),
        (
            "SaintSampler(graph, 1, kind='node', budget=3)([0.5])",
            "TypeError",
            "hold integer subgraph ids",
        ),
        (
            "SaintSampler(graph, 1, kind='node', budget=3)(7)",
            "TypeError",
            "list of subgraph ids, got int 7",
        ),
        ("ShadowSampler(graph, 0, 1, 2)", "ValueError", "num_flows must be at least 1, got 0"),
        ("ShadowSampler(graph, 2, -1, 2)", "ValueError", "depth must be at least 0, got -1"),
        ("ShadowSampler(graph, 2, 1.5, 2)", "TypeError", "depth must be an integer"),
        (
            "ShadowSampler(graph, 2, 1, 0)",
            "ValueError",
            "fanout must be -1 (all neighbours) or at least 1, got 0",
        ),
        (
            "ShadowSampler(graph, 2, 1, -2)",
            "ValueError",
            "fanout must be -1 (all neighbours) or at least 1, got -2",
        ),
        ("ShadowSampler(graph, 2, 2, [5, 5])", "TypeError", "fanout must be an integer, got list"),
        (
            "ShadowSampler(graph, 2, 2, True)",
            "TypeError",
            "fanout must be an integer, got bool True",
        ),
        (
            "ShadowSampler(graph.view('up'), 2, 1, 2)",
            "ValueError",
            "direction must be 'in', 'out' or 'both'",
        ),
        (
            "ShadowSampler(graph, 2, 1, 2 ** 40, replace=True)",
            "ValueError",
            "with replacement must be at most 16777216",
        ),
        ("ShadowSampler(graph, 2, 1, 2, include_dst=False)", "TypeError", "include_dst"),
        (
            "wrong_nodes(graph.view('up'), 2)",
            "ValueError",
            "direction must be 'in', 'out' or 'both', got 'up'",
        ),
        (
            "wrong_nodes(graph.view(where=np.ones(3, np.bool_)), 2)",
            "ValueError",
            "where must have one entry per edge",
        ),
        ("wrong_nodes(graph, 2, seed=1.5)", "TypeError", "seed must be an integer"),
        ("wrong_nodes(graph, 2, include_dst=True)", "TypeError", "include_dst"),
        ("wrong_nodes(graph, 0)", "ValueError", "num_flows must be at least 1"),
        (
            "LadiesSampler(related.graph.view(weight='minus'), [2], normalize=True)",
            "ValueError",
            "normalize=True needs weights that are not negative",
        ),
    ],
    "Choices of users": [
        ("sampling.base.Choice([0, 1], [0], src=[0])", "ValueError", "either positions or src"),
        ("sampling.base.Choice([], [])", "ValueError", "indptr must go from 0"),
        ("sampling.base.Choice([1, 1], [0])", "ValueError", "indptr must go"),
        ("sampling.base.Choice([0, 2, 1], [0])", "ValueError", "indptr must not decrease"),
        ("sampling.base.Choice([0.0, 1.0], [0])", "TypeError", "indptr must be"),
        ("sampling.base.Choice([0, 1], [0.5])", "TypeError", "positions must be"),
        ("sampling.base.Choice([0, 1], [True])", "TypeError", "positions must be"),
        ("sampling.base.Choice([0, 1], torch.tensor([[0]]))", "TypeError", "positions must be"),
        ("sampling.base.Choice([0, 1], src=torch.tensor([0.0]))", "TypeError", "src must be"),
        ("sampling.base.Choice([0, 1], 3)", "TypeError", "positions must be"),
        (
            "sampling.base.Choice([0, 1], src=[0], eid=[1, 2])",
            "ValueError",
            "eid must have one entry",
        ),
        (
            "sampling.base.Choice([0, 1], [0], weight=[1.0, 2.0])",
            "ValueError",
            "weight must have shape",
        ),
        ("sampling.base.Choice([0, 1], [0], eid=[1])", "ValueError", "eid goes with src"),
        ("five.candidates(torch.tensor([2, 3, 1])).select([2, 0])", "ValueError", "ascending"),
        ("five.candidates(torch.tensor([2, 3, 1])).select([0, 4])", "IndexError", "keep[1] is 4"),
        ("five.candidates(torch.tensor([2, 3, 1])).select([-1])", "IndexError", "keep[0] is -1"),
        ("five.candidates(torch.tensor([2, 3, 1])).select([0.5])", "TypeError", "keep must"),
        (
            "five.candidates(torch.tensor([2, 3, 1])).select(torch.tensor([True]))",
            "ValueError",
            "one entry per candidate",
        ),
        (
            "five.candidates(torch.tensor([2, 3, 1])).select(np.array([[True] * 4]))",
            "ValueError",
            "one entry per candidate",
        ),
        (
            "five.candidates(torch.tensor([2, 3, 1])).select(torch.ones(4), prob=1.0)",
            "TypeError",
            "keep must hold integer candidate ids, got dtype float32",
        ),
        (
            "five.candidates(torch.tensor([2, 3, 1])).select(torch.ones(4, "
            "dtype=torch.bool), prob=2.0)",
            "ValueError",
            "prob must be at most 1 with a mask",
        ),
        (
            "five.candidates(torch.tensor([2, 3, 1])).select([0, 3], prob=torch.ones(4))",
            "ValueError",
            "per chosen edge (2), got",
        ),
        (
            "five.candidates(torch.tensor([2, 3, 1])).select([0, 3], prob=torch.ones(1))",
            "ValueError",
            "one number per chosen edge (2), got shape (1,)",
        ),
        ("five.candidates(torch.tensor([9]))", "IndexError", "dst["),
        ("five.candidates(torch.tensor([-1]))", "IndexError", "dst["),
        ("five.candidates(torch.tensor([0, 2**40]))", "IndexError", "dst["),
        ("chosen(graph, lambda *_: 3)([0])", "TypeError", "choose must return a Choice, got int"),
        (
            "chosen(five.graph, lambda *_: None)([2])",
            "TypeError",
            "choose must return a Choice, got NoneType",
        ),
        (
            "chosen(five.graph, lambda *_: ([0, 1], [3]))([2])",
            "TypeError",
            "choose must return a Choice, got tuple",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 1], [5]))([2])",
            "IndexError",
            "positions of the Choice[0] is 5",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 1], [-1]))([2])",
            "IndexError",
            "positions of the Choice[0] is -1",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 2], [3, 2 ** 62]))([2])",
            "IndexError",
            "positions of the Choice[1]",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 1], [2]))([2])",
            "ValueError",
            "edges of its destination lie at 3 to 4",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 1, 2], [3, 4]))([2])",
            "ValueError",
            "for 2 destinations, not for 1",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0], []))([2])",
            "ValueError",
            "for 0 destinations, not for 1",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 1], src=[5]))([2])",
            "IndexError",
            "src of the Choice[0] is 5",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 1], src=[-1]))([2])",
            "IndexError",
            "src of the Choice[0] is -1",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 1], src=[0], eid=[5]))([2])",
            "IndexError",
            "eid of the Choice[0] is 5",
        ),
        (
            "chosen(five.graph, lambda *_: sampling.base.Choice([0, 1], src=[0], eid=[-2]))([2])",
            "IndexError",
            "eid of the Choice[0] is -2",
        ),
    ],
    "Kinds of edges": [
        (
            "NeighborSampler(two_types, [{0: 1, 5: 2}], edge_type='t')",
            "ValueError",
            "fanouts name the edge type 5, but the types there are: [0, 1]",
        ),
        (
            "NeighborSampler(two_types, [{0: -2}], edge_type='t')",
            "ValueError",
            "must be -1 (all neighbours) or at least 1, got -2",
        ),
        ("NeighborSampler(two_types, [2, 0], edge_type='t')", "ValueError", "at least 1, got 0"),
        (
            "NeighborSampler(two_types, [{0: 0.0}], edge_type='t')",
            "TypeError",
            "fanouts[0][0] must be an integer, got float 0.0",
        ),
        (
            "NeighborSampler(two_types, [{0: 1.5}], edge_type='t')",
            "TypeError",
            "must be an integer, got float 1.5",
        ),
        (
            "NeighborSampler(two_types, [{'a': 1}], edge_type='t')",
            "TypeError",
            "an edge type in fanouts[0] must be an integer, got str 'a'",
        ),
        (
            "NeighborSampler(two_types, [{True: 1}], edge_type='t')",
            "TypeError",
            "an edge type in fanouts[0] must be an integer, got bool True",
        ),
        (
            "NeighborSampler(two_types, {0: 1}, edge_type='t')",
            "TypeError",
            "fanouts must be a list with one number per flow, as in [10, 25], or a dict",
        ),
        (
            "NeighborSampler(two_types, 3, edge_type='t')",
            "TypeError",
            "fanouts must be a list with one number per flow,",
        ),
        (
            "NeighborSampler(two_types, [], edge_type='t')",
            "ValueError",
            "fanouts must have one number per flow, got none",
        ),
        ("NeighborSampler(two_types, [[1]], edge_type='t')", "TypeError", "must be an integer"),
        (
            "NeighborSampler(graph, [1], edge_type='t')",
            "TypeError",
            "edge_type: the edge column 't' must hold integers, got dtype float32",
        ),
        (
            "NeighborSampler(graph_of([0], [1], x=torch.ones(1, 2).long()), [1], edge_type='x')",
            "ValueError",
            "edge_type: the edge column 'x' must have one number per edge",
        ),
        (
            "NeighborSampler(graph, [1], edge_type='k')",
            "KeyError",
            "edge_type: graph.edata has no column 'k'; it has t, w",
        ),
        (
            "NeighborSampler(graph, [{0: 1}])",
            "TypeError",
            "fanouts per edge type (0) need edge_type=",
        ),
        (
            "NeighborSampler(two_types, [{0: 2**31}], edge_type='t', replace=True)",
            "ValueError",
            "with replacement must be at most 16777216",
        ),
        (
            "LayerSampler(several, [{'d': 1}])",
            "KeyError",
            "no node type 'd'; there are 'a', 'b', 'empty', 'c'",
        ),
        (
            "LayerSampler(several, [{'a': -1}])",
            "ValueError",
            "layer_sizes[0]['a'] must be at least 1, got -1",
        ),
        (
            "LayerSampler(several, [{'a': 1.5}])",
            "TypeError",
            "layer_sizes[0]['a'] must be an integer",
        ),
        (
            "LayerSampler(several, [{'a': 2 ** 40}])",
            "ValueError",
            "layer_sizes with replacement must be at most",
        ),
        (
            "LayerSampler(several, {'a': 1})",
            "TypeError",
            "layer_sizes must be a list with one number per flow,",
        ),
        (
            "RandomWalkSampler(several, 1, metapath=[])",
            "TypeError",
            "metapath must be a list of relations",
        ),
        (
            "RandomWalkSampler(several, 1, metapath='w')",
            "TypeError",
            "metapath must be a list of relations",
        ),
        ("RandomWalkSampler(several, 1, metapath=['q'])", "KeyError", "no relation 'q'"),
        (
            "RandomWalkSampler(several, 1, metapath=['x'])",
            "ValueError",
            "2 relations have the name 'x'",
        ),
        (
            "RandomWalkSampler(several, 1, metapath=['w', ('a', 'x', 'c')])",
            "ValueError",
            "('a', 'x', 'c') leads to 'a', but ('c', 'w', 'b') begins",
        ),
        (
            "RandomWalkSampler(several, 1, metapath=['w', 'z', ('b', 'x', 'a')])",
            "ValueError",
            "('empty', 'z', 'c') leads to 'empty', but",
        ),
        (
            "RandomWalkSampler(several.view('both'), 1, metapath=[('c', 'y', 'c')])",
            "ValueError",
            "with 'both' a relation has no end",
        ),
        (
            "RandomWalkSampler(several, 1, metapath=[('c', 'y', 'c')])([8, 3])",
            "ValueError",
            "seeds must be nodes where the metapath begins, range(8, 20), but seeds[1] is 3",
        ),
        ("NeighborSampler(several, [{'v': 1}])", "KeyError", "no relation 'v'; there are"),
        (
            "NeighborSampler(several, [{'x': 1}])",
            "ValueError",
            "2 relations have the name 'x': name it by a triple, ('a', 'x', 'c'), ('b', 'x'",
        ),
        (
            "NeighborSampler(several, [{('a', 'w', 'c'): 1}])",
            "KeyError",
            "no relation ('a', 'w', 'c'); there are ('a', 'x', 'c'), ('c', 'y', 'c')",
        ),
        (
            "NeighborSampler(several, [{'w': 1, ('c', 'w', 'b'): 2}])",
            "ValueError",
            "fanouts name one relation twice",
        ),
        ("NeighborSampler(several, [{'w': -2}])", "ValueError", "fanouts[0]['w'] must be"),
        ("NeighborSampler(several, [{'w': 1.5}])", "TypeError", "fanouts[0]['w'] must be"),
        (
            "NeighborSampler(several, [{0: 1}])",
            "TypeError",
            "fanouts per edge type (0) need edge_type=",
        ),
        (
            "NeighborSampler(paper_sampler.graph)",
            "TypeError",
            "the last for the seeds, are needed, or num_neighbors",
        ),
        (
            "NeighborSampler(paper_sampler.graph, fanouts=[1], num_neighbors=[1])",
            "TypeError",
            "got fanouts=[1] and",
        ),
        (
            "NeighborSampler(paper_sampler.graph, num_neighbors=[4, 0])",
            "ValueError",
            "num_neighbors[1] must be -1",
        ),
        (
            "NeighborSampler(paper_sampler.graph, num_neighbors=4)",
            "TypeError",
            "num_neighbors must be a list",
        ),
        (
            "NeighborSampler(paper_sampler.graph, num_neighbors={'to': [1, 2], 'of': [1]})",
            "ValueError",
            "as many numbers for every relation",
        ),
        (
            "NeighborSampler(paper_sampler.graph, num_neighbors={'to': 3})",
            "TypeError",
            "num_neighbors['to'] must be a list",
        ),
    ],
    "Columns and filters of edges": [
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where=torch.ones(2, "
            "dtype=torch.bool))",
            "ValueError",
            "where must have one entry per edge (3), got shape (2,)",
        ),
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where=torch.ones(3, 1, "
            "dtype=torch.bool))",
            "ValueError",
            "where must have one entry per edge (3)",
        ),
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where=torch.ones(3))",
            "TypeError",
            "where must give a bool for every edge, got Tensor of dtype torch.float32",
        ),
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where=[0, 2])",
            "TypeError",
            "where must give a bool for every edge",
        ),
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where='x')",
            "TypeError",
            "where must give a bool for every edge",
        ),
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where='nothing')",
            "KeyError",
            "where: graph.edata has no column 'nothing'; it has x",
        ),
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where=lambda edata: edata['x'])",
            "TypeError",
            "where must give a bool for every edge",
        ),
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where=lambda edata: None)",
            "TypeError",
            "where must give a bool",
        ),
        (
            "graph_of([0, 1, 2], [1, 2, 0], x=torch.ones(3)).view(where=lambda edata: "
            "edata['x'][:2] > 0)",
            "ValueError",
            "where must have one entry per edge (3)",
        ),
        (
            "NeighborSampler(graph_of([0, 1], [1, 0], bad=torch.tensor([1.0, float('nan')]), "
            "wide=torch.ones(2, 2)).view(weight='bad'), [1])",
            "ValueError",
            "weight: the edge column 'bad' must be finite, but edge 1 has nan",
        ),
        (
            "NeighborSampler(graph_of([0, 1], [1, 0], bad=torch.tensor([1.0, float('nan')]), "
            "wide=torch.ones(2, 2)).view(weight='wide'), [1])",
            "ValueError",
            "weight: the edge column 'wide' must have one number per edge",
        ),
        (
            "NeighborSampler(graph_of([0, 1], [1, 0], bad=torch.tensor([1.0, float('nan')]), "
            "wide=torch.ones(2, 2)).view(weight='none'), [1])",
            "KeyError",
            "weight: graph.edata has no column 'none'; it has bad, wide",
        ),
        (
            "NeighborSampler(graph_of([0, 1], [1, 0], bad=torch.tensor([1.0, float('nan')]), "
            "wide=torch.ones(2, 2)).view(weight=3), [1])",
            "TypeError",
            "weight must be the name of a column of graph.edata, got int 3",
        ),
        (
            "NeighborSampler(graph_of([0, 1], [1, 0], bad=torch.tensor([1.0, float('nan')]), "
            "wide=torch.ones(2, 2)).view(weight=torch.ones(2)), [1])",
            "TypeError",
            "weight must be the name of a column",
        ),
        (
            "sampler.without_edges([3, 40])",
            "IndexError",
            "eid[1] is 40, but edge ids go from 0 to 39",
        ),
        ("sampler.without_edges([-1])", "IndexError", "eid[0] is -1"),
        (
            "sampler.without_edges(torch.ones(40).bool())",
            "TypeError",
            "eid must hold edge ids, got a bool mask",
        ),
        ("sampler.without_edges([1.0])", "TypeError", "eid must hold integer edge ids"),
        (
            "NeighborSampler(graph_of([1, 2, 3], [0, 0, 0], w=torch.ones(3, "
            "dtype=torch.complex64)).view(weight='w'), [2])",
            "TypeError",
            "must hold real numbers, got dtype complex64",
        ),
        (
            "NeighborSampler(graph_of([1, 2, 3], [0, 0, 0], w=torch.tensor([1.0, 1e+300, "
            "1.0], dtype=torch.float64)).view(weight='w'), [2])",
            "ValueError",
            "edge 1 has 1e+300",
        ),
        (
            "NeighborSampler(graph_of([1, 2, 3], [0, 0, 0], w=torch.tensor([1.0, 1.0, "
            "-1e-60], dtype=torch.float64)).view(weight='w'), [2])",
            "ValueError",
            "edge 2 has -1e-60",
        ),
        (
            "NeighborSampler(graph_of([0, 1, 2], [1, 2, 0], w=np.array([1.0, -1.0, 2.0])), "
            "[1], prob='w')",
            "ValueError",
            "prob: the edge column 'w' must not be negative, but edge 1 has -1.0",
        ),
        (
            "NeighborSampler(graph_of([0, 1, 2], [1, 2, 0], w=np.array([1.0, 2.0, np.nan])), "
            "[1], prob='w')",
            "ValueError",
            "be finite, but edge 2 has nan",
        ),
        (
            "NeighborSampler(graph_of([0, 1, 2], [1, 2, 0], w=np.array([np.inf, 2.0, 1.0])), "
            "[1], prob='w')",
            "ValueError",
            "but edge 0 has inf",
        ),
        (
            "NeighborSampler(graph_of([0, 1, 2], [1, 2, 0], w=np.array([1.0, 1e-281, 1.0])), "
            "[1], prob='w')",
            "ValueError",
            "0 or sizes from 1e-280 to 1e+280,",
        ),
        (
            "NeighborSampler(graph_of([0, 1, 2], [1, 2, 0], w=np.array([1.0, 1.0, 1e+281])), "
            "[1], prob='w')",
            "ValueError",
            "but edge 2 has 1e+281",
        ),
        (
            "NeighborSampler(graph, [1], prob='p')",
            "KeyError",
            "prob: graph.edata has no column 'p'; it has t, w",
        ),
        (
            "NeighborSampler(graph_of([0], [1], x=torch.ones(1, 3)), [1], prob='x')",
            "ValueError",
            "prob: the edge column 'x' must have one number per edge",
        ),
        (
            "NeighborSampler(graph, [1], prob=torch.ones(2))",
            "TypeError",
            "prob must be the name of a column of graph.edata",
        ),
        (
            "NeighborSampler(graph_of([0, 1], [1, 0], w=np.array([1.0, "
            "1e31])).view(weight='w'), [1])",
            "ValueError",
            "0 or sizes from 1e-30 to 1e+30",
        ),
        (
            "NeighborSampler(graph_of([0, 1], [1, 0], w=np.array([1.0, "
            "-1e31])).view(weight='w'), [1])",
            "ValueError",
            "0 or sizes from 1e-30 to 1e+30",
        ),
        (
            "NeighborSampler(graph_of([0, 1], [1, 0], w=np.array([1.0, "
            "1e-31])).view(weight='w'), [1])",
            "ValueError",
            "0 or sizes from 1e-30 to 1e+30",
        ),
    ],
    "Draws in operations of torch": [
        ("BernoulliSampler(graph, [2]).in_torch()", "TypeError", "draws in compiled loops only"),
        ("RandomWalkSampler(graph, 1).in_torch()", "TypeError", "draws in compiled loops only"),
        (
            "SaintSampler(graph, 1, kind='node', budget=3).in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        ("ClusterSampler(graph, 1, parts).in_torch()", "TypeError", "draws in compiled loops only"),
        ("ShadowSampler(graph, 1, 1, 2).in_torch()", "TypeError", "draws in compiled loops only"),
        (
            "LaborSampler(graph, [2], iterations=1).in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        (
            "LaborSampler(graph, [2], estimator='hajek').in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        (
            "NeighborSampler(graph, [2], prob='w').in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        (
            "TemporalNeighborSampler(graph, [2], time='t', prob='w').in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        (
            "LayerSampler(graph, [2], score=len).in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        (
            "LadiesSampler(graph, [2], draw='poisson').in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        (
            "LadiesSampler(graph, [2], normalize=True).in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        ("wrong_rows(graph, 1).in_torch()", "TypeError", "draws in compiled loops only"),
        (
            "LinkSampler(BernoulliSampler(graph, [2])).in_torch()",
            "TypeError",
            "draws in compiled loops only",
        ),
        ("FullSampler(graph, 1).in_torch('cuda:99')", "ValueError", "is not there"),
        ("FullSampler(graph, 1).in_torch('meta')", "ValueError", "no draws on the device meta"),
    ],
    "Induced subgraphs": [
        ("sampling.induced(graph, sampler)", "TypeError", "batch must be a NodeFlow"),
        (
            "sampling.induced(batch, LinkSampler(sampler))",
            "TypeError",
            "looks up edges, such as NeighborSampler, got LinkSampler",
        ),
        (
            "sampling.induced(timed([1], times=[3.0]), timed)",
            "TypeError",
            "TemporalNeighborSampler hides edges from seeds by their times",
        ),
        (
            "sampling.induced(FullSampler(Graph.from_edges([0], [1]), 1)([1]), sampler)",
            "ValueError",
            "batch must be a batch of the sampler's graph",
        ),
        ("sampling.induced(batch.with_parent(None), sampler)", "ValueError", "got one of None"),
        (
            "sampling.induced(batch.to('meta'), sampler)",
            "ValueError",
            "batch must be in main memory, got one on meta",
        ),
    ],
    "Links": [
        ("LinkSampler(graph)", "TypeError", "sampler must be a nodeflow sampler, got Graph"),
        (
            "LinkSampler(LinkSampler(sampler))",
            "TypeError",
            "must take nodes as seeds, but a seed of LinkSampler is",
        ),
        (
            "LinkSampler(sampler, num_negatives=2.0)",
            "TypeError",
            "num_negatives must be an integer",
        ),
        (
            "LinkSampler(sampler, num_negatives=True)",
            "TypeError",
            "num_negatives must be an integer, got bool",
        ),
        (
            "LinkSampler(sampler, negatives='all')",
            "ValueError",
            "negatives must be 'uniform' or 'degree', the name of a node column,",
        ),
        ("LinkSampler(sampler, power=0)", "ValueError", "power must be finite and above 0, got 0"),
        (
            "LinkSampler(sampler, power=float('nan'))",
            "ValueError",
            "power must be finite and above 0, got nan",
        ),
        (
            "LinkSampler(sampler, power=float('inf'))",
            "ValueError",
            "power must be finite and above 0",
        ),
        ("LinkSampler(sampler, power='1')", "TypeError", "power must be a number, got str '1'"),
        ("LinkSampler(sampler, power=True)", "TypeError", "power must be a number, got bool"),
        ("LinkSampler(sampler, chunk=0)", "ValueError", "chunk must be at least 1, got 0"),
        ("LinkSampler(sampler, chunk=1.5)", "TypeError", "chunk must be an integer"),
        (
            "LinkSampler(sampler, exclude='both')",
            "ValueError",
            "exclude must be 'self', 'reverse' or None, got 'both",
        ),
        (
            "LinkSampler(sampler, exclude=True)",
            "ValueError",
            "exclude must be 'self', 'reverse' or None, got True",
        ),
        ("LinkSampler(sampler, seed=None)", "TypeError", "seed must be an integer"),
        (
            "LinkSampler(sampler)([200])",
            "IndexError",
            "seeds[0] is 200, but edge ids go from 0 to 39",
        ),
        (
            "LinkSampler(NeighborSampler(Graph([0, 0], []), [2]))([0])",
            "IndexError",
            "there is no edge at all",
        ),
        ("LinkSampler(sampler)([3, -1])", "IndexError", "seeds[1] is -1, but edge ids"),
        ("LinkSampler(sampler)([0.5])", "TypeError", "seeds must hold integer edge ids"),
        (
            "LinkSampler(sampler)([True])",
            "ValueError",
            "a mask of seeds must have one entry per edge (40)",
        ),
        (
            "LinkSampler(sampler)(torch.ones(9, dtype=torch.bool))",
            "ValueError",
            "a mask of seeds must have one entry",
        ),
        ("LinkSampler(sampler)([[1, 2]])", "ValueError", "does not support seeds of shape"),
        (
            "LinkSampler(sampler)(torch.zeros(3, 2, dtype=torch.int64))",
            "ValueError",
            "does not support seeds of shape (3, 2)",
        ),
        ("LinkSampler(sampler)([1], epoch=0.5)", "TypeError", "epoch must be an integer"),
        (
            "LinkSampler(sampler)([1], batch_number='a')",
            "TypeError",
            "batch_number must be an integer",
        ),
        (
            "LinkSampler(sampler, corrupt='all')",
            "ValueError",
            "corrupt must be 'destination', 'source' or 'both', got 'all'",
        ),
        (
            "LinkSampler(sampler, negatives=[1.0] * 8)",
            "ValueError",
            "negatives must hold a number per node (20)",
        ),
        (
            "LinkSampler(sampler, negatives=[-1.0] * 20)",
            "ValueError",
            "negatives must be finite and not negative, but entry 0 is -1.0",
        ),
        (
            "LinkSampler(sampler, negatives=[0.0] * 20)",
            "ValueError",
            "negatives must not be 0 for all nodes",
        ),
        ("LinkSampler(sampler, pairs=[1, 2])", "ValueError", "pairs must have shape [n, 2], a row"),
        ("LinkSampler(sampler, pairs=[[1, 20]])", "IndexError", "pairs[:, 1][0] is 20"),
        (
            "LinkSampler(sampler, labels=[1])",
            "ValueError",
            "labels are of pairs, so pass pairs too",
        ),
        (
            "LinkSampler(sampler, pairs=[[1, 2]], labels=['good'])",
            "TypeError",
            "labels must be numbers, got dtype <U4",
        ),
        (
            "LinkSampler(sampler, pairs=[[1, 2]], labels=[1j])",
            "TypeError",
            "labels must be numbers, got dtype complex128",
        ),
        (
            "LinkSampler(sampler, pairs=[[1, 2]], exclude='self')",
            "ValueError",
            "exclude='self' is for seeds that are edges",
        ),
        (
            "LinkSampler(sampler, pairs=[[1, 2]], labels=[1, 2])",
            "ValueError",
            "per pair (1), got shape (2,); columns of several",
        ),
        (
            "LinkSampler(sampler, pairs=[[1, 2]], labels=[[1, 0, 1]])",
            "ValueError",
            "per pair (1), got shape (1, 3); columns of several",
        ),
        (
            "LinkSampler(sampler, pairs=[[1, 2]], labels=torch.ones(1, 1))",
            "ValueError",
            "per pair (1), got shape (1, 1); columns of several",
        ),
        (
            "LinkSampler(sampler, pairs=[[1, 2]], labels=np.float32(1))",
            "ValueError",
            "per pair (1), got shape (); columns of several",
        ),
        (
            "LinkSampler(timed)([1, 2], times=[1.0, 2.0, 3.0])",
            "ValueError",
            "times must have one entry per seed edge (2), got shape (3,)",
        ),
        ("LinkSampler(timed)([1], times=['late'])", "TypeError", "times must be numbers"),
        (
            "LinkSampler(sampler)([1], times=[2])",
            "TypeError",
            "times must be None, because NeighborSampler takes none",
        ),
        (
            "LinkSampler(timed, birth=torch.zeros(20))([3], times=[-1.0])",
            "ValueError",
            "no negative is left for edge 3",
        ),
        (
            "LinkSampler(timed, birth=torch.full((20,), 2.0**24))",
            "ValueError",
            "birth must be below 2**24 as float32",
        ),
        (
            "LinkSampler(timed, birth=[1, 2, 3])",
            "ValueError",
            "birth must have one entry per node (20)",
        ),
        (
            "LinkSampler(sampler, birth=heat)",
            "TypeError",
            "birth is for negatives at times, but NeighborSampler takes no times",
        ),
        ("LinkSampler(related, relation='type')", "KeyError", "type"),
        (
            "LinkSampler(related, relation='real')",
            "TypeError",
            "the edge column 'real' must hold integers, got dtype",
        ),
        (
            "LinkSampler(related, relation='minus')",
            "ValueError",
            "must hold numbers from 0, but edge 1 has -1",
        ),
        (
            "LinkSampler(related, relation='kind', pairs=[[0, 1]])",
            "ValueError",
            "pairs must have shape [n, 3], a row (source, rel",
        ),
        (
            "LinkSampler(related, pairs=[[0, 1, 2]])",
            "ValueError",
            "for relations pass relation=, their edge column, got shape (1, 3)",
        ),
        (
            "LinkSampler(related, filter_known=True, known=[[0, 0, 5]])",
            "ValueError",
            "known must have shape [n, 2]",
        ),
        (
            "LinkSampler(related, known=[[0, 1]])",
            "ValueError",
            "known is what filter_known looks at, so pass filter_known=True or 'mark'",
        ),
        (
            "LinkSampler(related, filter_known='marks')",
            "ValueError",
            "filter_known must be False, True or 'mark', got 'marks'",
        ),
        (
            "LinkSampler(related, relation='kind', filter_known=True, known=[[0, -1, 2]])",
            "IndexError",
            "known[:, 1][0] is -1",
        ),
        (
            "LinkSampler(sampler, negatives=torch.arange(120).view(40, 3) % 20)",
            "ValueError",
            "num_negatives columns, [40, 1], got shape [40, 3]",
        ),
        (
            "LinkSampler(sampler, negatives=(torch.arange(120).view(40, 3) % 20)[:5], "
            "num_negatives=3)",
            "ValueError",
            "[40, 3], got shape [5, 3]",
        ),
        (
            "LinkSampler(sampler, negatives=torch.arange(120).view(40, 3) % 20 + 1, "
            "num_negatives=3)",
            "IndexError",
            "negatives.reshape(-1)[19] is 20",
        ),
        (
            "LinkSampler(sampler, negatives=torch.arange(120).view(40, 3) % 20 - 1, "
            "num_negatives=3)",
            "IndexError",
            "negatives.reshape(-1)[0] is -1",
        ),
        (
            "LinkSampler(sampler, negatives=torch.arange(120).view(40, 3) % 20 / 2, "
            "num_negatives=3)",
            "TypeError",
            "must hold integer",
        ),
        (
            "LinkSampler(sampler, negatives=torch.arange(120).view(40, 3) % 20, "
            "num_negatives=3, chunk=2)",
            "ValueError",
            "neither shared by chunk= nor filtered",
        ),
        (
            "LinkSampler(sampler, negatives=print, filter_known=True)",
            "ValueError",
            "take filter_known='mark'",
        ),
        (
            "LinkSampler(sampler, num_negatives=2, negatives=lambda *_: [[1]])([0])",
            "ValueError",
            "a row per link, num_negatives wide, [1, 2], got shape [1, 1]",
        ),
        (
            "LinkSampler(sampler, num_negatives=2, negatives=lambda *_: [[1, 20]])([0])",
            "IndexError",
            "negatives.reshape(-1)[1] is 20",
        ),
        (
            "LinkSampler(sampler, num_negatives=2, negatives=lambda *_: [[0.5, 1.0]])([0])",
            "TypeError",
            "must hold integer",
        ),
        (
            "LinkSampler(sampler, num_negatives=2, negatives=lambda *_: None)([0])",
            "ValueError",
            "got shape []",
        ),
        (
            "LinkSampler(sampler, negatives=print).log_proposal(batch)",
            "TypeError",
            "nor for negatives of your own",
        ),
        ("LinkSampler(timed).log_proposal(batch)", "TypeError", "negatives at times"),
    ],
    "Links of types": [
        (
            "LinkSampler(paper_sampler, chunk=2)([0, 1, 2, 15])",
            "ValueError",
            "of types 'paper' and 'venue'; order the seeds by relation, with a loader",
        ),
        (
            "LinkSampler(paper_sampler, pairs=[[5, 3, 11]], filter_known=True, known=[[5, 3, 11], "
            "[5, 3, 12]])([0])",
            "ValueError",
            "no negative is left for pair 0, from node 5: every venue",
        ),
        (
            "LinkSampler(paper_sampler, pairs={'wrote': [[0, 1]]})",
            "KeyError",
            "no relation 'wrote'; there are",
        ),
        (
            "LinkSampler(paper_sampler, pairs={'writes': [[5, 1]]})",
            "IndexError",
            "pairs['writes'][:, 0][0] is 5, but author node ids go from 0 to 4",
        ),
        (
            "LinkSampler(paper_sampler, pairs=[[0, 0, 5], [0, 0, 11]])",
            "ValueError",
            "but its end 11 is of type 'venue'",
        ),
        (
            "LinkSampler(paper_sampler, pairs=[[0, 8, 5]])",
            "IndexError",
            "pairs[:, 1][0] is 8, but relation ids go from 0 to 7",
        ),
        (
            "LinkSampler(paper_sampler, filter_known=True, known=[[0, 1]])",
            "ValueError",
            "known must have shape [n, 3]",
        ),
        (
            "LinkSampler(related, relation='kind', pairs={'edge': [[0, 1]]})",
            "TypeError",
            "so leave relation='kind' out",
        ),
    ],
    "Seeds": [
        (
            "ClusterSampler(graph, 1, parts)([[0, 1]])",
            "ValueError",
            "ClusterSampler does not support seeds of shape (1, 2): pass one-dim",
        ),
        (
            "NodeFlowLoader(SaintSampler(graph, 1, kind='node', budget=3), [[0, 1]], batch_size=1)",
            "ValueError",
            "SaintSampler does not support seeds of shape (1, 2): pass one-dim",
        ),
        (
            "NodeFlowLoader(LinkSampler(sampler), [[0, 1]])",
            "ValueError",
            "does not support seeds of shape (1, 2)",
        ),
        (
            "paper_sampler(np.ones(4, bool))",
            "ValueError",
            "one entry per node (13), got shape (4,); one of a single type goes into a dict",
        ),
        (
            "paper_sampler({'paper': np.ones(3, bool)})",
            "ValueError",
            "a mask of seeds['paper'] must have one entry per paper node (6), got",
        ),
        (
            "paper_sampler({'papers': [0]})",
            "KeyError",
            "no node type 'papers'; there are 'author', 'paper', 'venue'",
        ),
        (
            "paper_sampler({'paper': [6]})",
            "IndexError",
            "seeds['paper'][0] is 6, but paper node ids go from 0 to 5",
        ),
        (
            "paper_sampler({'paper': [0.5]})",
            "TypeError",
            "seeds['paper'] must hold integer paper node ids",
        ),
        (
            "paper_sampler(('paper', np.ones(4, bool)))",
            "TypeError",
            "seeds of one type are a dict, as in {'paper': ids}",
        ),
        ("paper_sampler(('paper', [0]))", "TypeError", "seeds of one type are a dict"),
        (
            "NodeFlowLoader(paper_sampler, np.ones(4, bool), batch_size=1)",
            "ValueError",
            "one entry per node (13), got shape (4,); one of a single type goes into a dict",
        ),
        (
            "NodeFlowLoader(paper_sampler, {'paper': np.ones(3, bool)}, batch_size=1)",
            "ValueError",
            "a mask of seeds['paper'] must have one entry per paper node (6), got",
        ),
        (
            "NodeFlowLoader(paper_sampler, {'papers': [0]}, batch_size=1)",
            "KeyError",
            "no node type 'papers'; there are 'author', 'paper', 'venue'",
        ),
        (
            "NodeFlowLoader(paper_sampler, {'paper': [6]}, batch_size=1)",
            "IndexError",
            "seeds['paper'][0] is 6, but paper node ids go from 0 to 5",
        ),
        (
            "NodeFlowLoader(paper_sampler, {'paper': [0.5]}, batch_size=1)",
            "TypeError",
            "seeds['paper'] must hold integer paper node ids",
        ),
        (
            "NodeFlowLoader(paper_sampler, ('paper', np.ones(4, bool)), batch_size=1)",
            "TypeError",
            "seeds of one type are a dict, as in {'paper': ids}",
        ),
        (
            "NodeFlowLoader(paper_sampler, ('paper', [0]), batch_size=1)",
            "TypeError",
            "seeds of one type are a dict",
        ),
        (
            "ClusterSampler(graph, 1, parts)({'paper': [0]})",
            "TypeError",
            "a seed of ClusterSampler is a part, which has no type",
        ),
        (
            "paper_sampler({'paper': [0]}).copy_from_parent(ndata={'paper': ['x']})",
            "TypeError",
            "not by type: ndata=['x'] copies",
        ),
        (
            "ShadowSampler(graph, 2, 1, 2)([3, 40])",
            "IndexError",
            "seeds[1] is 40, but node ids go from 0 to 19",
        ),
        (
            "ShadowSampler(graph, 2, 1, 2).without_edges([40])",
            "IndexError",
            "eid[0] is 40, but edge ids go from 0 to 39",
        ),
        ("paper_sampler([0]).layers[0].data['x']", "KeyError", "no column 'x'"),
        ("sampler([3, -1])", "IndexError", "seeds[1] is -1, but node ids go from 0 to 19"),
        ("sampler(torch.tensor([0, 1, 2 ** 40]))", "IndexError", "seeds[2] is 1099511627776"),
        ("sampler([1.0, 2.0])", "TypeError", "seeds must"),
        ("sampler([1, True])", "TypeError", "seeds must"),
        (
            "sampler(torch.ones(19, dtype=torch.bool))",
            "ValueError",
            "a mask of seeds must have one entry per node (20), got shape",
        ),
        ("sampler(torch.zeros(0, dtype=torch.bool))", "ValueError", "a mask of seeds"),
        ("sampler([torch.tensor(True), torch.tensor(False)])", "TypeError", "bool"),
        ("sampler(3)", "TypeError", "seeds must be"),
        ("sampler(torch.tensor([[[1, 2]]]))", "ValueError", "seeds must be one-dimensional"),
        ("sampler([[[1]], [[2]]])", "ValueError", "seeds must be one-dimensional"),
        ("sampler(torch.tensor([[1, 2], [3, 20]]))", "IndexError", "seeds[3] is 20"),
        ("sampler([[1], [2, 3]])", "(ValueError, TypeError)", "seeds"),
    ],
    "Times": [
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=None)",
            "TypeError",
            "times is missing: pass a time for every seed, as in sampler(seeds, times=times)",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=5)",
            "ValueError",
            "times must have one entry per seed or row of seeds (2,), got shape ()",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times={1, 2})",
            "TypeError",
            "times must be ordered, got a set",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=[5])",
            "ValueError",
            "times must have one entry per seed or row of seeds (2,), got shape (1,)",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=[[5, 6]])",
            "ValueError",
            "times must have one entry per seed or row of seeds (2,), got shape (1, 2)",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=[[5], [5, 6]])",
            "ValueError",
            "times must be one-dimensional, got a list of lists",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=[5.0, 6.0])",
            "TypeError",
            "times must hold integers, as the time column does, got dtype float64",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=[True, 1])",
            "TypeError",
            "times must be integers or floats, got a list with a bool in it",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=['a', 'b'])",
            "TypeError",
            "times must be numbers in the unit of the graph's times, or dates, got <U1",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=np.array(['2009', 'NaT'], "
            "'M8[s]'))",
            "ValueError",
            "times must hold a time for every seed, but entry 1 is missing",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=[1, -2 ** 63])",
            "ValueError",
            "above -2**63, which stands for no time, but times[1] is -9223372036854775808",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=np.array([1, 2 ** 63], "
            "np.uint64))",
            "ValueError",
            "times must be below 2**63, but times[1] is 9223372036854775808",
        ),
        (
            "TemporalNeighborSampler(happened, [2])([0, 0], times=torch.ones(2, "
            "dtype=torch.bfloat16))",
            "TypeError",
            "times must be dense integers or floats, got",
        ),
        (
            "timed([0, 0], times=[1.0, float('nan')])",
            "ValueError",
            "times must be finite, but times[1] is nan",
        ),
        (
            "timed([0, 0], times=[1, 2 ** 53 + 1])",
            "ValueError",
            "integers that float64 can tell apart (up to 2**53), but times[1] is 9007199254740993",
        ),
        (
            "TemporalNeighborSampler(happened, [2], strategy='last')",
            "ValueError",
            "strategy must be 'uniform' or 'recent', got 'last'",
        ),
        (
            "TemporalNeighborSampler(happened, [2], strategy='recent', prob='w')",
            "ValueError",
            "each once: prob= goes with 'uniform'",
        ),
        ("TemporalNeighborSampler(happened, [2], prob='none')", "KeyError", "none"),
        (
            "TemporalNeighborSampler(happened, [2], strategy='recent', replace=True)",
            "ValueError",
            "strategy='recent' takes the latest edges, each once",
        ),
        (
            "TemporalNeighborSampler(happened, fanouts=[2 ** 31], replace=True)",
            "ValueError",
            "fanouts with replacement must be at most 16777216",
        ),
        (
            "TemporalNeighborSampler(happened, fanouts=3)",
            "TypeError",
            "fanouts must be a list with one number per flow",
        ),
        (
            "TemporalNeighborSampler(happened, fanouts=[0])",
            "ValueError",
            "fanouts[0] must be -1 (all neighbours) or at least 1, got 0",
        ),
        (
            "TemporalNeighborSampler(happened, [2], time=3)",
            "TypeError",
            "time must be the name of a column, got int 3",
        ),
        (
            "TemporalNeighborSampler(happened, [2], strategy='recent').estimand()",
            "TypeError",
            "strategy='recent' takes the latest edges",
        ),
        (
            "TemporalNeighborSampler(happened, [2], since=1).estimand()",
            "TypeError",
            "pass the time of the seed, estimand(time)",
        ),
        (
            "TemporalNeighborSampler(happened, [2], time='time', since=-1)",
            "ValueError",
            "since must be at least 0, got -1",
        ),
        (
            "TemporalNeighborSampler(happened, [2], time='time', since=0.5)",
            "TypeError",
            "since must be an integer, got float 0.5",
        ),
        (
            "TemporalNeighborSampler(happened, [2], time='time', since=True)",
            "TypeError",
            "since must be an integer",
        ),
        (
            "TemporalNeighborSampler(happened, [2], time='time', since=2 ** 63)",
            "ValueError",
            "since must be below 2**63",
        ),
        (
            "TemporalNeighborSampler(happened, [2], time='w', since=-0.5)",
            "ValueError",
            "since must be",
        ),
        (
            "TemporalNeighborSampler(happened, [2], time='w', since=float('nan'))",
            "ValueError",
            "since must be",
        ),
        (
            "TemporalNeighborSampler(happened, [2], time='w', since='1')",
            "TypeError",
            "since must be",
        ),
        (
            "TemporalNeighborSampler(graph_of([1] * 7, [0] * 7, time=torch.zeros(7, 1)), [2])",
            "ValueError",
            "time: the edge column 'time' must have one number per edge",
        ),
        (
            "TemporalNeighborSampler(graph_of([1] * 7, [0] * 7, time=torch.zeros(7, "
            "dtype=torch.bool)), [2])",
            "TypeError",
            "time: the edge column 'time' must hold integers or floats",
        ),
        (
            "TemporalNeighborSampler(graph_of([1] * 7, [0] * 7, time=torch.tensor([1, 2, 3, "
            "float('nan'), 5, 6, 7])), [2])",
            "ValueError",
            "must be finite, but edge 3 has nan",
        ),
        (
            "TemporalNeighborSampler(graph_of([1] * 7, [0] * 7, time=torch.tensor([1, 2, 3, "
            "4, 5, 6, float('inf')])), [2])",
            "ValueError",
            "must be finite, but edge 6 has inf",
        ),
    ],
    "Arrays of edges": [
        ("sampling.base.Edges([0, 1], [0.5], None)", "TypeError", "indices must be integers"),
        ("sampling.base.Edges([0, 2, 1, 3], [0, 1, 2], None)", "ValueError", "indptr must"),
        ("sampling.base.Edges([0, 2], [0, 0, 0], None)", "ValueError", "indptr must"),
        ("sampling.base.Edges([], [], None)", "ValueError", "from 0 to the number"),
        ("sampling.base.Edges([0, 1], [1], None)", "IndexError", "indices[0] is 1"),
        ("sampling.base.Edges([0, 1], [-1], None)", "IndexError", "indices[0] is -1"),
        ("sampling.base.Edges([0, 2], [0, 0], [3])", "ValueError", "one entry per edge (2), got 1"),
        ("sampling.base.Edges([0, 2], [0, 0], [3, 3])", "ValueError", "distinct"),
        ("sampling.base.Edges([0, 2], [0, 0], [3, -3])", "IndexError", "edge_ids[1] is -3"),
        (
            "graph.edge_ids([0, 2], [1])",
            "ValueError",
            "u and v must have one entry per pair of nodes, got 2 and 1",
        ),
        (
            "graph.has_edges([0, 1], [1])",
            "ValueError",
            "u and v must have one entry per pair of nodes, got 2 and 1",
        ),
        ("graph.edge_ids([0], [23])", "IndexError", "v[0] is 23, but node ids go from 0 to 19"),
        ("Graph.from_edges([0, 1], [1, 2], edge_ids=[0])", "ValueError", "one entry per edge"),
        (
            "Graph.from_edges([0, 1], [1, 2], edge_ids=[1, 1])",
            "ValueError",
            "permutation, but no edge has id 0",
        ),
        (
            "NeighborSampler(graph, [2], weight='w')",
            "TypeError",
            'graph.view("out", where="train", weight="w")',
        ),
        (
            "History(graph, {1: 2}, edge_filter='w')",
            "TypeError",
            'graph.view("out", where="train", weight="w")',
        ),
        (
            "Propagation(graph, direction='out')",
            "TypeError",
            'graph.view("out", where="train", weight="w")',
        ),
        (
            "transform.edge_norm(graph, direction='out')",
            "TypeError",
            'graph.view("out", where="train", weight="w")',
        ),
        (
            "transform.degrees(graph, weight='w')",
            "TypeError",
            'graph.view("out", where="train", weight="w")',
        ),
        ("NeighborSampler(7, [2])", "TypeError", "graph must be a nodeflow.Graph, or a view"),
        ("Propagation(7)", "TypeError", "graph must be a nodeflow.Graph, or a view"),
        ("transform.edge_norm(7)", "TypeError", "graph must be a nodeflow.Graph, or a view"),
        ("graph.view('up')", "ValueError", "direction must be 'in', 'out' or 'both', got 'up'"),
        ("Propagation(graph.view('both'))", "ValueError", "direction must be"),
    ],
    "Scores of candidates": [
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.ones(len(c) + 1))([1, 2])",
            "ValueError",
            "one number per candidate, shape (3,), got shape (4,)",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.ones(len(c), 1))([1, 2])",
            "ValueError",
            "shape (3,), got shape (3, 1)",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.tensor(1.0))([1, 2])",
            "ValueError",
            "got shape ()",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.tensor([1, 2, "
            "-0.5]))([1, 2])",
            "ValueError",
            "flow 0 must be finite and not negative, but entry 2 is -0.5",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.tensor([1, torch.nan, "
            "0]))([1, 2])",
            "ValueError",
            "entry 1 is nan",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.tensor([1, 2, "
            "torch.inf]))([1, 2])",
            "ValueError",
            "entry 2 is inf",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.zeros(len(c)))([1, 2])",
            "ValueError",
            "score gives 0 to all 3 candidates of flow 0",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.ones(len(c), "
            "dtype=torch.bool))([1, 2])",
            "TypeError",
            "tensor of numbers, one per candidate, got Tensor",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: torch.ones(len(c), "
            "dtype=torch.complex64))([1, 2])",
            "TypeError",
            "dense tensor of numbers",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: None)([1, 2])",
            "TypeError",
            "dense tensor of numbers, one per candidate, got NoneType None",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: [1.0] * len(c))([1, 2])",
            "TypeError",
            "dense tensor of numbers",
        ),
        (
            "LayerSampler(five.graph, [2], score=lambda c, step: "
            "torch.ones(len(c)).to_sparse())([1, 2])",
            "TypeError",
            "dense tensor",
        ),
        (
            "LayerSampler(graph, [2], score=torch.ones(6))",
            "TypeError",
            "score must be a function of (candidates, step) or a module, got Tensor",
        ),
    ],
}

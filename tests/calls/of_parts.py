"""Calls that users get wrong, of graphs that are cut into parts: folders, orders and buffers."""

from __future__ import annotations

Rows = list[tuple[str, str, str]]
WRITERS = ("write_partitions", "partition_graph")
OF_ANY_CUT: Rows = [
    ("ndata=['z']", "KeyError", "ndata: the graph has no column 'z'"),
    ("edata=['z']", "KeyError", "edata: the graph has no column 'z'"),
    ("ndata='feat'", "TypeError", "ndata must be a list of names"),
    ("method='best'", "ValueError", "method must be 'random', 'train-first'"),
    ("method=[0, 1, 0]", "ValueError", "method must have one entry per node (20), got 3"),
    ("method=[0, 2] * 10", "IndexError", "method[1] is 2, but part ids go from 0 to 1"),
    ("method='train-first'", "ValueError", "method='train-first' needs training nodes"),
    ("train=[20]", "IndexError", "train[0] is 20"),
    ("columns={'h': torch.zeros(19)}", "ValueError", "columns['h'] must have 20 rows"),
    ("columns={'h': 3}", "TypeError", "columns['h'] must be a tensor, Rows or a function"),
]
"""Arguments of both functions that write a folder."""
OF_BUFFERS: Rows = [
    ("", "ValueError", "give slots: the number of parts in memory"),
    ("slots=3", "ValueError", "slots must be one of 2, 4 for 4 parts, got 3"),
    ("slots=2, order='best'", "ValueError", "order must be 'comet', 'beta', 'dispersed' or"),
    ("slots=2, order='sequential'", "ValueError", "order='sequential' needs training nodes"),
    ("order=distributed.beta_order(5, 2)", "ValueError", "order must have 4 parts and 2 slots"),
    ("slots=3, order=[[0, 1]]", "ValueError", "order must have 4 parts and 3 slots"),
    (
        "slots=2, order=lambda _: distributed.beta_order(4, 3)",
        "ValueError",
        "order must have 4 parts and 2 slots, as the buffer has, got Order(4 parts, 3 slots",
    ),
    ("slots=2, order=lambda _: [[0, 1]]", "TypeError", "order must return an Order"),
    ("slots=2, writable=['h']", "KeyError", "writable: the buffer has no column 'h'; it has feat"),
    ("slots=2, ndata='feat'", "TypeError", "ndata must be a list of names"),
    ("slots=2, train=[20]", "IndexError", "train[0] is 20"),
]
"""Arguments of a buffer over four parts without training nodes."""
BUFFER = "distributed.PartitionBuffer(partitions.folder, 2)"
OF_PARTS: dict[str, Rows] = {
    "Folders of parts": [
        *(
            (f"distributed.{write}(graph, folder, 2, {options})", error, words)
            for write in WRITERS
            for options, error, words in OF_ANY_CUT
        ),
        (
            "distributed.write_partitions(graph, folder, 21)",
            "ValueError",
            "num_parts must be at most the number of nodes 20, got 21",
        ),
        (
            "distributed.write_partitions(Graph([0], []), folder, 1)",
            "ValueError",
            "num_parts must be at most the number of nodes 0, got 1",
        ),
        (
            "distributed.partition_graph(graph, folder, 2, edges='grid')",
            "ValueError",
            "edges must be 'in' or 'out', got 'grid'",
        ),
        ("distributed.partition_graph(graph, folder, 2, val=[20])", "IndexError", "val[0] is 20"),
        ("distributed.DistributedGraph.open(folder, halo=-0.5)", "ValueError", "halo must be"),
        ("distributed.DistributedGraph.open(folder, halo=np.nan)", "ValueError", "halo must be"),
        ("distributed.DistributedGraph.open(folder, halo='all')", "TypeError", "halo must be"),
        ("partitions.column('z')", "KeyError", "there is no node column 'z'; there are feat"),
        ("partitions.column('feat').fetch([0, 20])", "IndexError", "ids[1] is 20"),
        ("partitions.partition_of([20])", "IndexError", "nodes[0] is 20"),
    ],
    "Partition buffers": [
        *(
            (f"distributed.PartitionBuffer(partitions.folder, {options})", error, words)
            for options, error, words in OF_BUFFERS
        ),
        ("distributed.PartitionBuffer('none', 2)", "FileNotFoundError", "it does not exist"),
        (f"{BUFFER}.seeds_per_state()", "ValueError", "there are no training nodes; pass train"),
        (f"next(iter({BUFFER})).seeds", "ValueError", "there are no training nodes; pass train"),
        (f"{BUFFER}.set_epoch(-1)", "ValueError", "epoch must be at least 0, got -1"),
        (f"{BUFFER}.set_epoch(5, 6)", "ValueError", "state must be below 6, the number of states"),
        (
            "distributed.PartitionBuffer(partitions.folder, 2, writable=['feat']).set_epoch(1)",
            "ValueError",
            "set_epoch is for buffers that write nothing back, and this one writes feat: it",
        ),
    ],
    "Orders of parts": [
        ("distributed.Order(4, [[3, 3]])", "ValueError", "states[0] must hold a part once"),
        ("distributed.Order(4, [[0, 4]])", "IndexError", "states[0][1] is 4, but part ids go from"),
        ("distributed.Order(4, [])", "ValueError", "at least one state"),
        (
            "distributed.Order(4, [[0, 1], [2]])",
            "ValueError",
            "states[1] must have as many parts as states[0], 2, got 1",
        ),
        (
            "distributed.Order(3, [[0, 1]], np.zeros(3, np.int64))",
            "ValueError",
            "bucket_state must be integers [3, 3]",
        ),
        (
            "distributed.Order(3, [[0, 1]], np.zeros((3, 3), np.int64))",
            "ValueError",
            "bucket_state[0, 2] is 0, but that state does not hold both",
        ),
        ("distributed.beta_order(4, 5)", "ValueError", "slots must be at most the number of parts"),
        ("distributed.beta_order(4, 1)", "ValueError", "slots must be at least 2"),
        ("distributed.comet_order(8, 6)", "ValueError", "slots must be one of 2, 4, 8 for 8 parts"),
        ("distributed.comet_order(8, 2.0)", "TypeError", "slots must be an integer"),
        (
            "distributed.sequential_order(8, 2, [0, 1, 2])",
            "ValueError",
            "slots must be at least the number of parts with training nodes, 3",
        ),
    ],
}

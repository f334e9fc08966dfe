"""Calls that users get wrong, of converters from and to other libraries and of stand-ins for them."""

from __future__ import annotations

from importlib.util import find_spec

_Rows = list[tuple[str, str, str]]

_OF_TABLES: dict[str, _Rows] = {
    "Columns of tables": [
        (
            "one([[1], None])",
            "TypeError",
            "column 'c' of table 't' holds mixed values such as list",
        ),
        ("one([{'a': 1}])", "TypeError", "holds mixed values such as dict"),
        ("one([b'a'])", "TypeError", "holds bytes values"),
        ("one([1, 'a'])", "TypeError", "holds mixed-integer values such as int 1"),
        ("one([1 + 2j])", "TypeError", "holds complex values"),
        ("one(pandas.to_timedelta(['1s']))", "TypeError", "holds timedelta64 values"),
        ("one([datetime.time(1)])", "TypeError", "convert it, or name it in drop="),
        ("one([1.0, math.inf])", "ValueError", "'c' of table 't' must hold finite numbers"),
        ("one([0.0, -math.inf])", "ValueError", "must hold finite numbers"),
        ("one(['a', 'b', 'c'], categories=2)", "ValueError", "has 3 different values, more than"),
        (
            "one(pandas.Categorical([1, 2, 3]), categories=2, text=len)",
            "ValueError",
            "has 3 different values, more than categories=2; name it in drop=",
        ),
        (
            "one(pandas.Categorical([1, '1']))",
            "ValueError",
            "two categories that are written '1'; rename",
        ),
        (
            "one(['a', 'b', 'c'], categories=2, text=lambda strings: np.ones(3))",
            "ValueError",
            "text must return [3, width] for strings of column 'c' of table 't'",
        ),
        (
            "one(['a', 'b', 'c'], categories=2, text=lambda strings: np.ones((1, 2)))",
            "ValueError",
            "text must return [3, width]",
        ),
        (
            "one(['a', 'b', 'c'], categories=2, text=lambda strings: np.full((3, 1), np.nan))",
            "ValueError",
            "must hold finite numbers",
        ),
        ("one([1.0, 50.0], cut='2021-01-01')", "ValueError", "cut needs times="),
        ("one([1], cut=[1])", "ValueError", "cut must hold dates or seconds"),
        ("one([1], categories=-1)", "ValueError", "categories must be at least 0"),
        ("one([1], times={'t': 'no'})", "KeyError", "times: table 't' has no column 'no'"),
        ("one([1], drop={'t': ['no']})", "KeyError", "drop: table 't' has no column 'no'"),
        ("one([1], drop=['c'])", "TypeError", "drop must be a dict by the names of tables"),
        ("convert.from_tables({})", "ValueError", "nodes must have a type at least"),
        (
            "convert.from_tables({'a': pandas.DataFrame([[1, 2]], columns=['x', 'x'])})",
            "ValueError",
            "table 'a' has two columns named 'x'",
        ),
    ],
    "Encodings of tables": [
        (
            "convert.from_tables({'t': frame, 'b': frame}, encodings={'t': {}})",
            "ValueError",
            "encodings lack the table 'b'",
        ),
        (
            "convert.from_tables({}, encodings={'a': {}})",
            "ValueError",
            "encodings have, but the tables lack, the table 'a'",
        ),
        (
            "one([1], encodings={'t': {}})",
            "ValueError",
            "encodings lack the column of table 't' 'c'",
        ),
        (
            "one([1], encodings={'t': {'c': {}, 'w': {}}})",
            "ValueError",
            "encodings have, but the tables lack, the column of table 't' 'w'",
        ),
        (
            "one(['one'], encodings={'t': {'c': {'kind': 'number', 'missing': False}}})",
            "TypeError",
            "column 'c' of table 't' holds string values such as str 'one', its encoding is a",
        ),
        (
            "one([5], encodings={'t': {'c': {'kind': 'text', 'missing': False}}})",
            "TypeError",
            "holds integer values",
        ),
        (
            "one(['a'], encodings={'t': {'c': {'kind': 'text', 'missing': False}}})",
            "ValueError",
            "was encoded by text=, a function that encodings do not hold: give it again",
        ),
        ("one([1], encodings={'t': {}}, cut=3)", "ValueError", "leave one of the two out"),
        (
            "one(pandas.Categorical([1, '1']), encodings={'t': {'c': {'kind': 'category',"
            " 'missing': False, 'values': ['1']}}})",
            "ValueError",
            "two categories that are written '1'",
        ),
    ],
    "Keys of tables": [
        (
            "linked([1, 2], [1, 7, 7, None])",
            "ValueError",
            "column 'to' of table 'b' has 2 foreign keys that no row of table 'a' has, the first "
            "7.0 (float64, keys are int64); dangling='drop' leaves them out",
        ),
        (
            "linked(['1', '2'], [1, 7, 7, None])",
            "ValueError",
            "has 3 foreign keys that no row of table 'a' has, the first 1.0 (float64",
        ),
        (
            "linked([1, 2, 1, 2], [1])",
            "ValueError",
            "'id' of table 'a' is a primary key, but 2 rows have 1",
        ),
        ("linked([1, None], [1])", "ValueError", "is a primary key, but 1 rows have none"),
        ("linked([1], [1], keys={})", "KeyError", "a table without a key, 'a'; there are none"),
        (
            "linked([1], [1], links={'b': {'to': 'c'}})",
            "KeyError",
            "column 'to' of table 'b' refers to a table without a key, 'c'; there are 'a'",
        ),
        (
            "linked([1], [1], links={'b': {'x': 'a'}})",
            "KeyError",
            "links: table 'b' has no column 'x'; there are 'to'",
        ),
        (
            "linked([1], [1], links={'c': {}})",
            "KeyError",
            "links: no table 'c'; there are 'a', 'b'",
        ),
        ("linked([0, 1], [None, '1'])", "ValueError", "(the first is in row 1)"),
        ("linked([0, 1], [None, b'1'])", "ValueError", "has 1 foreign keys that"),
        ("linked([0, 1], [None, True])", "ValueError", "has 1 foreign keys that"),
        ("linked([0, 1], [None, '01'])", "ValueError", "has 1 foreign keys that"),
        ("linked([0, 1], [None, decimal.Decimal(3)])", "ValueError", "has 1 foreign keys that"),
        (
            "linked([0, 1], [None, datetime.datetime(1970, 1, 1)])",
            "ValueError",
            "has 1 foreign keys that",
        ),
        (
            "linked([0, 1], [1, 1.5])",
            "ValueError",
            "hold keys that are whole numbers, words or dates, but row 1 has 1.5",
        ),
        (
            "linked([0, 1], [[1]])",
            "TypeError",
            "column 'to' of table 'b' must hold keys, such as integers or strings, but row 0 has "
            "list [1]",
        ),
    ],
    "Times of tables": [
        (
            "times_of([1_700_000_000_000, None])",
            "ValueError",
            "before the year 10000, but row 0 has 1700000000000",
        ),
        ("times_of([1, 2**63 - 1])", "ValueError", "but row 1 has 9223372036854775807"),
        (
            "times_of(pandas.Series([None, 2**64], dtype=object))",
            "ValueError",
            "before the year 10000, but row 1 has 18446744073709551616",
        ),
        (
            "times_of([20240131, 20240201])",
            "ValueError",
            "looks like days such as 20240131, which are seconds of 1970; "
            "pandas.to_datetime(column, format='%Y%m%d')",
        ),
        (
            "times_of([19991231.0, None, 20240201])",
            "ValueError",
            "looks like days such as 19991231",
        ),
        (
            "times_of([202401, None, 202402])",
            "ValueError",
            "looks like months such as 202401.0, which are seconds of 1970",
        ),
        (
            "times_of([202401311530, 202402010000])",
            "ValueError",
            "looks like minutes such as 202401311530, which are seconds of 8383",
        ),
        (
            "times_of(pandas.array([2024013115, None], dtype='Int64'))",
            "ValueError",
            "looks like hours such as 2024013115, which are seconds of 2034",
        ),
        ("times_of([20240131153000])", "ValueError", "before the year 10000"),
        ("times_of([2024, 2023])", "ValueError", "looks like years such as 2024"),
        ("times_of([20240131, 99991231, 20240201])", "ValueError", "days such as 20240131"),
        ("times_of([0, 20240201])", "ValueError", "looks like days such as 20240201"),
        (
            "times_of(['2024-01-31', '01/02/2024'])",
            "ValueError",
            "01/02/2024 is not ISO8601 format",
        ),
        (
            "times_of(['2024-01-01'], [19_000, 19_001])",
            "ValueError",
            "column 'at' of table 't1' must hold dates or seconds since 1970, but all its numbers, "
            "such as 19000, fall into one day of",
        ),
        (
            "times_of([1.5, 2], pandas.to_datetime(['2024-01-01']))",
            "ValueError",
            "such as 1.5, fall into one day of",
        ),
        (
            "times_of(pandas.Series([1, 2**24], dtype='float32'))",
            "ValueError",
            "row 1 has 16777216.0 as float32, which has rounded numbers from 2**24 on",
        ),
        (
            "times_of(pandas.array([2**24, None], dtype='Float32'))",
            "ValueError",
            "row 0 has 16777216.0 as float32",
        ),
        (
            "times_of(pandas.Series([np.float32(1), np.float32(2**24)], dtype=object))",
            "ValueError",
            "row 1 has 16777216.0 as float32",
        ),
        (
            "times_of(pandas.Series([2048], dtype='float16'))",
            "ValueError",
            "row 0 has 2048.0 as float16",
        ),
        (
            "times_of(pandas.to_datetime([None, '2024-01-01 00:00:00.000000001'],"
            " format='ISO8601'))",
            "ValueError",
            "but entry 1 is 2024-01-01T00:00:00.000000001; round rows up, with .dt.ceil('us')",
        ),
        ("times_of([True, False])", "ValueError", "got boolean values"),
        ("times_of([1, '2024-01-01'])", "ValueError", "got mixed-integer values"),
        ("times_of(pandas.to_timedelta([1]))", "ValueError", "got timedelta64 values"),
        (
            "times_of(['now and then'])",
            "ValueError",
            "column 'at' of table 't0' must hold dates or seconds, convert it with "
            "pandas.to_datetime",
        ),
        ("times_of(['2020-01-01', '2020-01-01 at ten'])", "ValueError", "must hold dates or"),
        ("times_of([math.inf])", "ValueError", "must hold dates or seconds"),
        *(
            (f"times_of([5], cut={cut})", "ValueError", "leave it out, and all rows count")
            for cut in ("math.nan", "pandas.NaT", "pandas.NA", "''", "np.datetime64('NaT')")
        ),
        (
            "times_of([1_600_000_000], cut=1_700_000_000_000)",
            "ValueError",
            "cut must hold dates or seconds since 1970 before the year",
        ),
        (
            "times_of([1_600_000_000], cut=20240131)",
            "ValueError",
            "but looks like days such as 20240131",
        ),
        (
            "times_of(['2024-01-01'], cut=2024)",
            "ValueError",
            "cut must hold dates or seconds since 1970, but looks like years such as 2024",
        ),
        (
            "times_of([2023, 2024], cut='2024-01-01')",
            "ValueError",
            "column 'at' of table 't0' must hold dates or seconds since 1970, but looks like years",
        ),
    ],
    "Tables of edges": [
        (
            "convert.from_edge_table({'a': [1]})",
            "KeyError",
            "edges has no column 'src'; it has 'a'; src= and dst= name the ends of edges",
        ),
        (
            "convert.from_edge_table({'src': [1], 'dst': [1]}, columns=['w'])",
            "KeyError",
            "edges has no column 'w'",
        ),
        (
            "convert.from_edge_table({'src': [1], 'dst': [1]}, columns='w')",
            "TypeError",
            "columns must be a list of names, got the string 'w'",
        ),
        (
            "convert.from_edge_table({'src': [1], 'dst': [2]}, nodes={'name': [1]})",
            "KeyError",
            "no node has the name 2",
        ),
        (
            "convert.from_edge_table({'src': [1], 'dst': [1]}, nodes={'name': [1, 1]})",
            "ValueError",
            "1 occurs more than once",
        ),
        (
            "convert.from_edge_table({'src': [1], 'dst': [1]}, nodes={'id': [1]})",
            "KeyError",
            "nodes has no column 'name'; it has 'id'",
        ),
        (
            "convert.from_edge_table({'src': [1, 2], 'dst': [1]})",
            "ValueError",
            "one entry per edge, got 2 and 1",
        ),
        (
            "convert.from_edge_table({'src': [1, 2], 'dst': [1, 1], 'v': [[1], [1, 2]]})",
            "ValueError",
            "column 'v' must have lists of one length, got rows of shape [1], [2]",
        ),
        (
            "convert.from_edge_table([(0, 1)])",
            "TypeError",
            "Arrow, or a dict of columns), got list",
        ),
        ("convert.from_edge_table(5)", "TypeError", "edges must be a table"),
        (
            "convert.from_edge_table(pandas.DataFrame([[0, 1, 2]], columns=['src', 'dst', 0]))",
            "TypeError",
            "a column name must be a str, got int 0",
        ),
        (
            "convert.from_edge_table(pandas.DataFrame([[0, 1, 2, 3]], columns=[*'abcc']))",
            "ValueError",
            "edges has more than one column named 'c'",
        ),
        *(
            (
                f"convert.from_edge_table({{'src': {src}, 'dst': [2, 2]}})",
                "ValueError",
                f"names must all be strings, or none, but {name} is one, and {other} is not",
            )
            for src, name, other in (
                ("[1, '1']", "'1'", "1"),
                ("['a', math.nan]", "'a'", "nan"),
                ("('a', 1)", "'a'", "1"),
            )
        ),
        *(
            (
                f"convert.from_edge_table({{'src': {src}, 'dst': [3, 3]}})",
                "ValueError",
                "names must all be True or False, or none, but ",
            )
            for src in (
                "[True, 2]",
                "np.array([1, False], object)",
                "pandas.Series([np.True_, 1.0], dtype=object)",
                "pandas.Series(pandas.Categorical([True, 2]))",
            )
        ),
        *(
            (
                f"convert.from_edge_table({{'src': np.array([1, {missing}], object), 'dst': [2, 2]}})",
                "ValueError",
                "a name is missing",
            )
            for missing in ("pandas.NaT", "pandas.NA", "None", "math.nan")
        ),
        (
            "convert.from_edge_table({'src': np.array([0, 1], 'M8[ns]'), 'dst': [0, 0]})",
            "ValueError",
            "column 'src' must hold dates to the microsecond",
        ),
        (
            "convert.from_edge_table({'src': np.array([1], 'm8[ns]'), 'dst': [1]})",
            "ValueError",
            "is finer than microseconds",
        ),
        (
            "convert.to_edge_table(graph, src='u', dst='u')",
            "ValueError",
            "src and dst must be two names, got 'u' twice",
        ),
        (
            "convert.to_edge_table(graph, ['ann'])",
            "ValueError",
            "names must have one entry per node (20), got 1",
        ),
        (
            "convert.to_edge_table(graph, src='w')",
            "ValueError",
            "a column is named 'w', as is the column of the names",
        ),
        ("convert.to_edge_table(graph, columns=['z'])", "KeyError", "no column 'z'"),
        (
            "convert.to_edge_table(graph_of_edges([0], [0], m=torch.ones(1, 2, 2)))",
            "ValueError",
            "one list of numbers per row, but column 'm' has shape [1, 2, 2]",
        ),
        (
            "convert.to_edge_table(graph_of_edges([0], [0], h=torch.ones(1).bfloat16()))",
            "TypeError",
            "numpy has no numbers of type torch.bfloat16, which 'h' has",
        ),
        (
            "convert.to_edge_table(graph_of_edges([0], [0], s=torch.ones(1, 2).to_sparse_csr()))",
            "TypeError",
            "cannot hold the sparse column 's'; leave it out with columns=",
        ),
    ],
}

_MATRICES: dict[str, _Rows] = {
    "Sparse matrices": [
        *(
            (
                f"convert.from_torch_sparse({matrix})",
                "TypeError",
                "matrix must be a sparse COO, CSR or CSC tensor, got",
            )
            for matrix in ("torch.eye(2)", "[[0]]", "torch.eye(4).to_sparse_bsr((2, 2))")
        ),
        *(
            (f"convert.from_torch_sparse({matrix})", "ValueError", "must be square, got shape")
            for matrix in (
                "torch.ones(2, 3).to_sparse()",
                "torch.ones(3, 3, 3).to_sparse()",
                "torch.ones(2).to_sparse()",
            )
        ),
        (
            "convert.from_torch_sparse(torch.ones(2, 2, 2).to_sparse_csr())",
            "ValueError",
            "not a batch of them",
        ),
        (
            "convert.from_scipy(np.eye(2))",
            "TypeError",
            "matrix must be a scipy sparse matrix, got ndarray",
        ),
        (
            "convert.from_scipy(scipy.sparse.csr_array((2, 3)))",
            "ValueError",
            "must be square, got shape (2, 3)",
        ),
        ("convert.to_scipy(graph, weight='z')", "KeyError", "no column 'z'"),
        ("convert.to_torch_sparse(graph, weight='z')", "KeyError", "no column 'z'"),
        (
            "convert.to_scipy(graph_of_edges([0], [1], f=torch.ones(1, 2)), weight='f')",
            "ValueError",
            "one number per edge, 'f' is (1, 2)",
        ),
        (
            "convert.to_torch_sparse(graph_of_edges([0], [1], s=torch.ones(1, 2).to_sparse_csr()),"
            " weight='s')",
            "ValueError",
            "weight must be a dense column, 's' has layout torch.sparse_csr",
        ),
        (
            "convert.to_scipy(graph_of_edges([0], [1], b=torch.ones(1).bfloat16()), weight='b')",
            "TypeError",
            "no numbers of type torch.bfloat16, which 'b' has; convert it first, with .float()",
        ),
    ],
}

_NETWORKX: dict[str, _Rows] = {
    "networkx": [
        (
            "convert.from_networkx(networkx.DiGraph([(0, 1)]), keys_are_ids=True)",
            "ValueError",
            "needs a MultiDiGraph, whose edges have keys, got DiGraph",
        ),
        (
            "convert.from_networkx(networkx.MultiDiGraph([(0, 1, 'a')]), keys_are_ids=True)",
            "ValueError",
            "keys that are the numbers 0..num_edges-1, got str 'a'",
        ),
        (
            "convert.from_networkx(networkx.MultiDiGraph([(0, 1, 0), (1, 0, 0)]),"
            " keys_are_ids=True)",
            "ValueError",
            "permutation",
        ),
        (
            "convert.from_networkx(networkx.path_graph(2), node_columns=['x'])",
            "KeyError",
            "every node must have the attribute 'x', but node 0 has none",
        ),
        (
            "convert.from_networkx(networkx.path_graph('pq'), edge_columns=['w'])",
            "KeyError",
            "every edge must have the attribute 'w', but edge ('p', 'q') has none",
        ),
        (
            "convert.from_networkx(networkx.path_graph(2), node_columns='x')",
            "TypeError",
            "node_columns must be a list of names, got the string 'x'",
        ),
        *(
            (
                f"convert.from_networkx(networkx.DiGraph([(0, 1, {{'w': {first}}}),"
                f" (1, 0, {{'w': {second}}})]), edge_columns=['w'])",
                error,
                words,
            )
            for first, second, error, words in (
                ("'text'", "'more'", "TypeError", "edge attribute 'w' must hold numbers, got <U4"),
                ("1", "'more'", "TypeError", "edge attribute 'w' must hold numbers"),
                (
                    "[1]",
                    "[1, 2]",
                    "ValueError",
                    "'w' must have lists of one length, got rows of shape [1], [2]",
                ),
                ("2**70", "2**71", "TypeError", f"such as int {2**70} as entry [0]"),
                ("1", "None", "TypeError", "such as NoneType None as entry [1]"),
            )
        ),
        *(
            (
                f"convert.from_networkx(networkx.DiGraph([(0, 1, {{'w': {first}}}),"
                f" (1, 0, {{'w': {second}}})]), edge_columns={{'w': {dtype}}})",
                "ValueError",
                "the edge attribute 'w' becomes floats, which would round 9007199254740993",
            )
            for first, second in (
                ("2**53 + 1", "0.5"),
                ("[2**53 + 1]", "[0.5]"),
                ("[0.5]", "np.array([2**53 + 1])"),
            )
            for dtype in ("None", "torch.float64")
        ),
        (
            "convert.to_networkx(graph, edge_columns='x')",
            "TypeError",
            "edge_columns must be a list of names",
        ),
        ("convert.to_networkx(graph, node_columns=['y'])", "KeyError", "no column 'y'"),
        (
            "convert.to_networkx(batch, node_columns=['y'])",
            "KeyError",
            "no layer has a column 'y'",
        ),
        (
            "convert.to_networkx([])",
            "TypeError",
            "graph must be a nodeflow.Graph or a NodeFlow, got list",
        ),
    ],
}

_IGRAPH: dict[str, _Rows] = {
    "igraph": [
        (
            "convert.from_igraph(igraph.Graph(2, [(0, 1)]), edge_columns=['w'])",
            "KeyError",
            "no edge attribute 'w'; the graph has none",
        ),
        (
            "convert.from_igraph(igraph.Graph(2, vertex_attrs={'x': [1, None]}),"
            " node_columns=['x'])",
            "TypeError",
            "attribute 'x' must hold numbers, got object such as NoneType None as entry [1]",
        ),
        (
            "convert.from_igraph(igraph.Graph(1, vertex_attrs={'name': ['ann']}),"
            " node_columns=['name'])",
            "TypeError",
            "attribute 'name' must hold numbers, got <U3",
        ),
        (
            "convert.from_igraph(igraph.Graph(1, vertex_attrs={'w': [[2**53 + 1, 0.5]]}),"
            " node_columns=['w'])",
            "ValueError",
            "attribute 'w' becomes floats, which would round 9007199254740993",
        ),
        (
            "convert.from_igraph(igraph.Graph(1, vertex_attrs={'w': [300]}),"
            " node_columns={'w': torch.uint8})",
            "ValueError",
            "attribute 'w' has 300, which torch.uint8 does not hold",
        ),
        ("convert.from_igraph([])", "TypeError", "graph must be an igraph.Graph, got list"),
        ("convert.to_igraph(graph, node_columns=['y'])", "KeyError", "no column 'y'"),
    ],
}

_DATA = "pyg.Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(2))"
_SAMPLED = "pyg.Data(**{**convert.to_pyg(nested).to_dict(), "
_PYG: dict[str, _Rows] = {
    "PyTorch Geometric": [
        (
            "convert.from_pyg(pyg.Data(x=torch.ones(2)))",
            "ValueError",
            "data must have an edge_index",
        ),
        ("convert.from_pyg(pyg.HeteroData())", "ValueError", "nodes must have a type at least"),
        (
            "convert.from_pyg([])",
            "TypeError",
            "must be a torch_geometric.data.Data or HeteroData, got list",
        ),
        (
            f"convert.from_pyg({_DATA}, node_columns=['z'])",
            "KeyError",
            "node_columns: data must have the attribute 'z', it has",
        ),
        (
            f"convert.from_pyg({_DATA}, edge_columns=['x'])",
            "ValueError",
            "edge_columns: 'x' must be a tensor with 1 rows",
        ),
        (
            f"convert.from_pyg({_DATA}, node_columns='x')",
            "TypeError",
            "node_columns must be a list of names, got the string 'x'",
        ),
        (
            "convert.to_pyg(Graph.from_edges([0], [1], ndata={'w': torch.ones(2)},"
            " edata={'w': torch.ones(1)}))",
            "ValueError",
            "share a name, which Data cannot hold: ['w']",
        ),
        (
            "convert.to_pyg(Graph.from_edges([0], [1], ndata={'num_nodes': torch.ones(2)}))",
            "ValueError",
            "Data keeps the names ['num_nodes'] for itself",
        ),
        ("convert.to_pyg([])", "TypeError", "graph must be a Graph or a NodeFlow, got list"),
        (
            "convert.to_pyg(NeighborSampler(graph, [2], include_dst=False)([7, 3]))",
            "ValueError",
            "layer 0 must begin with the nodes of layer 1, in their order: sample with include_dst",
        ),
        (
            f"convert.from_pyg_batch({_SAMPLED}'num_sampled_nodes': [2, 1]}}))",
            "ValueError",
            "num_sampled_nodes must add up to the",
        ),
        (
            f"convert.from_pyg_batch({_SAMPLED}'num_sampled_nodes': None}}))",
            "ValueError",
            "data has no num_sampled_nodes, so it is no batch of a loader with counts per hop; pass "
            "num_flows=",
        ),
        (
            f"convert.from_pyg_batch({_SAMPLED}'num_sampled_edges': [1, 2, 3]}}))",
            "ValueError",
            "num_sampled_edges [1, 2, 3] does not fit the edges",
        ),
        (
            f"convert.from_pyg_batch({_SAMPLED}'n_id': torch.tensor([1])}}))",
            "ValueError",
            "n_id must be a tensor with",
        ),
        (
            "convert.from_pyg_batch(pyg.Data(x=torch.ones(1)))",
            "ValueError",
            "data must have an edge_index",
        ),
        (
            f"convert.from_pyg_batch({_SAMPLED}'num_sampled_edges': None,"
            " 'num_sampled_nodes': [0, nested.layer_sizes[0]]}))",
            "ValueError",
            "edges must end at nodes of the hops before the last, but",
        ),
        (
            "convert.from_pyg_batch(convert.to_pyg(nested), num_flows=0)",
            "ValueError",
            "num_flows must be the number of hops that were sampled",
        ),
        (
            "convert.from_pyg_batch(convert.to_pyg(nested), edge_columns=['c'])",
            "KeyError",
            "edge_columns: data must have the attribute 'c'",
        ),
        (
            "convert.from_pyg_batch(convert.to_pyg(nested), node_columns=['e_id'])",
            "ValueError",
            "node_columns: 'e_id' must be a tensor with",
        ),
        ("convert.from_pyg_batch(batch)", "TypeError", "must be a torch_geometric.data.Data"),
        (
            "convert.from_pyg_batch(pyg.HeteroData())",
            "TypeError",
            "a batch must have one type of nodes, got HeteroData",
        ),
        ("convert.pyg_loader(5)", "TypeError", "loader must be a loader of NodeFlows, got int 5"),
    ],
}

_DGL = "dgl.contrib.sampling"
_COMPAT: dict[str, _Rows] = {
    "Stand-ins for DGL": [
        (f"{_DGL}.NeighborSampler(old, 1)", "TypeError", "expand_factor"),
        (f"{_DGL}.NeighborSampler(old, 1, 1.5)", "TypeError", "expand_factor"),
        (f"{_DGL}.NeighborSampler(old, 0, 1)", "ValueError", "batch_size"),
        (f"{_DGL}.NeighborSampler(old, 1, 0)", "ValueError", "expand_factor must be -1"),
        (f"{_DGL}.LayerSampler(old, 1, [0])", "ValueError", "layer_sizes"),
        (
            f"{_DGL}.sampler.create_full_nodeflow(dgl.DGLGraph(), 1)",
            "ValueError",
            "without nodes",
        ),
        (f"{_DGL}.NeighborSampler(old, 1, 1, 0)", "ValueError", "num_hops"),
        (
            f"{_DGL}.NeighborSampler(old, 1, 1, neighbor_type='both')",
            "ValueError",
            "neighbor_type",
        ),
        (f"{_DGL}.NeighborSampler(old, 1, 1, seed_nodes=[9])", "IndexError", "seed_nodes"),
        (f"{_DGL}.NeighborSampler(old.graph, 1, 1)", "TypeError", "DGLGraph"),
        (
            f"{_DGL}.LayerSampler(old, 1, [2], node_prob=torch.ones(7))",
            "ValueError",
            "score=",
        ),
        (
            f"[*{_DGL}.NeighborSampler(old, 1, 1, transition_prob='v')]",
            "KeyError",
            "'v'",
        ),
        ("dgl.random.seed('x')", "TypeError", "val"),
        ("dgl.DGLGraph(5)", "TypeError", "an edge list, a scipy matrix or a networkx graph"),
        ("dgl.DGLGraph([(1, 2)])", "ValueError", "must start from 0"),
        ("old.nodes[0:2]", "ValueError", "full slice"),
        ("old.nodes[1:]", "ValueError", "full slice"),
        ("old.nodes[[0]].data.pop('x')", "ValueError", "some rows only"),
        ("old.add_edge(0, 4)", "IndexError", "node ids go from 0 to 2"),
        ("old.add_edges([0, 1], [0, 1, 2])", "ValueError", "one entry per edge"),
        ("old.update_all()", "ValueError", "register_message_func"),
        (
            "old.update_all(fn.copy_u('y', 'm'), fn.sum('m', 'h'))",
            "KeyError",
            "'y' in layer 0, which has 'x'",
        ),
        ("old.edge_ids(0, 2)", "ValueError", "no edge"),
        ("old_flow.copy_from_parent([['x']])", "ValueError", "list of 2 lists"),
        ("old_flow.copy_from_parent('x')", "ValueError", "list of 2 lists"),
        ("old_flow.copy_from_parent([['y'], []])", "KeyError", "no column 'y'"),
        ("old_flow.apply_layer(0)", "ValueError", "there is no function for layer 0"),
        ("old_flow.apply_layer(1)", "ValueError", "there is no function for layer 1"),
        ("old_flow.apply_block(0)", "ValueError", "there is no apply edge function"),
        (
            "old_flow.prop_flow(print, fn.sum('m', 'x'), None, slice(0, 1, 2))",
            "ValueError",
            "consecutive",
        ),
        (
            "old_flow.prop_flow([print] * 3, fn.sum('m', 'x'), None)",
            "ValueError",
            "per block",
        ),
        ("old_flow.prop_flow(print, fn.sum('m', 'x'), None, 2)", "IndexError", "block_id"),
        ("old_flow.apply_layer(1, print, v=[9])", "IndexError", "node ids go from"),
    ],
}

_NEEDS = {"networkx": _NETWORKX, "igraph": _IGRAPH, "torch_geometric": _PYG}
OF_CONVERTERS: dict[str, _Rows] = {**_OF_TABLES, **_MATRICES, **_COMPAT}
"""Rows by what they are about, as in ``by_hand``; those of libraries that are installed."""
for _library, _table in _NEEDS.items():
    if find_spec(_library) is not None:
        OF_CONVERTERS |= _table

"""Reader for lists of edges in text files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_count
from nodeflow._core.base.files import is_file
from nodeflow._core.base.types import FileLike
from nodeflow._files.text.edges import EdgeTable, layout
from nodeflow._files.text.matrix_market import read_matrix_market
from nodeflow._files.text.table import Table
from nodeflow.graph import Graph


@checked
def read_edge_list(
    path: FileLike,
    *,
    delimiter: str | None = None,
    num_nodes: int | None = None,
    columns: Sequence[str] | None = None,
    header: bool = False,
    comments: str | None = "#",
) -> Graph:
    """Read a graph from a text file with one edge per line: CSV, TSV, columns set apart by white
    space, Matrix Market.

    Args:
        path: the file, UTF-8; one whose name ends in ``.gz`` is unpacked on the way. ``.mtx`` is a
            square sparse matrix in Matrix Market format, read whole by scipy, whose entry (i, j) is
            an edge from i - 1 to j - 1, and of a symmetric matrix also one back; values become the
            column ``weight``, and the options below but ``num_nodes`` are not read.
        delimiter: the text between two columns. None: a comma or else ``::`` if the first row has
            one, else any white space.
        num_nodes: number of nodes; None takes the largest id plus one.
        columns: name of each column of the file, in order. ``"src"`` and ``"dst"`` must be among
            them, a column named ``"_"`` is skipped. None: the names in the header, in which ``src``
            and ``dst``, ``source`` and ``target``, ``from`` and ``to``, ``head`` and ``tail`` and
            other usual titles are the ends wherever they stand, else the only two columns, or the
            first two of more that differ in a number or letter at the end, ``protein1`` and
            ``protein2``; without a header ``src``, ``dst``, ``c2``, ``c3``, ...
        header: whether the first row holds names of columns.
        comments: the text that begins a comment, at the start of a line or after a row; None: there
            are no comments. With "#", lines at the top that begin with "%" are comments too, as
            KONECT writes them.

    Ids are integers from 0, written without a plus or zeros in front. Edge ids follow the order of
    the lines. Every further column becomes an edge column under its name: int64 if all its entries
    are written as integers, else float64; bool of True and False; dates in ISO 8601 as seconds
    since 1970.

    Raises FileNotFoundError, TypeError or ValueError for a wrong argument, and ValueError with the
    name of the file and the line for an id that is not an integer from 0 to ``num_nodes`` - 1, an
    entry that is not a value as the first of its column, a number such as ``007``, which is a name,
    a header that is an edge or of three titles or more that name no ends, edges between nodes of
    two kinds that are numbered apart (KONECT's ``% bip``, ratings of MovieLens), and a row with too
    few or too many columns (where columns are skipped, too many go unseen).

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "edges.csv"
    >>> _ = file.write_text("from,to,weight\\n0,1,0.5\\n2,1,2\\n")
    >>> graph = read_edge_list(file, header=True)
    >>> graph.edges()
    (tensor([0, 2]), tensor([1, 1]))
    >>> graph.edata["weight"]
    tensor([0.5000, 2.0000], dtype=torch.float64)
    """
    if num_nodes is not None:
        num_nodes = as_count(num_nodes, "num_nodes")
    if delimiter == "":
        raise ValueError(
            "delimiter must be text such as ',' or '::', or None for a comma or white space, got ''"
        )
    table = Table(Path(path), delimiter, comments or None)
    if not is_file(table.path):
        raise FileNotFoundError(
            f"there is no file {table.path}; expected a text file with one edge per line"
        )
    if ".mtx" in table.path.suffixes:
        size, values = read_matrix_market(table.path)
        size = size if num_nodes is None else num_nodes
        return Graph.from_edges(values.pop("src"), values.pop("dst"), num_nodes=size, edata=values)
    table, names, first = layout(table, columns, header)
    if first is None:
        if num_nodes is None:
            raise ValueError(
                f"{table.path} has no edges; pass num_nodes if the graph is meant to have none"
            )
        return Graph.from_edges([], [], num_nodes=num_nodes)
    values = EdgeTable(table, names, first, num_nodes).whole()
    return Graph.from_edges(values.pop("src"), values.pop("dst"), num_nodes=num_nodes, edata=values)

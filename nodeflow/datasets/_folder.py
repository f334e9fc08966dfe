"""Reader for a data set kept as a folder of plain files, or as a graph folder."""

from __future__ import annotations

import math
import re
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import LARGEST, Ints, blaming, check_num_rows, first_true
from nodeflow._core.base.dtypes import as_float32, as_floats
from nodeflow._core.base.files import is_file
from nodeflow._core.base.types import Array, FileLike
from nodeflow._core.rows.csr import from_scipy
from nodeflow._core.rows.rows import fetch_rows
from nodeflow._files.disk.arrays import map_array
from nodeflow._files.disk.manifest import MANIFEST
from nodeflow._files.disk.texts import map_texts
from nodeflow._files.text.matrix_market import read_matrix_market
from nodeflow._files.text.titles import ENDS, plain
from nodeflow._files.text.words import is_integer
from nodeflow.datasets._dataset import FACTS, Dataset
from nodeflow.datasets._files import (
    check_room,
    existing_folder,
    ids_below,
    ids_of_integers,
    load_array,
    load_arrays,
    load_sparse,
)
from nodeflow.datasets._labels import (
    PART_WORDS,
    label_column,
    labelled_split,
    split_of,
    split_rows,
    split_titles,
)
from nodeflow.datasets._tables import (
    Nodes,
    TableEdges,
    number_edges,
    read_edges,
    read_nodes,
    read_triples,
)
from nodeflow.graph import NAMES, SPLIT, Graph, read_manifest

_LAYOUT = (
    "a folder with adjacency.npz or .mtx, edges.npz, edges.csv or the triples train.tsv, valid.tsv "
    "and test.tsv and, as far as there are any, nodes.csv, features.npz, labels.npy or labels.npz, "
    "train.npy, val.npy and test.npy; or a graph folder, as nodeflow build and Graph.save write it"
)


def _texts(*stems: str, endings: tuple[str, ...] = (".csv", ".tsv")) -> list[str]:
    return [
        f"{stem}{ending}{packed}" for stem in stems for ending in endings for packed in ("", ".gz")
    ]


_STEMS = {
    "train": ("train", "train2id"),
    "val": ("valid", "val", "valid2id"),
    "test": ("test", "test2id"),
}
_TRIPLES = {
    part: _texts(*stems, endings=(".tsv", ".txt", ".csv")) for part, stems in _STEMS.items()
}
_ARRAYS = {"feat": ("features", "feat"), "label": ("labels", "label")}
_EDGES = [
    *("adjacency.npz", "adjacency.mtx", "adjacency.mtx.gz", "edges.npz"),
    *_texts("edges"),
    *_TRIPLES["train"],
]
_DATA = re.compile(r"(.+)\.(?:npy|npz|csv|tsv|txt|json|parquet|pt|pkl|mat)(?:\.gz)?")
_ID_FILES = ("{}", "{}idx", "{}ids", "idx{}", "{}nodes", "{}indices", "{}index")
_IDS = {name.format(word): part for word, part in PART_WORDS.items() for name in _ID_FILES}
"""Names of files with the ids of the nodes of a part, as ``plain`` writes them: train, train_idx,
idx_train.
"""


@checked
def read_folder(path: FileLike, *, labels: bool = True) -> Dataset:
    """Read a data set from a folder of plain files: text, or arrays of numpy.

    Text is UTF-8: ``.csv`` with commas, where ``"`` may quote, or ``.tsv`` with tabs, where it is a
    letter; either may be packed (``.csv.gz``). The first row has the titles of the columns; a
    column whose title begins with ``_`` is left out, and so are columns without any entry, rows
    without entries, blanks around an entry, and comments before the first row (lines that begin
    with # or % and a blank; one that names the ends of edges has the titles).

    A word is its own name: a column is of integers only if every word is what ``str(int(word))``
    gives, so ``007``, ``+7`` and ``7`` are three names. ``2`` beside ``2.0`` in a column of nodes
    of numbers alone is refused.

    The edges, one of:

    - ``edges.csv`` (or ``.tsv``): ids or names of nodes in the columns ``src`` and ``dst``, or
      ``source`` and ``target``, ``from`` and ``to``, ``head`` and ``tail``, or other usual titles,
      wherever they stand, else in the only two columns, or the first two of more that differ in a
      number or letter at the end. Every other column becomes an edge column: int64 or float64 from
      numbers, bool from True and False, seconds since 1970 from dates in ISO 8601 (int64, or
      float64 where one is not whole; UTC where no zone is written), int64 from other words, which
      are numbered in the order in which they first occur and kept in ``category_names``. A column
      ``split`` of train, val and test (or 0, 1, 2) becomes int8 numbers 0, 1, 2; columns ``set``,
      ``subset``, ``fold`` and ``partition`` of these words are read as ``split``, and refused with
      others.
    - ``train.tsv``, ``valid.tsv`` (or ``val``) and ``test.tsv`` (or ``.txt``, ``.csv``), the last
      two optional: triples head, relation, tail of a knowledge graph, without titles; a first row
      of these three words, or of subject, predicate and object, in any order, is a row of titles,
      and one whose words are in no other row is refused. A first row with the number of triples
      alone, as in OpenKE's ``train2id.txt``, says that they are head, tail, relation. They become
      one graph with the edge columns ``relation`` and ``split``.
    - ``adjacency.mtx`` (or ``.mtx.gz``): a square sparse matrix in Matrix Market format, as in
      ``read_edge_list``.
    - ``adjacency.npz``: a square matrix from ``scipy.sparse.save_npz``; entry (i, j) is an edge i
      -> j. Edge ids follow the order in which the entries are stored (row by row in a CSR matrix).
      If any value is not 1 the values become the edge column ``weight``, float32, or float64 where
      one is above 2**24.
    - ``edges.npz``: arrays ``src`` and ``dst``, integers ``[num_edges]``, from ``numpy.savez``;
      every other array has one row per edge and becomes an edge column under its name (``time``,
      ``relation``, ...); ``split`` holds 0 train, 1 val and 2 test. Single numbers ``num_nodes``
      and ``num_relations`` may be among them. Without ``num_nodes``, the files of nodes give the
      number of nodes, else the largest id + 1.

    The nodes, all optional:

    - ``nodes.csv`` (or ``.tsv``): every node once, its id or name in the first column, whose title
      is ``id``, ``name`` or alike where it is the only one, or others are numbers. A column
      ``split`` (or ``subset`` and so on, as above) holds train, val or test (or 0, 1, 2), or is
      empty; or masks, ``train_mask`` and so on, hold true and false. A column ``label`` holds class
      names or class numbers, or several of them with ``;`` between, or numbers to predict, at least
      one of which is not whole; empty or nan is no label. A column of dates becomes a node column
      of its own, in seconds as above. Every other column is a feature, one column of ``feat``,
      float32; whole numbers above 2**24 that float32 would round are refused, here and in arrays
      and labels, and others that would become equal.
    - ``features.npz``, a sparse matrix ``[num_nodes, num_features]`` that stays sparse, or
      ``features.npy``, a dense array: node column ``feat``, float32 unless stored as float64.
    - ``labels.npy``, integers ``[num_nodes]``, -1 = no label (1 and -1 alone are refused): node
      column ``label``, int64, as in the file (numbers are not shifted to begin at 0, so
      ``num_classes`` is the largest + 1); or floats, numbers to predict, NaN = none: float32, and
      ``num_classes`` is 0; or a matrix of zeros and ones. ``Dataset.of_type`` says what else labels
      may be, and when class codes get other numbers. Or ``labels.npz``, a sparse
      ``[num_nodes, num_classes]`` matrix of zeros and ones for several labels per node: ``label``
      is a dense float32 matrix.
    - ``train.npy``, ``val.npy``, ``test.npy`` (also ``train_idx.npy``, ``idx_train.npy``,
      ``valid.npy``): ids of nodes, those of ``nodes.csv`` where that has integers. Or
      ``train_mask.npy`` and so on: masks of nodes; or ``split.npy``, 0 train, 1 val, 2 test, -1
      none. A split in another form, such as ``split.npz`` or ``train_ids.txt``, is refused.

    ``feat.npy`` and ``label.npy``, the names of the columns, are read like ``features.npy`` and
    ``labels.npy``. Other files of data are not read: ``unread_files`` names them, and so do
    ``info`` and the error of missing labels.

    Or a graph folder, as ``Dataset.save``, ``Graph.save`` and ``datasets.build_graph`` write it:
    its arrays map the files. The labels are the node column ``label``, or ``y``, and without a
    stored split columns say it, both as in ``Dataset.of_type``, which is not called for
    ``labels=False``.

    Beside ``nodes.csv`` the rows of arrays (features, labels, and those of the matrix
    ``adjacency``) are the rows of that table, in the order in which they stand there; numbers in
    arrays (``train.npy``, ``edges.npz``) are its ids.

    The ids, where the edges are text: names are numbered in the order of ``nodes.csv``, else in the
    order in which they first occur (``src`` before ``dst``), and ``node_names`` keeps them.
    Integers stay as they stand if all from 0 to the largest occur, or if ``.npy`` or ``.npz`` files
    have rows for them without a ``nodes.csv``; otherwise, such as the ids of a database, they are
    names too.

    The split of the nodes: the column ``split`` or masks of ``nodes.csv``, or those of the three
    files that exist (the other parts are empty, and the other labelled nodes in none). Without
    either, the labelled nodes, in a matrix those with any label, are split by
    ``numpy.random.default_rng(0)``, always the same way: one half, one quarter, one quarter.

    Args:
        path: the folder.
        labels: False reads a graph that comes without labels: ``num_classes`` is 0 and the three
            parts are empty.

    Raises FileNotFoundError where the folder, its edges or its labels are missing, and ValueError,
    with the name of the file and, in text, the line and the entry, for one that is damaged, holds
    pickled objects, has the wrong number of rows or ids that are no nodes, for a node that is in
    two parts of the split and for a training node without label.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "tiny"
    >>> folder.mkdir()
    >>> np.savez(folder / "edges.npz", src=[0, 1, 2], dst=[1, 2, 0], time=[5, 6, 9])
    >>> np.save(folder / "labels.npy", [0, 1, 1, 0])
    >>> read_folder(folder)
    Dataset(tiny: 4 nodes, 3 edges, 0 features, 2 classes, train/val/test 2/1/1)
    """
    folder = existing_folder(path, _LAYOUT)
    edge_file = _one_of(folder, *_EDGES)
    if edge_file is None and is_file(folder / MANIFEST):
        return _read_graph_folder(folder, labels=labels)
    if edge_file is None:
        hint = ""
        if (folder / "raw").is_dir():
            hint = (
                "it looks like one of OGB: read_ogb(folder).save(other) writes one that commands "
                "read; "
            )
        raise FileNotFoundError(
            f"{folder} has neither adjacency.npz nor edges.npz, edges.csv or train.tsv; {hint}"
            f"expected {_LAYOUT}"
        )
    # A table of nodes says what the words of the edges, and the rows and numbers of arrays, mean.
    table = _one_of(folder, *_texts("nodes"))
    nodes = None if table is None else read_nodes(table)
    # nodes before edges: rows of arrays say how many nodes there are, and what ids are
    columns = _NodeColumns(folder, nodes)
    ndata = columns.data
    unread = _unread(folder)
    if labels and "label" not in ndata:
        where = "labels.npy or labels.npz" if table is None else f"column label in {table.name}"
        hint = f"; not read: {', '.join(unread)}" if unread else ""
        raise FileNotFoundError(
            f"{folder} has no {where}; labels=False reads a graph without labels{hint}"
        )
    # Edges in text take numbers as they stand where arrays have rows for them, so these were read
    # before.
    edges = _edges(folder, edge_file, nodes, columns.rows_of, columns.num_rows)
    check_room(16 * edges.num_nodes, f"{edge_file}: a graph of {edges.num_nodes:,} nodes")
    columns.check(edges.num_nodes)
    node_names = edges.node_names if nodes is None else nodes.numbering.names
    # The split before the labels: it tells whether floats are classes or numbers to predict.
    parts, where = _split(folder, edges.num_nodes, nodes)
    if "label" in ndata:
        columns.set_label(parts)
    train, val, test = labelled_split(parts, where, ndata.get("label"), edges.num_nodes, node_names)
    graph = Graph.from_edges(
        edges.src, edges.dst, num_nodes=edges.num_nodes, ndata=ndata, edata=edges.columns
    )
    return Dataset(
        name=folder.resolve().name,
        graph=graph,
        train=train,
        val=val,
        test=test,
        num_classes=columns.num_classes,
        class_names=columns.class_names,
        node_names=node_names,
        feature_names=None if nodes is None else nodes.feature_names,
        category_names=dict(edges.category_names),
        unread_files=unread,
    )


class _NodeColumns:
    """The columns of the nodes of a folder, of its table of nodes and of files of arrays.

    ``data`` has them by name, ``num_rows`` is the number of their rows, None where there are none,
    and ``rows_of`` the name of a file that has rows of nodes, "" without one.
    """

    def __init__(self, folder: Path, nodes: Nodes | None) -> None:
        self.data: dict[str, Any] = {}
        self.num_rows: int | None = None
        self.num_classes = 0
        self.class_names: tuple[str, ...] | None = None
        self._nodes = nodes
        self._sources: dict[str, Path] = {}
        if nodes is not None:
            self.data |= nodes.columns
            self.num_rows = nodes.numbering.num_nodes
            self.num_classes = nodes.num_classes
            self.class_names = nodes.class_names
            self._sources |= dict.fromkeys(self.data, nodes.path)
        for name, stems in _ARRAYS.items():
            if (file := _one_of(folder, *_arrays(*stems))) is not None:
                if name in self._sources:
                    both = f"{self._sources[name].name} or in {file.name}"
                    raise ValueError(f"{folder} must hold {stems[0]} in {both}, got both")
                self._read(name, file)
        files = [*self._sources.values(), *_split_files(folder)]
        self.rows_of = files[0].name if files else ""

    def _read(self, name: str, file: Path) -> None:
        if name == "label":
            column, self.num_classes = _labels(file)
        else:
            column = _features(file)
        if self._nodes is not None:
            # its rows are those of other files, in whatever order ids are
            check_num_rows(column.shape, str(file), self._nodes.numbering.num_nodes, "node")
            column = fetch_rows(column, torch.from_numpy(self._nodes.rows))
        elif self.num_rows is None:
            self.num_rows = column.shape[0]
        self.data[name] = column
        self._sources[name] = file

    def check(self, num_nodes: int) -> None:
        """Raise ValueError where there is not one row for each node."""
        for name, column in self.data.items():
            check_num_rows(column.shape, str(self._sources[name]), num_nodes, "node")
        if self._nodes is not None and self.num_rows != num_nodes:
            raise ValueError(f"{self._nodes.path} must list {num_nodes} nodes, got {self.num_rows}")

    def set_label(self, parts: list[Ints] | None) -> None:
        """Make labels of the column ``label``, by the nodes of a split."""
        where = str(self._sources["label"])
        column, count, codes = label_column(self.data["label"], where, parts, self.num_classes)
        self.data["label"] = column
        self.num_classes = self.num_classes or count
        self.class_names = codes or self.class_names


def _arrays(*stems: str) -> list[str]:
    return [f"{stem}{ending}" for stem in stems for ending in (".npy", ".npz")]


def _unread(folder: Path) -> tuple[str, ...]:
    """Return the names of the files that look like data, but have no name that this reader
    knows.
    """
    known = {
        *_EDGES,
        *(file.name for file in _split_files(folder)),
        *_TRIPLES["val"],
        *_TRIPLES["test"],
        *_texts("nodes"),
        *_arrays(*chain(*_ARRAYS.values())),
    }
    endings = (".npy", ".npz", ".csv", ".tsv")
    return tuple(
        file.name
        for file in sorted(folder.iterdir())
        if file.name not in known and file.name.removesuffix(".gz").endswith(endings)
    )


def _one_of(folder: Path, *names: str) -> Path | None:
    """Return the one existing file among several names, or None; raises if more than one exists."""
    existing = [folder / name for name in names if is_file(folder / name)]
    if len(existing) > 1:
        first, second = (file.name for file in existing[:2])
        raise ValueError(
            f"{folder} must hold one of {first} and {second}, got both; remove the one not meant"
        )
    return existing[0] if existing else None


def _labels(path: Path) -> tuple[Tensor, int]:
    if path.suffix == ".npz":
        stored = load_sparse(path)
        check_room(
            4 * math.prod(stored.shape), f"{path}: a dense matrix {list(stored.shape)} of labels"
        )
        stored = stored.tocsr()
        # An entry that is stored twice is one number, the sum of both.
        stored.sum_duplicates()
        entries = stored.tocoo()
        if (place := first_true((entries.data != 0) & (entries.data != 1))) is not None:
            node = entries.row[place]
            number = entries.col[place]
            raise ValueError(
                f"{path} must hold zeros and ones, but ({node}, {number}) is {entries.data[place]}"
            )
        return torch.from_numpy(stored.astype(np.float32).toarray()), int(stored.shape[1])
    return torch.from_numpy(load_array(path)), 0


def _features(path: Path) -> Any:
    if path.suffix == ".npz":
        return from_scipy(load_sparse(path))
    array = load_array(path)
    if array.ndim != 2:
        raise ValueError(f"{path} must be an array of nodes x features, got shape {array.shape}")
    if array.dtype != np.float64:
        array = as_float32(array, str(path))
    return torch.from_numpy(array)


def _edges(
    folder: Path, file: Path, nodes: Nodes | None, rows_of: str, num_rows: int | None
) -> TableEdges:
    """Return the edges; the number of nodes is ``num_rows`` if known, else taken from the edges."""
    if file.name.startswith("adjacency"):
        edges = _from_matrix(file)
        if nodes is None:
            return edges
        ids = np.argsort(nodes.rows)  # a row of the matrix is a row of the table
        check_num_rows((edges.num_nodes,), str(file), len(ids), "node")
        return edges._replace(src=ids[edges.src], dst=ids[edges.dst])
    if file.name == "edges.npz":
        return _from_arrays(file, num_rows, nodes)
    if file.name in _TRIPLES["train"]:
        others = (_one_of(folder, *_TRIPLES[part]) for part in ("val", "test"))
        table = read_triples([file, *others])
    else:
        table = read_edges(file, nodes)
    return number_edges(table, nodes, rows_of, num_rows)


def _from_matrix(path: Path) -> TableEdges:
    if path.suffix != ".npz":
        num_nodes, columns = read_matrix_market(path)
        return TableEdges(num_nodes, columns.pop("src"), columns.pop("dst"), columns)
    matrix = load_sparse(path)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{path} must be a square matrix, nodes x nodes, got shape {matrix.shape}")
    # keeps entries that repeat, which are parallel edges
    entries = matrix.tocoo()
    columns = {}
    if not (entries.data == 1).all():
        columns["weight"] = as_floats(entries.data)
    return TableEdges(
        int(matrix.shape[0]), entries.row.astype(np.int64), entries.col.astype(np.int64), columns
    )


def _as_ids(numbers: Array, where: str, nodes: Nodes | None) -> Array:
    """Return what an array has for nodes as ids: a table of nodes may have integers of its own,
    such as from 1 on.
    """
    if nodes is None or nodes.numbering.names is None:
        return numbers
    ids = nodes.numbering.ids
    if not all(map(is_integer, ids)) or numbers.dtype.kind not in "iu":
        return numbers
    id_of = {int(name): number for name, number in ids.items()}
    return ids_of_integers(numbers, id_of, where, str(nodes.path))


def _from_arrays(path: Path, num_nodes: int | None, nodes: Nodes | None) -> TableEdges:
    columns = load_arrays(path)
    if not {*ENDS} <= {*columns}:
        raise ValueError(
            f"{path} must hold the arrays src and dst, got {', '.join(columns) or 'no arrays'}"
        )
    sizes = {"num_nodes": num_nodes, "num_relations": None}
    for name in sizes:
        if (stated := columns.pop(name, None)) is not None:
            if stated.size != 1 or stated.dtype.kind not in "iu":
                got = f"{stated.dtype} {stated.shape}"
                raise ValueError(f"{path}, array {name!r}, must be one integer, got {got}")
            sizes[name] = int(stated.item())
    num_nodes, num_relations = sizes.values()
    # Without a stated number the largest id says it, so that any id is right.
    upper = LARGEST if num_nodes is None else num_nodes
    ends = []
    for name in ENDS:
        where = f"{path}, array {name!r},"
        ids = _as_ids(columns.pop(name), where, nodes)
        ends.append(ids_below(upper, ids, where))
    src, dst = ends
    for name, column in {"dst": dst, **columns}.items():
        check_num_rows(column.shape, f"{path}, array {name!r},", len(src), "edge")
    for name, size in (("relation", num_relations), ("split", 3)):
        if name in columns and size is not None:
            ids_below(size, columns[name], f"{path}, array {name!r},", "numbers")
    if num_nodes is None:
        num_nodes = max(int(end.max(initial=-1)) for end in ends) + 1
    return TableEdges(num_nodes, src, dst, columns)


def _split(folder: Path, num_nodes: int, nodes: Nodes | None) -> tuple[list[Ints] | None, str]:
    """Return the split that columns of nodes, or files of masks or ids, say, None without any, and
    where it is.
    """
    frame = {} if nodes is None else dict(nodes.split)
    where = str(folder if nodes is None or not frame else nodes.path)
    files = _split_files(folder)
    # Masks are rows of nodes, and follow the order of a table; ids do not.
    masks = [] if frame else [file for file in files if plain(file.stem) not in _IDS]
    for file in masks:
        frame[file.stem] = torch.from_numpy(load_array(file))
        check_num_rows(frame[file.stem].shape, str(file), num_nodes, "node")
        if nodes is not None:
            frame[file.stem] = frame[file.stem][torch.from_numpy(nodes.rows)]
    others = [file for file in files if file not in masks]
    if frame and others:
        raise ValueError(
            f"{where} has a split in columns, so {others[0]} must not be there, or they be taken "
            "out"
        )
    if frame or not files:
        return split_rows([(frame, 0)], range(num_nodes), where, "node"), where
    by_part: dict[str, Path] = {}
    for file in others:
        twin = by_part.setdefault(_IDS[plain(file.stem)], file)
        if twin != file:
            raise ValueError(
                f"{folder} must hold one of {twin.name} and {file.name}, got both; remove the one "
                "not meant"
            )
    stored = {part: _as_ids(load_array(file), str(file), nodes) for part, file in by_part.items()}
    arrays = {str(by_part.get(part, part)): stored.get(part, np.zeros(0)) for part in SPLIT}
    return split_of(arrays, num_nodes), str(by_part.get("train", where))


def _split_files(folder: Path) -> list[Path]:
    """Return the files that say a split, by their names; raises ValueError for one in a form that
    is not read.
    """
    triples = set() if _one_of(folder, *_TRIPLES["train"]) is None else {*chain(*_TRIPLES.values())}
    files = (file for file in sorted(folder.iterdir()) if file.name not in triples)
    stems = {file: match[1] for file in files if (match := _DATA.fullmatch(file.name))}
    columns = split_titles(stems.values())
    named = [file for file, stem in stems.items() if plain(stem) in _IDS or stem in columns]
    read = [file for file in named if file.suffix == ".npy" and is_file(file)]
    # A file that reads like a split and is not one would leave its nodes in a random split,
    # without a word.
    like_split = [
        file for file, stem in stems.items() if file in named or plain(stem).startswith("split")
    ]
    if strange := [file for file in like_split if file not in read]:
        raise ValueError(
            f"{strange[0]} reads like a split, in a form that is not read: save ids of nodes as "
            "train.npy, val.npy and test.npy, masks as train_mask.npy and so on, or numbers as "
            "split.npy; or rename or move the file"
        )
    return read


def _read_graph_folder(folder: Path, *, labels: bool) -> Dataset:
    manifest = read_manifest(folder)
    graph = Graph.open(folder)
    arrays = {}
    for part in SPLIT:
        ids = np.zeros(0)
        if part in manifest.arrays:
            ids = np.array(map_array(folder, manifest.arrays[part]))
        arrays[f"{folder}, split {part!r},"] = ids
    train, val, test = map(torch.from_numpy, split_of(arrays, graph.num_nodes))
    with blaming(
        f"{folder}: what its manifest says of the data set does not fit the graph",
        TypeError,
        ValueError,
        KeyError,
        AttributeError,
    ):
        facts = {"name": folder.resolve().name, **manifest.facts.get(FACTS, {})}
        for name, fact in facts.items():
            if isinstance(fact, list):  # JSON has no tuples
                facts[name] = tuple(fact)
        categories = facts.pop("category_names", {})
        dataset = Dataset(
            graph=graph,
            train=train,
            val=val,
            test=test,
            node_names=map_texts(folder, manifest.arrays, NAMES),
            category_names={name: tuple(words) for name, words in categories.items()},
            **facts,
        )
    if not labels:
        return dataset
    dataset = dataset.of_type()
    if "label" not in dataset.graph.ndata:
        raise FileNotFoundError(
            f"{folder} has no node column 'label'; labels=False reads a graph without labels"
        )
    return dataset

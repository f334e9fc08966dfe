"""Reader for a data set kept as a folder of plain files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from nodeflow._base.checks import LARGEST, Ints, check_num_rows
from nodeflow._base.types import Array, FileLike
from nodeflow._rows.csr import from_scipy
from nodeflow.datasets._dataset import Dataset
from nodeflow.datasets._files import (
    existing_folder,
    integers,
    load_array,
    load_arrays,
    load_sparse,
    node_ids,
    seeded_split,
    split_of,
)
from nodeflow.graph import Graph

_LAYOUT = (
    "a folder with adjacency.npz or edges.npz and, as far as there are any, features.npz, labels.npy or labels.npz, "
    "train.npy, val.npy and test.npy"
)
_Edges = tuple[Ints, Ints, dict[str, Array]]


def read_folder(path: FileLike, *, labels: bool = True) -> Dataset:
    """Read a data set from a folder of plain files.

    The edges, one of:

    - ``adjacency.npz``: a square matrix from ``scipy.sparse.save_npz``; entry (i, j) is an edge i -> j. Edge ids follow
      the order in which the entries are stored (row by row in a CSR matrix). If any value is not 1 the values become
      the edge column ``weight``, float32.
    - ``edges.npz``: arrays ``src`` and ``dst``, integers ``[num_edges]``, from ``numpy.savez``; every other array has
      one row per edge and becomes an edge column under its name (``time``, ``etype``, ...). A single number
      ``num_nodes`` may be among them. Without it, features or labels give the number of nodes, else the largest id + 1.

    The nodes:

    - optional ``features.npz``, a sparse matrix ``[num_nodes, num_features]`` that stays sparse, or ``features.npy``,
      a dense array: node column ``feat``, float32 unless stored as float64.
    - ``labels.npy``, integers ``[num_nodes]``, -1 = no label: node column ``label``, int64, as in the file (numbers
      are not shifted to begin at 0, so ``num_classes`` is the largest + 1). Or ``labels.npz``, a sparse
      ``[num_nodes, num_classes]`` matrix of zeros and ones for several labels per node: ``label`` is a dense float32
      matrix.
    - ``train.npy``, ``val.npy``, ``test.npy``: ids of nodes.

    The split: if at least one of the three files exists, the split is that of the files, and a part without a file is
    empty. So ``train.npy`` and ``val.npy`` without ``test.npy`` give no test nodes: the other labelled nodes are in no
    part, and results stay comparable with others on the same split. If none of the three exists, the labelled nodes
    are split at random, always the same way: one half, one quarter, one quarter (``numpy.random.default_rng(0)``). In a
    matrix of labels, a node is labelled if it has at least one label.

    Args:
        path: the folder.
        labels: False reads a graph that comes without labels: ``num_classes`` is 0 and the three parts are empty.

    Raises FileNotFoundError where the folder, its edges or its labels are missing, and ValueError, with the name of the
    file, for one that is damaged, holds pickled objects, has the wrong number of rows or ids that are no nodes, for a
    node that is in two parts of the split and for a training node without label.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "tiny"
    >>> folder.mkdir()
    >>> np.savez(folder / "edges.npz", src=[0, 1, 2], dst=[1, 2, 0], time=[5, 6, 9])
    >>> np.save(folder / "labels.npy", [0, 1, 1, 0])
    >>> read_folder(folder)
    Dataset(tiny: 4 nodes, 3 edges, 0 features, 2 classes, train/val/test 2/1/1)
    """
    folder = existing_folder(path, _LAYOUT)
    files = {
        "feat": _one_of(folder, "features.npy", "features.npz"),
        "label": _one_of(folder, "labels.npy", "labels.npz"),
    }
    if labels and files["label"] is None:
        raise FileNotFoundError(f"{folder} has no labels.npy or labels.npz; labels=False reads a graph without labels")
    ndata, num_classes = _node_columns(files["feat"], files["label"])
    num_nodes = next((len(column) for column in ndata.values()), None)
    num_nodes, (src, dst, edata) = _edges(folder, num_nodes)
    for name, column in ndata.items():
        check_num_rows(column.shape, str(files[name]), num_nodes, "node")
    train, val, test = map(torch.from_numpy, _split(folder, num_nodes, ndata.get("label")))
    graph = Graph.from_edges(src, dst, num_nodes=num_nodes, ndata=ndata, edata=edata)
    return Dataset(folder.resolve().name, graph, train, val, test, num_classes)


def _one_of(folder: Path, first: str, second: str) -> Path | None:
    """Return the file of one of two names, whichever exists, or None; both are one too many."""
    found = [file for file in (folder / first, folder / second) if file.exists()]
    if len(found) == 2:
        raise ValueError(f"{folder} must hold one of {first} and {second}, got both; remove the one not meant")
    return found[0] if found else None


def _node_columns(features: Path | None, labels: Path | None) -> tuple[dict[str, torch.Tensor], int]:
    """Return the node columns and the number of classes."""
    columns, num_classes = {}, 0
    if features is not None:
        columns["feat"] = _dense(features) if features.suffix == ".npy" else from_scipy(load_sparse(features))
    if labels is not None and labels.suffix == ".npy":
        label = integers(load_array(labels), str(labels), "one label per node")
        if label.min(initial=-1) < -1:
            at = int(label.argmin())
            raise ValueError(f"{labels} must hold labels from 0, or -1 for none, but node {at} has {label[at]}")
        columns["label"], num_classes = torch.from_numpy(label), int(label.max(initial=-1)) + 1
    elif labels is not None:
        matrix = load_sparse(labels).toarray()
        if ((matrix != 0) & (matrix != 1)).any():
            node, number = np.argwhere((matrix != 0) & (matrix != 1))[0]
            raise ValueError(f"{labels} must hold zeros and ones, but ({node}, {number}) is {matrix[node, number]}")
        columns["label"], num_classes = torch.from_numpy(matrix.astype(np.float32)), int(matrix.shape[1])
    return columns, num_classes


def _dense(path: Path) -> torch.Tensor:
    array = load_array(path)
    if array.ndim != 2:
        raise ValueError(f"{path} must be an array of nodes x features, got shape {array.shape}")
    return torch.from_numpy(array.astype(np.float64 if array.dtype == np.float64 else np.float32, copy=False))


def _edges(folder: Path, num_nodes: int | None) -> tuple[int, _Edges]:
    """Return the number of nodes, given or from the edges, and ``(src, dst, edge columns)``."""
    file = _one_of(folder, "adjacency.npz", "edges.npz")
    if file is None:
        raise FileNotFoundError(f"{folder} has neither adjacency.npz nor edges.npz; expected {_LAYOUT}")
    return _from_matrix(file) if file.name == "adjacency.npz" else _from_table(file, num_nodes)


def _from_matrix(path: Path) -> tuple[int, _Edges]:
    matrix = load_sparse(path)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{path} must be a square matrix, nodes x nodes, got shape {matrix.shape}")
    entries = matrix.tocoo()  # keeps entries that repeat, which are parallel edges
    columns = {} if (entries.data == 1).all() else {"weight": entries.data.astype(np.float32)}
    return int(matrix.shape[0]), (entries.row.astype(np.int64), entries.col.astype(np.int64), columns)


def _from_table(path: Path, num_nodes: int | None) -> tuple[int, _Edges]:
    columns = load_arrays(path)
    if not {"src", "dst"} <= set(columns):
        raise ValueError(f"{path} must hold the arrays src and dst, got {', '.join(columns) or 'no arrays'}")
    stated = columns.pop("num_nodes", None)
    if stated is not None:
        if stated.size != 1 or stated.dtype.kind not in "iu":
            raise ValueError(f"{path}, array 'num_nodes', must be one integer, got {stated.dtype} {stated.shape}")
        num_nodes = int(stated.item())
    upper = LARGEST if num_nodes is None else num_nodes
    src, dst = (node_ids(columns.pop(name), f"{path}, array {name!r},", upper) for name in ("src", "dst"))
    for name, column in {"dst": dst, **columns}.items():
        check_num_rows(column.shape, f"{path}, array {name!r},", len(src), "edge")
    if num_nodes is None:
        num_nodes = int(max(src.max(initial=-1), dst.max(initial=-1))) + 1
    return num_nodes, (src, dst, columns)


def _split(folder: Path, num_nodes: int, label: torch.Tensor | None) -> list[Ints]:
    files = [folder / f"{part}.npy" for part in ("train", "val", "test")]
    if label is None:
        labelled = np.zeros(num_nodes, dtype=np.bool_)
    else:
        labelled = (label >= 0 if label.ndim == 1 else (label > 0).any(1)).numpy()
    if not any(file.exists() for file in files):
        return seeded_split(np.flatnonzero(labelled))
    arrays = {str(file): load_array(file) if file.exists() else np.zeros(0, np.int64) for file in files}
    parts = split_of(arrays, num_nodes)
    bare = parts[0][~labelled[parts[0]]]
    if label is not None and label.ndim == 1 and len(bare):
        raise ValueError(f"{files[0]} holds node {bare[0]}, which has no label (-1); take it out")
    return parts

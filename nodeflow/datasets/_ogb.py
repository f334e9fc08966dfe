"""Reader for the raw files of the Open Graph Benchmark's node-property data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, check_num_rows, first_true
from nodeflow._core.base.dtypes import as_float32, as_floats
from nodeflow._core.base.files import is_file
from nodeflow._core.base.types import Array, FileLike
from nodeflow._files.text.edges import EdgeTable
from nodeflow._files.text.table import Table
from nodeflow._files.text.titles import ENDS
from nodeflow.datasets._dataset import Dataset
from nodeflow.datasets._files import existing_folder
from nodeflow.datasets._labels import Labels, label_column, split_of
from nodeflow.graph import Graph

_LAYOUT = (
    "an unpacked node-property data set of OGB: raw/edge.csv.gz, raw/node-label.csv.gz, "
    "raw/num-node-list.csv.gz, split/<scheme>/train.csv.gz, ..."
)


@checked
def read_ogb(
    path: FileLike, *, scheme: str | None = None, add_inverse_edge: bool = False
) -> Dataset:
    """Read a node-property data set of the Open Graph Benchmark from its unpacked folder of text
    files.

    Args:
        path: the folder that holds ``raw`` and ``split``. Each file below may also be there
            unpacked, without ``.gz``.
        scheme: which folder under ``split`` to take (``"time"``, ``"sales_ranking"``, ...); None:
            the only one.
        add_inverse_edge: add the inverse of every edge, with the same columns; edge ``e`` has its
            inverse at id ``num_edges_in_file + e``. The files hold each edge of an undirected set
            once, so such sets (products, proteins) want True.

    The files, rows in the order of the nodes (edges) and without header:

    - ``raw/edge.csv.gz``: source, destination. ``raw/edge-feat.csv.gz``, optional: edge column
      ``feat``, float32, or float64 where a number is above 2**24.
    - ``raw/node-feat.csv.gz``, optional: node column ``feat``, float32
      ``[num_nodes, num_features]``.
    - ``raw/node-label.csv.gz``: node column ``label``; int64 ``[num_nodes]``, -1 where it says nan,
      from one column; float32 ``[num_nodes, num_classes]`` as written from several.
    - ``raw/num-node-list.csv.gz`` and, optional, ``raw/num-edge-list.csv.gz``: the sizes, one
      number each.
    - ``raw/node_*.csv.gz`` (``node_year``, ``node_species``), optional, integers: node columns
      under the name of the file, int64 ``[num_nodes]`` (a matrix from several columns).
    - ``split/<scheme>/train.csv.gz``, ``valid.csv.gz``, ``test.csv.gz``: ids of nodes.

    Sets kept in binary form (papers100M) or with several types of nodes (mag) have other files and
    are not read. Source of the format: Hu et al., Open Graph Benchmark: Datasets for machine
    learning on graphs, NeurIPS 2020.

    Raises FileNotFoundError for a missing folder or file, and ValueError, with the name of the file
    and the line or entry, for one that is damaged, has the wrong number of rows, or names nodes
    that do not exist.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "tiny"
    >>> files = {"raw/edge": "0,1\\n2,1\\n", "raw/node-label": "1\\n0\\n1\\n", "raw/num-node-list": "3\\n"}
    >>> for name, text in {**files, "split/a/train": "0\\n", "split/a/valid": "1\\n", "split/a/test": "2\\n"}.items():
    ...     (folder / name).parent.mkdir(parents=True, exist_ok=True)
    ...     _ = (folder / f"{name}.csv").write_text(text)
    >>> read_ogb(folder)
    Dataset(tiny: 3 nodes, 2 edges, 0 features, 2 classes, train/val/test 1/1/1)
    """
    folder = existing_folder(path, _LAYOUT)
    raw = folder / "raw"
    num_nodes = _size(raw, "num-node-list")
    # The number of nodes is stated apart, so that an id beyond it is found with its line.
    src, dst, edata = _edges(raw, num_nodes, add_inverse_edge)
    ndata: dict[str, Any] = {}
    if _find(raw, "node-feat") is not None:
        ndata["feat"] = _rows(_table(raw, "node-feat"), np.float32, "numbers", num_nodes)
    ndata["label"], num_classes, class_names = _labels(raw, num_nodes)
    # Sorted, because a folder lists its files in an order of its own.
    for name in sorted({file.name.split(".")[0] for file in raw.glob("node_*.csv*")}):
        column = _rows(_table(raw, name), np.int64, "integers", num_nodes)
        if column.shape[1] == 1:
            column = column[:, 0]
        ndata[name] = column
    train, val, test = map(torch.from_numpy, _split(folder / "split", scheme, num_nodes))
    graph = Graph.from_edges(src, dst, num_nodes=num_nodes, ndata=ndata, edata=edata)
    return Dataset(folder.resolve().name, graph, train, val, test, num_classes, class_names)


def _find(folder: Path, stem: str) -> Path | None:
    files = (folder / f"{stem}.csv.gz", folder / f"{stem}.csv")
    return next((file for file in files if is_file(file)), None)


def _table(folder: Path, stem: str) -> Table:
    file = _find(folder, stem)
    if file is None:
        raise FileNotFoundError(f"there is no file {folder / stem}.csv.gz; expected {_LAYOUT}")
    return Table(file)


def _rows(table: Table, dtype: Any, words: str, num_rows: int, noun: str = "node") -> Array:
    values = table.numbers(dtype, words)
    check_num_rows(values.shape, str(table.path), num_rows, noun)
    return values


def _size(raw: Path, stem: str) -> int:
    table = _table(raw, stem)
    values = table.numbers(np.int64, "integers")
    if values.size != 1 or values.min() < 0:
        got = values.ravel()[:5].tolist()
        raise ValueError(
            f"{table.path} must hold one number, the size of the one graph, got {values.size}: "
            f"{got}"
        )
    return int(values.item())


def _edges(
    raw: Path, num_nodes: int, add_inverse_edge: bool
) -> tuple[Ints, Ints, dict[str, Array]]:
    table = _table(raw, "edge")
    # the first row says nothing of the columns, since there are two of ids
    edges = EdgeTable(table, ENDS, [], num_nodes).whole()
    src = edges["src"]
    dst = edges["dst"]
    if _find(raw, "num-edge-list") is not None:
        size = _size(raw, "num-edge-list")
        check_num_rows(src.shape, str(table.path), size, "edge", ", as num-edge-list says")
    columns: dict[str, Array] = {}
    if _find(raw, "edge-feat") is not None:
        feat = _rows(_table(raw, "edge-feat"), np.float64, "numbers", len(src), "edge")
        columns["feat"] = as_floats(feat)
    if add_inverse_edge:
        forward = src
        src = np.concatenate([forward, dst])
        dst = np.concatenate([dst, forward])
        columns = {name: np.concatenate([column, column]) for name, column in columns.items()}
    return src, dst, columns


def _labels(raw: Path, num_nodes: int) -> Labels:
    table = _table(raw, "node-label")
    values = _rows(table, np.float64, "labels", num_nodes)
    where = str(table.path)
    if values.shape[1] != 1:
        return label_column(torch.from_numpy(as_float32(values, where)), where)
    label = np.where(np.isnan(values[:, 0]), -1, values[:, 0])
    if (
        node := first_true((label != np.round(label)) | (label < -1) | ~np.isfinite(label))
    ) is not None:
        raise ValueError(
            f"{table.path} must hold labels from 0, or nan for none, but node {node} has "
            f"{values[node, 0]}"
        )
    return label_column(torch.from_numpy(label.astype(np.int64)), where)


def _split(folder: Path, scheme: str | None, num_nodes: int) -> list[Ints]:
    schemes = sorted(entry.name for entry in folder.glob("*/"))
    if not schemes:
        raise FileNotFoundError(f"there is no folder under {folder}; expected {_LAYOUT}")
    if scheme is None and len(schemes) == 1:
        scheme = schemes[0]
    if scheme is None or scheme not in schemes:
        raise ValueError(
            f"scheme must be one of the splits under {folder}, {schemes}, got {scheme!r}"
        )
    tables = [_table(folder / scheme, part) for part in ("train", "valid", "test")]
    parts = {str(table.path): table.numbers(np.int64, "ids of nodes").ravel() for table in tables}
    return split_of(parts, num_nodes)

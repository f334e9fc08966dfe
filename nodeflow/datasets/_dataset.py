"""Dataset: a graph with node labels and a split of its nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, as_count, as_ids, check_type
from nodeflow._core.base.types import FileLike
from nodeflow._core.rows.base import type_words
from nodeflow._core.rows.rows import Rows, fetch_rows, is_sparse, slice_rows
from nodeflow._files.disk.folders import new_folder
from nodeflow._files.disk.streams import pieces_of, stream_array
from nodeflow._files.disk.texts import write_texts
from nodeflow.datasets._labels import (
    LABELS,
    check_disjoint,
    has_label,
    label_column,
    labelled_split,
    split_rows,
)
from nodeflow.graph import NAMES, Frame, Graph, with_frames, write_graph
from nodeflow.transform import is_symmetric

FACTS = "dataset"
"""Key of a data set in the manifest of a graph folder."""

FEATURES = ("feat", "x")
"""Names of columns of features, the usual one first."""
_NONE = torch.zeros(0, dtype=torch.int64)
_FACTS = ("name", "num_classes", "class_names", "description", "feature_names", "target")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """A graph for node classification: features and labels in its frames, and a split of its nodes.

    Args:
        name: short name.
        graph: the graph. By custom ``ndata["feat"]`` holds the features,
            ``[num_nodes, num_features]``, dense or sparse CSR, and ``ndata["label"]`` the labels:
            int64 ``[num_nodes]`` with -1 where a node has none, or float32
            ``[num_nodes, num_classes]`` of zeros and ones where a node has several, or float32
            ``[num_nodes]`` of numbers to predict, NaN where a node has none. A set may lack either.
            In a knowledge graph ``edata["relation"]`` holds the relation of each edge, and
            ``edata["split"]`` its part: 0 train, 1 val, 2 test. Features of a node type are
            ``graph.nodes[name].data["feat"]``, or ``"x"``.
        train, val, test: parent ids of the nodes of each part (any may be empty); kept as int64
            tensors. Where all are empty, ``of_type`` takes them from masks among the columns.
        num_classes: width of a classifier's output: the largest label + 1, or the number of label
            columns; 0 without labels and where labels are numbers to predict. Some classes may have
            no nodes.
        class_names: name of each class, in order of the label, or None.
        description: the content of the set and its origin.
        node_names: name of each node, or None.
        feature_names: name of each feature column, or None; in a graph of several node types by
            type, such as the names that ``convert.from_tables`` returns. A trained model finds its
            columns by them.
        category_names: for edge columns that hold numbers of categories, the name of each number,
            by column.
        unread_files: names of the data files in the folder that were not read.
        target: the node type that labels and split are of, or "" for all nodes; see ``of_type``.

    Raises TypeError or IndexError for parts of the split that are not ids of nodes, ValueError for
    a wrong number of names, KeyError for names of an edge column that is not there.

    >>> import nodeflow
    >>> graph = nodeflow.Graph.from_edges([0, 1], [1, 2], ndata={"label": torch.tensor([0, 1, 1])})
    >>> data = Dataset("tiny", graph, train=[0], val=[1], test=[2], num_classes=2)
    >>> data
    Dataset(tiny: 3 nodes, 2 edges, 0 features, 2 classes, train/val/test 1/1/1)
    >>> data.splits["test"]
    tensor([2])
    """

    name: str
    graph: Graph
    train: Tensor = _NONE
    val: Tensor = _NONE
    test: Tensor = _NONE
    num_classes: int = 0
    class_names: tuple[str, ...] | None = None
    description: str = ""
    node_names: Sequence[str] | None = None
    feature_names: tuple[str, ...] | Mapping[str, Sequence[str]] | None = None
    category_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unread_files: tuple[str, ...] = ()
    target: str = ""

    def __post_init__(self) -> None:
        check_type(self.name, "name", str, "a str")
        check_type(self.graph, "graph", Graph, "a nodeflow.Graph")
        check_type(self.target, "target", str, "the name of a node type")
        nodes = self.graph.nodes[self.target].ids if self.target else range(self.graph.num_nodes)
        for part in ("train", "val", "test"):
            what = f"{self.target} node".lstrip()
            ids = as_ids(getattr(self, part), part, nodes.stop, what, lower=nodes.start)
            object.__setattr__(self, part, torch.from_numpy(ids))
        check_disjoint({part: ids.numpy() for part, ids in self.splits.items()}, "node")
        as_count(self.num_classes, "num_classes")
        for name, columns in self.names_of_features().items():
            x = features_of(self.graph).get(name)
            if len(columns) != (size := 0 if x is None else x.shape[-1]):
                of = f" for {name!r}" if self.graph.schema.has_several else ""
                raise ValueError(
                    f"feature_names must be None or hold {size} names{of}, got {len(columns)}"
                )
        for name, size in (("class_names", self.num_classes), ("node_names", self.graph.num_nodes)):
            names = getattr(self, name)
            if names is not None and len(names) != size:
                raise ValueError(f"{name} must be None or hold {size} names, got {len(names)}")
        for column, names in self.category_names.items():
            if column not in self.graph.edata:
                raise KeyError(f"category_names has {column!r}, which is no edge column")
            size = int(self.graph.edata[column].max()) + 1 if self.graph.num_edges else 0
            if len(names) < size:
                raise ValueError(
                    f"category_names[{column!r}] must hold at least {size} names, got {len(names)}"
                )

    @property
    def splits(self) -> dict[str, Tensor]:
        """The three parts by name: ``{"train": ..., "val": ..., "test": ...}``, int64 ids of
        nodes.
        """
        return {"train": self.train, "val": self.val, "test": self.test}

    def names_of_features(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the feature columns of each node type whose columns have names."""
        if isinstance(self.feature_names, Mapping):
            return {name: tuple(columns) for name, columns in self.feature_names.items()}
        if self.feature_names is None:
            return {}
        return dict.fromkeys(features_of(self.graph) or self.graph.nodes, self.feature_names)

    @property
    def target_ids(self) -> Tensor:
        """Ids of the nodes of type ``target``, of all without one, int64."""
        ids = self.graph.nodes[self.target].ids if self.target else range(self.graph.num_nodes)
        return torch.from_numpy(np.arange(ids.start, ids.stop))

    @checked
    def of_type(self, target: str = "") -> Dataset:
        """Return the data set with labels and split of one node type, those in columns of its own.

        In ``graph.nodes[target].data`` the labels are ``label`` or ``y``, of any type of numbers:
        integers and bools are classes; floats are numbers to predict, but whole ones from 0 on
        beside NaN are classes, which a table with gaps has as floats; ``[k, 1]`` is one label,
        ``[k, n]`` are several. They become ``ndata["label"]``, with none for nodes of other types,
        in a graph that shares the rest. Class codes that leave most numbers out, such as 90210, get
        the numbers 0, 1, ... in their order, and the codes become ``class_names``.

        The split is that of this set. Where that is empty, columns say it: masks, ``train_mask``,
        ``val_mask`` (or ``valid_mask``, ``validation_mask``) and ``test_mask``, or ``train``,
        ``val`` and ``test``, bool or 0 and 1, ``[k]``; or ``split``, 0 train, 1 val, 2 test, -1
        none. Without these it is drawn as by ``read_folder``.

        Args:
            target: the node type; "" takes the only one with labels, and for a set that has
                ``ndata["label"]`` its own target.

        Raises TypeError for no string, KeyError for a type that is not there, ValueError for labels
        of several types without a ``target``, and for columns that are no labels or masks, say the
        same twice or contradict each other.

        >>> import nodeflow
        >>> papers = {"y": torch.tensor([0, 1, 1]), "train": torch.tensor([True, True, False])}
        >>> graph = nodeflow.Graph.typed({"author": 2, "paper": papers}, {("author", "writes", "paper"): ([0], [2])})
        >>> data = Dataset("tiny", graph).of_type("paper")
        >>> data.train, data.graph.ndata["label"]
        (tensor([2, 3]), tensor([-1, -1,  0,  1,  1]))
        """
        check_type(target, "target", str, "the name of a node type")
        graph = self.graph
        of_all = graph.ndata.get("label")
        is_of_all = of_all is not None and target in ("", self.target)
        of_type = self.target if is_of_all else self._labelled_type(target)
        if of_type is None:
            return self
        target = of_type
        is_same = self.target in ("", target)
        is_given = is_same and any(map(len, self.splits.values()))
        ids = graph.nodes[target].ids if target else range(graph.num_nodes)
        where = f"data set {self.name!r}"
        of_target = f" of {target!r} in {where}" if target else f" in {where}"
        if is_given:
            parts: list[Ints] | None = [nodes.numpy() for nodes in self.splits.values()]
        else:
            frames = [(graph.nodes[target].data, ids.start)] if target else []
            parts = split_rows([*frames, (graph.ndata, 0)], ids, where, "node")
        title = f"{where}: the node column 'label'"
        if not is_of_all:
            title = f"the labels{of_target}"
            of_all = None
        label, num_classes, names = self._labels(target, of_all, parts, title)
        train, val, test = labelled_split(parts, f"the split{of_target}", label, graph.num_nodes)
        if label is not of_all:
            graph = with_frames(graph, {**graph.ndata, "label": label}, graph.edata)
        elif is_of_all and is_given and num_classes == self.num_classes:
            return self
        return replace(
            self,
            graph=graph,
            train=train,
            val=val,
            test=test,
            num_classes=num_classes,
            class_names=names,
            target=target,
        )

    def _labels(
        self,
        target: str,
        of_all: Tensor | None,
        parts: Sequence[Ints] | None,
        title: str,
    ) -> tuple[Tensor | None, int, tuple[str, ...] | None]:
        """Return labels of all nodes, the number of classes and their names: those ``of_all`` where
        these are the target's own, else of a column of the target.
        """
        ids = self.graph.nodes[target].ids if target else range(self.graph.num_nodes)
        is_same = self.target in ("", target)
        count = self.num_classes if is_same else 0
        names = self.class_names if is_same else None
        column = "" if of_all is not None else _first_of(self.graph.nodes[target].data, LABELS)
        stored = self.graph.ndata.get("label")
        if column:
            raw = self.graph.nodes[target].data[column]
        elif stored is None:
            return None, count, names
        else:
            raw = slice_rows(stored, ids.start, ids.stop)
        local = None if parts is None else [part - ids.start for part in parts]
        labels, num_classes, codes = label_column(raw, title, local, count)
        label = of_all
        if of_all is None or labels is not raw:
            label = _for_all(labels, ids.start, self.graph.num_nodes)
        return label, count or num_classes, codes or names

    def _labelled_type(self, target: str) -> str | None:
        """Return the node type that is named, or the only one with labels; None without one."""
        if target:
            return self.graph.schema.node_type(target)
        parts = self.graph.nodes.items()
        labelled = [name for name, part in parts if _first_of(part.data, LABELS)]
        if len(labelled) > 1:
            raise ValueError(
                f"nodes of several types have labels, {', '.join(labelled)}: name one as the target"
            )
        return self.graph.schema.node_type(labelled[0]) if labelled else None

    @property
    def relation_names(self) -> tuple[str, ...] | None:
        """The name of each relation, ``category_names["relation"]``, or None."""
        return self.category_names.get("relation")

    @checked
    def save(self, folder: FileLike, *, overwrite: bool = False) -> None:
        """Write the data set into a graph folder, which ``read_folder`` and ``nodeflow train``
        read.

        ``Graph.open`` opens it without the rest. Raises what ``Graph.save`` raises.

        >>> import tempfile
        >>> from nodeflow.datasets import debian, read_folder
        >>> place = tempfile.mkdtemp() + "/debian"
        >>> debian().save(place)
        >>> read_folder(place).node_names[7] == debian().node_names[7]
        True
        """
        with new_folder(Path(folder), overwrite=overwrite) as draft:
            contents = write_graph(self.graph, draft)
            contents.arrays |= {
                part: stream_array(draft, part, ids) for part, ids in self.splits.items()
            }
            if self.node_names is not None:
                contents.arrays |= write_texts(draft, NAMES, self.node_names)
            facts = {name: getattr(self, name) for name in _FACTS} | {
                "category_names": dict(self.category_names)
            }
            if isinstance(self.feature_names, Mapping):
                facts["feature_names"] = self.names_of_features()
            contents.facts[FACTS] = facts
            contents.write(draft)

    def info(self) -> str:
        """Return a summary of the set, one line per subject: sizes, degrees, features, classes,
        split.

        Edge columns of categories and the split of the edges get a line of their own where there
        are any, and so do node types and relations where there are several. It sorts the edges, to
        count those that repeat.
        """
        rows = {
            **_graph_rows(self.graph),
            **self._category_rows(),
            "features": _feature_row(self.graph),
        }
        labels = self.graph.ndata.get("label")
        if labels is not None and labels.ndim == 1 and labels.is_floating_point():
            rows["targets"] = _target_row(labels)
        else:
            rows["classes"] = self._class_row()
        rows["split"] = ", ".join(f"{part} {len(ids):,}" for part, ids in self.splits.items())
        if self.unread_files:
            rows["not read"] = ", ".join(self.unread_files)
        title = f"{self.name}: {self.description}" if self.description else self.name
        lines = [title, *(f"  {subject:<11} {words}" for subject, words in rows.items())]
        return "\n".join([*lines, *_schema_table(self.graph)])

    def __repr__(self) -> str:
        graph = self.graph
        features = " + ".join(str(x.shape[-1]) for x in features_of(self.graph).values()) or "0"
        sizes = "/".join(str(len(ids)) for ids in self.splits.values())
        return (
            f"Dataset({self.name}: {graph.num_nodes} nodes, {graph.num_edges} edges, {features} "
            f"features, {self.num_classes} classes, train/val/test {sizes})"
        )

    def _category_rows(self) -> dict[str, str]:
        """Return a row for each edge column of categories, and for the split of the edges."""
        rows = {}
        for column in dict.fromkeys(["relation", *self.category_names]):
            values = self.graph.edata.get(column)
            is_integers = values is not None and values.ndim == 1 and not values.is_floating_point()
            if values is None or not is_integers or (len(values) and int(values.min()) < 0):
                continue
            names = self.category_names.get(column)
            size = 0 if names is None else len(names)
            rows["relations" if column == "relation" else column] = _count_row(
                values, size, column, names, "edges"
            )
        if (part := self.graph.edata.get("split")) is not None:
            sizes = (f"{name} {int((part == at).sum()):,}" for at, name in enumerate(self.splits))
            rows["edge split"] = ", ".join(sizes)
            if leaks := self._leaks(torch.as_tensor(part)):
                rows["held out"] = leaks
        return rows

    def _leaks(self, part: Tensor) -> str:
        """Say how many held-out edges are training edges too, and how many nodes only held-out
        edges have.
        """
        src, dst = self.graph.edges()
        relation = torch.as_tensor(self.graph.edata.get("relation", torch.zeros_like(src)))
        # triples as numbers: pairs and relations are ranked first, so that no product is too large
        _, pairs = torch.unique(src * self.graph.num_nodes + dst, return_inverse=True)
        kinds, kind = torch.unique(relation, return_inverse=True)
        triples = pairs * len(kinds) + kind
        is_training = part == 0
        repeats = int(torch.isin(triples[~is_training], triples[is_training]).sum())
        trained, others = (
            torch.cat([src[rows], dst[rows]]).unique() for rows in (is_training, ~is_training)
        )
        unseen = int((~torch.isin(others, trained)).sum())
        words = [f"{repeats:,} are edges of train too"] * (repeats > 0)
        return ", ".join([*words, *[f"{unseen:,} nodes have no edge of train"] * (unseen > 0)])

    def _class_row(self) -> str:
        labels = self.graph.ndata.get("label")
        if labels is None or self.num_classes == 0:
            return "none"
        labelled = has_label(labels)
        numbers = labels[labelled] if labels.ndim == 1 else (labels > 0).nonzero()[:, 1]
        several = ", several per node" if labels.ndim == 2 else ""
        bare = int((~labelled).sum())
        return _count_row(
            numbers, self.num_classes, "class", self.class_names, "nodes", several
        ) + (f"; {bare:,} nodes without label" if bare else "")


def _first_of(frame: Frame, names: Sequence[str]) -> str:
    """Return the first of some names that a frame has a tensor of, or ""."""
    return next((name for name in names if isinstance(frame.get(name), Tensor)), "")


def _for_all(label: Tensor, first: int, num_nodes: int) -> Tensor:
    """Return labels of the nodes from ``first`` on as labels of all nodes; the others have none."""
    if len(label) == num_nodes:
        return label
    none = math.nan if label.is_floating_point() else -1
    rows = label.new_full((num_nodes, *label.shape[1:]), 0 if label.ndim == 2 else none)
    rows[first : first + len(label)] = label
    return rows


def _count_row(
    numbers: Tensor, least: int, what: str, names: tuple[str, ...] | None, of: str, note: str = ""
) -> str:
    """Return a text: how many categories there are, at least ``least``, the largest and the
    smallest.
    """
    # a number may be as large as any integer
    present, counts = torch.unique(numbers, return_counts=True)
    total = max(least, int(present[-1]) + 1 if len(present) else 0)
    words = [f"{total:,}{note}"]
    if len(present):
        for size, at in (("largest", counts.argmax()), ("smallest", counts.argmin())):
            number = int(present[at])
            name = f"{what} {number}" if names is None else repr(names[number])
            words.append(f"{size} {name} ({int(counts[at]):,})")
    if len(present) < total:
        words.append(f"{total - len(present):,} without {of}")
    return ", ".join(words)


def _target_row(labels: Tensor) -> str:
    targets = labels[has_label(labels)]
    if not len(targets):
        return "numbers, but no node has one"
    low = float(targets.min())
    mean = float(targets.double().mean())
    high = float(targets.max())
    bare = f"; {len(labels) - len(targets):,} nodes without" if len(targets) < len(labels) else ""
    return f"numbers, min {low:.4g}, mean {mean:.4g}, max {high:.4g}{bare}"


def _schema_table(graph: Graph) -> list[str]:
    """Return the lines of a table of node types and one of relations; none where there is one of
    each.
    """
    if not graph.schema.has_several:
        return []
    rows = [("node type", "nodes", "columns")]
    rows += [(name, f"{len(part):,}", ", ".join(part.data)) for name, part in graph.nodes.items()]
    rows += [("relation", "edges", "columns")]
    rows += [
        (" ".join(name), f"{len(part):,}", ", ".join(part.data))
        for name, part in graph.relations.items()
    ]
    first = max(len(name) for name, _, _ in rows)
    second = max(len(size) for _, size, _ in rows)
    return [
        f"  {name:<{first}}  {size:>{second}}  {columns}".rstrip() for name, size, columns in rows
    ]


def _graph_rows(graph: Graph) -> dict[str, str]:
    src, dst = graph.edges()
    loops = int((src == dst).sum())
    # edges that repeat lie side by side among sorted numbers of pairs
    pairs = np.sort((src * max(graph.num_nodes, 1) + dst).numpy())
    repeats = int((pairs[1:] == pairs[:-1]).sum())
    in_degrees = graph.in_degrees()
    out_degrees = graph.out_degrees()
    isolated = int(((in_degrees == 0) & (out_degrees == 0)).sum())
    notes = f"({loops:,} self-loops, {repeats:,} repeat an earlier one's ends)"
    if is_symmetric(graph):
        notes += ", symmetric"
    if len(graph.edata):
        notes += f", with columns {', '.join(graph.edata)}"
    return {
        "nodes": f"{graph.num_nodes:,} ({isolated:,} isolated)",
        "edges": f"{graph.num_edges:,} {notes}",
        "in-degree": _spread(in_degrees),
        "out-degree": _spread(out_degrees),
    }


def _spread(degrees: Tensor) -> str:
    if len(degrees) == 0:
        return "no nodes"
    return (
        f"min {int(degrees.min()):,}, mean {float(degrees.double().mean()):.2f}, max "
        f"{int(degrees.max()):,}"
    )


def features_of(graph: Graph) -> dict[str, Tensor | Rows]:
    """Return the features of each node type that has some."""
    return {
        name: graph.nodes[name].data[column] for name, column in columns_of_features(graph).items()
    }


def columns_of_features(graph: Graph) -> dict[str, str]:
    """Return the column with the features of each node type that has some, "feat" or else "x"."""
    columns = {}
    for name, part in graph.nodes.items():
        for column in reversed(FEATURES):
            if column in part.data:
                columns[name] = column
    return columns


def _feature_row(graph: Graph) -> str:
    features = graph.ndata.get("feat")
    if features is None:
        return (
            " + ".join(" x ".join(map(str, x.shape)) for x in features_of(graph).values()) or "none"
        )
    shape = " x ".join(f"{size:,}" for size in features.shape)
    layout = "sparse" if is_sparse(features) else "dense"
    filled = 0
    for ends in pieces_of(features):  # which may be in a file
        rows = fetch_rows(features, torch.arange(*ends))
        filled += len(rows.values()) if is_sparse(rows) else int(torch.count_nonzero(rows))
    words = type_words(features).removeprefix("sparse ")
    return f"{shape}, {words}, {layout}, {filled / max(features.shape[0], 1):.2f} non-zeros a row"

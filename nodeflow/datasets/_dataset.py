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
from nodeflow._core.rows.base import summary
from nodeflow._core.rows.rows import Rows, slice_rows
from nodeflow._files.disk.folders import new_folder
from nodeflow._files.disk.streams import stream_array
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
        nodes = self._ids_of(self.target)
        for part in ("train", "val", "test"):
            noun = f"{self.target} node".lstrip()
            ids = as_ids(getattr(self, part), part, nodes.stop, noun, lower=nodes.start)
            object.__setattr__(self, part, torch.from_numpy(ids))
        check_disjoint({part: ids.numpy() for part, ids in self.splits.items()}, "node")
        as_count(self.num_classes, "num_classes")
        features = features_of(self.graph)
        for name, columns in self.names_of_features().items():
            size = features[name].shape[-1] if name in features else 0
            _check_names(f"feature_names for {name!r}", columns, size)
        _check_names("class_names", self.class_names, self.num_classes)
        _check_names("node_names", self.node_names, self.graph.num_nodes)
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
        ids = self._ids_of(self.target)
        return torch.from_numpy(np.arange(ids.start, ids.stop))

    def _ids_of(self, node_type: str) -> range:
        """Return the ids of the nodes of a type, of all nodes for ""."""
        if node_type:
            return self.graph.nodes[node_type].ids
        return range(self.graph.num_nodes)

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
        chosen: str | None = self.target
        if not is_of_all:
            of_all = None
            chosen = self._labelled_type(target)
        if chosen is None:
            return self
        target = chosen
        is_given = self.target in ("", target) and any(map(len, self.splits.values()))
        ids = self._ids_of(target)
        # a split that is given goes before columns, and columns of the type before those of all
        frames = [(graph.ndata, 0)]
        of_target = f" in data set {self.name!r}"
        if target:
            frames.insert(0, (graph.nodes[target].data, ids.start))
            of_target = f" of {target!r}{of_target}"
        parts: list[Ints] | None = [nodes.numpy() for nodes in self.splits.values()]
        if not is_given:
            parts = split_rows(frames, ids, f"data set {self.name!r}", "node")
        label, num_classes, names = self._labels(target, of_all, parts, f"the labels{of_target}")
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
        ids = self._ids_of(target)
        count = 0
        names = None
        if self.target in ("", target):
            count = self.num_classes
            names = self.class_names
        column = ""
        if of_all is None:
            column = _first_of(self.graph.nodes[target].data, LABELS)
        stored = self.graph.ndata.get("label")
        if column:
            raw = self.graph.nodes[target].data[column]
        elif stored is None:
            return None, count, names
        else:
            raw = slice_rows(stored, ids.start, ids.stop)
        # Parts have ids of the whole graph, and the column has rows of the type alone.
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
        if not labelled:
            return None
        return self.graph.schema.node_type(labelled[0])

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
            # The graph first: a reader that knows nothing of data sets finds a whole graph
            # folder.
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
        """Return a short table: nodes and edges with their columns, classes, the split, and files
        that were not read.

        Where there are several node types or relations, each has a line of its own.
        """
        graph = self.graph
        rows = {
            "nodes": _size_words(graph.num_nodes, graph.ndata),
            "edges": _size_words(graph.num_edges, graph.edata),
        }
        if graph.schema.has_several:
            for name, nodes in graph.nodes.items():
                rows[name] = _size_words(len(nodes), nodes.data)
            for relation, edges in graph.relations.items():
                rows[" ".join(relation)] = _size_words(len(edges), edges.data)
        if names := self.category_names:
            rows["names of"] = ", ".join(f"{column} {len(names[column]):,}" for column in names)
        rows["classes"] = f"{self.num_classes:,}"
        if (labels := graph.ndata.get("label")) is not None:
            rows["classes"] += f", {int(has_label(labels).sum()):,} nodes with a label"
        rows["split"] = ", ".join(f"{part} {len(ids):,}" for part, ids in self.splits.items())
        if self.unread_files:
            rows["not read"] = ", ".join(self.unread_files)
        width = max(map(len, rows))
        title = f"{self.name}: {self.description}".removesuffix(": ")
        return "\n".join([title, *(f"  {name:<{width}}  {rows[name]}" for name in rows)])

    def __repr__(self) -> str:
        graph = self.graph
        features = " + ".join(str(x.shape[-1]) for x in features_of(self.graph).values()) or "0"
        sizes = "/".join(str(len(ids)) for ids in self.splits.values())
        return (
            f"Dataset({self.name}: {graph.num_nodes} nodes, {graph.num_edges} edges, {features} "
            f"features, {self.num_classes} classes, train/val/test {sizes})"
        )


def _check_names(argument: str, names: Sequence[str] | None, size: int) -> None:
    """Raise ValueError unless there is a name for each of ``size`` things, or no names."""
    if names is not None and len(names) != size:
        raise ValueError(f"{argument} must be None or hold {size} names, got {len(names)}")


def _first_of(frame: Frame, names: Sequence[str]) -> str:
    """Return the first of some names that a frame has a tensor of, or ""."""
    return next((name for name in names if isinstance(frame.get(name), Tensor)), "")


def _for_all(label: Tensor, first: int, num_nodes: int) -> Tensor:
    """Return labels of the nodes from ``first`` on as labels of all nodes; the others have none."""
    if len(label) == num_nodes:
        return label
    none = -1.0
    if label.is_floating_point():
        none = math.nan
    if label.ndim == 2:  # of several labels it has none
        none = 0
    rows = label.new_full((num_nodes, *label.shape[1:]), none)
    rows[first : first + len(label)] = label
    return rows


def _size_words(size: int, frame: Frame) -> str:
    """Return a number of nodes or edges, and the types and shapes of their columns, in words."""
    columns = [f"{name} {summary(frame[name])}" for name in frame]
    return "; ".join([f"{size:,}", *columns])


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

"""The names behind the numbers that a model has learned with, and other data in that numbering."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, first_true
from nodeflow._core.rows.rows import is_sparse, whole_column
from nodeflow._core.schema import Schema
from nodeflow.datasets import FEATURES, Dataset, columns_of_features, has_label
from nodeflow.graph import Graph
from nodeflow.training._choices import Values
from nodeflow.training._graph import EDGE_TYPES, Words, with_columns

NODES = "node_names"
"""The tensor with the hashes of nodes in a file of weights."""
_NONE = torch.zeros(0, dtype=torch.int64)


@dataclass(frozen=True, eq=False)
class Names:
    """What a model knows by number, by name: the same words may have other numbers in data that are
    read again.

    Names are None where numbers are names of their own, as in arrays. Then, and only then, numbers
    are compared.

    Args:
        classes: those of labels; empty where no labels are learned.
        features: by node type, the names of the columns that the model reads.
        columns: by node type, the column with the features, "feat" or "x".
        categories: by edge column that the model reads, the names of its numbers.
        schema: the node types and relations along which messages go; None before the graph of
            messages is known.
        nodes: a hash of the name of each node, int64 ``[num_nodes]``, see ``hashes_of``; empty
            where the ids are the names, or the model has no rows of nodes.
    """

    classes: Words
    features: dict[str, Words]
    columns: dict[str, str]
    categories: dict[str, Words]
    schema: Schema | None = None
    nodes: Tensor = field(default=_NONE, repr=False)

    @classmethod
    def of(cls, dataset: Dataset) -> Names:
        """Return the names of a data set, without those of its nodes."""
        if isinstance(dataset, NamedDataset) and dataset.names is not None:
            return dataset.names
        titles = dataset.names_of_features()
        columns = columns_of_features(dataset.graph)
        features = {name: _listed(titles.get(name)) for name in columns}
        categories = {
            name: _listed(dataset.category_names.get(name)) for name in dataset.graph.edata
        }
        return cls(_listed(dataset.class_names), features, columns, categories)

    def to_json(self) -> dict[str, Any]:
        """Return all but ``nodes`` as values of JSON."""
        facts = {**vars(self), "schema": self.schema and self.schema.to_json()}
        del facts["nodes"]
        return facts

    def tensors(self) -> dict[str, Tensor]:
        """Return ``nodes`` by its name in a file, unless it is empty."""
        if len(self.nodes):
            return {NODES: self.nodes}
        return {}

    @classmethod
    def from_json(
        cls, words: Values, tensors: Mapping[str, Tensor] = MappingProxyType({})
    ) -> Names:
        """Return what ``to_json`` and ``tensors`` gave; raises TypeError, ValueError or KeyError
        for something else.
        """
        schema = words["schema"] and Schema.from_json(words["schema"])
        return cls(**{**words, "schema": schema}, nodes=tensors.get(NODES, _NONE))

    def with_nodes(self, dataset: Dataset) -> Names:
        """Return these names with those of the nodes."""
        if len(self.nodes) or dataset.node_names is None:
            return self
        return replace(self, nodes=torch.from_numpy(hashes_of(dataset.node_names)))

    def align(self, dataset: Dataset) -> NamedDataset:
        """Return a data set in the numbering of the model: its columns, its classes, and the
        numbers of categories.

        Raises ValueError for what the model reads and the data lack, for names that it does not
        know, and where only one of the two has names.
        """
        given = Names.of(dataset)
        graph = with_columns(dataset.graph, {})
        where = f"data set {dataset.name!r}"
        self._leave_out_features(graph)
        # a model that learned no types of edges, or those of another column, must not find these
        unknown = {*EDGE_TYPES} & {*graph.edata} - {*self.categories}
        for name in unknown:
            del graph.edata[name]
        for name, known in self.features.items():
            if name not in given.features:
                raise ValueError(f"{where} has no features of {name!r}, which the model reads")
            order = _order(known, given.features[name], f"feature of {name!r} in {where}")
            if order is not None:
                data = graph.nodes[name].data
                column = columns_of_features(graph)[name]
                data[column] = _chosen(whole_column(data[column]), order)
        for name, known in self.categories.items():
            if name not in graph.edata:
                raise ValueError(f"{where} has no edge column {name!r}, which the model reads")
            graph.edata[name] = _renumbered(
                graph.edata[name], known, given.categories[name], f"edge column {name!r} in {where}"
            )
        changed: dict[str, Any] = {
            part.name: getattr(dataset, part.name) for part in fields(Dataset)
        }
        changed["graph"] = graph
        if self.classes != []:
            changed["class_names"] = self.classes and tuple(self.classes)
            changed["num_classes"] = len(self.classes or ()) or dataset.num_classes
            label = graph.ndata.pop("label", None)
            # a column without entries has no classes to compare
            if label is not None and has_label(label).any():
                graph.ndata["label"] = _labels(
                    label, self.classes, given.classes, f"label in {where}"
                )
        changed["feature_names"] = _known(self.features) or None
        categories = {**dataset.category_names, **_known(self.categories)}
        changed["category_names"] = {
            name: words for name, words in categories.items() if name not in unknown
        }
        return NamedDataset(**changed, names=self)

    def _leave_out_features(self, graph: Graph) -> None:
        """Delete from a graph the columns of features that were not those of the model's data."""
        for name, part in graph.nodes.items():
            column = self.columns.get(name, "")
            # what is "x" here may have been "feat" there, if it is the only one
            if column in part.data or not column:
                for other in {*FEATURES} & {*part.data} - {column}:
                    del part.data[other]

    def ordered(self, schema: Schema) -> Schema:
        """Return a schema with its types and relations in the order of the model; ValueError where
        others are there.
        """
        known = self.schema
        if known is None or not (known.has_several or schema.has_several):
            return schema
        _order([*known.nodes], [*schema.nodes], "node type of the data")
        _order([*known.relations], [*schema.relations], "relation of the data")
        nodes = {name: len(schema.nodes[name]) for name in known.nodes}
        return Schema(nodes, {name: len(schema.relations[name]) for name in known.relations})

    def rows(self, dataset: Dataset, node_type: str) -> Tensor:
        """Return the number of the learned row of each node of a type, "" for the only one, int64
        ``[nodes]``.

        Raises ValueError for a node without a row, and where names are not enough to find it.
        """
        assert self.schema is not None
        known = _ids_of(self.schema, node_type)
        ids = _ids_of(dataset.graph.schema, node_type)
        names: Sequence[Any] = range(len(ids))
        if dataset.node_names is not None:
            names = dataset.node_names[ids.start : ids.stop]
        wanted = hashes_of(names)
        if len(self.nodes):
            hashes = self.nodes.numpy()[known.start : known.stop]
        else:
            hashes = hashes_of(range(len(known)))
        # the data of the run itself, read again, need no sorting
        if np.array_equal(hashes, wanted):  # also where nodes share a name
            return torch.arange(len(ids))
        sorted_hashes, row = np.unique(hashes, return_index=True)
        if len(row) < len(hashes):
            raise ValueError(
                "nodes of the model share a name, so their learned rows cannot be found by name"
            )
        stranger = first_true(~np.isin(wanted, sorted_hashes))
        if stranger is not None:
            raise ValueError(
                "the model has learned a row for every node of its own data, and none for node "
                f"{names[stranger]!r} of data set {dataset.name!r}; a model of features alone "
                "takes new nodes"
            )
        return torch.from_numpy(row[np.searchsorted(sorted_hashes, wanted)])


def _ids_of(schema: Schema, node_type: str) -> range:
    if node_type:
        return schema.nodes[node_type]
    return range(schema.num_nodes)


@dataclass(frozen=True, eq=False, repr=False)
class NamedDataset(Dataset):
    """A data set with the names that another one gave its numbers: that of a model, or one that was
    cut into parts.
    """

    names: Names | None = None


def hashes_of(names: Iterable[object]) -> Ints:
    """Return a 64-bit hash of each name, int64; ids that are names are words, as in files."""
    # 64 bits: of 100 million names, two share a hash with a probability of 0.0003. A hash of
    # Python's own would be another one in each process
    words = (str(name).encode("utf-8", "surrogatepass") for name in names)
    digests = b"".join(blake2b(word, digest_size=8).digest() for word in words)
    return np.frombuffer(digests, "<i8").astype(np.int64)


def _listed(names: Iterable[str] | None) -> Words:
    if names is None:
        return None
    return [*names]


def _known(names: Mapping[str, Words]) -> dict[str, tuple[str, ...]]:
    """Return those that are there, as a data set has them."""
    return {name: tuple(words) for name, words in names.items() if words is not None}


def _places(known: Any, given: Any, subject: str) -> list[int] | None:
    """Return the number that the model knows each name of the data by, -1 for none; None where all
    have their own.
    """
    if known == given:
        return None
    if known is None or given is None:
        model, data = ("numbers", "names") if known is None else ("names", "numbers")
        raise ValueError(
            f"{subject} has {data}, and the model knows {model}: give the data {model} too, or "
            "leave it out"
        )
    # names that are all the same need not be unique, but those that are looked up must be
    for names in (known, given):
        if len({*names}) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"{subject}: {twice!r} is there twice, so it cannot be matched by name"
            )
    number_of = {name: number for number, name in enumerate(known)}
    return [number_of.get(name, -1) for name in given]


def _order(known: Any, given: Any, subject: str) -> list[int] | None:
    """Return where the data have each name of the model, None for the same order; ValueError for
    other names.
    """
    places = _places(known, given, subject)
    if places is None:
        return None
    for name in known:
        if name not in given:
            raise ValueError(f"{subject}: the model reads {name!r}, which is missing")
    if -1 in places:
        raise _stranger(given[places.index(-1)], subject)
    return cast("list[int]", np.argsort(places).tolist())


def _stranger(name: str, subject: str) -> ValueError:
    return ValueError(f"{subject}: the model knows no {name!r}; leave it out")


def _renumbered(numbers: Any, known: Words, given: Words, subject: str) -> Any:
    """Return numbers of the names of the data as those of the model; negative ones stay."""
    places = _places(known, given, subject)
    if places is None:
        return numbers
    old = whole_column(numbers).long()
    # -1 looks up the last entry, which says that there is none
    new = torch.where(old < 0, old, torch.tensor([*places, -1])[old.clamp(min=-1)])
    unknown = first_true(((new < 0) & (old >= 0)).numpy())
    if unknown is not None:
        raise _stranger((given or ())[int(old[unknown])], subject)
    return new


def _labels(label: Tensor, known: Words, given: Words, subject: str) -> Tensor:
    """Return labels as classes of the model: numbers, or a column per class."""
    # numbers to predict have no names
    if label.ndim == 1 or given == known:
        if not label.is_floating_point():
            label = _renumbered(label, known, given, subject)
        return label
    # several labels per node: each column moves to where the model has its name
    node, column = label.nonzero(as_tuple=True)
    columns = label.new_zeros(len(label), len(known or ()))
    columns[node, _renumbered(column, known, given, subject)] = label[node, column]
    return columns


def _chosen(x: Tensor, order: Sequence[int]) -> Tensor:
    """Return columns of a matrix, dense or sparse CSR."""
    columns = torch.tensor(order)
    if not is_sparse(x):
        return x[:, columns]
    chosen: Tensor = x.to_sparse_coo().index_select(1, columns)
    return chosen.coalesce().to_sparse_csr()

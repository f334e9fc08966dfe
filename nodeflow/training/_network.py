"""The networks of runs: the rows that enter, the model that they enter, and the decoder of
links.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nodeflow._core.base.checks import as_count, as_flag, check_type
from nodeflow._core.base.sizes import check_memory
from nodeflow._core.rows.rows import as_dense, whole_column
from nodeflow.datasets import Dataset
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn import Decoder, EncodedRows, TypedLinear, module_name
from nodeflow.storage import Rows
from nodeflow.training._answers import AnswerBatch
from nodeflow.training._graph import Beside, check_features
from nodeflow.training._models import kind_of
from nodeflow.training._train_options import ModelSettings


def _learned_rows(count: int, width: int) -> nn.Embedding:
    """Return random rows of deviation 1, or less where there are more rows than columns.

    Rows of deviation 1 tell the nodes apart before anything is learned. That helps where many edges
    share each of a few nodes, as papers share conferences; where nodes are many, labels would be
    learned by heart.
    """
    rows = nn.init.normal_(torch.empty(count, width), std=width / max(count, width))
    return nn.Embedding(count, width, _weight=rows)


class Inputs(nn.Module):
    """The input rows of a model: features of the nodes, a learned row per node, or both
    concatenated.

    Args:
        num_nodes: of the parent graph.
        features: width of the node column "feat", 0 if it is not used.
        embedding: width of the learned rows, 0 for none. They begin as in Glorot, Bengio 2010.
        dense: make sparse features dense, batch by batch.

    Raises ValueError where both widths are 0.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1], [1, 2]), fanouts=[1])([2])
    >>> Inputs(num_nodes=3, features=0, embedding=4)(batch).shape
    torch.Size([2, 4])
    """

    def __init__(
        self, num_nodes: int, features: int, embedding: int, *, dense: bool = False
    ) -> None:
        super().__init__()
        num_nodes = as_count(num_nodes, "num_nodes")
        features = as_count(features, "features")
        embedding = as_count(embedding, "embedding")
        dense = as_flag(dense, "dense")
        if not features and not embedding:
            raise ValueError("the nodes have no features, so inputs must be 'embedding'")
        check_memory(
            4 * num_nodes * embedding,
            f"num_nodes of {num_nodes} with learned rows",
            "take fewer or narrower rows",
        )
        self.facts = {
            "num_nodes": num_nodes,
            "features": features,
            "embedding": embedding,
            "dense": dense,
        }
        self.features = features
        self.width = features + embedding
        self.dense = dense or bool(features and embedding)
        self.learns = embedding > 0
        self.table = nn.Parameter(torch.empty(num_nodes, embedding)) if embedding else None
        if self.table is not None:
            nn.init.xavier_uniform_(self.table)

    def rows_of_nodes(self) -> dict[str, str]:
        """Return the weights that have a row per node, by name, and the type of these nodes; "" for
        all nodes.
        """
        if self.learns:
            return {"table": ""}
        return {}

    def forward(self, batch: NodeFlow) -> Tensor:
        """Return the rows of the input layer, ``[layer_sizes[0], width]``."""
        rows: Tensor | None = self.table
        if rows is not None:
            nodes = batch.layers[0].parent_nid
            # the gradient of a gather is as large as the table, so all rows are taken as they are
            is_all = len(nodes) == len(rows)
            if is_all:
                everyone = torch.arange(len(nodes))
                is_all = torch.equal(nodes, everyone.to(nodes))
            if not is_all:
                rows = F.embedding(nodes, rows)  # several times faster than indexing
        return self._joined(batch.inputs["feat"] if self.features else None, rows)

    def everywhere(self, graph: Graph) -> Tensor | Rows:
        """Return the rows of all nodes, ``[num_nodes, width]``, as ``Rows`` where features are."""
        if not self.features:
            return self._joined(None, self.table)
        x: Tensor | Rows = graph.ndata["feat"]
        if not isinstance(x, Tensor):
            if self.table is None:
                return x
            return Beside(x, self.table)
        return self._joined(x if self.table is None else x.to(self.table.device), self.table)

    def _joined(self, x: Tensor | None, rows: Tensor | None) -> Tensor:
        """Return features, learned rows, or both side by side."""
        parts = [part for part in (x, rows) if part is not None]
        if self.dense:
            parts = [as_dense(part) for part in parts]
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts, 1)


class TypedInputs(nn.Module):
    """The input rows of a model of nodes of several types: a linear map, of the features of a type
    or of learned rows.

    Args:
        sizes: number of nodes of each type, by name.
        features: width of the column "feat" of each type that has one; the rows of the others are
            learned.
        embedding: width of the learned rows, which begin the smaller the more of them a type has.
        width: of the rows that enter the model.

    >>> from nodeflow import Graph, NeighborSampler
    >>> nodes = {"author": 2, "paper": {"feat": torch.ones(1, 3)}}
    >>> graph = Graph.typed(nodes, {("author", "writes", "paper"): ([1], [0])})
    >>> batch = NeighborSampler(graph, fanouts=[1])([2])
    >>> batch.copy_from_parent(["feat"])
    >>> TypedInputs({"author": 2, "paper": 1}, {"paper": 3}, embedding=4, width=8)(batch).shape
    torch.Size([2, 8])
    """

    def __init__(
        self, sizes: Mapping[str, int], features: Mapping[str, int], embedding: int, width: int
    ) -> None:
        super().__init__()
        check_type(sizes, "sizes", Mapping, "a dict from node types to numbers of nodes")
        check_type(features, "features", Mapping, "a dict from node types to widths")
        embedding = as_count(embedding, "embedding", 1)
        self.width = as_count(width, "width", 1)
        self.facts = {
            "sizes": dict(sizes),
            "features": dict(features),
            "embedding": embedding,
            "width": width,
        }
        self.features = any(features.values())
        rows: dict[str, int | nn.Module] = {}
        self._bare = [name for name in sizes if not features.get(name)]
        for name, number in sizes.items():
            size = as_count(number, f"sizes[{name!r}]")
            rows[name] = features.get(name, 0)
            if not rows[name]:
                check_memory(
                    4 * size * embedding, f"{size:,} learned rows of {name!r}", "take narrower rows"
                )
                rows[name] = nn.Sequential(
                    _learned_rows(size, embedding), nn.Linear(embedding, width)
                )
        self.learns = bool(self._bare)
        self.encoder = TypedLinear(rows, width, column="feat")

    def rows_of_nodes(self) -> dict[str, str]:
        """Return the weights that have a row per node, by name, and the type of these nodes."""
        return {f"encoder.maps.{module_name(name)}.0.weight": name for name in self._bare}

    def forward(self, batch: NodeFlow) -> Tensor:
        """Return the rows of the input layer, ``[layer_sizes[0], width]``."""
        return cast("Tensor", self.encoder(batch))

    def everywhere(self, graph: Graph) -> Rows:
        """Return the rows of all nodes, ``[num_nodes, width]``, made when they are fetched."""
        return EncodedRows(self.encoder, graph)


AnyInputs: TypeAlias = Inputs | TypedInputs


class Network(nn.Module):
    """The inputs and the model of a run: ``network(batch)`` gives the outputs of the seeds.

    Args:
        inputs: the rows that enter the model.
        model: called as ``model(batch, h)``, such as a ``FlowModel``.

    >>> from nodeflow import Graph, NeighborSampler
    >>> from nodeflow.nn import GraphSAGE
    >>> batch = NeighborSampler(Graph.from_edges([0, 1], [1, 2]), fanouts=[1, 1])([2])
    >>> Network(Inputs(3, features=0, embedding=4), GraphSAGE(4, 8, 3))(batch).shape
    torch.Size([1, 3])
    """

    def __init__(self, inputs: AnyInputs, model: nn.Module) -> None:
        super().__init__()
        check_type(inputs, "inputs", AnyInputs, "Inputs or TypedInputs")
        check_type(model, "model", nn.Module, "a torch.nn.Module")
        self.inputs = inputs
        self.model = model

    def forward(self, batch: NodeFlow) -> Tensor:
        """Return the outputs of the seeds, ``[layer_sizes[-1], out_features]``."""
        return cast("Tensor", self.model(batch, self.inputs(batch)))


class LinkNetwork(Network):
    """The inputs, the model and the decoder of a run: ``network(batch)`` gives the rows that the
    decoder compares.

    Args:
        inputs: the rows that enter the model.
        model: None for none: the rows that enter are compared, with dropout.
        decoder: the scores of pairs of rows.
        dropout: without a model, the probability that an entry is set to zero.

    >>> from nodeflow.nn import DistMult
    >>> network = LinkNetwork(Inputs(3, features=0, embedding=4), None, DistMult(4), dropout=0.0)
    >>> rows = network.model(network.inputs.table)
    >>> network.decoder(rows[[0, 1]], rows[[1, 2]]).shape
    torch.Size([2])
    """

    def __init__(
        self,
        inputs: AnyInputs,
        model: nn.Module | None,
        decoder: Decoder,
        dropout: float,
    ) -> None:
        super().__init__(inputs, nn.Dropout(dropout) if model is None else model)
        self.decoder = decoder
        self.encodes = model is not None

    def forward(self, batch: NodeFlow | AnswerBatch) -> Tensor:
        """Return the rows of the seeds, ``[layer_sizes[-1], width]``; of all nodes for a batch of
        answers.
        """
        if isinstance(batch, AnswerBatch):
            x = whole_column(self.inputs.everywhere(batch.graph))
        else:
            x = self.inputs(batch)
        return cast("Tensor", self.model(batch, x) if self.encodes else self.model(x))


def inputs_of(
    dataset: Dataset, settings: ModelSettings, columns: Mapping[str, Tensor | Rows]
) -> AnyInputs:
    """Return what enters the model; ``columns``: the features of each node type that has some."""
    kind = settings.inputs
    model = kind_of(settings.name)
    types = dataset.graph.schema.nodes
    bare = [name for name in types if name not in columns]
    if kind == "auto":
        kind = "embedding"
        if columns:
            kind = "features"
    elif kind != "embedding" and bare:
        of = ""
        if columns:
            of = f" of type {bare[0]!r}"
        other = "embedding"
        if columns:
            other = "auto"
        raise ValueError(
            f"data set {dataset.name!r} has no features{of}, so inputs must be {other!r}; got "
            f"{kind!r}"
        )
    widths = {}
    if kind != "embedding":
        for name, x in columns.items():
            check_features(dataset, name, x)
            widths[name] = x.shape[1]
    if model.traits.by_schema or len(types) > 1:
        return TypedInputs(
            {name: len(ids) for name, ids in types.items()},
            widths,
            settings.embedding,
            settings.hidden,
        )
    embedding = settings.embedding
    if kind == "features":
        embedding = 0
    return Inputs(dataset.graph.num_nodes, sum(widths.values()), embedding, dense=not model.sparse)

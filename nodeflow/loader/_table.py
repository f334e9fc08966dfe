"""SeedTable: the rows of a task on nodes, each a seed with its time, its columns and its part of the split."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.calls import Explained
from nodeflow._base.checks import as_ids, check_type, describe, lasting, titles, with_article
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import ColumnsLike, IdsLike, NumbersLike, SeedsLike
from nodeflow._rows.rows import take_rows
from nodeflow._schema.schema import Schema
from nodeflow.graph import Frame, Graph
from nodeflow.loader._checks import all_or, as_seed_data, as_stamps, as_times
from nodeflow.sampling.base import SamplerBase


class SeedTable(Frozen, metaclass=Explained):
    """A task on nodes: a table with a row per seed, which ``NodeFlowLoader`` takes in place of seeds.

    A node may be in several rows, at several times for example. The columns of the rows of a batch are its frame
    ``batch.seed_data``, in the order of ``batch.seed_index``.

    Args:
        graph: the graph of the nodes.
        node_type: the type of all nodes, or None for ids of the graph, which may mix types.
        nodes: ids within the type, ``[n]``.
        time: a time for every row, ``[n]``, for samplers that take times; numbers in the unit of the graph's times.
        split: the part of every row, strings ``[n]`` such as "train". ``table["train"]`` has the rows of a part.
        data: further columns of n rows by name, such as targets: a dict or a pandas data frame.

    ``nodes``, ``time`` and ``split`` may also be names of columns of ``data``. All columns but those of nodes and split
    come with a batch, also a ``time`` that is none of ``data``, as "time".

    Attributes:
        seeds: ids of the graph, int64 ``[n]``.
        time: the times ``[n]``, or None.
        data: the frame of the columns.
        splits: the number of rows of each part, by name.

    Raises IndexError for an id out of the range of its type; KeyError for a type, column or part that is not there;
    TypeError or ValueError for columns of other types or lengths.

    >>> from nodeflow import Graph, NeighborSampler, NodeFlowLoader
    >>> graph = Graph.typed({"race": 9, "driver": 3}, {("race", "has", "driver"): ([0, 1, 2], [0, 1, 1])})
    >>> rows = {"id": [1, 0, 1], "won": torch.tensor([1.0, 0.0, 0.0]), "part": ["train", "train", "test"]}
    >>> table = SeedTable(graph, "driver", "id", split="part", data=rows)
    >>> table
    SeedTable(3 rows: won; test 1, train 2)
    >>> batch = next(iter(NodeFlowLoader(NeighborSampler(graph, [5]), table["train"])))
    >>> batch.seed_ids, batch.seed_data["won"]
    (tensor([10,  9]), tensor([1., 0.]))
    """

    __slots__ = ("_parts", "data", "schema", "seeds", "time")
    schema: Schema
    seeds: Tensor
    time: Tensor | None
    data: Frame
    _parts: dict[str, Tensor]

    def __init__(
        self,
        graph: Graph,
        node_type: str | None,
        nodes: IdsLike | str,
        *,
        time: NumbersLike | str | None = None,
        split: Iterable[str] | str | None = None,
        data: ColumnsLike | None = None,
    ) -> None:
        check_type(graph, "graph", Graph, "a nodeflow.Graph")
        if data is not None and not hasattr(data, "items"):
            raise TypeError(f"data must be a dict from names to columns, or a data frame, got {describe(data)}")
        columns = {} if data is None else dict(data.items())

        def column(value: Any, argument: str) -> Any:
            if isinstance(value, str) and value not in columns:
                names = ", ".join(map(repr, columns)) or "none"
                raise KeyError(f"{argument}: no column {value!r} in data; there are {names}")
            return lasting(columns[value] if isinstance(value, str) else value)

        ids, when, parts = column(nodes, "nodes"), column(time, "time"), column(split, "split")
        within, what = range(graph.num_nodes), "node"
        if node_type is not None:
            within, what = graph.schema.ids(node_type), f"{node_type} node"
        seeds = torch.from_numpy(as_ids(ids, "nodes", len(within), what) + within.start)
        for name in (nodes, split):  # ids within a type and words are no columns of numbers
            if isinstance(name, str):
                columns.pop(name, None)
        stamps = None if when is None else as_stamps(when, "time", seeds.shape)
        if stamps is not None and not isinstance(time, str):
            columns.setdefault("time", stamps)
        words = np.array([] if parts is None else parts, str)
        if parts is not None and words.shape != seeds.shape:
            raise ValueError(f"split must have one name per row ({len(seeds)}), got shape {words.shape}")
        names, codes, sizes = np.unique(words, return_inverse=True, return_counts=True)
        rows = torch.from_numpy(np.argsort(codes, kind="stable")).split(sizes.tolist())
        self._set(schema=graph.schema, seeds=seeds, time=stamps, _parts=dict(zip(names.tolist(), rows, strict=True)))
        self._set(data=as_seed_data(columns, len(seeds), "data"))

    @classmethod
    def _trusted(cls, schema: Schema, seeds: Tensor, time: Tensor | None, data: Frame) -> SeedTable:
        self = cls.__new__(cls)
        self._set(schema=schema, seeds=seeds, time=time, data=data, _parts={})
        return self

    @property
    def splits(self) -> dict[str, int]:
        """The number of rows of each part, by name."""
        return {name: len(rows) for name, rows in self._parts.items()}

    def __getitem__(self, part: str) -> SeedTable:
        """Return the rows of a part of the split, in their order."""
        if not isinstance(part, str) or part not in self._parts:
            names = ", ".join(map(repr, self._parts)) or "none; pass split="
            raise KeyError(f"no part {part!r} in the split; there are {names}")
        rows = self._parts[part]
        data = Frame(len(rows), {name: take_rows(column, rows) for name, column in self.data.items()})
        return SeedTable._trusted(self.schema, self.seeds[rows], None if self.time is None else self.time[rows], data)

    def __len__(self) -> int:
        return len(self.seeds)

    def __repr__(self) -> str:
        columns = f": {titles(self.data)}" if self.data else ""
        parts = f"; {', '.join(f'{name} {size:,}' for name, size in self.splits.items())}" if self._parts else ""
        return f"SeedTable({len(self):,} rows{columns}{parts})"


def as_table(
    seeds: SeedTable | SeedsLike | str | None,
    sampler: SamplerBase,
    times: NumbersLike | None,
    columns: ColumnsLike | None,
) -> SeedTable:
    """Return the seeds of a loader as a table, checked against its sampler; plain seeds are one without a split."""
    if isinstance(seeds, SeedTable):
        if sampler.seed_kind != "node":
            kind = with_article(sampler.seed_kind)
            raise TypeError(f"a SeedTable holds nodes, but a seed of {type(sampler).__name__} is {kind}")
        if seeds.schema.nodes != sampler.graph.schema.nodes:
            raise ValueError(f"the SeedTable is of other nodes, {seeds.schema}, than the graph, {sampler.graph.schema}")
        more = {} if columns is None else as_seed_data(columns, len(seeds), "seed_data")
        if times is not None and seeds.time is not None:
            raise ValueError("the SeedTable has times already, so leave out times=")
        times, columns, seeds = seeds.time if times is None else times, {**seeds.data, **more}, seeds.seeds
    flat, shape = sampler.flat_seeds(all_or(seeds, sampler))
    ids = torch.from_numpy(as_ids(flat, "seeds", sampler.num_seeds, sampler.seed_kind).copy())
    ids = ids if shape is None else ids.view(shape)
    stamps = as_times(times, sampler, ids.shape)
    return SeedTable._trusted(sampler.graph.schema, ids, stamps, as_seed_data(columns, len(ids), "seed_data"))

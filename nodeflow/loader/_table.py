"""SeedTable: the rows of a task on nodes, each a seed with its time, its columns and its part of
the split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import Explained
from nodeflow._core.base.checks import (
    Ints,
    as_ids,
    check_type,
    describe,
    first_true,
    lasting,
    titles,
    with_article,
)
from nodeflow._core.base.dates import as_moments
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.keys import PRIMARY_KEY, as_keys, keys_of_column, rows_of
from nodeflow._core.base.types import ColumnsLike, IdsLike, KeysLike, NumbersLike, SeedsLike
from nodeflow._core.rows.columns import as_column
from nodeflow._core.rows.rows import Rows, take_rows, whole_column
from nodeflow._core.schema import Schema
from nodeflow.graph import Frame, Graph
from nodeflow.sampling.base import SamplerBase


class SeedTable(Frozen, metaclass=Explained):
    """A task on nodes: a table with a row per seed, which ``NodeFlowLoader`` takes in place of
    seeds.

    A node may be in several rows, at several times for example. The columns of the rows of a batch
    are its frame ``batch.seed_data``, in the order of ``batch.seed_index``.

    Args:
        graph: the graph of the nodes.
        node_type: the type of all nodes, or None for ids of the graph, which may mix types.
        nodes: primary keys of nodes of the type, ``[n]``, where the graph keeps them: in the node
            column "primary_key" that ``convert.from_tables`` makes. Of other types ids within the
            type, from 0 on.
        rows: ids within the type, ``[n]``, in place of ``nodes``: numbers of rows of its table,
            from 0 on.
        time: a time for every row, ``[n]``, for samplers that take times: numbers in the unit of
            the graph's times, or dates, which become seconds since 1970. Dates without a time zone
            are of UTC.
        split: the part of every row, strings ``[n]`` such as "train". ``table["train"]`` has the
            rows of a part.
        data: further columns of n rows by name, such as targets: a dict or a pandas data frame.

    ``nodes``, ``rows``, ``time`` and ``split`` may also be names of columns of ``data``. All
    columns but those of nodes and split come with a batch, also a ``time`` that is none of
    ``data``, as "time".

    Attributes:
        seeds: ids of the graph, int64 ``[n]``.
        time: the times ``[n]``, or None.
        data: the frame of the columns.
        splits: the number of rows of each part, by name.

    Raises IndexError for an id out of the range of its type; KeyError for a key, type, column or
    part that is not there; TypeError or ValueError for columns of other types or lengths, and for
    missing keys.

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
        nodes: KeysLike | str | None = None,
        *,
        rows: IdsLike | str | None = None,
        time: NumbersLike | str | None = None,
        split: Iterable[str] | str | None = None,
        data: ColumnsLike | None = None,
    ) -> None:
        check_type(graph, "graph", Graph, "a nodeflow.Graph")
        columns = as_columns(data, "data")
        if (nodes is None) == (rows is None):
            raise TypeError(
                "pass either nodes, which are keys where the graph keeps them, or rows, their "
                "numbers"
            )

        argument = "nodes"
        given: Any = nodes
        if nodes is None:
            argument = "rows"
            given = rows
        ids = _values(given, argument, columns)
        times = _values(time, "time", columns)
        parts = _values(split, "split", columns)
        within = range(graph.num_nodes)
        noun = "node"
        if node_type is not None:
            within = graph.schema.ids(node_type)
            noun = f"{node_type} node"
            if rows is None and PRIMARY_KEY in graph.nodes[node_type].data:
                ids = _rows_of_keys(ids, graph.nodes[node_type].data[PRIMARY_KEY], node_type)
        seeds = torch.from_numpy(as_ids(ids, argument, len(within), noun) + within.start)
        # keys, ids within a type and words are no columns of numbers
        for name in (given, split):
            if isinstance(name, str):
                columns.pop(name, None)
        stamps = None
        if times is not None:
            stamps = as_stamps(times, "time", seeds.shape)
            if isinstance(time, str):
                columns[time] = stamps  # seconds, where they are dates
            else:
                columns.setdefault("time", stamps)
        rows_of_parts = {}
        if parts is not None:
            rows_of_parts = _rows_of_parts(parts, len(seeds))
        self._set(schema=graph.schema, seeds=seeds, time=stamps, _parts=rows_of_parts)
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
            names = titles(self._parts) or "none; pass split="
            raise KeyError(f"no part {part!r} in the split; there are {names}")
        rows = self._parts[part]
        data = {name: take_rows(column, rows) for name, column in self.data.items()}
        time = None if self.time is None else self.time[rows]
        return SeedTable._trusted(self.schema, self.seeds[rows], time, Frame(len(rows), data))

    def __len__(self) -> int:
        return len(self.seeds)

    def __repr__(self) -> str:
        text = f"{len(self):,} rows"
        if self.data:
            text += f": {titles(self.data)}"
        if self._parts:
            parts = ", ".join(f"{name} {size:,}" for name, size in self.splits.items())
            text += f"; {parts}"
        return f"SeedTable({text})"


def _values(value: Any, argument: str, columns: Mapping[str, Any]) -> Any:
    """Return an argument, or the column that it names."""
    if not isinstance(value, str):
        return lasting(value)
    if value not in columns:
        names = titles(columns) or "none"
        raise KeyError(f"{argument}: no column {value!r} in data; there are {names}")
    return lasting(columns[value])


def all_or(seeds: SeedsLike | str | None, sampler: SamplerBase) -> SeedsLike:
    """Return the seeds of a loader; all that the sampler can have for "all", or where left out."""
    if isinstance(seeds, (Iterator, torch.utils.data.Sampler)):
        raise TypeError(
            f"seeds must be a tensor, an array or a list, got {type(seeds).__name__}: it would be "
            "read only once, and every epoch would have the same seeds. For draws in proportion to "
            "weights pass weights=; for seeds of their own in every epoch make a loader for each: "
            "loader = NodeFlowLoader(sampler, list(seeds)), and call loader.set_epoch(epoch) "
            "before iterating"
        )
    if seeds is not None and not isinstance(seeds, str):
        return seeds
    if sampler.most_seeds is not None:
        raise TypeError(
            f"seeds must be numbers: {type(sampler).__name__} has no last {sampler.seed_kind}; "
            "pass range(50)"
        )
    if seeds != "all" and (seeds is not None or sampler.seed_kind == "node"):
        raise TypeError(
            'seeds must be ids, such as those of the training nodes, or "all" for all nodes, got '
            f"{seeds!r}"
        )
    return torch.arange(sampler.num_seeds, device="cpu")


def as_columns(columns: ColumnsLike | None, argument: str) -> dict[str, Any]:
    """Return columns by name as a dict of its own."""
    if columns is None:
        return {}
    if not hasattr(columns, "items"):
        raise TypeError(
            f"{argument} must be a dict from names to columns, or a data frame, got "
            f"{describe(columns)}"
        )
    return dict(columns.items())


def as_seed_data(columns: ColumnsLike | None, num_seeds: int, argument: str) -> Frame:
    """Return columns by seed as a frame; raise TypeError or ValueError unless each has a row per
    seed.
    """
    by_name = as_columns(columns, argument)
    for name, column in by_name.items():
        if not hasattr(column, "__len__") or len(column) != num_seeds:
            raise ValueError(
                f"{argument}[{name!r}] must have a row per seed ({num_seeds}), got "
                f"{describe(column)}; for a column by node pass column[seeds]"
            )
    return Frame(num_seeds, by_name)


def as_times(times: NumbersLike | None, sampler: SamplerBase, shape: torch.Size) -> Tensor | None:
    """Return times of seeds of this shape as a tensor of their own type; None for a sampler that
    takes none.
    """
    sampler.refuse(times)
    if times is not None:
        return as_stamps(times, "times", shape)
    if sampler.takes_times:
        raise TypeError(
            f"times is missing: {type(sampler).__name__} needs a time for every seed: "
            "NodeFlowLoader(..., times=times), or the time= of a SeedTable"
        )
    return None


def as_stamps(times: NumbersLike, name: str, shape: torch.Size) -> Tensor:
    """Return times, one per seed or row of seeds, as a tensor of their own type; dates as seconds
    since 1970.
    """
    array = as_moments(times, name, f"seed ({shape[0]})", shape, shape[:1])
    return as_column(array.copy(), name)


def _rows_of_parts(parts: Iterable[str], num_rows: int) -> dict[str, Tensor]:
    """Return the numbers of the rows of each part, by name, in their order."""
    words = np.array(parts, str)
    if words.shape != (num_rows,):
        raise ValueError(f"split must have one name per row ({num_rows}), got shape {words.shape}")
    names, codes, sizes = np.unique(words, return_inverse=True, return_counts=True)
    # a stable sort by part: rows keep their order within each
    order = torch.from_numpy(np.argsort(codes, kind="stable"))
    rows = order.split(sizes.tolist())
    return dict(zip(names.tolist(), rows, strict=True))


def _rows_of_keys(keys: Any, column: Tensor | Rows, node_type: str) -> Ints:
    """Return the ids within a type of nodes that are given by their primary keys."""
    check_type(keys, "nodes", Iterable, f"a column or a list of primary keys of {node_type!r}")
    # keys that are missing are left out by ``as_keys``, with the numbers of the rows that stay
    given, rows = as_keys(keys, "nodes")
    if len(given) < len(keys):
        missing = np.setdiff1d(np.arange(len(keys)), rows)[0]
        raise ValueError(
            f"nodes must hold a primary key of {node_type!r} in every row, but row {missing} has "
            "none"
        )
    ids = rows_of(given, keys_of_column(whole_column(column)))
    if (row := first_true(ids < 0)) is not None:
        raise KeyError(
            f"nodes: no {node_type} has the primary key {given[row]} (row {row}); rows= takes "
            "numbers of rows instead"
        )
    return ids


def as_table(
    seeds: SeedTable | SeedsLike | str | None,
    sampler: SamplerBase,
    times: NumbersLike | None,
    columns: ColumnsLike | None,
) -> SeedTable:
    """Return the seeds of a loader as a table, checked against its sampler; plain seeds are one
    without a split.
    """
    if isinstance(seeds, SeedTable):
        if sampler.seed_kind != "node":
            kind = with_article(sampler.seed_kind)
            raise TypeError(
                f"a SeedTable holds nodes, but a seed of {type(sampler).__name__} is {kind}"
            )
        if seeds.schema.nodes != sampler.graph.schema.nodes:
            raise ValueError(
                f"the SeedTable is of other nodes, {seeds.schema}, than the graph, "
                f"{sampler.graph.schema}"
            )
        if times is not None and seeds.time is not None:
            raise ValueError("the SeedTable has times already, so leave out times=")
        if times is None:
            times = seeds.time
        columns = {**seeds.data, **as_seed_data(columns, len(seeds), "seed_data")}
        seeds = seeds.seeds
    flat, shape = sampler.flat_seeds(all_or(seeds, sampler))
    ids = torch.from_numpy(as_ids(flat, "seeds", sampler.num_seeds, sampler.seed_kind).copy())
    if shape is not None:
        ids = ids.view(shape)
    stamps = as_times(times, sampler, ids.shape)
    data = as_seed_data(columns, len(ids), "seed_data")
    return SeedTable._trusted(sampler.graph.schema, ids, stamps, data)

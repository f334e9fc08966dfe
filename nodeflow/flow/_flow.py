"""Flow: the edges from one layer of a NodeFlow to a later one, with their frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict, Unpack, overload

import torch
from torch import Tensor

from nodeflow import _kernels as kernels, ops
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, check_num_rows, check_one_of, titles
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.habits import taught
from nodeflow._core.rows.csr import csr_tensor
from nodeflow._core.rows.rows import slice_rows, take_rows
from nodeflow._core.schema import Relation
from nodeflow.flow._layer import Layer, Move, dst_in_src
from nodeflow.flow._validate import check_flow
from nodeflow.graph import Frame
from nodeflow.ops import Structure, rows_beside_own

if TYPE_CHECKING:
    import scipy.sparse

# None is "destination i is source row i", the common case that needs no index
_PREFIX: Lazy[Tensor | None] = Lazy.of(None)


class FlowParts(TypedDict, total=False):
    """The parts of a flow besides its structure and layers, all of them optional.

    Attributes:
        parent_eid: parent id of every edge, a tensor, or a ``Lazy`` that makes it.
        weight: estimator weight of every edge, likewise.
        needs_weight: see ``Flow.needs_weight``; None: the weights are compared when it is asked
            for.
        data: the frame.
        rows: local id of every destination in the source layer, holding None where the destinations
            are the first nodes in order. Left out: looked up when first needed.
        prefix: True: the destinations are the first nodes of the source layer, in order; instead of
            ``rows``.
        frames: frames of the edges of each relation that has one already.
        relations: number of the relation of every edge, int32. Left out: by its parent id.
    """

    parent_eid: Any
    weight: Any
    needs_weight: bool | None
    prefix: bool
    data: Frame | None
    rows: Lazy[Tensor | None]
    frames: dict[Relation, Frame]
    relations: Lazy[Tensor] | None


class ByRelation(NamedTuple):
    """The edges of a flow grouped by relation, without a table of relations by destinations.

    Attributes:
        order: the edges of the first relation, ascending, then those of the second, and so on,
            int64.
        first: where the edges of each relation begin there, int64 ``[relations + 1]``.
        begins: where the edges of each destination begin among all, int64 ``[num_dst + 1]``.
    """

    order: Tensor
    first: Ints
    begins: Ints

    def edges(self, number: int) -> Tensor:
        """Return the edges of the relation of a number, ascending."""
        return self.order[self.first[number] : self.first[number + 1]]

    def indptr(self, number: int) -> Tensor:
        """Return where those of each destination begin among them, int64 ``[num_dst + 1]``."""
        edges = self.edges(number)
        ends = kernels.csr.indptr_among(self.begins, edges.numpy(force=True))
        return torch.from_numpy(ends).to(edges.device)


@taught
class Flow(Frozen):
    """The edges from one layer to a later one, grouped by destination, with their frame.

    Edge ids are 0..num_edges-1 in the order of ``indices``: the edges of destination ``v`` (a local
    id) are ``indptr[v]`` to ``indptr[v + 1]``. ``data`` is the frame with a row per edge;
    ``src_layer`` and ``dst_layer`` are the layers it joins; ``layers`` are their numbers;
    ``structure`` is what the operations of ``nodeflow.ops`` take. Samplers, ``flow_from_edges`` and
    ``flow_from_csr`` make flows.

    Raises TypeError for a part of another type, ValueError for parts that do not fit together.
    """

    __slots__ = (
        "_by_relation",
        "_dst_in_src",
        "_frames",
        "_needs_weight",
        "_numbers",
        "_parent_eid",
        "_relations",
        "_weight",
        "data",
        "dst_layer",
        "layers",
        "src_layer",
        "structure",
    )
    structure: Structure
    layers: tuple[int, int]
    src_layer: Layer
    dst_layer: Layer
    data: Frame
    _parent_eid: Lazy[Tensor] | None
    _weight: Lazy[Tensor] | None
    _needs_weight: bool | None
    _dst_in_src: Lazy[Tensor | None]
    _frames: dict[Relation, Frame]
    _relations: dict[Relation, Flow]
    _by_relation: ByRelation | None
    _numbers: Lazy[Tensor] | None

    @checked
    def __init__(
        self,
        structure: Structure,
        src_layer: Layer,
        dst_layer: Layer,
        layers: tuple[int, int],
        *,
        parent_eid: Tensor | None = None,
        weight: Tensor | None = None,
        data: Frame | None = None,
    ) -> None:
        self._fill(
            structure, src_layer, dst_layer, layers, parent_eid=parent_eid, weight=weight, data=data
        )
        check_flow("this flow", self, None, None)

    @classmethod
    def _trusted(
        cls,
        structure: Structure,
        src: Layer,
        dst: Layer,
        layers: tuple[int, int],
        **parts: Unpack[FlowParts],
    ) -> Self:
        """Return a flow of parts that are known to fit together."""
        self = cls.__new__(cls)
        self._fill(structure, src, dst, layers, **parts)
        return self

    def _fill(
        self,
        structure: Structure,
        src: Layer,
        dst: Layer,
        layers: tuple[int, int],
        **parts: Unpack[FlowParts],
    ) -> None:
        weight = _lazy(parts.get("weight"))
        data = parts.get("data")
        rows = parts.get("rows")
        if parts.get("prefix"):
            rows = _PREFIX
        elif rows is None:
            device = structure.device
            rows = Lazy(lambda: dst_in_src(src, dst, device))
        if data is None:
            data = Frame(structure.num_edges)
        self._set(
            structure=structure,
            src_layer=src,
            dst_layer=dst,
            layers=layers,
            data=data,
            _parent_eid=_lazy(parts.get("parent_eid")),
            _weight=weight,
            # weights of 1, which a flow without given ones has, are all equal
            _needs_weight=False if weight is None else parts.get("needs_weight"),
            _dst_in_src=rows,
            _frames=parts.get("frames") or {},
            _relations={},
            _by_relation=None,
            _numbers=parts.get("relations"),
        )

    def lazy_parts(self) -> FlowParts:
        """Return parent edge ids and weights as ``_trusted`` takes them, made or not yet made."""
        return {
            "parent_eid": self._parent_eid,
            "weight": self._weight,
            "needs_weight": self._needs_weight,
        }

    def lazy_parts_at(self, edges: Tensor) -> FlowParts:
        """Return parent edge ids and weights of some edges, gathered when first asked for."""
        parts: FlowParts = {"parent_eid": Lazy(lambda: self.parent_eid[edges])}
        if self._weight is not None:
            parts["weight"] = Lazy(lambda: self.weight[edges])
        if self._needs_weight is False:
            parts["needs_weight"] = False
        return parts

    def of(self, relation: str | Relation) -> Flow:
        """Return the flow of the edges of a relation, between the same layers; it may have none.

        Its frame is one of its own. Columns of the parent's relation, such as
        ``graph.relations["writes"].data``, come into it with ``copy_from_parent``, or ``edata=`` of
        a loader. In a graph without types the only relation is "edge", and that is this flow.
        Raises KeyError for a relation that is not there, ValueError for a name that several have,
        and for a flow without a parent graph.

        >>> from nodeflow import Graph, NeighborSampler
        >>> edges = {("author", "writes", "paper"): ([0, 2], [1, 1]), ("paper", "cites", "paper"): ([0], [1])}
        >>> graph = Graph.typed({"author": 3, "paper": 2}, edges)
        >>> NeighborSampler(graph, [-1])(graph.nodes["paper"].to_graph([1])).flows[0].of("cites")
        Flow(0->1: 4 -> 1 nodes, 1 edges)
        """
        schema = self.dst_layer.schema
        name = schema.relation(relation)
        if len(schema.relations) == 1:
            return self
        if name not in self._relations:
            number = schema.number(name)
            groups = self.by_relation
            edges = groups.edges(number)
            parts = self.lazy_parts_at(edges)
            parts["data"] = self._frames.setdefault(name, self._frame(name, edges))
            parts["rows"] = self._dst_in_src
            # later calls may need gradients, whatever the mode of this one
            with torch.inference_mode(mode=False):
                structure = Structure._trusted(
                    groups.indptr(number), self.indices[edges], self.num_src
                )
                self._relations[name] = Flow._trusted(
                    structure, self.src_layer, self.dst_layer, self.layers, **parts
                )
        return self._relations[name]

    @property
    def by_relation(self) -> ByRelation:
        """The edges of each relation of the schema; raises what ``of`` raises."""
        if self._by_relation is None:
            relations = self.dst_layer.schema
            if self._numbers is None:
                # -1 for an edge without a parent edge
                numbers = relations.relations_of(self.parent_eid.numpy(force=True))
            else:
                numbers = self._numbers.get().numpy(force=True)
            with torch.inference_mode(mode=False):
                order, first = kernels.csr.by_kind(numbers, len(relations.relations))
                edges = torch.from_numpy(order).to(self.indptr.device)
                groups = ByRelation(edges, first, self.indptr.numpy(force=True))
            # not a Lazy: pickles make those, also of flows without a graph
            self._set(_by_relation=groups)
            return groups
        return self._by_relation

    def _frame(self, name: Relation, edges: Tensor) -> Frame:
        return Frame(len(edges))

    def typed_frames(self) -> dict[Relation, Frame]:
        """Return the frames that belong to single relations; of relations whose frame was asked
        for.
        """
        return self._frames

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.structure.num_edges

    @property
    def num_src(self) -> int:
        """Number of nodes of the source layer."""
        return self.structure.num_src

    @property
    def num_dst(self) -> int:
        """Number of nodes of the destination layer."""
        return self.structure.num_dst

    @property
    def indptr(self) -> Tensor:
        """Begin and end of the edges of each destination, int64 ``[num_dst + 1]``."""
        return self.structure.indptr

    @property
    def indices(self) -> Tensor:
        """Source local id of every edge, int64 ``[num_edges]``."""
        return self.structure.indices

    def edges(self) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``: local ids of every edge, int64 ``[num_edges]`` each."""
        return self.structure.indices, self.structure.dst

    @property
    def has_parent(self) -> bool:
        """Whether the edges are edges of a parent graph (single edges may still have none, see
        ``parent_eid``).
        """
        return self._parent_eid is not None

    @property
    def parent_eid(self) -> Tensor:
        """Parent id of every edge, int64 ``[num_edges]``, -1 where an edge has none (an added
        self-loop).

        Raises ValueError for a flow made without parent edges.
        """
        if self._parent_eid is None:
            raise ValueError("this flow has no parent edges: it was made without parent edge ids")
        return self._parent_eid.get()

    @property
    def weight(self) -> Tensor:
        """Estimator weight of every edge, ``[num_edges]``: made when first asked for.

        The sum of weight times value over the edges of a destination is an unbiased estimate of the
        sum of A times value over all its in-edges in the parent graph (out-edges, for a sampler of
        ``direction="out"``). A is the edge column that the sampler has as ``weight``, or 1. A
        sampler whose sums are not unbiased says so. The weights of a full neighbourhood are A,
        those of flows made by hand are 1 unless given. They are float64 where A is a float64
        column, else float32: for rows of another type take ``flow.weight.to(h.dtype)``.
        """
        if self._weight is None:
            return torch.ones(self.num_edges, dtype=torch.float32, device=self.structure.device)
        return self._weight.get()

    @property
    def needs_weight(self) -> bool:
        """Whether a plain mean over the edges is biased, so that layers must use ``weight``.

        False where all edges of a destination have the same estimator weight, as from uniform
        neighbour sampling and in flows made by hand: then the mean over the edges estimates the
        mean over all edges of the parent graph. True where weights vary within a destination, as
        they do with ``prob=``, a ``weight`` column and layer-wise samplers. Samplers set it for all
        their batches. For other flows the first call compares the weights.

        >>> from nodeflow import flow_from_edges
        >>> flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1, weight=torch.tensor([1.0, 3.0])).needs_weight
        True
        """
        if self._needs_weight is None:
            # edges are grouped by destination, so neighbours are enough to compare
            weight = self.weight
            dst = self.structure.dst
            differs = weight[1:] != weight[:-1]
            self._set(_needs_weight=bool(differs[dst[1:] == dst[:-1]].any()))
        return bool(self._needs_weight)

    @property
    def in_degrees(self) -> Tensor:
        """Number of edges of each destination, int64 ``[num_dst]``."""
        return self.structure.in_degrees

    @property
    def out_degrees(self) -> Tensor:
        """Number of edges of each source, int64 ``[num_src]``."""
        return self.structure.out_degrees

    @property
    def dst_in_src(self) -> Tensor:
        """Local id of every destination in the source layer, int64 ``[num_dst]``; -1 where it is
        not there.
        """
        rows = self._dst_in_src.get()
        if rows is None:
            return torch.arange(self.num_dst, device=self.structure.device)
        return rows

    def take_dst(self, h: Tensor) -> Tensor:
        """Return the rows of ``h`` (one per source, ``[num_src, ...]``) that are the destinations
        themselves.

        The "self" term of a convolution. A prefix view, not a copy, in batches sampled with
        ``include_dst=True``. Raises ValueError for a wrong row count, and when a destination is not
        in the source layer.
        """
        check_num_rows(h.shape, "h", self.num_src, "source")
        rows = self._dst_in_src.get()
        if rows is None:
            return slice_rows(h, 0, self.num_dst)
        if len(rows) and int(rows.min()) < 0:
            missing = int((rows < 0).nonzero()[0])
            raise ValueError(
                f"destination {missing} of flow {self.layers} is not in its source layer, or a "
                "layer has no parent ids (parent_nid), so it has no row of its own there; sample "
                "with include_dst=True"
            )
        return take_rows(h, rows)

    @overload
    def aggregate(self, h: Tensor, reduce: str = ..., *, weight: Tensor | None = ...) -> Tensor: ...

    @overload
    def aggregate(
        self, h: Tensor, reduce: list[str] | tuple[str, ...], *, weight: Tensor | None = ...
    ) -> tuple[Tensor, ...]: ...

    def aggregate(
        self,
        h: Tensor,
        reduce: str | list[str] | tuple[str, ...] = "sum",
        *,
        weight: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """Reduce the rows of the sources of each destination, without materialised messages.

        Args:
            h: ``[num_src, ...]``, a row per source.
            reduce: a reduction of ``nodeflow.fn`` by name, such as "mean" or "max"; "var" (the mean
                squared deviation from the mean) or "std" (its square root); or a list of these, for
                a tuple of results in the same order, made while the rows are read once.
            weight: ``[num_edges]`` or ``[num_edges, ...]`` (broadcast against the rows of ``h``),
                multiplied to the rows before they are reduced; None for none. ``mean`` divides by
                the number of edges, not by their weights. Not for "var" and "std".

        Returns ``[num_dst, ...]``, or a tuple of these; 0 for destinations without edges (1 for
        prod). Differentiable in both; where the variance is 0, the gradient of "std" is 0. Raises
        ValueError for wrong row counts, an unknown reduction, or "var" and "std" with a weight.

        >>> from nodeflow import flow_from_edges
        >>> flow = flow_from_edges([0, 1, 1], [0, 0, 1], num_src=2, num_dst=3)
        >>> mean, largest = flow.aggregate(torch.tensor([1.0, 2.0]), ["mean", "max"])
        >>> mean, largest
        (tensor([1.5000, 2.0000, 0.0000]), tensor([2., 2., 0.]))
        """
        return ops.aggregate(self.structure, h, reduce, weight)

    def aggregate_beside_own(
        self, h: Tensor, reduce: str = "sum", *, weight: Tensor | None = None
    ) -> Tensor:
        """Return ``take_dst(h)`` beside ``aggregate(h, reduce, weight=weight)``, with a cheaper
        gradient for both.

        The result is one matrix, ``[num_src, width, ...]`` to ``[num_dst, 2 * width, ...]``, own
        rows first. Arguments and errors are those of ``take_dst`` and ``aggregate``.

        >>> from nodeflow import flow_from_edges, create_node_flow
        >>> flow = create_node_flow([flow_from_edges([1, 2], [0, 0], num_src=3, num_dst=1)], [[7, 8, 9], [7]]).flows[0]
        >>> flow.aggregate_beside_own(torch.tensor([[1.0], [2.0], [4.0]]))
        tensor([[1., 6.]])
        """
        if self._dst_in_src.get() is None:
            return ops.aggregate_beside_own(self.structure, h, reduce, weight)
        return torch.cat([self.take_dst(h), self.aggregate(h, reduce, weight=weight)], 1)

    def share_dst(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(take_dst(h), h)``, whose gradients are made in one matrix where that is
        possible.

        The gradient of the own rows is added into that of the second result, in place. So only one
        operation may read the second, and one that makes a new gradient: ``aggregate`` or a matrix
        product, not ``h + x``. Raises what ``take_dst`` raises.
        """
        rows = self.take_dst(h)
        if self._dst_in_src.get() is None and h.layout == torch.strided:
            return rows_beside_own(h, self.num_dst)
        return rows, h

    def aggregate_edges(self, values: Tensor, reduce: str = "sum") -> Tensor:
        """Reduce a row per edge, ``[num_edges, ...]``, to a row per destination,
        ``[num_dst, ...]``.
        """
        return ops.segment_reduce(self.structure, values, reduce)

    def softmax(self, scores: Tensor) -> Tensor:
        """Return the softmax of ``scores`` ``[num_edges, ...]`` over the edges of each destination,
        same shape.
        """
        return ops.segment_softmax(self.structure, scores)

    def gather_src(self, h: Tensor) -> Tensor:
        """Return the source row of every edge: ``[num_src, ...]`` to ``[num_edges, ...]``."""
        return ops.gather_src(self.structure, h)

    def gather_dst(self, h: Tensor) -> Tensor:
        """Return the destination row of every edge: ``[num_dst, ...]`` to ``[num_edges, ...]``."""
        return ops.gather_dst(self.structure, h)

    # ---- sparse matrices

    def to_scipy(self, weight: Tensor | None = None) -> scipy.sparse.csr_array:
        """Return the adjacency as a scipy CSR array ``[num_dst, num_src]``.

        Entries are ``weight``, ``[num_edges]``, or 1. Repeated edges stay separate entries, in edge
        order; products and sums treat them as their sum. Nothing is shared with the flow. Raises
        ValueError for a weight of another shape.
        """
        import scipy.sparse

        parts = (self._entries(weight), self.indices, self.indptr)
        arrays = tuple(part.numpy(force=True) for part in parts)
        # a copy, because methods such as sort_indices() change the matrix in place
        return scipy.sparse.csr_array(arrays, shape=(self.num_dst, self.num_src), copy=True)

    def to_torch_sparse(self, weight: Tensor | None = None) -> Tensor:
        """Return the adjacency as a torch sparse CSR tensor ``[num_dst, num_src]``.

        Entries are ``weight``, ``[num_edges]``, or 1. It shares memory with the flow: do not write
        to it. Raises ValueError for a weight of another shape.
        """
        shape = (self.num_dst, self.num_src)
        return csr_tensor(self.indptr, self.indices, self._entries(weight), shape)

    def _entries(self, weight: Tensor | None) -> Tensor:
        if weight is None:
            return torch.ones(self.num_edges, dtype=torch.float32, device=self.structure.device)
        if weight.shape != (self.num_edges,):
            raise ValueError(
                f"weight must have shape ({self.num_edges},), one per edge, got "
                f"{tuple(weight.shape)}"
            )
        return weight

    def incidence(self, end: str) -> Tensor:
        """Return the incidence matrix as a torch sparse CSR tensor of ones.

        ``end="in"`` gives ``[num_dst, num_edges]`` (entry (v, e): edge e ends in v), ``end="out"``
        gives ``[num_src, num_edges]`` (edge e leaves u). Raises ValueError for another ``end``.
        """
        check_one_of(end, "end", ("in", "out"))
        # an incidence matrix is the grouping itself: one column per edge
        by, edges = self.structure.grouped("v" if end == "in" else "u")
        values = torch.ones(self.num_edges, device=self.structure.device)
        if edges is None:
            edges = torch.arange(self.num_edges, device=self.structure.device)
        return csr_tensor(by.indptr, edges, values, (by.num_dst, self.num_edges))

    def __len__(self) -> int:
        return self.num_edges

    def __repr__(self) -> str:
        i, j = self.layers
        words = f"{i}->{j}: {self.num_src} -> {self.num_dst} nodes, {self.num_edges} edges"
        if self.data:
            words += f": {titles(self.data)}"
        return f"Flow({words})"

    def between(
        self,
        src: Layer,
        dst: Layer,
        layers: tuple[int, int],
        *,
        structure: Structure | None = None,
        move: Move | None = None,
    ) -> Flow:
        """Return this flow between other Layer objects, with a frame of its own that shares the
        columns.

        ``structure`` is given where the source layer has another order of nodes, ``move`` to go to
        a device.
        """
        parts: FlowParts = {**self.lazy_parts(), "data": self.data.copy()}
        parts["frames"] = {name: frame.copy() for name, frame in self._frames.items()}
        # the rows of destinations among the sources stay where neither layer has other ids; a device
        # may be another one
        same_ids = src.same_parent_nid(self.src_layer) and dst.same_parent_nid(self.dst_layer)
        if structure is None and move is None and same_ids:
            parts["rows"] = self._dst_in_src
        if structure is None:
            structure = self.structure
        if move is not None:
            structure = move(structure)
            # what is not made yet is made now: its maker would give it on the old device
            parts["data"] = move(parts["data"])
            parts["frames"] = {name: move(frame) for name, frame in parts["frames"].items()}
            parts["parent_eid"] = self._parent_eid and move(self._parent_eid.get())
            parts["weight"] = self._weight and move(self._weight.get())
        return Flow._trusted(structure, src, dst, layers, **parts)


def _lazy(value: Lazy[Tensor] | Tensor | None) -> Lazy[Tensor] | None:
    if isinstance(value, Tensor):
        return Lazy.of(value)
    return value

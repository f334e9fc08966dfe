"""Samplers in which every destination draws among its own edges, whatever the others draw."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints, describe
from nodeflow._core.base.frozen import Lazy
from nodeflow._core.base.types import Array
from nodeflow._core.edges.edges import NOTHING, Edges
from nodeflow._core.edges.forms import COMPILED, ENTRIES, Form
from nodeflow._core.edges.view import EdgeView, Reader
from nodeflow.graph import Graph
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._keys import Step
from nodeflow.sampling._reached_types import DrawnByKind
from nodeflow.sampling._relations import Kinds, relations, types_in
from nodeflow.sampling._sampler import Sampler, check_draws


class DrawingRows(NamedTuple):
    """The rows that draw.

    Attributes:
        numbers: number of each row in the edge arrays, int64 ``[n]``.
        ident: what goes into the random key of each row, int64 ``[n]``: the number of the row in
            the whole graph (the parent id, where a node has one row) + the number of all rows * the
            number of the context, or that in ``step.roots``.
        contexts: the context of each row, int64 ``[n]``; None without contexts.
        kinds: the relation or edge type of each row, int64 ``[n]``; empty where there is only one.

    >>> rows = DrawingRows(np.array([0, 4, 7]), np.array([0, 4, 7]), None)
    >>> rows.where(np.array([True, False, True])).numbers
    array([0, 7])
    """

    numbers: Ints
    ident: Ints
    contexts: Ints | None
    kinds: Ints = NOTHING

    def where(self, mask: NDArray[np.bool_]) -> DrawingRows:
        """The rows that ``mask`` selects."""
        contexts = self.contexts
        if contexts is not None:
            contexts = contexts[mask]
        kinds = self.kinds
        if len(kinds):
            kinds = kinds[mask]
        return DrawingRows(self.numbers[mask], self.ident[mask], contexts, kinds)


class Drawn(NamedTuple):
    """The edges that n rows drew, grouped by row.

    Attributes:
        indptr: where the edges of each row begin and end, int64 ``[n + 1]``.
        positions: position of each drawn edge in the edge arrays, int32 or int64 ``[E]``.
        src: parent id of the neighbour, int64 ``[E]``, in an array of its own: it is overwritten by
            local ids.
        inverse: a function that returns 1 / probability of each drawn edge, ``[E]``; with
            replacement, 1 / the mean number of times that the edge is drawn. None: 1.
        varies: whether ``inverse`` may differ between the drawn edges of one node. True may be said
            where weights could differ but happen to be equal. None: unknown, so they are compared
            when ``Flow.needs_weight`` is read.

    >>> drawn = Drawn(np.array([0, 2, 3]), np.array([4, 5, 9]), np.array([1, 2, 1]), None)
    >>> np.diff(drawn.indptr)  # how many edges each row drew
    array([2, 1])
    """

    indptr: Ints
    positions: Array
    src: Ints
    inverse: Callable[[], Array] | None
    varies: bool | None = None


class RowSampler(Sampler):
    """Base of the samplers in which every row draws on its own, whatever the others draw.

    A subclass implements ``draw_rows``. A row is a node, or in a graph of several relations
    (``Graph.typed``) a node and a relation, or with ``edge_type`` a node and a type. This class
    turns what is drawn into a ``Choice``: it handles edge filters, edges left out, several rows per
    node and the ``weight`` column.

    Key random numbers by ``rows.ident``, not by the index of a row in the call: then a row draws
    the same, whichever other rows draw with it.

    ``draw_rows`` is a good place for a compiled loop. ``BernoulliSampler`` is the shortest example
    in the package.

    Args:
        edge_type: name of an edge column of integers: every node draws for each type on its own
            (and not for each relation), and its edges are grouped by type, ascending. None: for
            each relation.
        graph, num_flows, include_dst, reuse, seed: see ``Sampler``,
            also for errors.

    Raises TypeError for a column that does not hold integers, ValueError for one of very many
    types.

    >>> from nodeflow import Graph
    >>> class OneNeighbor(RowSampler):
    ...     def draw_rows(self, edges, rows, step):
    ...         begin, degree = edges.indptr[rows.numbers], np.diff(edges.indptr)[rows.numbers]
    ...         positions = begin + step.random.integers(rows.ident, degree).numpy()
    ...         return Drawn(np.arange(len(begin) + 1), positions, edges.indices[positions].astype(int), lambda: degree)
    >>> flow = OneNeighbor(Graph.from_edges([1, 2, 3, 4], [0, 0, 0, 0]), num_flows=1, seed=2)([0]).flows[0]
    >>> flow.parent_eid, flow.weight  # one edge of four stands for all of them; nodes without edges need more code
    (tensor([0]), tensor([4.]))
    """

    @abstractmethod
    def draw_rows(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        """Draw edges for ``rows``.

        Args:
            edges: the sampler's edge arrays (``self.reader.edges``). For rows of which edges are
                left out, copies of these rows without them, with positions of their own.
            rows: the rows that draw; ``rows.numbers`` are rows of ``edges``.
            step: the flow, and its random numbers.
        """

    by_row = True
    _is_ours: ClassVar[bool] = False
    kinds: Kinds
    """The kinds of edges, relations or types, of which each row has one."""
    _counts: Sequence[Array] = ()
    """For each flow how much each kind draws, 0 for nothing; none where a sampler does not say
    so.
    """

    def __init__(
        self,
        graph: Graph | EdgeView,
        num_flows: int,
        *,
        edge_type: str | None = None,
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        self.edge_type = edge_type
        super().__init__(graph, num_flows, include_dst=include_dst, reuse=reuse, seed=seed)

    def read_graph(self) -> None:
        super().read_graph()
        graph = self.graph
        if self.edge_type is None:
            self.kinds = relations(graph, self.view.direction)
        else:
            self.kinds = types_in(graph, self.edge_type)
        self.reader = self.reader._replace(edges=self.kinds.lay_out(self.reader.edges, graph))

    def _read_counts(self, numbers: Iterable[Any], of: str = "fanouts") -> None:
        """Set how much each kind draws in every flow; ``of`` is what the numbers are called."""
        self._counts = [self.kinds.numbers(number, of) for number in numbers]
        if getattr(self, "replace", False):
            check_draws(int(np.max(self._counts)), "fanouts with replacement")

    def _drawn_by_kind(self) -> DrawnByKind | None:
        if self.edge_type is not None:
            return None
        of = "fanouts"
        if getattr(self, "rates", None):
            of = "rates"
        return DrawnByKind(of, self.graph.schema.relations, self._counts)

    def with_reader(self, reader: Reader) -> Self:
        # draws trust that rows are those of the kinds: a reader of plain edges, as a view has them,
        # is laid out anew, and what it leaves out stays out
        if reader.edges.whole_rows.is_plain != self.kinds.rows.is_plain:
            laid_out = self.kinds.lay_out(reader.edges.intact(), self.graph)
            plain = reader.intact()._replace(edges=laid_out)
            reader = plain.without(reader.left_out, self.graph.for_sampling.held_part)
        return super().with_reader(reader)

    def estimand(self) -> Tensor:
        """Return the numbers of ``BoundSampler.estimand``, and 0 for edges of kinds that no flow
        draws.
        """
        number = super().estimand()
        unused = np.all([counts == 0 for counts in self._counts], axis=0)
        if len(self._counts) and unused.any():
            edges = self.reader.edges.in_form(COMPILED)
            row = unused[edges.node_rows.kinds_of(np.arange(edges.num_rows))]
            positions = np.flatnonzero(np.repeat(row, np.diff(edges.indptr)))
            number[edges.parent_eid(positions)] = 0
        return number

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # loops that need no check in every call
        cls._is_ours = cls.draw_rows.__module__.startswith("nodeflow.")

    fixed_sizes: ClassVar[bool] = True
    """Whether ``fanouts`` are the largest numbers drawn; else they are means."""

    def note(self) -> str:
        """Return what ``fanouts`` draw for a seed, where a sampler has numbers of that name for all
        its edges.
        """
        fanouts = getattr(self, "fanouts", None)
        several = len(self.kinds.names) > 1 or self.edge_type is not None
        if not fanouts or several or any(isinstance(fanout, dict) for fanout in fanouts):
            return ""
        if max(fanouts) < 0:
            return ""
        drawn = str(fanouts[-1])
        if fanouts[-1] < 0:
            drawn = "all its neighbours"
        elif not self.fixed_sizes:
            drawn = f"about {drawn}"
        return f"flow order: a seed draws {drawn}"

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.reader.edges
        rows, begins = self._rows_of(dst, step)
        if edges.patch is None:
            draw = self.draw_rows
        else:
            draw = self._draw_patched
        drawn = draw(edges, rows, step)
        if self._is_ours:
            return self._choice(drawn, rows, begins, step)
        if not isinstance(drawn, Drawn):
            raise TypeError(f"draw_rows must return a Drawn, got {describe(drawn)}")
        # what a user's loop has made is checked as a choice of a user, and its sources looked up
        choice = self._choice(drawn, rows, begins, step)
        return Choice(choice.indptr, choice.positions, weight=choice.weight)

    def _rows_of(self, dst: Tensor, step: Step) -> tuple[DrawingRows, Ints]:
        """The rows of the destinations, one after another, and where the rows of each begin,
        ``[num_dst + 1]``.
        """
        edges = self.reader.edges
        nodes = self._nodes_of(dst)
        form = edges.form
        layout = edges.whole_rows
        ident, kinds, begins = layout.of(nodes, form)
        # keys are by the row in the whole graph, so that any process draws the same; draws read the
        # rows here
        places = edges.whole.rows_of(nodes)
        if places is nodes:
            index = ident
        else:
            index = edges.node_rows.of(places)[0]
        if step.contexts is None:
            return DrawingRows(index, ident, None, kinds), begins

        def per_row(of_nodes: Tensor) -> Any:
            values = form.array(of_nodes)
            return values if layout.is_plain else form.spread(values, begins, len(ident))

        contexts = per_row(step.contexts)
        if step.roots is None:
            roots = contexts
        else:
            roots = per_row(step.roots)
        return DrawingRows(index, ident + layout.num_rows * roots, contexts, kinds), begins

    def _choice(self, drawn: Drawn, rows: DrawingRows, begins: Ints, step: Step) -> Choice:
        """The edges drawn by each node as a Choice, with estimator weights: the ``weight`` column
        times ``inverse``.
        """
        reader = self.reader
        ends, positions, src, inverse, varies = drawn
        indptr = ends
        relations: Lazy[Tensor] | None = None
        if not reader.edges.whole_rows.is_plain:
            form = reader.edges.form
            indptr = form.take(ends, begins)
            if self.edge_type is None:
                of_rows = form.array(form.tensor(rows.kinds).int())
                size = len(positions)
                relations = Lazy(lambda: form.tensor(form.spread(of_rows, ends, size)))
            # the rows of a node draw at rates of their own
            if not varies:
                varies = None
                if self._counts:
                    varies = bool(np.count_nonzero(self._counts[step.flow]) > 1)

        weight = reader.weight_of(positions, inverse)
        if reader.column is not None:
            varies = True
        return Choice.of_kernel(
            indptr, positions, src, weight, needs_weight=varies, relations=relations
        )

    def _draw_patched(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        """Rows of which edges are left out draw from the copies in the patch, the others from the
        whole.
        """
        patch = edges.patch
        form = edges.form
        assert patch is not None
        patched = form.array(patch.rows)
        hit = form.contains(patched, rows.numbers)
        if not bool(hit.any()):
            return self.draw_rows(edges, rows, step)
        intact = self.draw_rows(edges, rows.where(~hit), step)
        copied = rows.where(hit)
        copied = copied._replace(numbers=form.search(patched, copied.numbers))
        part = self.draw_rows(patch.edges.in_form(form), copied, step)
        part = part._replace(positions=form.take(form.array(patch.positions), part.positions))
        return _interleaved(intact, part, hit, form)


def _interleaved(intact: Drawn, part: Drawn, from_part: Any, form: Form) -> Drawn:
    """Merge two draws: row i is the next row of ``part`` where ``from_part[i]`` is True, else of
    ``intact``.
    """
    # rows of both draws stand one behind the other; ``order`` says for each row of the call which
    joint = form.joined([intact.indptr, part.indptr[1:] + intact.indptr[-1]])
    of_part = from_part.cumsum(0)
    order = form.array(np.arange(len(from_part))) - of_part
    order[from_part] = len(intact.indptr) - 2 + of_part[from_part]
    indptr, index = form.of(ENTRIES)(joint, order)
    positions = form.take(form.joined([intact.positions, part.positions]), index)
    src = form.take(form.joined([intact.src, part.src]), index)
    if intact.inverse is None and part.inverse is None:
        return Drawn(indptr, positions, src, None, varies=False)

    def factor(drawn: Drawn) -> Any:
        return drawn.inverse() if drawn.inverse else form.array(np.ones(len(drawn.src)))

    def inverse() -> Any:
        return form.take(form.joined([factor(intact), factor(part)]), index)

    varies = intact.varies
    if varies is not None:
        varies = varies or part.varies
    return Drawn(indptr, positions, src, inverse, varies)

"""The base class of all samplers: bound to a graph, fixed when made, called with seeds,
reproducible.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import ExplainedABC
from nodeflow._core.base.checks import (
    Ints,
    as_array,
    as_count,
    as_ids,
    as_int,
    check_type,
    unmasked,
    with_article,
)
from nodeflow._core.base.habits import ATTRIBUTES, taught
from nodeflow._core.base.types import NumbersLike, SeedsLike
from nodeflow._core.display.html import page, table
from nodeflow._core.edges.forms import COMPILED, Form
from nodeflow._core.edges.view import EdgeView
from nodeflow._core.peers.peers import collective_call
from nodeflow._core.random import hash_ids
from nodeflow.flow import NamesLike, NodeFlow
from nodeflow.graph import Graph, OfType
from nodeflow.sampling._estimate import Estimate, mean_sizes
from nodeflow.sampling._keys import Call, Keys, keys_of
from nodeflow.sampling._one_process import check_one_process
from nodeflow.sampling._options import arguments, is_plain, names_of


@taught
class SamplerBase(metaclass=ExplainedABC):
    """Base of all samplers. To write one that chooses edges layer by layer, start from ``Sampler``
    instead.

    Args:
        graph: the parent graph; it is never written to.
        num_flows: number of flows, L; 0 for batches of the seeds alone.
        seed: any integer.

    Raises TypeError if ``graph`` is not a Graph, ValueError if ``num_flows`` is below 0.

    >>> from nodeflow import NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([0, 1], [1, 2]), fanouts=[2, 2], seed=5)
    >>> isinstance(sampler, SamplerBase), sampler.num_flows, sampler.settings["fanouts"]
    (True, 2, (2, 2))
    """

    draws_as: ClassVar[str] = "custom"
    """Part of the key of all random numbers: samplers of different names draw independently.

    A subclass without a name of its own draws as its base class does.
    """

    numbered: bool = False
    """Whether a loader must number the batches of an epoch; else a hash of their seeds tells
    batches apart.
    """

    takes_times: bool = False
    """Whether a call needs ``times``, one time per seed."""

    most_seeds: int | None = None
    """The largest number of seeds of a call; None: any number."""

    draws_together: bool = False
    """Whether what is drawn for a seed depends on the other seeds of the call.

    Shares of a step then draw independently. Else a share draws what the whole step draws for its
    seeds.
    """

    seeds_together: int = 1
    """Number of consecutive seeds of a step that must stay in one share."""

    by_row: bool = False
    """Whether the edges that ``choose`` gives a destination depend on ``step`` and that
    destination's edges alone.

    Where several processes hold the graph, such a ``Sampler`` chooses where the edges lie, and
    chosen edges travel. For any other one all edges of the destinations travel to the process that
    draws.
    """

    whole_only: ClassVar[bool] = True
    """Whether the graph must not lie on several processes. False where other processes are asked
    for their edges.
    """

    form: Form = COMPILED
    """The form in which draws run."""

    _from_graph: frozenset[str] = frozenset()
    """Names of the attributes that ``read_graph`` has set."""

    made_with: Mapping[str, bool] = MappingProxyType({})
    """Names of the arguments that the call passed which made the sampler, and whether each was the
    graph.
    """

    graph: Graph

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        sampler = super().__new__(cls)
        names = _names_of_arguments(cls.__init__)
        passed = {**dict(zip(names, arguments, strict=False)), **options}
        # the names alone: values such as masks of all edges are kept by the attributes that need
        # them
        sampler.__dict__["made_with"] = {
            name: isinstance(value, Graph | EdgeView) for name, value in passed.items()
        }
        return sampler

    def __init__(self, graph: Graph, num_flows: int, *, seed: int = 0) -> None:
        check_type(graph, "graph", Graph, "a nodeflow.Graph")
        if self.whole_only:
            check_one_process(graph, "SamplerBase")
        self.graph = graph
        self.num_flows = as_count(num_flows, "num_flows")
        self.seed = as_int(seed, "seed")

    @property
    def num_seeds(self) -> int:
        """The number of possible seeds, which are the integers below it: the number of nodes, in
        most samplers.
        """
        return self.graph.num_nodes

    @property
    def possible_seeds(self) -> range:
        """The seeds that calls take, a part of the integers below ``num_seeds``: all, in most
        samplers.
        """
        return range(self.num_seeds)

    @property
    def seed_kind(self) -> str:
        """The word for a seed in messages: "node", in most samplers."""
        return "node"

    @property
    def backend(self) -> str:
        """The form in which draws run: "compiled", or "torch on" a device, see ``in_torch``."""
        return self.form.name

    def in_torch(self, device: torch.device | str = "cpu") -> Self:
        """Return a sampler like this one that draws by operations of torch on ``device``; batches
        are the same.

        They are so bit for bit. The edges are copied to the device once (on the CPU they are
        shared), batches are made on it, and only sizes come back. Seeds are checked on the CPU, and
        the graph keeps its columns where they are. On the CPU the compiled loops are faster.

        Samplers of neighbours, of past edges, LABOR, FastGCN, LADIES and layer-wise ones have this
        form with most of their settings (docs/sampling.md lists them), in a graph that lies on one
        process; and ``LinkSampler`` of these.

        Raises TypeError for other samplers and settings, ValueError for a device that is not there,
        or that cannot hold the numbers (float64, which Apple's GPUs lack).

        >>> from nodeflow import NeighborSampler
        >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3, 0], [0, 0, 0, 1]), [2]).in_torch("cpu")
        >>> sampler.backend, sampler([0]).flows[0].parent_eid
        ('torch on cpu', tensor([1, 2]))
        """
        raise TypeError(
            f"{self.text()} draws in compiled loops only, on the CPU; the page 'Sampling' of the "
            "documentation lists the samplers and settings with a form in torch, on one process"
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the draws, except the graph: the arguments of ``__init__``, by
        name.

        The value of an argument is the attribute of that name; an argument without one is no
        setting. Functions and modules are there by name. Other public attributes of a sampler of
        your own are settings too, where they hold numbers, strings, or lists, tuples or dicts of
        these.
        """
        values = {
            name: self.__dict__[name] for name in arguments(type(self)) if name in self.__dict__
        }
        for name, value in values.items():
            # its text has an address, which differs between processes
            if callable(value):
                values[name] = getattr(value, "__qualname__", type(value).__qualname__)
        # arguments of a base class that this one does not take mean nothing to it
        elsewhere = (
            names_of(type(self))
            | self._from_graph
            | (vars(SamplerBase).keys() - ATTRIBUTES["SamplerBase"])
        )
        values |= {
            name: value
            for name, value in self.__dict__.items()
            if name not in elsewhere and name[0] != "_"
        }
        return {name: value for name, value in values.items() if is_plain(value)}

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__ and name in names_of(type(self)):
            raise AttributeError(
                f"{name} of a sampler is fixed when it is made; make a new {type(self).__name__}"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        if self.form is COMPILED:
            backend = ""
        else:
            backend = f"draws in {self.backend}"
        note = "; ".join(filter(None, (self.note(), backend)))
        return "  # ".join(filter(None, (self.text(), note)))

    def text(self) -> str:
        """Return the call that makes this sampler, for texts about it."""
        subject, hidden = self._made_of()
        settings = self.settings.items()
        words = [f"{name}={value!r}" for name, value in settings if name not in hidden]
        return f"{type(self).__name__}({', '.join([subject, *words])})"

    def _made_of(self) -> tuple[str, Container[str]]:
        """Return the text of the first argument, and the names of the settings that it says."""
        return repr(self.graph), ()

    def note(self) -> str:
        """Return a line on the sizes drawn per seed, shown after the call: their order is easily
        mistaken.
        """
        return ""

    def _repr_html_(self) -> str:
        words = " | ".join(filter(None, (repr(self.graph), self.note())))
        return page(type(self).__name__, words, table(("setting", "value"), self.settings.items()))

    @collective_call("a batch")
    def __call__(
        self,
        seeds: SeedsLike,
        *,
        epoch: int = 0,
        batch_number: int | None = None,
        inputs: Any = None,
        times: NumbersLike | None = None,
    ) -> NodeFlow:
        """Sample the NodeFlow of ``seeds``.

        The result is a pure function of the sampler's settings and these arguments, on any thread
        and in any process.

        Args:
            seeds: parent ids of the nodes whose outputs are wanted, ``[B]`` or ``[B, m]``, such as
                pairs; or a bool mask ``[num_nodes]`` of them; or ids or masks by node type,
                ``{"paper": [0, 2]}``; of samplers with other seeds, ids of edges (also by
                relation), pairs, parts or subgraphs. Each node has one row in the last layer;
                ``seed_index``, of the shape of ``seeds``, says which. A sampler can be the
                ``collate_fn`` of a ``torch.utils.data.DataLoader``, which passes lists. That loader
                does not pass the epoch, so equal batches are equal draws; ``functools.partial`` can
                pass it.
            epoch: number of the epoch. Draws of different epochs are independent.
            batch_number: number of the batch in its epoch; None takes a hash of the seeds (and
                times) instead.
            inputs: anything that the sampler may look at beside its settings, such as present
                activations.
            times: a time for every seed or row of seeds, finite numbers, for samplers that take
                times; a node at two times has two rows. Integers where the sampler's column of
                times holds integers.

        Raises TypeError for float seeds, for times that are missing, not taken, or floats against
        integers; IndexError for an id out of range; ValueError for a mask or times of another
        length, times that are not finite, and numbers by relation of which none is for a type that
        the seeds reach.
        """
        batch = self.draw_batch(seeds, Call(epoch, batch_number, inputs, times))
        if batch.back.has_parent:  # of samplers of users perhaps not
            self.check_reach(batch.seeds)
        return self.complete(batch)

    def draw_batch(self, seeds: SeedsLike, call: Call) -> NodeFlow:
        """Sample the NodeFlow of ``seeds`` without the columns that ``complete`` adds."""
        self.refuse(call.times)
        ids, shape = self._seeds(seeds)
        batch = self._sample(ids, self._keys_of(call, ids))
        return self._shaped(batch, ids, shape)

    def check_reach(self, nodes: Tensor) -> None:
        """Raise ValueError where seeds that are ``nodes`` reach no type for which a flow has
        numbers by relation.

        A call and a loader check all their seeds together: a single batch may lack the type that
        others have.
        """

    def refuse(self, times: object) -> None:
        """Raise TypeError for times that this sampler does not take."""
        if times is not None and not self.takes_times:
            raise TypeError(
                f"times must be None, because {type(self).__name__} takes none; use a sampler that "
                "sees the graph as it was at a time, such as TemporalNeighborSampler"
            )

    def complete(self, batch: NodeFlow) -> NodeFlow:
        """Add the columns that must be as new as possible, such as history; most samplers have
        none.

        A loader draws batches ahead in its threads. It completes each batch in the caller's thread,
        when it is taken.
        """
        return batch

    @collective_call("an estimate")
    def estimate(
        self,
        seeds: SeedsLike,
        *,
        ndata: NamesLike = None,
        times: NumbersLike | None = None,
        pilot: int = 20,
    ) -> Estimate:
        """Return how many nodes, edges and bytes a batch of ``seeds`` has in the mean, per layer
        and flow.

        Args:
            seeds: as for a call.
            ndata: node columns of the graph whose bytes are counted, chosen as in
                ``NodeFlow.copy_from_parent``: a list of names for all layers, or a dict as
                ``{0: ["feat"], -1: ["label"]}``. Sparse columns count with the mean size of their
                rows, which are not read. None: ids only.
            times: a time for every seed, for samplers that take times.
            pilot: number of batches to draw. They are batches of the epochs -1, -2, ..., which
                training does not draw.

        Cost: that of the draws. On graphs of 3,000 to 64,000 nodes, means of 20 batches of 256 and
        1,024 seeds were within 1.4 % of those of 200.

        Raises ValueError for a ``pilot`` below 1, and for ``seeds`` and ``ndata`` what a call and a
        copy raise.

        >>> from nodeflow import NeighborSampler
        >>> graph = Graph.from_edges([1, 2, 3, 0], [0, 0, 0, 1], ndata={"feat": torch.zeros(4, 100)})
        >>> NeighborSampler(graph, [3, 3]).estimate([0], ndata={0: ["feat"]}).node_bytes
        (1632.0, 32.0, 8.0)
        """
        count = as_count(pilot, "pilot", 1)
        return mean_sizes(
            lambda i: self.draw_batch(seeds, Call(-1 - i, i, times=times)), count, ndata
        )

    @abstractmethod
    def _sample(self, seeds: Ints, keys: Keys) -> NodeFlow:
        """Make the NodeFlow of checked seeds."""

    def _seeds(self, seeds: SeedsLike) -> tuple[Ints, tuple[int, ...]]:
        """The checked seeds in one dimension, and the shape in which they were given: ``[B]`` or
        ``[B, m]``.
        """
        flat_ids, shape = self.flat_seeds(seeds)
        ids = as_ids(flat_ids, "seeds", self.num_seeds, self.seed_kind)
        return ids, shape or (len(ids),)

    def flat_seeds(self, seeds: SeedsLike) -> tuple[Any, tuple[int, ...] | None]:
        """Return the seeds in one dimension, and their shape if it is ``[B, m]``, as only nodes may
        have it.

        A bool mask with an entry per possible seed becomes the ids where it is True, a dict the ids
        of its parts. A list of tensors without dimensions is one of those that a torch DataLoader
        passes to ``collate_fn``.
        """
        if isinstance(seeds, Mapping):
            return self._of_parts(seeds), None
        flat = unmasked(
            seeds,
            "seeds",
            self.num_seeds,
            self.seed_kind,
            "; one of a single type goes into a dict, as in {'paper': mask}",
        )
        if flat is not seeds:
            return flat, None
        if isinstance(seeds, tuple) and any(isinstance(part, str) for part in seeds[:1]):
            raise TypeError(
                "seeds of one type are a dict, as in {'paper': ids}, not a pair of its name and ids"
            )
        # a torch DataLoader passes a list of what its dataset gives: numbers, rows, or tensors
        # without dimensions, which numpy would read one by one
        nested = isinstance(seeds, Sequence) and any(
            isinstance(seed, (Sequence, Tensor, np.ndarray)) for seed in seeds
        )
        if isinstance(seeds, str) or not (nested or getattr(seeds, "ndim", 1) == 2):
            return seeds, None
        rows: Any = seeds
        if nested and all(isinstance(seed, Tensor) for seed in rows):
            rows = torch.stack(list(rows))
        array = as_array(rows, "seeds")
        if array.ndim != 2:
            return array, None
        if self.seed_kind != "node":
            raise self._refusal(array.shape)
        return array.reshape(-1), array.shape

    def _of_parts(self, seeds: Mapping[str, Any]) -> Tensor:
        """The seeds of a dict from node types, or relations, to ids within them or masks, one after
        another.
        """
        if self.seed_kind not in ("node", "edge"):
            raise TypeError(
                f"a seed of {type(self).__name__} is {with_article(self.seed_kind)}, which has no "
                "type"
            )
        parts: Mapping[Any, OfType] = self.graph.nodes
        if self.seed_kind == "edge":
            parts = self.graph.relations
        flat = [torch.arange(0)]
        for name, ids in seeds.items():
            flat.append(parts[name].to_graph(ids, name=f"seeds[{name!r}]"))
        return torch.cat(flat)

    def _refusal(self, shape: tuple[int, ...]) -> ValueError:
        return ValueError(
            f"{type(self).__name__} does not support seeds of shape {shape}: pass one-dimensional "
            "seeds"
        )

    def _shaped(self, batch: NodeFlow, ids: Ints, shape: tuple[int, ...]) -> NodeFlow:
        """The batch of ``ids`` with a ``seed_index`` of the shape in which they were given."""
        if len(shape) == 1:
            return batch
        index = batch.seed_index
        # a sampler whose last layer holds other nodes than the seeds, such as a subgraph, has no
        # row of that layer for each seed, and so no rows of the shape in which they were given
        if index.shape != ids.shape or not np.array_equal(batch.seeds[index].cpu().numpy(), ids):
            raise self._refusal(shape)
        return batch.with_seeds(seed_index=index.reshape(shape))

    def _keys_of(self, call: Call, ids: Ints, *identity: int) -> Keys:
        """The keys of a call with checked seeds, or of its step, see ``keys_of``."""
        # all shares of a step draw with one key, whichever process draws which
        if call.step is None:
            of_step = ids
        else:
            of_step = self._seeds(call.step.ids)[0]
        return keys_of(self, call, (*self._identity(of_step), *identity))

    def _identity(self, ids: Ints) -> tuple[int, ...]:
        """The hash of the seeds of a batch, by which batches without a number differ.

        None where they need not differ.
        """
        return (hash_ids(ids),)

    def read_graph(self) -> None:
        """Set the attributes that are read from the graph, such as tables made from its columns,
        after all settings.

        An override calls ``super().read_graph()`` first. What is set here is not pickled:
        unpickling calls it again.
        """

    def bind(self) -> None:
        """Call ``read_graph``: the last step of an ``__init__``, and of unpickling.

        All processes that hold the graph must have the same settings.
        """
        # what appears during ``read_graph`` is made of the graph: pickles leave it out, since the
        # graph travels beside it and tables of its columns may be as large
        before = self.__dict__.keys() - self._from_graph
        self.read_graph()
        self._from_graph = frozenset(self.__dict__.keys() - before)
        self.graph.peers.agree(
            f"settings of {type(self).__name__}",
            lambda: {name: repr(value) for name, value in self.settings.items()},
        )

    def __getstate__(self) -> dict[str, Any]:
        # the graph travels as itself, by the names of its files where it can
        state = self.__dict__.items()
        return {name: value for name, value in state if name not in self._from_graph}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.bind()


@cache
def _names_of_arguments(function: Callable[..., None]) -> list[str]:
    """Return the names that a method takes after the object, in order, without that of others by
    keyword.
    """
    parameters = inspect.signature(function).parameters.values()
    names = [
        parameter.name
        for parameter in parameters
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    return names[1:]

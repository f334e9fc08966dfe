"""Base of the graphs and NodeFlows of DGL 0.4: questions about edges and degrees, and registered
functions.

Also the error for names that have no stand-in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partialmethod
from typing import Any, Final, NoReturn

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import ALL, _All, as_ids, as_index, check_one_of, check_pairs
from nodeflow.compat.dgl._functions import DEFAULT
from nodeflow.graph import Graph

INSTEAD: Final = {
    "is_multigraph": "graph.edge_ids(u, v, return_uv=True)",
    "has_node": "0 <= v < graph.num_nodes",
    "has_nodes": "0 <= v < graph.num_nodes",
    "has_edge_between": "has_edges_between(u, v)",
    "predecessors": "in_edges(v)[0]",
    "successors": "out_edges(v)[1]",
    "edge_id": "edge_ids(u, v)",
    "in_degree": "in_degrees(v)",
    "out_degree": "out_degrees(v)",
    "adjacency_matrix": "nodeflow.create_full_node_flow(g.graph, 1).flows[0].to_torch_sparse()",
    "adjacency_matrix_scipy": "nodeflow.convert.to_scipy(g.graph), whose rows are sources",
    "block_adjacency_matrix": "nf.batch.flows[i].to_torch_sparse()",
    "block_incidence_matrix": "nf.batch.flows[i].incidence(typestr)",
    "incidence_matrix": "nodeflow.create_full_node_flow(g.graph, 1).flows[0].incidence('in')",
    "from_networkx": "DGLGraph(nodeflow.convert.from_networkx(nx_graph)[0])",
    "from_scipy_sparse_matrix": "DGLGraph(spmat)",
    "get_n_repr": "g.nodes[u].data",
    "get_e_repr": "g.edges[edges].data",
    "set_n_repr": "g.nodes[u].data.update(data)",
    "set_e_repr": "g.edges[edges].data.update(data)",
    "pop_n_repr": "g.ndata.pop(key)",
    "pop_e_repr": "g.edata.pop(key)",
    "node_attr_schemes": "the frame's columns, as g.ndata",
    "edge_attr_schemes": "the frame's columns, as g.edata",
}
"""Names of graphs that programs with NodeFlows do not need, and what does the same."""


def refuse(owner: str, name: str) -> NoReturn:
    """Raise AttributeError for a name that ``owner`` does not have; it says what to use, or names
    the page that does.
    """
    instead = ""
    if name in INSTEAD:
        instead = f"use {INSTEAD[name]}; "
    raise AttributeError(
        f"{owner} of nodeflow.compat has no {name!r}: {instead}"
        'the page "Coming from DGL\'s NodeFlow" of the documentation says what to use instead of '
        "names of DGL",
        name=name,
    )


def as_vector(value: Any) -> Any:
    """Return one id as a list of one; several ids as they are."""
    is_one = isinstance(value, (int, np.integer)) or getattr(value, "ndim", 1) == 0
    return [int(value)] if is_one else value


def _formed(edges: tuple[Tensor, Tensor, Tensor], form: str) -> Any:
    check_one_of(form, "form", ("uv", "all", "eid"))
    return {"all": edges, "eid": edges[2], "uv": edges[:2]}[form]


class BaseGraph(ABC):
    """The questions, by ids of ``graph``: its own, or NodeFlow ids; and functions of each block (a
    graph is one).
    """

    is_readonly: bool
    """Whether adding nodes and edges is refused."""

    def __init__(self, num_blocks: int) -> None:
        roles = ("message", "reduce", "apply node", "apply edge")
        self._functions: dict[str, list[Any]] = {role: [None] * num_blocks for role in roles}

    @property
    @abstractmethod
    def graph(self) -> Graph:
        """The structure, as a graph of nodeflow."""

    def number_of_nodes(self) -> int:
        """Return the number of nodes."""
        return self.graph.num_nodes

    __len__ = number_of_nodes

    def number_of_edges(self) -> int:
        """Return the number of edges."""
        return self.graph.num_edges

    def has_edges_between(self, u: Any, v: Any) -> Tensor:
        """Return 1 where there is an edge ``u[i] -> v[i]`` and 0 elsewhere, int64 ``[k]``; one node
        goes with all.
        """
        return self.graph.has_edges(*as_pairs(u, v, self.graph.num_nodes)).long()

    def edge_ids(self, u: Any, v: Any, *, return_uv: bool = False) -> Any:
        """Return the ids of the edges ``u[i] -> v[i]``, int64 ``[k]``; one node goes with all.

        With ``return_uv``: ``(src, dst, eid)`` of all edges between the pairs; else ValueError for
        a pair without edge or with several.
        """
        src, dst = as_pairs(u, v, self.graph.num_nodes)
        if return_uv:
            return self.graph.edge_ids(src, dst, return_uv=True)
        lowest = self.graph.edge_ids(src, dst)  # raises for a pair without edges
        # a pair with several edges has more of them than its lowest
        if len(self.graph.edge_ids(src, dst, return_uv=True)[2]) > len(lowest):
            raise ValueError(
                "several edges join one of the pairs: pass return_uv=True for all of them"
            )
        return lowest

    def find_edges(self, eid: Any) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)`` of edges, int64 ``[k]`` each."""
        return self.graph.find_edges(as_vector(eid))

    def in_edges(self, v: Any, form: str = "uv") -> Any:
        """Return the in-edges of nodes, node by node: ``(src, dst)``, with "all"
        ``(src, dst, eid)``, or "eid".
        """
        return _formed(self.graph.in_edges(as_vector(v)), form)

    def out_edges(self, v: Any, form: str = "uv") -> Any:
        """Return the out-edges of nodes, node by node: ``(src, dst)``, with "all"
        ``(src, dst, eid)``, or "eid".
        """
        return _formed(self.graph.out_edges(as_vector(v)), form)

    def all_edges(self, form: str = "uv", order: str | None = None) -> Any:
        """Return all edges in the order of their ids."""
        check_one_of(order, "order", ("eid", None))
        src, dst = self.graph.edges()
        return _formed((src, dst, torch.arange(len(src))), form)

    def in_degrees(self, v: Any = ALL) -> Tensor:
        """Return the numbers of in-edges of nodes (default all), int64 ``[k]``."""
        return self.graph.in_degrees(as_vector(v))

    def out_degrees(self, v: Any = ALL) -> Tensor:
        """Return the numbers of out-edges of nodes (default all), int64 ``[k]``."""
        return self.graph.out_degrees(as_vector(v))

    def edge_ids_at(self, edges: Any) -> Any:
        """Return the ids of edges that are given by ids, or by a pair ``(u, v)`` of their ends; ALL
        stays.
        """
        if not isinstance(edges, tuple):
            return as_vector(edges)
        u, v = edges
        return self.edge_ids(u, v, return_uv=True)[2]

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"a {type(self).__name__}", name)

    # ---- registered functions

    def blocks_of(self, block_id: Any) -> range:
        """Return the numbers of a block, or of all."""
        blocks = range(len(self._functions["message"]))
        if isinstance(block_id, _All):
            return blocks
        block = as_index(block_id, "block_id", len(blocks))
        return blocks[block : block + 1]

    def _register(self, role: str, func: Any, block_id: Any = ALL) -> None:
        for block in self.blocks_of(block_id):
            self._functions[role][block] = func

    register_message_func = partialmethod(_register, "message")
    register_reduce_func = partialmethod(_register, "reduce")
    register_apply_node_func = partialmethod(_register, "apply node")
    register_apply_edge_func = partialmethod(_register, "apply edge")

    def function(self, role: str, func: Any, block: int = 0) -> Any:
        """Return ``func``, or the registered one for "default"; ValueError for None, except as
        "apply node".
        """
        if isinstance(func, str) and func == DEFAULT:
            func = self._functions[role][block]
        if func is None and role != "apply node":
            name = role.replace(" ", "_")
            raise ValueError(
                f"there is no {role} function: pass one, or call register_{name}_func first"
            )
        return func

    def functions(self, functions: Sequence[Any], block: int = 0) -> list[Any]:
        roles = ("message", "reduce", "apply node")
        return [
            self.function(role, func, block) for role, func in zip(roles, functions, strict=True)
        ]


def as_pairs(u: Any, v: Any, num_nodes: int) -> tuple[Any, Any]:
    """Return two arrays of nodes of equal length; one node stands for as many as the others."""
    src = as_ids(as_vector(u), "u", num_nodes)
    dst = as_ids(as_vector(v), "v", num_nodes)
    if 1 not in (len(src), len(dst)):
        check_pairs(src, dst, "u and v", "edge")
    src, dst = np.broadcast_arrays(src, dst)
    return src, dst

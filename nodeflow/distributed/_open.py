"""Opening the part of a graph that belongs to this process, after all processes have agreed on what they open."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from nodeflow._base.checks import as_number
from nodeflow._base.types import FileLike
from nodeflow._rows.rows import take_rows
from nodeflow._runtime import living
from nodeflow.distributed._graph_parts import GraphPart, GraphParts
from nodeflow.distributed._peers import PeerGroup
from nodeflow.distributed._transport import GroupTransport, Watch
from nodeflow.graph import Graph


def open_whole(folder: FileLike, *, verify: bool) -> Graph:
    """Open a folder of one part as the graph that it is.

    Raises RuntimeError for a folder of several parts.
    """
    parts = GraphParts.open(folder, verify=verify)
    if parts.num_parts != 1:
        raise RuntimeError(
            f"{folder} has {parts.num_parts} parts, one for each of {parts.num_parts} processes, and this process is "
            "alone: start the program with torchrun, and call torch.distributed.init_process_group('gloo') first"
        )
    part, indptr = parts.part(0), np.zeros(parts.num_nodes + 1, np.int64)
    indptr[part.rows + 1] = np.diff(part.indptr)
    order = torch.from_numpy(parts.edge_places(np.arange(parts.num_edges)))
    edata = {name: take_rows(column, order) for name, column in part.edata.items()}
    return Graph(np.cumsum(indptr), part.src, edge_ids=part.edge_ids, ndata=part.ndata, edata=edata)


def open_part(folder: FileLike, timeout: float, *, verify: bool) -> tuple[GraphParts, GraphPart, PeerGroup]:
    """Return a folder of parts, the part of this process, and the processes; see ``DistributedGraph.open``."""
    seconds = as_number(timeout, "timeout", above=0)
    # the store by which the processes found each other; under torchrun it outlives each of them. It has no public name
    whole = distributed_c10d._get_default_store()  # noqa: SLF001
    store = dist.PrefixStore(f"nodeflow/{next(living.openings)}", whole)  # type: ignore[attr-defined]
    peers = PeerGroup(GroupTransport(Watch(store, dist.get_rank(), dist.get_world_size()), seconds))
    with peers.together(f"opening {folder}", exchanges=1):
        parts = GraphParts.open(folder, verify=verify)
        if parts.num_parts != peers.size:
            raise ValueError(
                f"{folder} has {parts.num_parts} parts, but there are {peers.size} processes; start "
                f"{parts.num_parts} of them, or partition the graph again"
            )
        part = parts.part(peers.rank)
        facts = {"version of nodeflow": version("nodeflow"), "identity of the partition": parts.identity}
        peers.agree("what is opened", {**facts, "timeout": repr(seconds)})
    peers.book = parts
    return parts, part, peers

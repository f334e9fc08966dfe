"""DGL on the work of ``aggregate.py``: ``update_all`` with built-in functions on a block.

pip install dgl==2.1.0 torch==2.2.1
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# or the first import in an environment writes to standard output
os.environ["DGLBACKEND"] = "pytorch"
import dgl
import dgl.function as fn
import torch
from aggregate_work import Edges, serve
from dgl.nn.functional import edge_softmax
from torch import Tensor


def run(block: Any, op: str, h: Tensor, at_edges: Tensor | None = None) -> Tensor:
    block.srcdata["h"] = h
    message = fn.copy_u("h", "m")
    if at_edges is not None:
        block.edata["w"] = edge_softmax(block, at_edges) if op == "gat" else at_edges
        message = fn.u_mul_e("h", "w", "m")
    block.update_all(message, {"mean": fn.mean, "max": fn.max}.get(op, fn.sum)("m", "out"))
    return block.dstdata["out"]


def make(edges: Edges) -> tuple[Callable[[], Any], Callable[..., Tensor], str]:
    parts = ("csc", (edges.indptr, edges.indices, torch.tensor([], dtype=torch.int64)))

    def fresh() -> Any:
        return dgl.create_block(parts, num_src_nodes=edges.num_src, num_dst_nodes=edges.num_dst)

    return fresh, run, f"dgl {dgl.__version__}"


if __name__ == "__main__":
    serve(make)

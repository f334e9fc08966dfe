"""Writes batches that PyTorch Geometric's own loader draws:
``python draw_pyg_batches.py pyg_batches.npz``.

Needs an interpreter that has PyTorch Geometric with torch-sparse or pyg-lib.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader

torch.manual_seed(1)
index = torch.randint(0, 40, (2, 240))
data = Data(x=torch.arange(40.0), edge_index=index, w=torch.arange(240))
arrays = {"edge_index": index}
for i, batch in enumerate(
    NeighborLoader(data, [3, 2], input_nodes=torch.tensor([5, 9, 1, 30]), batch_size=2)
):
    arrays |= {f"{i}.{name}": batch[name] for name in ("x", "edge_index", "w", "n_id", "e_id")}
np.savez_compressed(sys.argv[1], **{name: array.numpy() for name, array in arrays.items()})

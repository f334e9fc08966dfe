"""The first batch of a run: a trial whether its network fits, and what it reads of features."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import describe
from nodeflow._core.rows.coded import is_coded
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.nn import IgnoredWeightWarning
from nodeflow.storage import CodedRows, NarrowRows
from nodeflow.training._graph import FeatureRows
from nodeflow.training._settings import Settings


def try_first_batch(
    network: nn.Module, batches: NodeFlowLoader, graph: Graph, settings: Settings, width: int
) -> int:
    """Return how many rows enter the first batch; ``batches`` stay where they are.

    Narrow features of ``graph`` stay coded from now on, if the network has read nothing of them but
    sums. Raises ValueError where the model is biased for the batch, or does not give one row of
    ``width`` outputs per seed.
    """
    # the trial takes a batch, and training must begin with the same one
    state = batches.state_dict()
    training = network.training
    columns = graph.ndata
    plain = columns.get("feat")
    # what is compiled reads plain rows, and this trial does not compile
    coded = None
    if not settings.compute.compile:
        coded = _coded(plain)
    if coded is not None:
        columns["feat"] = coded
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error", IgnoredWeightWarning)
        network.eval()
        batch = next(iter(batches))
        try:
            outputs = network(batch)
        except IgnoredWeightWarning as warning:
            layer = str(warning).partition(" ")[0]
            raise ValueError(
                f"model {settings.model.name!r} would be biased with sampler "
                f"{settings.sampler.name!r}, whose edges have different weights: {layer} "
                "ignores them. Take model sage, gcn or gin, of several relations also rgcn, hgt or "
                "typed; or leave out weighted = false and prob of the options, or take sampler "
                "neighbor, labor, bernoulli or shadow"
            ) from None
        finally:
            network.train(training)
            batches.load_state_dict(state)
            # the network reads rows one by one
            if plain is not None and not is_coded(batch.inputs.get("feat")):
                columns["feat"] = plain
    shape = (batch.layer_sizes[-1], width)
    if not isinstance(outputs, Tensor) or outputs.shape != shape:
        raise ValueError(
            f"the model must return one row of {width} outputs per seed, {list(shape)}, got "
            f"{describe(outputs)}"
        )
    return batch.layer_sizes[0]


def _coded(x: object) -> CodedRows | None:
    """Return narrow features as codes, whose rows a network that begins with sums never needs."""
    rows = x
    if isinstance(x, FeatureRows) and x.rows.dtype == x.dtype:
        rows = x.rows
    if isinstance(rows, NarrowRows):
        return CodedRows(rows)
    return None

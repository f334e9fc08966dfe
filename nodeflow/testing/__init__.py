"""Tools for tests: checks of samplers and layers of your own, assertions, and hypothesis
strategies.

``check_sampler`` and ``check_layer`` check all that a sampler or a layer promises, in one call. The
strategies need hypothesis, the rest does not.

>>> from hypothesis import given
>>> from nodeflow.testing import assert_valid, node_flows
>>> @given(node_flows())
... def test_slices_are_valid(batch):
...     assert_valid(batch[1:] if batch.num_flows else batch)
>>> test_slices_are_valid()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nodeflow.testing._assertions import (
    assert_reproducible,
    assert_same_node_flow,
    assert_unbiased,
    assert_valid,
)
from nodeflow.testing._check_layer import check_layer
from nodeflow.testing._check_sampler import check_sampler, parametrize_with_checks
from nodeflow.testing._foreign import as_sampler
from nodeflow.testing._report import CheckError, Outcome, Report

if TYPE_CHECKING:
    from nodeflow.testing._strategies import (
        fanouts,
        flows,
        frames,
        graphs,
        node_flows,
        seeds,
        temporal_graphs,
        triples,
        typed_graphs,
    )

_STRATEGIES = (
    "fanouts",
    "flows",
    "frames",
    "graphs",
    "node_flows",
    "seeds",
    "temporal_graphs",
    "triples",
    "typed_graphs",
)

__all__ = [
    "CheckError",
    "Outcome",
    "Report",
    "as_sampler",
    "assert_reproducible",
    "assert_same_node_flow",
    "assert_unbiased",
    "assert_valid",
    "check_layer",
    "check_sampler",
    "fanouts",
    "flows",
    "frames",
    "graphs",
    "node_flows",
    "parametrize_with_checks",
    "seeds",
    "temporal_graphs",
    "triples",
    "typed_graphs",
]


def __getattr__(name: str) -> Any:
    """Import the strategies when one is first used: nothing else here needs hypothesis."""
    if name not in _STRATEGIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("hypothesis")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{__name__}.{name} needs hypothesis; install it with: pip install hypothesis"
        ) from error
    return getattr(import_module(f"{__name__}._strategies"), name)

"""Tools for tests: checks of samplers and layers of your own, assertions, and hypothesis strategies.

``check_sampler`` and ``check_layer`` check all that a sampler or a layer promises, in one call. They
and the strategies need hypothesis, the assertions do not.

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
from nodeflow.testing._report import CheckError, Outcome, Report

if TYPE_CHECKING:
    from nodeflow.testing._check_layer import check_layer
    from nodeflow.testing._check_sampler import check_sampler, parametrize_with_checks
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

__all__ = [
    "CheckError",
    "Outcome",
    "Report",
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
_CHECKS = {
    "check_layer": "_check_layer",
    "check_sampler": "_check_sampler",
    "parametrize_with_checks": "_check_sampler",
}


def __getattr__(name: str) -> Any:
    """Import checks and strategies when one is first used: nothing else here needs hypothesis."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("hypothesis")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{__name__}.{name} needs hypothesis; install it with: pip install "
            "'nodeflow-gnn[testing]'"
        ) from error
    return getattr(import_module(f"{__name__}.{_CHECKS.get(name, '_strategies')}"), name)

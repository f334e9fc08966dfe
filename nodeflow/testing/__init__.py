"""Tools for tests: assertions about NodeFlows and samplers, and hypothesis strategies for graphs and NodeFlows.

The strategies need hypothesis, the assertions do not.

>>> from hypothesis import given
>>> from nodeflow.testing import assert_valid, node_flows
>>> @given(node_flows())
... def test_slices_are_valid(batch):
...     assert_valid(batch[1:] if batch.num_flows else batch)
>>> test_slices_are_valid()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nodeflow.testing._assertions import assert_reproducible, assert_same_node_flow, assert_unbiased, assert_valid
from nodeflow.testing._check_layer import check_layer
from nodeflow.testing._check_sampler import check_sampler, parametrize_with_checks
from nodeflow.testing._foreign import as_sampler
from nodeflow.testing._report import CheckError, Outcome, Report

if TYPE_CHECKING:
    from nodeflow.testing._strategies import graphs, node_flows, seeds

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
    "graphs",
    "node_flows",
    "parametrize_with_checks",
    "seeds",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import the strategies when one is first used: nothing else here needs hypothesis."""
    if name not in ("graphs", "node_flows", "seeds"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("hypothesis")
    except ModuleNotFoundError as error:
        raise ImportError(f"{__name__}.{name} needs hypothesis; install it with: pip install hypothesis") from error
    return getattr(import_module(f"{__name__}._strategies"), name)

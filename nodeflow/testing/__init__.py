"""Help for your own tests: hypothesis strategies that make graphs, seeds and NodeFlows, and assertions about them.

>>> from hypothesis import given
>>> from nodeflow.testing import assert_valid, node_flows
>>> @given(node_flows())
... def test_slices_are_valid(batch):
...     assert_valid(batch[1:] if batch.num_flows else batch)
>>> test_slices_are_valid()
"""

from nodeflow.testing.assertions import assert_same_node_flow, assert_valid

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError('nodeflow.testing needs hypothesis: pip install "nodeflow[testing]"') from error

from nodeflow.testing.strategies import graphs, node_flows, seeds

__all__ = ["assert_same_node_flow", "assert_valid", "graphs", "node_flows", "seeds"]

"""Names and attributes of other libraries: the errors say what to write here, and that code
runs.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Iterator, Mapping
from itertools import chain, groupby
from typing import Any

import pytest
import torch
from _support.pages import ROOT

import nodeflow
from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow._core.base.habits import ARGUMENTS, ATTRIBUTES, NAMES, hint_of

COLUMNS = {"x": torch.ones(3, 2), "y": torch.arange(3)}
COLUMNS |= {name: torch.ones(3).bool() for name in ("train_mask", "val_mask", "test_mask")}
GRAPH = Graph.from_edges(
    [0, 1, 2],
    [1, 2, 0],
    ndata=COLUMNS,
    edata={name: torch.ones(3) for name in ("w", "edge_attr", "edge_weight")},
)
SAMPLER = NeighborSampler(GRAPH, [1, 2])
LOADER = NodeFlowLoader(
    SAMPLER, [0, 1], ndata={0: ["x"], -1: ["y"]}, edata=["w"], seed_data={"index": torch.arange(2)}
)
BATCH = next(iter(LOADER))
OBJECTS = {
    "NodeFlow": BATCH, "Flow": BATCH.flows[0], "Layer": BATCH.layers[0], "Graph": GRAPH, "SamplerBase": SAMPLER,
    "NodeFlowLoader": LOADER,
}  # fmt: skip
SPACE = {
    **vars(nodeflow),
    **{name: getattr(nodeflow, name) for name in nodeflow.__all__},
    "torch": torch,
}
SPACE |= {
    "batch": BATCH,
    "flow": BATCH.flows[0],
    "layer": BATCH.layers[0],
    "graph": GRAPH,
    "sampler": SAMPLER,
}
SPACE |= {
    "loader": LOADER,
    "seeds": [0],
    "fanouts": [1],
    "num_flows": 1,
    "parts": torch.tensor([0, 1, 0]),
}
FOUND = [(kind, name) for kind, habits in ATTRIBUTES.items() for name in habits]


def rows(habits: Mapping[str, str]) -> Iterator[str]:
    """Yield the rows of the table on the page: what stands for the same together."""
    for hint, names in groupby(habits, key=habits.__getitem__):
        code, _, remark = hint.partition("  # ")
        yield f"| {', '.join(f'`{name}`' for name in names)} | `{code}`{remark and f', {remark}'} |"


@pytest.mark.parametrize(("kind", "name"), FOUND)
def test_an_attribute_of_another_library_is_explained_by_code_that_runs(kind, name):
    thing = OBJECTS[kind]
    hint = ATTRIBUTES[kind][name]
    with pytest.raises(AttributeError) as caught:
        getattr(thing, name)
    assert (
        str(caught.value)
        == f"{type(thing).__name__!r} object has no attribute {name!r}; use {hint}"
    )
    assert caught.value.obj is None, "else Python adds the attribute that is spelled most nearly so"
    eval(hint, dict(SPACE))


def test_probes_find_none_of_these_attributes():
    for kind, name in FOUND:
        thing = OBJECTS[kind]
        assert not hasattr(thing, name)
        assert getattr(thing, name, 3) == 3
        assert name not in dir(thing)
    for thing in OBJECTS.values():
        assert not any(
            hasattr(thing, name)
            for name in ("_ipython_display_", "__array__", "__dataframe__", "shape")
        )
        copy.copy(thing)
    assert "ldata" in dir(BATCH)
    assert repr(pickle.loads(pickle.dumps(BATCH))) == repr(copy.deepcopy(BATCH)) == repr(BATCH)
    assert pickle.loads(pickle.dumps(SAMPLER)).settings == SAMPLER.settings


def test_an_error_of_a_property_stays_and_other_names_are_as_always():
    with pytest.raises(AttributeError, match="only batches of a LinkSampler"):
        _ = BATCH.chunks
    with pytest.raises(
        AttributeError, match=r"^'NodeFlow' object has no attribute 'nonsense'$"
    ) as caught:
        _ = BATCH.nonsense  # type: ignore[attr-defined]
    assert caught.value.obj is BATCH


def test_a_sampler_of_ones_own_may_use_these_names():
    class Own(NeighborSampler):
        def __init__(self, graph: Graph) -> None:
            super().__init__(graph, [1])
            self.num_layers = 5

        def sample(self) -> int:
            return 7

    sampler = Own(GRAPH)
    assert (sampler.sample(), sampler.num_layers, sampler.settings["num_layers"]) == (7, 5, 5)
    assert {"sample", "num_layers"} <= set(dir(sampler))


@pytest.mark.parametrize("module", NAMES)
def test_a_name_of_another_library_is_explained_by_code_that_runs(module):
    room = importlib.import_module(module)
    for name, hint in NAMES[module].items():
        words = f"module {module!r} has no attribute {name!r}; use {hint}"
        assert not hasattr(room, name)
        with pytest.raises(AttributeError) as asked:
            getattr(room, name)
        with pytest.raises(ImportError) as imported:  # an AttributeError would lose its words there
            exec(f"from {module} import {name}")
        assert str(asked.value) == str(imported.value) == words
        eval(hint, {**vars(room), **SPACE})


def test_other_missing_names_are_as_always():
    with pytest.raises(AttributeError, match=r"^module 'nodeflow.nn' has no attribute 'Nonsense'$"):
        _ = nodeflow.nn.Nonsense
    with pytest.raises(ImportError, match=r"^cannot import name 'Nonsense' from 'nodeflow'"):
        from nodeflow import Nonsense  # noqa: F401


PUBLIC = [
    module.name
    for module in pkgutil.walk_packages(nodeflow.__path__, "nodeflow.")
    if "._" not in module.name and not module.name.startswith("nodeflow.compat.")
]


@pytest.mark.parametrize("module", PUBLIC)
def test_dir_of_a_module_is_its_public_names(module):
    room = importlib.import_module(module)
    assert [name for name in dir(room) if not name.startswith("_")] == sorted(room.__all__)


def test_the_page_has_the_tables():
    page = (ROOT / "docs" / "words.md").read_text(encoding="utf-8")
    # others by a rule
    functions = {name: hint for name, hint in NAMES["nodeflow.fn"].items() if name.count("_") == 1}
    tables = [*ATTRIBUTES.values(), *(NAMES | {"nodeflow.fn": functions}).values()]
    missing = [row for row in chain.from_iterable(map(rows, tables)) if row not in page]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    ("name", "takes", "words"),
    [
        ("edge_dim", ("edge_features", "edge_column"), "it is called edge_features= here"),
        ("edge_features", ("in_features", "heads"), "this layer reads no edge columns"),
        ("persistent_workers", ("num_workers", "seeds"), "workers are threads of this process"),
        ("collate_fn", ("transform",), "it is called transform= here"),
        ("shufle", ("shuffle", "seeds"), "it is called shuffle= here"),
        ("edge_columns", ("in_features", "edge_time"), "it takes in_features, edge_time"),
        ("num_neighbours", ("fanouts",), "fanouts= here, one number per flow in flow order"),
    ],
)
def test_the_table_comes_before_a_near_spelling(name, takes, words):
    assert words in hint_of(name, takes)


def test_words_of_arguments_are_those_of_some_call_here():
    """No entry leads to an argument that nothing takes."""
    kinds: list[Any] = [getattr(nodeflow, name) for name in nodeflow.__all__]
    kinds += [getattr(nodeflow.nn, name) for name in nodeflow.nn.__all__]
    taken = set(nodeflow.training.Settings().by_name())
    for kind in filter(callable, kinds):
        taken |= set(
            getattr(kind, "__signature__", None).parameters
            if hasattr(kind, "__signature__")
            else ()
        )
    assert set(chain.from_iterable(ARGUMENTS.values())) <= taken

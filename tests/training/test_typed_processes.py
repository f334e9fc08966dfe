"""Several processes train on nodes of several types, each with a part of the graph or with all of
it, as one does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from _support.cli_tools import status
from _support.processes import cases_that_run, made_once, run_processes
from _support.ranks import Parts
from _support.run_files import run_of
from test_several_processes import close, outcome
from test_typed_links import SHORT as SHORT_LINKS, papers as papers_with_links
from test_typed_training import SHORT, papers

from nodeflow import Graph
from nodeflow.datasets import Dataset, read_folder
from nodeflow.distributed import GraphParts, PeerError
from nodeflow.training import Settings
from nodeflow.training._graph import check_features

PLAIN = SHORT.replace(dropout=0.0, batch_size=16)
RUNS: dict[str, Any] = {
    "typed": {"model": "typed", "direction": "both", "norm": "layer"},
    "hgt": {"model": "hgt", "direction": "in", "validate": "full"},
    "rgcn": {"model": "rgcn", "direction": "both", "sampler": "labor"},
    "sage": {"model": "sage", "direction": "in", "share": "owned"},
    "cached": {"model": "hgt", "direction": "in", "storage": "cached", "memory": "1100 B"},
    "file": {"model": "typed", "direction": "in", "storage": "file"},
}
LINKS: dict[str, Any] = {
    "links, typed": {"model": "typed", "direction": "both", "chunk": 16, "negative_law": "degree"},
    # learned rows begin near 0: with small steps two scores may be equal but for rounding, and
    # their ranks differ
    "links, hgt": {
        "model": "hgt",
        "direction": "in",
        "target": "rev_writes",
        "corrupt": "both",
        "lr": 0.05,
    },
    "links, rgcn": {"model": "rgcn", "direction": "out", "inputs": "embedding"},
}
CUTS = [("both", "writes"), ("in", "rev_writes"), ("out", "writes")]
ONLY_PARTS = {"share", "storage", "memory"}

PROCESSES = """
import json
sys.path[:0] = [sys.argv[4]]
from test_typed_processes import on_parts, on_whole

found = {name: [on_parts(name, file), on_whole(name, file)] for name in json.loads(sys.argv[5])}
with open(f"{file}-{rank}.json", "w") as out:
    json.dump(found, out)
"""


def settings_of(name: str, *, whole: bool = False, **changes: Any) -> Settings:
    if name in LINKS:
        common = {"dropout": 0.0, "chunk": 1, "epochs": 1, "batch_size": 32}
        return SHORT_LINKS.replace(**{**common, **LINKS[name], **changes})
    return PLAIN.replace(
        **{key: value for key, value in RUNS[name].items() if not whole or key not in ONLY_PARTS}
        | changes
    )


def on_parts(name: str, file: str) -> Any:
    settings = settings_of(name)
    run = run_of(settings.chosen, partitions=str(Path(file).parent / parts_of(name)))
    return outcome(run.settings, run.dataset())


def parts_of(name: str) -> str:
    settings = settings_of(name)
    return "-".join([settings.graph.direction, *([settings.run.target] if name in LINKS else [])])


def on_whole(name: str, file: str, **changes: Any) -> Any:
    dataset = read_folder(Path(file).parent / ("links" if name in LINKS else "data"), labels=False)
    return outcome(
        settings_of(name, whole=True, **changes),
        dataset if name in LINKS else dataset.of_type("paper"),
    )


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, parts of them, and what two processes give of the runs whose tests take part."""
    names = cases_that_run(request, test_two_processes_train_what_one_trains_with_twice_the_batch)

    def make(folder: Path) -> None:
        papers().save(folder / "data")
        papers_with_links(reverse=True, split="own").save(folder / "links")
        cuts = [("data", direction, []) for direction in ("in", "both")]
        cuts += [
            ("links", f"{direction}-{target}", ["--links", "--target", target])
            for direction, target in CUTS
        ]
        for data, name, words in [
            cut for cut in cuts if cut[1] in {parts_of(name) for name in names}
        ]:
            cut = ["partition", folder / data, "--for processes --parts 2 --method hash", *words]
            way = ["--direction", name.partition("-")[0], "--output", folder / name]
            assert status([*cut, *way]) == 0
        ended = run_processes(PROCESSES, 2, folder, Path(__file__).parent, json.dumps(names))
        assert not any(one.status for one in ended), "\n".join(one.errors for one in ended)

    return made_once(tmp_path_factory, "typed-processes", make)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", [*RUNS, *LINKS])
def test_two_processes_train_what_one_trains_with_twice_the_batch(name, folder):
    first, second = (
        json.loads((folder / f"group-{rank}.json").read_text())[name] for rank in range(2)
    )
    twice = 2 * settings_of(name).sampler.batch_size
    alone = json.loads(json.dumps(on_whole(name, str(folder / "group"), batch_size=twice)))
    for one, other in zip(first, second, strict=True):
        for what in ("records", "scores", "weights"):
            assert one[what] == other[what]
            # Adam divides a gradient by its own size: for one near 0, another order of the sum moves
            # the weight by as much as 2.2e-5, a thousandth of a step.
            assert close(one[what], alone[what], 1e-4), what


def test_the_target_is_named_when_a_graph_is_cut(tmp_path, capsys):
    graph = papers()
    graph.nodes["author"].data["y"] = torch.arange(90) % 2
    graph.save(tmp_path / "data")
    cut = ["partition", tmp_path / "data", "--for processes --parts 2 --method train-first"]
    assert status([*cut, "--output", tmp_path / "none"]) != 0
    assert (
        "nodes of several types have labels, author, paper: name one as the target"
        in capsys.readouterr().err
    )
    assert status([*cut, "--target paper --output", tmp_path / "parts"]) == 0
    parts = GraphParts.open(tmp_path / "parts")
    assert [len(ids) for ids in (parts.train, parts.val, parts.test)] == [100, 50, 50]
    assert (parts.train >= 95).all()
    label = torch.cat([parts.part(k).ndata["label"] for k in range(2)])
    assert (label >= 0).sum() == 200


def test_a_bad_row_of_features_is_named_by_its_number_within_the_type():
    graph = papers()
    graph.nodes["paper"].data["x"][141] = float("nan")
    parts = Parts(graph, [v % 3 % 2 for v in range(graph.num_nodes)], 2)

    def check(held: Graph, rank: int) -> None:
        x = held.nodes["paper"].data["x"]
        with pytest.raises(
            (ValueError, PeerError),
            match=r"features of type 'paper' of .* but row 141 has NaN or inf",
        ):
            check_features(Dataset("papers", held), "paper", x)

    parts.run(check)

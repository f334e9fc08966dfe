"""Several processes train what a single one trains with batches as large as their steps."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from _support.cli_tools import status
from _support.processes import cases_that_run, made_once, run_processes
from _support.run_files import run_of
from _support.training_tools import FAST, planted, stop_after, stopped_at, with_columns

from nodeflow._processes.default_group import default_peers
from nodeflow.datasets import Dataset
from nodeflow.distributed import PeerError
from nodeflow.training import Settings, Stopped, Trainer

PLAIN = FAST.replace(dropout=0.0, epochs=2, batch_size=16, lr=0.01)
LINKS = PLAIN.replace(
    task="link", batch_size=64, chunk=16, negatives=8, embedding=8, hidden=8, epochs=1, decoder="distmult"
)  # fmt: skip
RUNS = {
    "classes": PLAIN,
    "weights": PLAIN.replace(
        class_weights="balanced", label_smoothing=0.1, sampler="labor", model="gcn", clip=0.5
    ),
    "seeds": PLAIN.replace(class_weights="seeds", norm="layer", schedule="cosine", warmup=0.5),
    "added": PLAIN.replace(accumulate=2, model="gat", optimizer="sgd", validate="full"),
    "several": PLAIN.replace(task="multilabel", inputs="both", embedding=4, fanouts=(3,)),
    "numbers": PLAIN.replace(
        task="regression", sampler="bernoulli", batch_size=54, validate_every=2
    ),
    "softmax": LINKS.replace(n3=0.1),
    "one-vs-all": Settings(
        task="link",
        model="none",
        link_loss="one-vs-all",
        decoder="complex",
        embedding=8,
        n3=0.1,
        batch_size=64,
        epochs=1,
        dropout=0,
        edge_type="kind",
        inputs="embedding",
    ),
    "margin": LINKS.replace(
        model="none", link_loss="margin", decoder="transe", inverse=False, inputs="embedding"
    ),
}


ON_PARTS = {
    "control variates": PLAIN.replace(sampler="cv", fanouts=(2, 2), batch_size=10),
    "cached": PLAIN.replace(storage="cached", memory="1 KB", batch_size=10),
    "file": PLAIN.replace(storage="file", validate="full", batch_size=10),
    "relations": PLAIN.replace(model="rgcn", edge_type="kind", batch_size=10),
    "links": LINKS.replace(inputs="both"),
    "links of rows": LINKS.replace(
        model="none", inputs="embedding", link_loss="margin", direction="both"
    ),
    "links of relations": LINKS.replace(
        model="rgcn", edge_type="kind", decoder="complex", direction="out"
    ),
    "sparse": PLAIN.replace(batch_size=10),
    "sparse, cached": PLAIN.replace(
        storage="cached", memory="1 KB", validate="full", batch_size=10
    ),
    "sparse, of a file": PLAIN.replace(storage="file", model="gat", batch_size=10),
    "sparse, control variates": PLAIN.replace(sampler="cv", fanouts=(2, 2), batch_size=10),
}


def data(task: str, *, sparse: bool = False) -> Dataset:
    """The planted graph, labels for a task, and 109 training nodes: shares of last steps differ, or
    are empty.

    ``sparse``: of 40 features 3 are not zero in most rows, and none in every fifth.
    """
    known = planted()
    label = known.graph.ndata["label"]
    if sparse:
        dense = torch.zeros(len(label), 40)
        dense.scatter_(
            1,
            torch.arange(len(label))[:, None] % 13 + torch.arange(3) * 13,
            known.graph.ndata["feat"],
        )
        dense[::5] = 0
        known = with_columns(known, feat=dense.to_sparse_csr())
    labels = {
        "multilabel": torch.stack([label == 0, label > 0], 1).float(),
        "regression": label.double() / 2,
    }.get(task, label)
    classes = {"multilabel": 2, "regression": 0}.get(task, 3)
    return replace(with_columns(known, label=labels), train=known.train[:109], num_classes=classes)


def outcome(
    settings: Settings, dataset: Dataset | None = None, state: Any = None
) -> dict[str, Any]:
    """What a run gives, which goes on from a state: losses, scores and weights."""
    trainer = Trainer(data(settings.run.task) if dataset is None else dataset, settings)
    if state is not None:
        trainer.load_state_dict(state)
    result = trainer.run()
    weights = {
        name: value.flatten().tolist() for name, value in trainer.network.state_dict().items()
    }
    records = [[record.loss, record.scores] for record in result.records]
    sums = [record.seeds_per_second * record.seconds for record in result.records]
    return {"records": records, "scores": result.scores, "weights": weights, "seeds": sums}


PROCESSES = """
import json
sys.path[:0] = [sys.argv[5]]
from test_several_processes import RUNS, failing, means, outcome, outcome_on_parts, refusals, stopping

runs, parts = json.loads(sys.argv[4])
found = {name: outcome(RUNS[name]) for name in runs}
on_parts = {name: outcome_on_parts(name, file) for name in parts}
with open(f"{file}-{rank}.json", "w") as out:
    json.dump([found, refusals(), stopping(rank), on_parts, means(rank), failing(rank)], out)
"""


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What each of two processes found, of the runs whose tests take part."""
    runs = cases_that_run(request, test_two_processes_train_what_one_trains_with_twice_the_batch)
    parts = cases_that_run(request, test_parts_train_what_the_whole_does)

    def make(folder: Path) -> None:
        for name in parts:
            cut_parts(folder, name)
        ended = run_processes(
            PROCESSES, 2, folder, json.dumps([runs, parts]), Path(__file__).parent
        )
        assert not any(one.status for one in ended), "\n".join(one.errors for one in ended)

    folder = made_once(tmp_path_factory, "several-processes", make)
    return [json.loads((folder / f"group-{rank}.json").read_text()) for rank in range(2)]


def cut_parts(folder: Path, name: str) -> None:
    settings = ON_PARTS[name]
    data("auto", sparse=name.startswith("sparse")).save(folder / "data", overwrite=True)
    cut = ["partition", folder / "data", "--for processes --parts 2 --method hash"]
    if settings.run.task == "link":
        cut += ["--links --edge-type", settings.graph.edge_type]
    out = ["--output", parts_of(folder, name)]
    assert status([*cut, "--direction", settings.graph.direction, *out]) == 0


def parts_of(folder: Path, name: str) -> str:
    return str(folder / name.replace(" ", "-"))


def outcome_on_parts(name: str, file: str) -> Any:
    """The same of a part in each process."""
    run = run_of(ON_PARTS[name].to_dict(), partitions=parts_of(Path(file).parent, name))
    state = None
    # that of all processes, after some steps of the second epoch
    if name.endswith("control variates"):
        trainer = Trainer(run.dataset(), run.settings)
        assert stopped_at(trainer, 9)
        state = trainer.state_dict()
        assert state["task"]["history"]["h_1"].shape == (300, 16)
    dataset = run.dataset()
    feat = dataset.graph.ndata["feat"]
    assert feat.layout == (torch.sparse_csr if name.startswith("sparse") else torch.strided)
    return outcome(run.settings, dataset, state)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ON_PARTS)
def test_parts_train_what_the_whole_does(name, found):
    first, second = (one[3][name] for one in found)
    assert first == second | {"seeds": first["seeds"]}
    settings = ON_PARTS[name]
    whole = data("auto", sparse=name.startswith("sparse"))
    whole = replace(whole, **{part: nodes.sort().values for part, nodes in whole.splits.items()})
    changes = {"storage": "memory", "batch_size": 2 * settings.sampler.batch_size}
    alone = outcome(settings.replace(**changes), whole)
    for what in ("records", "scores", "weights"):
        assert close(first[what], json.loads(json.dumps(alone[what])), 1e-4), what


def close(one: Any, other: Any, tolerance: float = 2e-5) -> bool:
    """Whether two trees have the same numbers up to rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            close(one[name], other[name], tolerance) for name in one
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(
            close(*pair, tolerance) for pair in zip(one, other, strict=True)
        )
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", RUNS)
def test_two_processes_train_what_one_trains_with_twice_the_batch(name, found):
    first, second = (one[0][name] for one in found)
    assert first == second | {"seeds": first["seeds"]}
    whole = outcome(RUNS[name].replace(batch_size=2 * RUNS[name].sampler.batch_size))
    for what in ("records", "scores", "weights"):
        assert close(first[what], json.loads(json.dumps(whole[what]))), what


def refusals() -> list[str]:
    """Why runs are refused."""
    changes: list[dict[str, Any]] = [
        {"sampler": "saint"}, {"sampler": "cluster"}, {"sampler": "cv"}, {"norm": "batch"}, {"model": "gin"},
        {"share": "owned"}, {"seed": torch.distributed.get_rank()},
    ]  # fmt: skip
    found = []
    for change in changes:
        try:
            Trainer(planted(), PLAIN.replace(**change))
        except ValueError as error:
            found.append(str(error))
    twice = replace(planted(), train=[5, 3, 5], val=[], test=[])
    with pytest.raises(ValueError, match=r"must be given once .* but node 5") as caught:
        Trainer(twice, PLAIN)
    return [*found, str(caught.value)]


def test_runs_that_several_processes_cannot_share_are_refused_on_all(found):
    assert found[0][1] == found[1][1]
    reasons = [
        "'saint' .* several processes: a batch is one subgraph", "'cluster' .* several", "'cv' .* the history",
        r"batch normalisation", "batch normalisation", r"share .* with a part of the graph",
        "must be the same .* seed is 0 on rank 0 and 1 on",
        "training nodes",
    ]  # fmt: skip
    assert len(found[0][1]) == len(reasons)
    for text, reason in zip(found[0][1], reasons, strict=True):
        assert re.search(reason, text), text


def stopping(rank: int) -> list[int]:
    """After how many batches all stop where rank 1 alone is asked to."""
    trainer = Trainer(planted(), PLAIN.replace(epochs=5))
    if rank == 1:
        stop_after(trainer, len(trainer.batches) + 2)
    with pytest.raises(Stopped):
        trainer.run()
    return [trainer.epoch, trainer.batches_done]


def test_all_stop_at_the_same_batch(found):
    assert [one[2] for one in found] == [[1, 2], [1, 2]]


def means(rank: int) -> list[float | None]:
    """The gradients of parameters that both processes use, that one uses, and that none does."""
    both, one, none = parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(3)]
    both.grad = torch.tensor([float(rank)])
    one.grad = torch.ones(1) if rank else None
    with default_peers().averaging(parameters):
        pass
    return [None if each.grad is None else each.grad.item() for each in (both, one, none)]


def test_gradients_are_averaged_where_any_process_has_some(found):
    assert [one[4] for one in found] == [[0.5, 0.5, None]] * 2


def failing(rank: int) -> list[str]:
    """The errors of a run where one process, first 0 and then 1, cannot report an epoch."""
    errors = []
    for failed in range(2):

        def report(_: object, *, failed: int = failed) -> None:
            if rank == failed:
                raise OSError("the disk is full")

        with pytest.raises((OSError, PeerError)) as caught:
            Trainer(planted(), PLAIN).run(report)
        errors.append(f"{type(caught.value).__name__}: {caught.value}")
    return errors


def test_an_error_of_one_process_is_named_to_the_others(found):
    for failed in range(2):
        assert found[failed][5][failed] == "OSError: the disk is full"
        assert found[1 - failed][5][failed].startswith(f"PeerError: rank {failed} failed")
        assert "OSError: the disk is full" in found[1 - failed][5][failed]

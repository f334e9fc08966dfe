"""A run with a history, stored in the middle of an epoch and gone on with in new objects, ends bit
for bit the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy

from nodeflow import Graph, NodeFlowLoader, transform
from nodeflow.control_variates import ControlVariateSampler, History, Updater
from nodeflow.nn import VRGCN, VRGraphSAGE, VRModel

pytestmark = pytest.mark.usefixtures("one_thread")

NODES = 60
EPOCHS = 3
BATCHES = 4
PASSES = 5  # calls between full passes; some come before the checkpoint, some after
KINDS = {VRGCN: "both", VRGraphSAGE: "right"}
STORED = BATCHES + 2  # steps before the checkpoint: two batches into the second epoch


def random_graph() -> Graph:
    rng = np.random.default_rng(3)
    label = rng.integers(3, size=NODES)
    feat = (np.eye(3)[label] + rng.normal(0, 1, (NODES, 3))).astype(np.float32)
    ends = rng.integers(NODES, size=(2, 5 * NODES))
    return transform.add_self_loops(
        Graph.from_edges(*ends, num_nodes=NODES, ndata={"feat": feat, "label": label})
    )


class Run:
    """A model in training, its optimizer, its loader, its history, and the updater of the history.

    ``chance`` is what the weights and the state of the generator are before a checkpoint is taken
    over.
    """

    def __init__(
        self,
        graph: Graph,
        kind: type[VRModel],
        aggregated: str,
        chance: int,
        folder: Path | None = None,
    ) -> None:
        self.folder = folder
        torch.manual_seed(chance)
        graph.edata["p"] = transform.edge_norm(graph, KINDS[kind])
        x = graph.ndata["feat"]
        self.model = kind(3, 8, 3, num_layers=3, estimator="cvd", dropout=0.4)
        self.history = History(
            graph.view(weight="p"),
            self.model.history_widths,
            inputs=x,
            aggregated=aggregated,
            folder=folder,
        )
        self.updater = Updater(self.model, self.history, x, every=PASSES)
        sampler = ControlVariateSampler(self.history, [1, 2, 1], seed=4)
        columns = {0: ["feat"], -1: ["label"]}
        self.loader = NodeFlowLoader(
            sampler,
            range(NODES),
            NODES // BATCHES,
            shuffle=True,
            seed=4,
            num_workers=chance % 3,
            ndata=columns,
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        self.losses: list[float] = []

    def epoch(self, checkpoint: Path | None = None) -> None:
        """Train to the end of the epoch; store everything after step ``STORED``, on the way."""
        for batch in self.loader:
            self.updater.step()
            loss = cross_entropy(
                self.model(batch, batch.ldata[0]["feat"]), batch.ldata[-1]["label"]
            )
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if not self.history.stored:
                self.history.push(batch)
                self.history.commit()
            self.losses.append(loss.item())
            if checkpoint is not None and len(self.losses) == STORED:
                self.save(checkpoint)

    def save(self, folder: Path) -> None:
        folder.mkdir()
        state = {
            "optimizer": self.optimizer.state_dict(),
            "loader": self.loader.state_dict(),
            "updater": self.updater.state_dict(),
            "random": torch.get_rng_state(),  # dropout
        }
        torch.save(
            {**state, "model": self.model.state_dict(), "history": self.history.state_dict()},
            folder / "run.pt",
        )
        save_file(self.model.state_dict(), folder / "model.safetensors")
        save_file(self.history.state_dict(), folder / "history.safetensors")
        if self.folder is not None:
            shutil.copytree(self.folder, folder / "rows")

    def load(self, folder: Path, *, safe: bool = False, history: bool = True) -> None:
        state = torch.load(folder / "run.pt")
        self.model.load_state_dict(
            load_file(folder / "model.safetensors") if safe else state["model"]
        )
        if history:
            self.history.load_state_dict(
                load_file(folder / "history.safetensors") if safe else state["history"]
            )
        self.optimizer.load_state_dict(state["optimizer"])
        self.loader.load_state_dict(state["loader"])
        self.updater.load_state_dict(state["updater"])
        torch.set_rng_state(state["random"])

    def end(self) -> list[Any]:
        """All numbers that later steps depend on."""
        moments = [
            value
            for state in self.optimizer.state_dict()["state"].values()
            for value in state.values()
        ]
        tensors = [*self.model.state_dict().values(), *self.history.state_dict().values(), *moments]
        return [tensor.tolist() for tensor in tensors]


def straight(
    kind: type[VRModel], aggregated: str, tmp_path: Path, *, files: bool
) -> tuple[Graph, Run]:
    """A run without interruption, which stores a checkpoint on the way; the folder of its history
    goes on with it.
    """
    graph = random_graph()
    run = Run(graph, kind, aggregated, 0, tmp_path / "rows" if files else None)
    for _ in range(EPOCHS):
        run.epoch(tmp_path / "checkpoint")
    assert len(run.losses) == EPOCHS * BATCHES
    assert len(set(run.losses)) == len(run.losses)
    return graph, run


def go_on(run: Run) -> None:
    assert run.loader.epoch == 1
    for _ in range(EPOCHS - 1):
        run.epoch()


@pytest.mark.parametrize("aggregated", ["on demand", "stored"])
@pytest.mark.parametrize(
    ("kind", "files", "where"),
    [(VRGCN, True, where) for where in ("reopened", "ahead", "new", "memory")]
    + [(kind, False, where) for kind in KINDS for where in ("memory", "safetensors")],
)
def test_a_run_goes_on(kind, files, aggregated, where, tmp_path):
    """Files of the moment need no state; those of a run that went further, or of none, take that of
    the checkpoint.
    """
    folders = {
        "reopened": tmp_path / "checkpoint" / "rows",
        "ahead": tmp_path / "rows",
        "new": tmp_path / "other",
    }
    graph, run = straight(kind, aggregated, tmp_path, files=files)
    losses = run.losses
    expected = run.end()
    del run
    again = Run(graph, kind, aggregated, 1 + files, folders.get(where))
    at_end = int(again.history.step)
    again.load(tmp_path / "checkpoint", safe=where == "safetensors", history=where != "reopened")
    assert (int(again.history.step) < at_end) == (where == "ahead")
    go_on(again)
    assert again.losses == losses[STORED:]
    assert again.end() == expected


@pytest.mark.parametrize("left_out", ["history", "loader", "random", "updater"])
def test_every_part_of_the_checkpoint_is_needed(left_out, tmp_path):
    """So that the tests above would notice what is lost."""
    graph, run = straight(VRGCN, "on demand", tmp_path, files=False)
    again = Run(graph, VRGCN, "on demand", 1)
    lost = {
        "loader": {"epoch": 1, "batch_number": 0}, "random": torch.get_rng_state(), "updater": {"calls": 0},
        "history": again.history.state_dict(),
    }  # fmt: skip
    state = torch.load(tmp_path / "checkpoint" / "run.pt")
    state[left_out] = (
        {**state["loader"], **lost["loader"]} if left_out == "loader" else lost[left_out]
    )
    torch.save(state, tmp_path / "checkpoint" / "run.pt")
    again.load(tmp_path / "checkpoint")
    go_on(again)
    assert again.losses[: len(run.losses) - STORED] != run.losses[STORED:]

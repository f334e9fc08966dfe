"""Processes that sample and train together on this machine, and the data that they open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nodeflow import Graph
from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.distributed import partition_graph
from nodeflow.random import Random
from nodeflow.transform import add_reverse_edges, is_symmetric

HERE = Path(__file__).resolve().parent


class Ranks:
    """So many processes in one gloo group over loopback, each with one thread of torch
    (``workers/rank_worker.py``).
    """

    def __init__(self, size: int, folder: Path) -> None:
        file = folder / f"group-{size}"
        path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        script = str(HERE / "workers" / "rank_worker.py")
        pipe = subprocess.PIPE
        self.size = size
        self.processes = [
            subprocess.Popen(
                [sys.executable, script, str(rank), str(size), str(file)], stdin=pipe, stdout=pipe, text=True,
                env=environment,
            )
            for rank in range(size)
        ]  # fmt: skip

    def ask(self, job: str, **options: Any) -> list[dict[str, Any]]:
        """Let all processes do a job; return the answer of each."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps([job, options]) + "\n")
            process.stdin.flush()
        return [self._answer(rank) for rank in range(self.size)]

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.kill()
            process.communicate()

    def _answer(self, rank: int) -> dict[str, Any]:
        stdout = self.processes[rank].stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            raise SystemExit(
                f"process {rank} of {self.size} ended with status {self.processes[rank].wait()}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


class Data:
    """A data set in a folder: the graph with the reverse of every edge, whole and cut, and the ids
    of its split.

    Features have ``width`` columns: those of the data set times a random matrix, since sparse ones
    cannot be cut.
    """

    def __init__(self, name: str, width: int, folder: Path) -> None:
        self.dataset: Dataset = debian() if name == "debian" else read_folder(name)
        self.folder = folder / self.dataset.name
        self.folder.mkdir()
        graph = self.dataset.graph
        graph = graph if is_symmetric(graph) else add_reverse_edges(graph)
        given = graph.ndata["feat"].float()
        matrix = 2 * Random(0).uniform(range(given.shape[1] * width)).view(-1, width).float() - 1
        columns = {"feat": given @ matrix, "label": graph.ndata["label"]}
        self.graph = Graph(graph.indptr, graph.indices, ndata=columns)
        self.graph.save(self.folder / "whole")
        self.classes = int(columns["label"].max()) + 1
        for kind in ("train", "test"):
            np.save(
                self.folder / f"{kind}.npy", torch.as_tensor(getattr(self.dataset, kind)).numpy()
            )

    def whole(self) -> str:
        """Return the folder of the whole graph."""
        return str(self.folder / "whole")

    def file(self, kind: str) -> str:
        """Return the file of the ids of "train" or "test"."""
        return str(self.folder / f"{kind}.npy")

    def parts(self, size: int, method: str = "metis", edges: str = "in") -> str:
        """Return the folder of the graph in so many parts, which is made when first asked for."""
        folder = self.folder / f"{method}-{edges}-{size}"
        if not folder.exists():
            partition_graph(self.graph, folder, size, method=method, edges=edges, progress=False)
        return str(folder)

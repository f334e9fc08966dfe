"""The writers of the package, each as a chain of versions of one folder, for trials that interrupt
them.
"""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from contents import (
    NODES,
    WIDTH,
    chosen,
    data_folder,
    dataset,
    graph,
    narrow,
    of,
    of_files,
    result,
    sparse,
    trainer,
)

from nodeflow import Graph, datasets, distributed, nn, storage
from nodeflow.control_variates import History
from nodeflow.storage import EmbeddingTable
from nodeflow.training import load_model, save, write_predictions
from nodeflow.training._checkpoints import STATE, read_state
from nodeflow.training._cli import main
from nodeflow.training._folder import read_log, read_result
from nodeflow.training._result import read_trace

NOTHING = "nothing"
UNFINISHED = "unfinished"


class Writer:
    """A writer of a folder.

    ``act`` brings the folder ``home`` from version v - 1 to v, with the object that ``open`` made;
    ``read`` gives a digest of all that a reader sees, or raises. ``between`` are further digests
    that an interrupted write may leave.
    """

    name = ""
    between: frozenset[str] = frozenset()
    keeps_session = False
    """Whether one object is open over many writes."""
    is_continued = False
    """Whether the next write goes on with what an interrupted one left."""
    alternates = False
    """Whether versions have two contents in turn."""

    def open(self, home: Path) -> Any:
        return None

    def act(self, home: Path, session: Any, version: int) -> None:
        raise NotImplementedError

    def close(self, session: Any) -> None:
        pass

    def read(self, home: Path) -> str:
        raise NotImplementedError

    def seen(self, session: Any) -> str:
        """Return the digest of what an open object holds."""
        raise NotImplementedError

    def in_memory(self) -> Writer:
        """Return the same writer without files."""
        raise NotImplementedError

    def begins(self, twin: Path) -> str:
        """Return the digest before the first version."""
        return NOTHING

    def write(self, home: Path, version: int) -> None:
        session = self.open(home)
        try:
            self.act(home, session, version)
        finally:
            self.close(session)


class Replaced(Writer):
    """A writer that replaces what is there; versions alternate between two contents."""

    alternates = True

    def __init__(
        self, name: str, write: Callable[[Path, int], object], check: Callable[[Path], object]
    ) -> None:
        self.name = name
        self._write = write
        self._check = check

    def act(self, home: Path, session: Any, version: int) -> None:
        self._write(home / "it", version % 2)

    def read(self, home: Path) -> str:
        if not home.joinpath("it").exists() and not home.joinpath("it.csv").exists():
            return NOTHING
        self._check(home / "it")
        return of_files(home)


class Saved(Replaced):
    """``training.save``, which replaces several files: where it was interrupted, the folder is no
    finished run.
    """

    between = frozenset([UNFINISHED])

    def read(self, home: Path) -> str:
        if (home / "it").exists() and not (home / "it" / "result.json").exists():
            return UNFINISHED
        return super().read(home)


class Created(Writer):
    """``storage.create``: the file is complete as soon as it has its name; versions make and remove
    it.
    """

    name = "storage.create"
    alternates = True

    def act(self, home: Path, session: Any, version: int) -> None:
        if version % 2:
            storage.create(home / "x.npy", (NODES, WIDTH))
        else:
            (home / "x.npy").unlink(missing_ok=True)
            storage.create(home / "x.npy", (NODES, WIDTH))
            (home / "x.npy").unlink()

    def read(self, home: Path) -> str:
        if not (home / "x.npy").exists():
            return NOTHING
        return of(storage.open(home / "x.npy").fetch(torch.arange(NODES)))


class Table(Writer):
    """Steps of an ``EmbeddingTable``."""

    def __init__(self, *, files: bool, num_rows: int = NODES) -> None:
        self.name = "EmbeddingTable, " + ("files" if files else "memory")
        self._files = files
        self._num = num_rows
        self.keeps_session = True

    def in_memory(self) -> Writer:
        return Table(files=False, num_rows=self._num)

    def open(self, home: Path) -> EmbeddingTable:
        folder = home / "table" if self._files else None
        return EmbeddingTable(self._num, WIDTH, lr=0.1, optimizer="adam", folder=folder)

    def act(self, home: Path, session: EmbeddingTable, version: int) -> None:
        session.drop()  # pulls of a step that failed
        rows = session.pull(chosen(self._num, version))
        (rows * torch.arange(rows.numel()).view_as(rows).cos()).sum().backward()
        session.step()

    def close(self, session: EmbeddingTable) -> None:
        session.close()

    def begins(self, twin: Path) -> str:
        return self.in_memory().seen(self.in_memory().open(twin))

    def read(self, home: Path) -> str:
        session = self.open(home)
        try:
            return self.seen(session)
        finally:
            session.close()

    def seen(self, session: EmbeddingTable) -> str:
        return of(*session._store.arrays.values(), session.fetch(torch.arange(self._num)))


class Kept(Writer):
    """Commits of a ``History``, or its renewal where all rows are replaced."""

    def __init__(self, *, files: bool, renewal: bool = False, num_rows: int = NODES) -> None:
        self.name = f"History, {'renewal, ' if renewal else ''}{'files' if files else 'memory'}"
        self._files = files
        self._renewal = renewal
        self._num = num_rows
        self.keeps_session = True

    def in_memory(self) -> Writer:
        return Kept(files=False, num_rows=self._num)

    def open(self, home: Path) -> History:
        ring = Graph.from_edges(np.arange(self._num), np.roll(np.arange(self._num), 1))
        return History(ring, {1: WIDTH, 2: 4}, folder=home / "history" if self._files else None)

    def act(self, home: Path, session: History, version: int) -> None:
        if self._renewal:
            with session.renewal() as rows:
                for tensor in rows.values():
                    tensor.fill_(version)
            return
        session._staged.clear()  # pushes of a commit that failed
        for layer, width in session.widths.items():
            ids = chosen(self._num, version)
            session.write(layer, ids, torch.full((len(ids), width), float(version)))
        session.commit()

    def close(self, session: History) -> None:
        session.close()

    begins = Table.begins
    read = Table.read

    def seen(self, session: History) -> str:  # type: ignore[override]
        return of(*session._store.arrays.values(), *(b for _, b in session.named_buffers()))


class Epochs(Writer):
    """Epochs of a ``PartitionBuffer`` with learned rows."""

    name = "PartitionBuffer"

    def act(self, home: Path, session: Any, version: int) -> None:
        if not (home / "parts").exists():
            distributed.write_partitions(
                graph(0), home / "parts", 4, method="random", progress=False
            )
        with distributed.PartitionBuffer(home / "parts", 2, order="beta", writable=["x"]) as buffer:
            for state in buffer:
                state.graph.ndata["x"][:] = version

    def read(self, home: Path) -> str:
        if not (home / "parts").exists():
            return NOTHING
        return of(
            distributed.Partitions.open(home / "parts", verify=True)
            .column("x")
            .fetch(torch.arange(NODES))
        )


class Pass(Writer):
    """A full pass whose inner layers lie in files, which are gone afterwards."""

    name = "inference(folder=)"

    def act(self, home: Path, session: Any, version: int) -> None:
        torch.manual_seed(0)
        model = nn.GraphSAGE(WIDTH, WIDTH, 4, 3)
        model.inference(graph(0), graph(0).ndata["x"], folder=home, chunk_size=NODES // 4)

    def read(self, home: Path) -> str:
        return NOTHING


class Trained(Writer):
    """A run of ``nodeflow train`` from its start, or from where it was interrupted, to its end."""

    name = "nodeflow train"
    between = frozenset([NOTHING, UNFINISHED])
    is_continued = True

    def __init__(self, scratch: Path) -> None:
        self._data = data_folder(scratch)

    def act(self, home: Path, session: Any, version: int) -> None:
        run = home / "run"
        if (run / "result.json").exists():
            shutil.rmtree(run)
        again = (run / "run.toml").exists()
        words = (
            ["--resume", str(run)] if again else [str(self._data), *OPTIONS, "--output", str(run)]
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = main(["train", *words])
        if status:
            raise OSError(printed.getvalue().strip())

    def read(self, home: Path) -> str:
        run = home / "run"
        if not (run / "run.toml").exists():
            return NOTHING
        if (run / STATE).exists():
            read_state(run / STATE)
        if not (run / "result.json").exists():
            return UNFINISHED
        return of_run(run)


OPTIONS = [
    "--fanouts",
    "3",
    "3",
    "--batch-size",
    "8",
    "--hidden",
    "8",
    "--epochs",
    "6",
    "--no-plot",
    "--seed",
    "1",
]


def graph_contents(place: Path) -> object:
    return Graph.open(place, verify=True)


def save_result(place: Path, version: int) -> None:
    save(result(version), place)


def of_run(place: Path) -> str:
    """Return the digest of a finished run; raises ValueError for files of several runs."""
    facts = read_result(place)
    load_model(place / "checkpoint.safetensors")
    best = max(record.score for record in read_log(place / "log.csv", facts["metric"]))
    if best != facts["best_val_score"]:
        raise ValueError(f"{place}: the log is of another run than the result")
    read_trace(place / "trace.csv")
    return of_files(place, "checkpoint.safetensors", "trace.csv")


def build(scratch: Path) -> Callable[[Path, int], object]:
    files = [scratch / f"edges-{version}.npy" for version in (0, 1)]
    for version, file in enumerate(files):
        np.save(file, np.stack([end.numpy() for end in graph(version).edges()], 1))
    return lambda place, version: datasets.build_graph(
        files[version], place, overwrite=True, progress=False
    )


def predict(place: Path, version: int) -> None:
    write_predictions(place.with_suffix(".csv"), trainer(), np.arange(version, NODES, 2))


def predictions(place: Path) -> None:
    lines = place.with_suffix(".csv").read_text().splitlines()
    if len(lines) != NODES // 2 + 1 or {line.count(",") for line in lines} != {2}:
        raise ValueError(f"{place} is not whole")


def all_writers(scratch: Path) -> dict[str, Writer]:
    """Return the writers by name; what they read lies in ``scratch``."""
    quiet: dict[str, Any] = {"overwrite": True, "progress": False}
    replaced = [
        ("Graph.save", lambda place, v: graph(v).save(place, overwrite=True), graph_contents),
        (
            "Graph.save, narrow",
            lambda place, v: narrow(v).save(place, overwrite=True),
            graph_contents,
        ),
        ("Dataset.save", lambda place, v: dataset(v).save(place, overwrite=True), graph_contents),
        (
            "write_partitions",
            lambda place, v: distributed.write_partitions(
                graph(v), place, 3, method="random", **quiet
            ),
            lambda place: distributed.Partitions.open(place, verify=True),
        ),
        (
            "partition_graph",
            lambda place, v: distributed.partition_graph(
                graph(v), place, 3, method="random", **quiet
            ),
            lambda place: [
                distributed.GraphParts.open(place, verify=True).part(k) for k in range(3)
            ],
        ),
        ("build_graph", build(scratch), graph_contents),
        (
            "save_sparse",
            lambda place, v: storage.save_sparse(place, sparse(v), overwrite=True),
            storage.open,
        ),
        ("write_predictions", predict, predictions),
    ]
    stores = [Table(files=True), Kept(files=True), Kept(files=True, renewal=True), Epochs()]
    writers = [
        *(Replaced(*each) for each in replaced),
        Saved("training.save", save_result, of_run),
        Created(),
        *stores,
        Pass(),
        Trained(scratch),
    ]
    return {writer.name: writer for writer in writers}


def prepare(only: str | None) -> None:
    """Make in this process what writers of forked processes share: of all, or of one of them."""
    torch.set_num_threads(1)
    for version in (0, 1) if only in (None, "training.save") else ():
        result(version)
    if only in (None, "write_predictions"):
        trainer().outputs(torch.arange(3))

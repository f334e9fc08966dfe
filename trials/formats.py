"""What the fuzzer reads: small folders and files of every format, what writes one, and what reads
it and uses it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from _support import file_formats
from _support.cli_tools import SMALL, two_communities
from _support.file_formats import GRAPH, NODES, digest, of_graph, table, write_table
from _support.training_tools import planted

from nodeflow import storage
from nodeflow._files.store.journal import Journal
from nodeflow.datasets import Dataset, build_graph, read_edge_list, read_folder, read_ogb
from nodeflow.training import load_model, open_trainer
from nodeflow.training._cli import main
from nodeflow.training._folder import Run, read_log, read_result
from nodeflow.training._result import read_trace

__all__ = ["FORMATS", "Format", "digest"]


@dataclass(frozen=True)
class Format:
    """What writes a file or folder; what reads it; the files of it that are changed, and whether
    these have checksums.

    ``ending``: of a single file.
    """

    write: Callable[[Path], object]
    read: Callable[[Path], Iterable[Any]]
    only: str = ""
    checked: bool = True
    ending: str = ""


def of_data(data: Dataset) -> Iterable[Any]:
    yield from of_graph(data.graph)
    yield from data.splits.items()
    yield from (
        str(data.num_classes),
        str(data.class_names),
        str(data.node_names)[:2000],
        data.info(),
    )


def by_command(*words: str) -> list[str]:
    """Run the command in this process; return what it prints, or raise its error."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        status = main([*words])
    if status == 2:
        raise ValueError(shown.getvalue())
    return [shown.getvalue()]


def write_killed(place: Path) -> None:
    """Write the table of a process that was killed in a commit."""
    write_table(place)
    rows = {"rows": torch.from_numpy(np.load(place / "0" / "rows.npy"))}
    Journal(place / "journal").record(rows, [("rows", torch.arange(0, NODES, 3))])


def write_run(place: Path) -> None:
    data = two_communities(place.parent / "two")
    words = [
        "train",
        str(data),
        *SMALL,
        "--output",
        str(place),
        "--no-plot",
        "--checkpoint-every",
        "1",
    ]
    if by_command(*words) and not (place / "result.json").exists():
        raise ValueError("the run did not end")
    # as if it had ended after its first epoch, so that a step follows what is read
    text = (place / "run.toml").read_text()
    (place / "run.toml").write_text(text.replace("epochs = 2", "epochs = 3"))


def write_arrays(place: Path) -> None:
    data = planted()
    src, dst = data.graph.edges()
    place.mkdir()
    np.savez(place / "edges.npz", src=src[:400], dst=dst[:400], kind=data.graph.edata["kind"][:400])
    np.save(place / "labels.npy", data.graph.ndata["label"])
    scipy.sparse.save_npz(
        place / "features.npz", scipy.sparse.csr_matrix(data.graph.ndata["feat"].numpy()[:, :1])
    )
    for part, nodes in data.splits.items():
        np.save(place / f"{part}.npy", nodes)


def write_matrix(place: Path) -> None:
    place.mkdir()
    draw = np.random.default_rng(0)
    scipy.sparse.save_npz(
        place / "adjacency.npz", scipy.sparse.random(NODES, NODES, 0.05, "csr", rng=draw)
    )
    np.save(place / "features.npy", draw.random((NODES, 2), np.float32))
    scipy.sparse.save_npz(
        place / "labels.npz", scipy.sparse.random(NODES, 3, 0.3, "coo", rng=draw).sign()
    )


def write_text(place: Path, rows: int = 20) -> None:
    place.mkdir()
    edges = [f"n{i},n{(7 * i + 3) % rows},{i % 3},{'abc'[i % 3]}" for i in range(rows)]
    nodes = [f"n{i},{'xyz'[i % 3]},{i / 4},{['train', 'val', 'test'][i % 3]}" for i in range(rows)]
    (place / "edges.csv").write_text("\n".join(["src,dst,time,kind", *edges, ""]))
    (place / "nodes.csv.gz").write_bytes(
        gzip.compress("\n".join(["id,label,f,split", *nodes, ""]).encode())
    )


def write_triples(place: Path) -> None:
    place.mkdir()
    for part, step in (("train", 1), ("valid", 5), ("test", 7)):
        lines = [f"e{i}\tr{i % 3}\te{(3 * i + step) % 20}" for i in range(0, 20, step)]
        (place / f"{part}.tsv").write_text("\n".join([*lines, ""]))


def write_ogb(place: Path) -> None:
    files = {
        "raw/edge": "0,1\n1,2\n3,0\n", "raw/edge-feat": "0.5\n1.5\n2.5\n", "raw/node-label": "0\n2\nnan\n1\n",
        "raw/node-feat": "1.0,0.25\n-1e-3,0\n0,0\n2,3\n", "raw/num-node-list": "4\n", "raw/num-edge-list": "3\n",
        "split/time/train": "0\n", "split/time/valid": "1\n", "split/time/test": "3\n2\n",
    }  # fmt: skip
    for name, text in files.items():
        file = place / f"{name}.csv.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()))


def write_edges(place: Path) -> None:
    place.mkdir()
    src, dst = GRAPH.edges()
    lines = [f"{a},{b},{a * b},{a / 8}" for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
    (place / "a.csv").write_text("\n".join(["src,dst,n,w", *lines, ""]))
    (place / "b.txt.gz").write_bytes(
        gzip.compress("".join(f"{a} {b}\n" for a, b in src.view(-1, 2)[:9]).encode())
    )
    np.save(place / "c.npy", torch.stack([src, dst], 1))
    np.save(place / "s.npy", src)
    np.save(place / "d.npy", dst)


def read_build(place: Path) -> Iterable[Any]:
    files: list[Any] = [place / "a.csv"], [place / "c.npy"], [(place / "s.npy", place / "d.npy")]
    for number, each in enumerate(files):
        graph = build_graph(
            each, place.parent / "built", num_nodes=NODES, overwrite=True, progress=False
        )
        yield from of_graph(graph)
        yield str(number)


def read_lists(place: Path) -> Iterable[Any]:
    for name, header in (("a.csv", True), ("b.txt.gz", False)):
        yield from of_graph(read_edge_list(place / name, num_nodes=NODES, header=header))


def read_state(place: Path) -> Iterable[Any]:
    state = place / "state.safetensors"
    # such a run starts from the beginning, as it should
    if not (state.is_symlink() or state.exists()):
        raise FileNotFoundError(f"{state} is gone")
    trainer = open_trainer(place, read_folder(place.parent / "two"))
    trainer.train_epoch()
    return sorted(trainer.network.state_dict().items())


def read_model(place: Path) -> Iterable[Any]:
    network = load_model(place / "checkpoint.safetensors")
    return [str(network.training), *sorted(network.state_dict().items())]


def read_run_files(place: Path) -> Iterable[Any]:
    yield str(Run.read(place).values())
    yield str(read_result(place))
    yield str(read_log(place / "log.csv", "accuracy"))
    yield str(read_trace(place / "trace.csv"))
    yield from by_command("compare", str(place))


def read_raw(place: Path) -> Iterable[Any]:
    try:
        return [storage.open(place, shape=(NODES, 3), dtype=torch.float32).fetch(range(NODES))]
    except TypeError as error:  # a folder takes no shape
        raise ValueError(str(error)) from error


FORMATS: dict[str, Format] = {
    name: Format(
        write,
        read,
        checked=name not in file_formats.PLAIN,
        ending=f".{name}" * (name in file_formats.PLAIN),
    )
    for name, (write, read) in file_formats.FORMATS.items()
} | {
    "raw": Format(
        lambda place: place.write_bytes(GRAPH.ndata["x"].numpy().tobytes()),
        read_raw,
        "",
        False,
        ".raw",
    ),
    "killed table": Format(
        write_killed, lambda place: [table(place).fetch(range(NODES))], checked=False
    ),
    "data set, saved": Format(
        lambda place: planted(sparse=True).save(place), lambda place: of_data(read_folder(place))
    ),
    "data set, arrays": Format(
        write_arrays, lambda place: of_data(read_folder(place)), checked=False
    ),
    # labels.npz says how wide the dense matrix of labels is, which may be much
    "data set, matrix": Format(
        write_matrix, lambda place: of_data(read_folder(place)), "adj|feat", checked=False
    ),
    "data set, text": Format(write_text, lambda place: of_data(read_folder(place)), checked=False),
    "data set, triples": Format(
        write_triples, lambda place: of_data(read_folder(place, labels=False)), checked=False
    ),
    "data set, ogb": Format(write_ogb, lambda place: of_data(read_ogb(place)), checked=False),
    "edge lists": Format(write_edges, read_lists, r"\.csv|\.txt", checked=False),
    "build": Format(write_edges, read_build, r"a\.csv|npy", checked=False),
    "checkpoint": Format(write_run, read_model, "checkpoint"),
    "state": Format(write_run, read_state, "state"),
    "run": Format(write_run, read_run_files, r"toml|csv|json", checked=False),
    "evaluate": Format(write_run, lambda place: by_command("evaluate", str(place)), "checkpoint"),
    "reproduce": Format(
        write_run, lambda place: by_command("reproduce", str(place)), r"trace|result", checked=False
    ),
}
"""By the name of the reader."""

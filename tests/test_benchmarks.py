"""The benchmark scripts run, on graphs so small that their figures mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parents[1] / "benchmarks"
RMAT = "--scale 8 --edge-factor 4 --data {tmp}"


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(text: str, start: str = "| ") -> list[list[str]]:
    """Cells of the table rows, without the heading."""
    lines = [
        line for line in text.splitlines() if line.startswith(start) and not line.startswith("|---")
    ]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with the data sets "small", of matrices, and "edges", of edges with relations."""
    folder = tmp_path / "sets" / "small"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    adjacency = scipy.sparse.random(60, 60, 0.1, "csr", rng=rng)
    scipy.sparse.save_npz(folder / "adjacency.npz", (adjacency + adjacency.T).tocsr())
    scipy.sparse.save_npz(
        folder / "features.npz", scipy.sparse.random(60, 9, 0.3, "csr", np.float32, rng=rng)
    )
    np.save(folder / "labels.npy", np.arange(60) % 3)
    sizes = {"src": 60, "dst": 60, "relation": 3, "split": 3}
    edges = {name: rng.integers(0, size, 300).astype(np.int32) for name, size in sizes.items()}
    (folder.parent / "edges").mkdir()
    np.savez(folder.parent / "edges" / "edges.npz", num_nodes=60, num_relations=3, **edges)
    return folder.parent


TABLES: dict[str, tuple[str, list[str]]] = {
    "aggregate.py": (
        f"--ops max gat --widths 16 64 --rounds 1 --times 1 --plot {{plot}} {RMAT}",
        ["max|16", "max|64", "gat|16", "gat|64"],
    ),
    "main_job.py": (
        "--rounds 1 --epochs 2 --hidden 4 --method hash",
        [
            "one core|1|whole|even|1024",
            "all|1|whole|even|1024",
            "all|2|whole|even|1024",
            "all|2|parts|even|1024",
            "all|2|parts|owned|1024",
            "all|2|parts|owned|512",
        ],
    ),
    "step.py": (f"{RMAT} --rounds 1 --varied depth --plot {{plot}}", ["depth|1", "depth|2", "depth|3"]),
    "summary.py": (
        f"{RMAT} --rounds 1 --largest 9 --typed-scale 0.0005",
        ["neighbours|1", "LABOR-0|1", "step, width 128|2", "step, int8 features|2", "step, bf16|2", "step, width 16|2",
         "typed batch|1", "typed batch, read by type|1", "temporal typed batch|1", "typed step|1"],
    ),
    "scaling.py": ("--scales 7 8 --edge-factor 4 --rounds 1 --data {tmp} --plot {plot}", ["7", "8"]),
    "resources.py": (f"{RMAT} --samplers NeighborSampler", ["NeighborSampler"]),
    "estimators.py": (
        "--data {data} --graphs small --draws 40 --plot {plot} --samplers neighbour,_5 "
        "GraphSAINT,_node",
        ["neighbour, 5", "GraphSAINT, node"],
    ),
    "link_speed.py evaluate": (
        "{data}/edges/edges.npz --widths 8 --rounds 1 --triples 20",
        ["distmult|8|20", "complex|8|20"],
    ),
    "link_speed.py train": (
        "{data}/edges/edges.npz --widths 8 --rounds 1 --triples 20 --decoders complex",
        ["complex|8|20", "complex, shared negatives|8|20"],
    ),
    "link_tasks.py": (
        f"{SCRIPTS}/settings/fb15k237-complex.toml --data {{data}}/edges --seeds 2 --epochs 1 "
        "--vary decoder distmult complex",
        ["fb15k237-complex, distmult", "fb15k237-complex, complex"],
    ),
    "larger_than_memory.py": (
        "--data {tmp} --scale 13 --edge-factor 4 --width 16 --batches 2 --epochs 1",
        ["nothing", "LRU", "random", "degree", "reach (analytic)", "presample", "lookahead"],
    ),
    "building.py": (
        f"{RMAT} --memory 50_MB",
        ["build_graph|50 MB", "write_partitions|", "partition_graph, in|", "partition_graph, out|"],
    ),
    "devices.py": (
        f"{RMAT} --rounds 1 --width 4 --batch-size 16 --largest 64 --samplers uniform temporal",
        ["draw, uniform", "draw, temporal", "rows", "step"],
    ),
}  # fmt: skip
"""Of every script that prints one table: its arguments, with "_" for spaces within one, and how the
rows begin.
"""


@pytest.mark.parametrize("script", TABLES)
def test_a_script_prints_its_table(script, data, tmp_path):
    arguments, heads = TABLES[script]
    places = {"tmp": tmp_path, "data": data, "plot": tmp_path / "picture.png"}
    name, *job = script.split()
    rows = rows_of(run(name, *job, *_words(arguments, places)))[1:]
    assert [
        "|".join(row[: head.count("|") + 1]) for row, head in zip(rows, heads, strict=True)
    ] == heads
    numbers = [float(cell) for row in rows for cell in row if cell.replace(".", "", 1).isdigit()]
    assert numbers
    assert all(number >= 0 for number in numbers)
    if "{plot}" in arguments:
        assert places["plot"].stat().st_size > 1000


def _words(arguments: str, places: dict[str, Path]) -> list[str]:
    """The arguments of a command; in "50_MB" and "neighbour,_5" the line stands for a space."""
    words = [word.format(**places) if "{" in word else word for word in arguments.split()]
    return [
        word.replace("_", " ") if "," in word or word.endswith("_MB") else word for word in words
    ]


@pytest.mark.parametrize(
    ("job", "more", "count"),
    [
        ("sample", [], 6),
        ("labor", [], 3),
        ("step", [], 3),
        ("sample", ["--device", "cpu"], 4),
        ("labor", ["--device", "cpu"], 2),
    ],
)
def test_compare_prints_a_table(job, more, count, tmp_path):
    options = ["--scale", 8, "--edge-factor", "4", "--rounds", 1, "--data", tmp_path, *more]
    rows = rows_of(run("compare.py", job, *options), "| nodeflow")
    assert len(rows) == count
    assert all(float(row[1]) > 0 for row in rows)


def test_compare_with_another_version(tmp_path):
    options = [
        "--scale",
        8,
        "--edge-factor",
        "4",
        "--rounds",
        1,
        "--data",
        tmp_path,
        "--before",
        SCRIPTS.parent,
    ]
    rows = rows_of(run("compare.py", "step", *options))[1:]
    assert [row[0] for row in rows[:2]] == ["nodeflow", "before: uniform"]
    assert rows[0][3] == rows[1][3]  # the same edges, since it is the same version


def test_calls_print_two_tables(tmp_path):
    rows = rows_of(
        run("calls.py", "--rounds", 1, "--scale", 8, "--edge-factor", "4", "--data", tmp_path)
    )
    assert [row[0] for row in rows if row[0].startswith(("flow_compute", "mailboxes"))] == [
        "flow_compute", "flow_compute with an update", "mailboxes"
    ]  # fmt: skip


@pytest.mark.parametrize(("job", "size"), [("accuracy", 2), ("gradients", 3), ("time", 6)])
def test_control_variates_print_tables(job, size, data, tmp_path):
    options = [
        "--data",
        data,
        "--graphs",
        "small",
        "--seeds",
        2,
        "--epochs",
        2,
        "--plot",
        tmp_path / "picture.png",
    ]
    rows = rows_of(run("control_variates.py", job, *options, "--ways", "full", "CV-2"))[1:]
    assert len(rows) == size
    assert all(row[1] == "never" or float(row[1].split(" +- ")[0]) >= 0 for row in rows)
    assert (tmp_path / "picture.png").exists() == (job != "time")


def test_the_speed_of_control_variates_prints_tables(data, tmp_path):
    options = [
        "--data",
        data,
        "--graphs",
        "small",
        "rmat",
        "--rounds",
        1,
        "--scale",
        8,
        "--rmat",
        tmp_path / "made",
    ]
    text = run("control_variates_speed.py", *options)
    rows = [
        row
        for row in rows_of(text)
        if row[0] not in ("step", "full pass") and not row[0].startswith("sums")
    ]
    assert len(rows) == 2 * (6 + 12 + 3)
    assert all(float(row[1]) >= 0 for row in rows)


def test_the_graph_is_symmetric_without_loops_or_repeats():
    sys.path.insert(0, str(SCRIPTS))
    try:
        from rmat import rmat
    finally:
        sys.path.remove(str(SCRIPTS))
    adjacency = rmat(7, 4)
    assert (adjacency != adjacency.T).nnz == 0
    assert adjacency.diagonal().sum() == 0
    assert adjacency.has_canonical_format
    assert (rmat(7, 4) != adjacency).nnz == 0


def test_precision_prints_times_and_accuracies(tmp_path):
    options = ["--scale", 14, "--edge-factor", "4", "--data", tmp_path]
    rows = rows_of(run("precision.py", "--sets", "rmat", "--threads", 1, "--rounds", 1, *options))[
        1:
    ]
    assert [row[:3] for row in rows] == [
        [name, "1", what] for name in ("rmat", "rmat, no dropout") for what in ("step", "epoch")
    ]
    assert all(float(cell) > 0 for row in rows for cell in row[3:])
    rows = rows_of(run("precision.py", "--sets", "rmat", "--accuracy", 2, "--epochs", 1, *options))[
        1:
    ]
    assert [row[1] for row in rows] == ["0", "1", "mean"]


def test_processes_print_tables_and_equal_hashes():
    tiny = (
        "--processes 1 2 --methods ranges hash --steps 2 --rounds 1 --epochs 1 --width 4 "
        "--batch-size 4096 --hidden 4"
    )
    text = run("distributed.py", *tiny.split())
    assert text.rstrip().endswith("all equal")
    rows = rows_of(text)
    assert (
        len(
            [
                row
                for row in rows
                if row[0] == "2" and row[1] in ("ranges", "hash") and len(row) == 13
            ]
        )
        == 8
    )
    assert [row[:2] for row in rows if row[1] in ("in", "out")] == [
        [method, edges] for method in ("ranges", "hash") for edges in ("in", "out")
    ]
    losses = [row for row in rows if len(row) == 6 and row[0] in ("1", "2")]
    assert len(losses) == 4
    assert all(float(row[2]) < 1e-4 for row in losses)


def test_typed_tasks_print_scores(tmp_path):
    rng = np.random.default_rng(0)
    edges = {
        "edge/paper/by/author": rng.integers(0, 20, (2, 80)).astype(np.int32),
        "y/author": np.arange(20) % 2,
    }
    sizes = {"num/author": 20, "num/paper": 20, "num/term": 3, "x/paper": rng.random((20, 4))}
    matrix = scipy.sparse.random(20, 9, 0.3, "csr", rng=rng)
    sparse = {
        f"x/author/{name}": getattr(matrix, name) for name in ("indptr", "indices", "data", "shape")
    }
    parts = {
        f"split60/{part}": np.arange(20)[i::3] for i, part in enumerate(("train", "val", "test"))
    }
    races = {
        "results/driver->drivers": rng.integers(-1, 9, 300),
        "results/status": rng.integers(-1, 5, 300),
    }
    numbers = {
        "results/points": rng.random(300).astype(np.float32),
        "results/time": rng.integers(0, 9 * 10**8, 300),
    }
    task = {
        "driver": rng.integers(0, 9, 90),
        "time": np.arange(90) * 10**7,
        "label": np.arange(90) % 2,
    }
    ints = {name: column.astype(np.int32) for name, column in races.items()}
    tables = {"drivers/rows": 9, "val_time": 3 * 10**8, "test_time": 6 * 10**8, **ints, **numbers}
    files = {
        "dblp_typed/typed": {**edges, **sizes, **sparse, **parts},
        "relational_f1/tables": tables,
    }
    files["relational_f1/driver_dnf"] = {**task, "split": np.arange(90) // 30}
    for name, columns in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.savez(tmp_path / name, **columns)
    rows = rows_of(
        run("typed_tasks.py", tmp_path, "--tasks", "dblp", "dnf", "--seeds", 2, "--epochs", 2)
    )[1:]
    assert [row[0] for row in rows] == ["dblp, micro-F1", "dnf, AUROC"]
    assert all(0 <= float(row[i]) <= 1 for row in rows for i in (1, 3, 4))

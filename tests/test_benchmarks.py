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
SMALL = ["--edge-factor", "4"]


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(text: str, start: str = "| ") -> list[list[str]]:
    """Cells of the table rows, without the heading."""
    lines = [line for line in text.splitlines() if line.startswith(start) and not line.startswith("|---")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


@pytest.mark.parametrize(("job", "count"), [("sample", 6), ("labor", 3), ("step", 3)])
def test_compare_prints_a_table(job: str, count: int, tmp_path: Path) -> None:
    rows = rows_of(run("compare.py", job, "--scale", 8, *SMALL, "--rounds", 1, "--data", tmp_path), "| nodeflow")
    assert len(rows) == count
    assert all(float(row[1]) > 0 for row in rows)


def test_the_loader_of_pyg_is_replaced() -> None:
    pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")
    rows = rows_of(run("pyg_loader.py", "--epochs", 1, "--rounds", 1, "--nodes", 1200, "--threads", 1), "| pyg_loader")
    assert [row[0] for row in rows] == ["pyg_loader", "pyg_loader, 1 worker", "pyg_loader, 1 worker, trim_to_layer"]
    assert len({row[4] for row in rows}) == 1  # workers and trim_to_layer change nothing


def test_compare_with_another_version(tmp_path: Path) -> None:
    options = ["--scale", 8, *SMALL, "--rounds", 1, "--data", tmp_path, "--before", SCRIPTS.parent]
    rows = rows_of(run("compare.py", "step", *options))[1:]
    assert [row[0] for row in rows[:2]] == ["nodeflow", "before: uniform"]
    assert rows[0][3] == rows[1][3]  # the same edges, since it is the same version


def test_aggregate_prints_a_table_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "aggregate.png"
    options = ["--ops", "max", "gat", "--widths", 16, 64, "--rounds", 1, "--times", 1, "--plot", picture]
    rows = rows_of(run("aggregate.py", *options, "--scale", 8, *SMALL, "--data", tmp_path))[1:]
    assert [row[:2] for row in rows] == [["max", "16"], ["max", "64"], ["gat", "16"], ["gat", "64"]]
    assert all(float(row[2]) > 0 for row in rows)
    assert picture.stat().st_size > 1000


def test_calls_print_two_tables(tmp_path: Path) -> None:
    rows = rows_of(run("calls.py", "--rounds", 1, "--scale", 8, *SMALL, "--data", tmp_path))
    assert [row[0] for row in rows if row[0].startswith(("flow_compute", "mailboxes"))] == [
        "flow_compute", "flow_compute with an update", "mailboxes"
    ]  # fmt: skip


def test_steps_print_a_table_and_draw(tmp_path: Path) -> None:
    picture = tmp_path / "step.png"
    options = ["--scale", 8, *SMALL, "--rounds", 1, "--data", tmp_path, "--varied", "depth", "--plot", picture]
    rows = rows_of(run("step.py", *options))[1:]
    assert [row[:2] for row in rows] == [["depth", str(depth)] for depth in (1, 2, 3)]
    assert all(float(row[2]) > 0 for row in rows)
    assert picture.stat().st_size > 1000


def test_variants_print_a_table(tmp_path: Path) -> None:
    names = ["uniform", "weighted"]
    rows = rows_of(run("variants.py", "--scale", 8, *SMALL, "--rounds", 2, "--data", tmp_path, "--variants", *names))
    assert [row[0] for row in rows[1:]] == names
    assert all(float(row[1]) > 0 for row in rows[1:])


def test_order_prints_both_times(tmp_path: Path) -> None:
    options = ["--scale", 8, "--data", tmp_path, "--widths", 4, 8, "--rounds", 1, "--seconds", 0]
    rows = rows_of(run("order.py", *options))[1:]
    assert [row[:2] for row in rows] == [["4", "4"], ["4", "8"], ["8", "4"], ["8", "8"]]
    assert all(float(row[2]) > 0 and row[5] in ("aggregate", "transform") for row in rows)


def test_trimming_prints_less_for_batches(tmp_path: Path) -> None:
    options = ["--rmat", 8, "--data", tmp_path, "--depths", 1, 2, "--rounds", 1, "--seeds", 32]
    rows = rows_of(run("trimming.py", *options))[1:]
    assert [row[0] for row in rows] == ["1", "2"]
    assert all(float(row[cell].split("=")[1]) >= 1 for row in rows for cell in (1, 2, 3))


def test_scaling_prints_a_table_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "scaling.png"
    options = ["--scales", 7, 8, *SMALL, "--rounds", 1, "--data", tmp_path, "--plot", picture]
    rows = rows_of(run("scaling.py", *options))[1:]
    assert [row[0] for row in rows] == ["7", "8"]
    assert picture.stat().st_size > 1000


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads /proc")
def test_resources_prints_a_table(tmp_path: Path) -> None:
    options = ["--scale", 8, *SMALL, "--data", tmp_path, "--samplers", "NeighborSampler"]
    ((name, *cells),) = rows_of(run("resources.py", *options))[1:]
    assert name == "NeighborSampler"
    assert all(float(cell) >= 0 for cell in cells)


def test_layerwise_prints_ratios(tmp_path: Path) -> None:
    run("rmat.py", "--scale", 8, *SMALL, tmp_path)
    text = run("workers/layerwise_scipy.py", tmp_path / "rmat-8-4", "--rounds", 1, "--size", 8, "--seeds", 16)
    assert [line.split(":")[0] for line in text.splitlines()] == ["LADIES", "FastGCN"]


def test_the_speed_of_links_prints_tables(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {"src": 30, "dst": 30, "relation": 3, "split": 3}
    triples = {name: rng.integers(0, size, 200) for name, size in columns.items()}
    np.savez(tmp_path / "edges.npz", num_nodes=30, num_relations=3, **triples)
    options = ["--widths", 8, "--rounds", 1, "--triples", 20]
    text = run("link_speed.py", "evaluate", tmp_path / "edges.npz", *options)
    rows = rows_of(text)[1:]
    assert [row[:3] for row in rows] == [["distmult", "8", "20"], ["complex", "8", "20"]]
    assert all(float(row[3]) > 0 and float(row[8]) > 0 for row in rows)
    assert "PyKEEN is left out" in text
    rows = rows_of(run("link_speed.py", "train", tmp_path / "edges.npz", *options, "--decoders", "complex"))[1:]
    assert [row[:3] for row in rows] == [["complex", "8", "20"], ["complex, shared negatives", "8", "20"]]
    assert all(float(row[3]) > 0 for row in rows)


def test_estimators_print_a_table_and_draw(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    rng = np.random.default_rng(0)
    adjacency = scipy.sparse.random(300, 300, 0.05, "csr", rng=rng)
    scipy.sparse.save_npz(folder / "adjacency.npz", adjacency)
    scipy.sparse.save_npz(folder / "features.npz", scipy.sparse.random(300, 20, 0.3, "csr", np.float32, rng=rng))
    names = ["neighbour, 5", "LADIES, 256, Poisson", "GraphSAINT, node"]
    options = ["--data", tmp_path, "--graphs", "small", "--draws", 40, "--samplers", *names]
    rows = rows_of(run("estimators.py", *options, "--plot", tmp_path / "picture.png"))[1:]
    assert [row[0] for row in rows] == names
    assert (tmp_path / "picture.png").stat().st_size > 1000


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with a data set of the name "small"."""
    folder = tmp_path / "small"
    folder.mkdir()
    rng = np.random.default_rng(0)
    adjacency = scipy.sparse.random(200, 200, 0.05, "csr", rng=rng)
    scipy.sparse.save_npz(folder / "adjacency.npz", (adjacency + adjacency.T).tocsr())
    scipy.sparse.save_npz(folder / "features.npz", scipy.sparse.random(200, 20, 0.3, "csr", np.float32, rng=rng))
    np.save(folder / "labels.npy", rng.integers(0, 3, 200))
    return tmp_path


@pytest.mark.parametrize(("job", "size"), [("accuracy", 2), ("gradients", 3), ("time", 6)])
def test_control_variates_print_tables(job: str, size: int, small: Path, tmp_path: Path) -> None:
    options = ["--data", small, "--graphs", "small", "--seeds", 2, "--epochs", 2, "--plot", tmp_path / "picture.png"]
    rows = rows_of(run("control_variates.py", job, *options, "--ways", "full", "CV-2"))[1:]
    assert len(rows) == size
    assert all(row[1] == "never" or float(row[1].split(" +- ")[0]) >= 0 for row in rows)
    assert (tmp_path / "picture.png").exists() == (job != "time")


def test_the_speed_of_control_variates_prints_tables(small: Path, tmp_path: Path) -> None:
    options = ["--data", small, "--graphs", "small", "rmat", "--rounds", 1, "--scale", 8, "--rmat", tmp_path / "made"]
    text = run("control_variates_speed.py", *options)
    rows = [row for row in rows_of(text) if row[0] not in ("step", "full pass") and not row[0].startswith("sums")]
    assert len(rows) == 2 * (6 + 12 + 3)
    assert all(float(row[1]) >= 0 for row in rows)


def test_the_graph_is_symmetric_without_loops_or_repeats() -> None:
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


def test_link_tasks_print_a_table(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    src, dst = random.integers(0, 40, (2, 300))
    np.savez(tmp_path / "edges.npz", src=src, dst=dst, relation=random.integers(0, 3, 300))
    files = [SCRIPTS / "settings" / f"{name}.toml" for name in ("fb15k237-complex",)]
    options = ["--data", tmp_path, "--seeds", 2, "--epochs", 1, "--vary", "decoder", "distmult", "complex"]
    rows = rows_of(run("link_tasks.py", *files, *options))[1:]
    assert [row[0] for row in rows] == ["fb15k237-complex, distmult", "fb15k237-complex, complex"]
    assert all(0 < float(row[1]) < 1 for row in rows)


def test_precision_prints_times_and_accuracies(tmp_path: Path) -> None:
    options = ["--scale", 14, *SMALL, "--data", tmp_path]
    rows = rows_of(run("precision.py", "--sets", "rmat", "--threads", 1, "--rounds", 1, *options))[1:]
    assert [row[:3] for row in rows] == [
        [name, "1", what] for name in ("rmat", "rmat, no dropout") for what in ("step", "epoch")
    ]
    assert all(float(cell) > 0 for row in rows for cell in row[3:])
    rows = rows_of(run("precision.py", "--sets", "rmat", "--accuracy", 2, "--epochs", 1, *options))[1:]
    assert [row[1] for row in rows] == ["0", "1", "mean"]


def test_heat_prints_a_row_per_kind(tmp_path: Path) -> None:
    rows = rows_of(run("heat.py", "--scale", 9, "--degree", 4, "--plot", tmp_path / "heat.png"))[1:]
    assert len(rows) == 14
    assert all(float(rows[k][2]) >= float(rows[k - 1][2]) for k in (4, 6))  # afterwards, lookahead
    assert (tmp_path / "heat.png").stat().st_size > 10_000


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="reads past the page cache")
def test_larger_than_memory_prints_a_row_per_kind(tmp_path: Path) -> None:
    sizes = ["--scale", 13, *SMALL, "--width", 16, "--batches", 2, "--epochs", 1]
    rows = rows_of(run("larger_than_memory.py", "--data", tmp_path, *sizes))[1:]
    assert [row[0] for row in rows] == [
        "nothing",
        "LRU",
        "random",
        "degree",
        "reach (analytic)",
        "presample",
        "lookahead",
    ]


def test_building_prints_a_row_per_job(tmp_path: Path) -> None:
    rows = rows_of(run("building.py", "--scale", 8, *SMALL, "--memory", "50 MB", "--data", tmp_path))[1:]
    assert [row[:2] for row in rows] == [
        ["build_graph", "50 MB"], ["write_partitions", ""], ["partition_graph, in", ""], ["partition_graph, grid", ""],
        ["partition_graph, grid renumbered", ""],
    ]  # fmt: skip
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith("rmat")]


def test_parts_print_a_row_per_method_and_place_of_edges() -> None:
    rows = rows_of(run("parts.py", "--parts", 2, "--methods", "ranges", "--edges", "in", "grid"))[1:]
    assert [row[:2] for row in rows] == [["ranges", "in"], ["ranges", "grid"]]


def test_gather_prints_a_row_per_width_and_batch() -> None:
    sizes = ["--table", 0.001, "--widths", 16, 64, "--batches", 10, 500, "--rounds", 1]
    rows = rows_of(run("gather.py", *sizes))[1:]
    assert [row[:2] for row in rows] == [["16", "10"], ["16", "500"], ["64", "10"], ["64", "500"]]
    assert all(float(cell) > 0 for row in rows for cell in row[4:])


def test_pipeline_prints_a_table() -> None:
    rows = rows_of(run("pipeline.py", "--epochs", 1, "--width", 4, "--ranked", 20, "--batch-size", 50000))[1:]
    assert [row[0] for row in rows] == ["1", "2", "4", "8"]
    assert all(float(row[1]) > 0 and 0 <= float(row[4]) <= 1 for row in rows)


def test_partition_buffer_prints_a_row_per_order(tmp_path: Path) -> None:
    sizes = ["--scale", 8, *SMALL, "--width", 4, "--partitions", 8, "--slots", 4]
    rows = rows_of(run("partition_buffer.py", "--data", tmp_path, *sizes))[1:]
    assert [(row[0], row[1]) for row in rows] == [("comet", "10"), ("beta", "9"), ("dispersed", "4")]


def test_partition_accuracy_prints_a_row_per_order(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    ends = {name: random.integers(0, 40, 300).astype(np.int32) for name in ("src", "dst")}
    parts = {"relation": random.integers(0, 3, 300), "split": random.integers(0, 3, 300)}
    np.savez(tmp_path / "edges.npz", **ends, **parts, num_nodes=40, num_relations=3)
    sizes = ["--epochs", 1, "--partitions", 4, "--slots", 2, "--width", 4]
    rows = rows_of(run("partition_accuracy.py", "links", "--data", tmp_path / "edges.npz", *sizes))[1:]
    assert [row[0] for row in rows] == ["memory", "comet", "beta"]
    assert all(0 < float(row[1]) < 1 for row in rows)


def test_partition_accuracy_takes_a_data_set(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    np.savez(tmp_path / "edges.npz", src=random.integers(0, 60, 300), dst=random.integers(0, 60, 300))
    scipy.sparse.save_npz(tmp_path / "features.npz", scipy.sparse.random(60, 9, 0.2, "csr", np.float32, rng=random))
    np.save(tmp_path / "labels.npy", np.arange(60) % 3)
    sizes = ["--data", tmp_path, "--epochs", 1, "--partitions", 4, "--slots", 2, "--orders", "memory", "dispersed"]
    rows = rows_of(run("partition_accuracy.py", "nodes", *sizes))[1:]
    assert [row[0] for row in rows] == ["memory", "dispersed"]
    assert all(0 <= float(row[1]) <= 1 for row in rows)


def test_partition_speed_prints_a_row_for_memory_and_per_order(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    np.savez(tmp_path / "edges.npz", src=random.integers(0, 60, 300), dst=random.integers(0, 60, 300))
    sizes = ["--data", tmp_path, "--width", 4, "--rounds", 1, "--partitions", 4, "--slots", 2]
    rows = rows_of(run("partition_speed.py", *sizes, "--orders", "comet", "dispersed"))[1:]
    assert [row[0] for row in rows] == ["memory", "comet", "dispersed"]
    assert all(float(row[1]) > 0 for row in rows)


def test_processes_print_tables_and_equal_hashes() -> None:
    tiny = [
        "--processes",
        1,
        2,
        "--methods",
        "ranges",
        "hash",
        "--steps",
        2,
        "--rounds",
        1,
        "--epochs",
        1,
        "--width",
        4,
    ]
    text = run("distributed.py", *tiny, "--batch-size", 4096, "--hidden", 4)
    assert text.rstrip().endswith("all equal")
    rows = rows_of(text)
    assert len([row for row in rows if row[0] == "2" and row[1] in ("ranges", "hash") and len(row) == 11]) == 8
    assert [row[:2] for row in rows if row[1] in ("in", "out", "grid")] == [
        [method, edges] for method in ("ranges", "hash") for edges in ("in", "out", "grid")
    ]
    losses = [row for row in rows if len(row) == 6 and row[0] in ("1", "2")]
    assert len(losses) == 4
    assert all(float(row[2]) < 1e-4 for row in losses)


def test_the_model_of_a_cluster_counts_what_processes_send() -> None:
    rows = rows_of(run("cluster_model.py", "--check", "--methods", "random", "--steps", 2, "--width", 4))[1:]
    assert [row[0] for row in rows] == ["1", "2", "4"]
    assert all(row[2] == row[3] and row[4] == row[5] and row[7] == row[8] for row in rows)
    assert float(rows[2][4].replace(",", "")) > 1000


def test_the_model_of_a_cluster_prints_its_tables() -> None:
    options = ["--ranks", 1, 4, "--methods", "hash", "--steps", 1, "--width", 4, "--compute-ms", 2, "--edges", "1e9"]
    text = run("cluster_model.py", *options)
    assert "no node drawn twice" in text
    assert [row[:3] for row in rows_of(text) if row[0] == "1e+09"] == [["1e+09", "5e+07", "4"]]

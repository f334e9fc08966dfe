"""``torchrun -m nodeflow train``: the run of a single process, on whole data sets and on parts, cut
off and killed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from _support.cli_tools import FILES, SMALL, rows_of, status
from _support.pages import ROOT, environment
from _support.run_files import read_state, run_of
from _support.training_tools import planted
from safetensors.torch import load_file

from nodeflow.training._processes import own_store

STRICT = environment() | {"PYTHONWARNINGS": "error"}
RUN = ["--fanouts 4 4 --hidden 8 --epochs 4 --lr 0.02 --direction in --no-plot"]
SAME = [*RUN, "--dropout 0"]

HURT = '''
"""A model that hurts its process: in training step number HURT_AT, on rank 1, before any restart."""

import os
import signal

from nodeflow.nn import GraphSAGE


class Hurt(GraphSAGE):
    steps = 0

    def forward(self, batch, h):
        self.steps += self.training
        first = os.environ.get("RANK") == "1" and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        if first and self.training and self.steps == int(os.environ.get("HURT_AT", 0)):
            os.kill(os.getpid(), getattr(signal, os.environ["HURT_BY"]))
        return super().forward(batch, h)
'''

ENDS = '''
"""A model whose process, at its end, prints the names of its threads."""

import atexit
from contextlib import suppress
from pathlib import Path

from nodeflow.nn import GraphSAGE as Sage


def threads():
    names = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has just ended
            names.append((thread / "comm").read_text().strip())
    print("ends with", *names, flush=True)


atexit.register(threads)
'''


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a data set whose split is ascending, as that of parts, and a module of the
    user's own.
    """
    whole = planted()
    replace(whole, **{part: nodes.sort().values for part, nodes in whole.splits.items()}).save(
        tmp_path / "whole"
    )
    (tmp_path / "hurt.py").write_text(HURT)
    return tmp_path


def torchrun(
    place: Path, *options: str, restarts: int = 0, processes: int = 2, **more: str
) -> tuple[int, str, str]:
    """Return status, output and errors of ``torchrun -m nodeflow train``, with options in words."""
    path = os.pathsep.join([str(ROOT), str(place)])
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}",
         f"--max-restarts={restarts}", "-m", "nodeflow", "train", *" ".join(options).split()],
        capture_output=True, text=True, cwd=place, timeout=1200, check=False,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoint.safetensors")


def log(folder: Path) -> list[list[float]]:
    """Epochs, losses and scores."""
    return [
        [float(value) for name, value in row.items() if "second" not in name]
        for row in rows_of(folder / "log.csv")
    ]


def alone(place: Path, output: str, *options: str) -> Path:
    assert status(["train", place / "whole", *options, "--output", place / output]) == 0
    return place / output


def check_close(one: Path, other: Path) -> None:
    torch.testing.assert_close(log(one), log(other), rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(weights(one), weights(other), rtol=2e-5, atol=2e-5)


@pytest.mark.slow
def test_two_processes_make_the_run_of_one_and_print_it_once(place):
    code, output, errors = torchrun(place, "whole", *SAME, "--batch-size 10 --output two")
    assert (code, errors) == (0, "")
    assert [
        output.count(word)
        for word in ("test accuracy", "2 processes share every step: 10 seeds each, 20 in all")
    ] == [1, 1]
    files = {path.name for path in (place / "two").iterdir() if not path.name.startswith("events")}
    assert files == {
        "checkpoint.safetensors",
        "log.csv",
        "result.json",
        "run.toml",
        "state.safetensors",
        "trace.csv",
    }
    check_close(place / "two", alone(place, "one", *SAME, "--batch-size 20"))


OWN = ["--model hurt:Hurt"]
LINKS = ["--task link --edge-type kind --decoder complex --embedding 8 --negatives 8"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cut", "options", "also"),
    [
        ([], ["--share even"], ["--validate sampled"]),
        ([], ["--share owned"], ["--validate full"]),
        (["--links --edge-type kind"], [], LINKS),
    ],
    ids=["even", "owned", "links"],
)
def test_parts_make_the_run_of_the_whole(place, cut, options, also):
    words = ["partition", place / "whole", "--for processes --parts 2 --output", place / "parts"]
    assert status([*words, "--direction in --method hash", *cut]) == 0
    mine = [*SAME, *also, *options, "--partitions parts"]
    code, output, errors = torchrun(place, *mine, "--batch-size 10 --output two")
    assert (code, errors) == (0, ""), output
    check_close(place / "two", alone(place, "one", *SAME, *also, "--batch-size 20"))
    assert status(["evaluate", place / "two"]) == 2
    assert status(["evaluate", place / "two", "--data", place / "whole"]) == 0


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_another_number_of_processes(place):
    mine = [*SAME, *OWN, "--checkpoint-every 0"]
    code, output, errors = torchrun(
        place,
        "whole",
        *mine,
        "--batch-size 10 --output two",
        HURT_AT="9",
        HURT_BY="SIGTERM",
    )
    assert code == 1
    assert (
        errors.count("nodeflow train: stopped in epoch 2 after batch 3 of 6; its state is saved")
        == 1
    )
    state = read_state(place / "two" / "state.safetensors")
    assert (state["epoch"], state["done"], state["settings"]["batch_size"]) == (1, 3, 20)
    code, output, errors = torchrun(place, "--resume two --no-plot", *OWN, processes=3)
    assert code == 1
    assert (
        errors.count(
            "nodeflow train: a step of the run has 20 seeds (batch_size 10 of 2 processes)"
        )
        == 1
    )
    code, output, errors = torchrun(place, "--resume two --no-plot", *OWN, processes=1)
    assert (code, errors) == (0, ""), output
    assert "goes on after epoch 1 and batch 3 of the next" in output
    check_close(place / "two", alone(place, "one", *SAME, "--batch-size 20"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are read from /proc")
def test_no_thread_of_gloo_outlives_a_run(place):
    """One that drops a tensor while the interpreter ends aborts the process, once in some hundred
    runs.
    """
    (place / "ends.py").write_text(ENDS)
    options = "--epochs 1 --batch-size 10 --model ends:Sage --output two"
    code, output, errors = torchrun(place, "whole", *SAME, *options.split())
    assert (code, errors) == (0, "")
    ends = re.findall("(?m)^ends with (.*)$", output)
    assert len(ends) == 2, output
    assert not re.findall("gloo", " ".join(ends))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["whole", "parts"])
def test_a_killed_process_is_started_again_and_the_result_is_that_of_an_undisturbed_run(
    place, kind
):
    data = ["whole"]
    if kind == "parts":
        cut = ["partition", place / "whole", "--for processes --parts 2 --direction in --output"]
        assert status([*cut, place / "parts"]) == 0
        data = ["--partitions parts"]
    mine = [*data, *RUN, "--dropout 0.3", *OWN, "--batch-size 10 --output"]
    assert torchrun(place, *mine, "wanted")[0] == 0
    code, output, errors = torchrun(
        place, *mine, "two", restarts=1, HURT_AT="15", HURT_BY="SIGKILL"
    )
    assert code == 0, errors
    assert "goes on after epoch 2 and batch 0 of the next" in output
    assert log(place / "two") == log(place / "wanted")
    found = weights(place / "two")
    wanted = weights(place / "wanted")
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.slow
def test_the_lines_of_the_page(place):
    page = (ROOT / "docs" / "training-large.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^(?:torchrun --standalone|nodeflow partition DATA --for processes) .*$",
        page,
        re.MULTILINE,
    )
    assert len(lines) == 3
    for line in lines:
        _, options = line.replace("DATA", "whole").split(
            "train " if "torchrun" in line else "nodeflow "
        )
        if "torchrun" in line:
            assert torchrun(place, options, "--epochs 1 --hidden 8 --no-plot")[::2] == (0, "")
        else:
            words = options.replace("whole", str(place / "whole")).replace(
                "papers-2", str(place / "papers-2")
            )
            assert status(words.split()) == 0


def test_processes_that_are_started_again_do_not_meet_those_of_before():
    store = dist.HashStore()
    names = []
    for _ in range(3):  # the keys of each start stay
        with ThreadPoolExecutor(3) as pool:
            rounds = list(pool.map(lambda rank: own_store(store, rank, 3), range(3)))
        rounds[0].set("address", str(len(names)))
        assert [one.get("address") for one in rounds] == [str(len(names)).encode()] * 3
        names.append(rounds[0])
    assert [one.get("address") for one in names] == [b"0", b"1", b"2"]


def test_runs_of_parts_and_numbers_of_processes_that_do_not_fit(tmp_path):
    parts = {"partitions": str(tmp_path / "parts")}
    with pytest.raises(ValueError, match="data must be left out with parts of a graph"):
        run_of({"data": "debian", **parts})
    with pytest.raises(
        ValueError, match="partitions is for parts in several processes, and this is one"
    ):
        run_of(parts).dataset()
    run = run_of({"batch_size": 10, "processes": 3})
    assert run.shared_by(5).settings.sampler.batch_size == 6
    assert run_of(run.shared_by(1).values()).settings.sampler.batch_size == 30
    with pytest.raises(
        ValueError, match=r"a step of the run has 30 seeds .* which 4 processes cannot share evenly"
    ):
        run.shared_by(4)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=STRICT, check=False
    )


def check_process(command: list[str], data: Path, tmp_path: Path) -> None:
    done = run([*command, "train", str(data), *SMALL], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "test accuracy" in done.stdout
    assert sorted(path.name for path in (tmp_path / "runs" / "latest").iterdir()) == FILES
    (data / "labels.npy").unlink()
    failed = run([*command, "train", str(data), "--output", "other"], tmp_path)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert re.fullmatch(
        r"nodeflow train: data set .* has no labels, so a model cannot be trained on it\n",
        failed.stderr,
    )
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_python_m_nodeflow(data, tmp_path):
    check_process([sys.executable, "-m", "nodeflow"], data, tmp_path)


@pytest.mark.slow
def test_the_installed_command(data, tmp_path):
    script = Path(sys.executable).parent / "nodeflow"
    if not script.exists():
        pytest.skip("the package is not installed here")
    done = run([str(script), "info", str(data)], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "what",
    [
        "--version",
        *(pytest.param(what, marks=pytest.mark.slow) for what in ("train", "info", "--help")),
    ],
)
def test_a_reader_that_leaves_early_is_no_error(what, data, tmp_path):
    options = {"train": [str(data), *SMALL], "info": [str(data)]}.get(what, [])
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nodeflow", what, *options],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=STRICT,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    if what == "train":
        assert sorted(path.name for path in (tmp_path / "runs" / "latest").iterdir()) == FILES

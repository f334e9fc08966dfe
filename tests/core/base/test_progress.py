"""Progress bars of a process without standard error, such as a daemon: there are none, and the work
is done.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest
import torch

import nodeflow
from nodeflow import Graph, datasets, distributed, metrics, nn
from nodeflow._core.base.progress import progress_bar
from nodeflow.distributed import partition_graph


@pytest.fixture
def ring() -> Graph:
    return Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.ones(4, 2)})


def test_work_without_standard_error(ring, tmp_path):
    with redirect_stderr(None):
        distributed.write_partitions(ring, tmp_path / "buffer", 2)
        partition_graph(ring, tmp_path / "parts", 2, method="ranges")
        (tmp_path / "e.csv").write_text("0,1\n1,0\n")
        datasets.build_graph(tmp_path / "e.csv", tmp_path / "g")
        model = nn.GraphSAGE(2, 4, 3, num_layers=2)
        assert model.inference(ring, ring.ndata["x"], progress=True).shape == (4, 3)
        assert (
            len(
                metrics.rank_links(
                    nn.DotProduct(2), torch.randn(4, 2), [[0, 1], [1, 2]], progress=True
                ).ranks
            )
            == 2
        )


def test_a_bar_is_shown_where_it_was_asked_for(capsys):
    for shown, terminal_only, expected in (
        (True, False, True),
        (False, False, False),
        (True, True, False),
    ):
        with progress_bar("work", 2, shown=shown, terminal_only=terminal_only) as bar:
            bar.update(2)
        assert ("work" in capsys.readouterr().err) == expected


def test_all_bars_are_made_in_one_place():
    root = Path(nodeflow.__file__).parent
    makers = [
        path.name
        for path in root.rglob("*.py")
        if re.search(r"\b(tqdm|Bar)\(", path.read_text(encoding="utf-8"))
    ]
    assert makers == ["progress.py"]


KILLED = """
import os, signal
from nodeflow._core.base.progress import progress_bar

bar = progress_bar("first", 1, shown=False)
if os.fork() == 0:
    bar.get_lock().acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
with progress_bar("second", 1, shown=False) as bar:
    print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_killed_child_blocks_no_bar():
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.stdout == "done\n", done.stderr

"""One of two processes that train under torchrun, on one host or two; rank 0 writes a line of JSON
with the epochs.

``host_worker.py OPTIONS``: options of ``rank_worker.Run`` as JSON, and ``epochs``, ``device``
(whose bytes are counted) and ``output`` (a file).
"""

import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from rank_worker import Run, leave

sys.path.append(str(Path(__file__).parents[1]))
from namespaces import carried


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    epochs = options.pop("epochs")
    device = options.pop("device")
    output = Path(options.pop("output"))
    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(os.environ["RANK"]) % min(2, len(cores))]})
    dist.init_process_group("gloo")
    run = Run({**options, "train": True, "columns": True})
    losses = list[float]()
    seconds = list[float]()
    moved = list[int]()
    told = list[int]()
    for _ in range(epochs):
        dist.barrier()
        begun = perf_counter()
        before = carried(device)
        counted = _told(run)
        own = [run.step(batch) for batch in run.batches()]
        dist.barrier()
        seconds.append((perf_counter() - begun) / len(own))
        moved.append((carried(device) - before) // len(own))
        told.append((_told(run) - counted) // len(own))
        losses += own
    total = torch.tensor(losses, dtype=torch.float64)
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        found = {"losses": total.tolist(), "seconds": seconds, "bytes": moved, "told": told}
        output.write_text(json.dumps(found))
    del run
    leave()


def _told(run: Run) -> int:
    """Bytes of the exchanges of draws and rows, both ways, as the package counts them."""
    counters: Any = getattr(getattr(run.graph, "peers", None), "counters", None)
    return 0 if counters is None else counters.bytes_sent + counters.bytes_received


if __name__ == "__main__":
    main()

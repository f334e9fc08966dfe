"""Writes docs/inventories: the names of other libraries that docstrings and pages mention, with
their addresses.

``python scripts/make_inventories.py`` writes them. A build of the site reads them in place of the
inventories on the network. A name that is missing is a warning of the build, and a line below.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "inventories"

# project: lines of "role, address, names"; "$" in an address is the name that links there
NAMES = {
    "python": """
        class library/collections.abc.html#$ collections.abc.Callable collections.abc.Iterable collections.abc.Iterator
        class library/collections.abc.html#$ collections.abc.Mapping collections.abc.Sequence collections.abc.Hashable
        class library/collections.abc.html#$ collections.abc.Generator collections.abc.Collection
        class library/collections.abc.html#$ collections.abc.MutableMapping
        class library/contextlib.html#$ contextlib.AbstractContextManager
        class library/functools.html#$ functools.partial functools.cached_property
        function library/functools.html#$ functools.cache
        class library/os.html#$ os.PathLike
        class library/pathlib.html#$ pathlib.Path
        class library/threading.html#$ threading.local threading.Thread threading.Event threading.Lock
        class library/types.html#$ types.ModuleType types.TracebackType
        class library/typing.html#$ typing.Protocol typing.NamedTuple typing.TypedDict typing.Generic
        data library/typing.html#$ typing.Any
        data library/constants.html#$ None True False
        class library/functions.html#$ bool float int object property type bytearray memoryview
        class library/stdtypes.html#$ str bytes list tuple dict set frozenset range
        exception library/exceptions.html#$ Exception ValueError TypeError IndexError KeyError RuntimeError OSError
        exception library/exceptions.html#$ AssertionError AttributeError FileNotFoundError FileExistsError ImportError
        exception library/exceptions.html#$ NotImplementedError UserWarning Warning MemoryError StopIteration
        exception library/exceptions.html#$ BaseException KeyboardInterrupt ConnectionError TimeoutError
    """,
    "torch": """
        class tensors.html#$ torch.Tensor
        class tensor_attributes.html#$ torch.dtype torch.device
        class generated/$.html#$ torch.Generator
        class generated/$.html#$ torch.nn.Module torch.nn.Linear torch.nn.Dropout torch.nn.ModuleList torch.nn.ReLU
        class generated/$.html#$ torch.nn.parallel.DistributedDataParallel torch.nn.Embedding torch.nn.LayerNorm
        class generated/torch.nn.parameter.Parameter.html#torch.nn.parameter.Parameter torch.nn.parameter.Parameter
        class generated/$.html#$ torch.optim.SGD torch.optim.Adam torch.optim.AdamW torch.optim.Adagrad
        class generated/$.html#$ torch.optim.SparseAdam torch.optim.lr_scheduler.LRScheduler
        class optim.html#$ torch.optim.Optimizer torch.optim.swa_utils.AveragedModel
        class data.html#$ torch.utils.data.DataLoader torch.utils.data.IterableDataset
        class amp.html#$ torch.autocast
        class generated/$.html#$ torch.no_grad
        class distributed.html#$ torch.distributed.PrefixStore torch.distributed.ProcessGroup
        function generated/$.html#$ torch.relu torch.from_numpy torch.compile torch.cdist torch.multinomial
        function generated/$.html#$ torch.nn.functional.dropout torch.nn.functional.cross_entropy torch.randint
        module distributed.html#module-$ torch.distributed
        module optim.html#module-$ torch.optim
        module checkpoint.html#module-$ torch.utils.checkpoint
    """,
    "numpy": """
        class reference/generated/$.html#$ numpy.ndarray numpy.dtype numpy.memmap
        class reference/arrays.scalars.html#$ numpy.int64 numpy.int32 numpy.uint64 numpy.float64 numpy.float32
        class reference/arrays.scalars.html#$ numpy.signedinteger numpy.integer numpy.generic numpy.number
        class reference/arrays.scalars.html#$ numpy.uint8 numpy.bool
        data reference/typing.html#$ numpy.typing.NDArray
        function reference/generated/$.html#$ numpy.load numpy.savez numpy.save numpy.unique
    """,
    "scipy": """
        class reference/generated/$.html#$ scipy.sparse.csr_array scipy.sparse.coo_array scipy.sparse.csc_array
        class reference/generated/$.html#$ scipy.sparse.sparray scipy.sparse.spmatrix
        function reference/generated/$.html#$ scipy.sparse.save_npz scipy.sparse.load_npz
    """,
    "networkx": """
        class reference/classes/multidigraph.html#$ networkx.MultiDiGraph
        class reference/classes/graph.html#$ networkx.Graph
        class reference/classes/digraph.html#$ networkx.DiGraph
    """,
    "matplotlib": """
        class api/_as_gen/$.html#$ matplotlib.axes.Axes
        class api/figure_api.html#$ matplotlib.figure.Figure
    """,
}
_HEAD = (
    "# Sphinx inventory version 2\n# Project: {}\n# Version: \n# The remainder of this file is "
    "compressed using zlib.\n"
)


def entries(project: str) -> list[tuple[str, str, str]]:
    """Return the names of a project, each with its role and its address."""
    rows = (line.split() for line in NAMES[project].strip().splitlines())
    return sorted({(name, role, address) for role, address, *names in rows for name in names})


def inventory(project: str) -> bytes:
    """Return an inventory in version 2 of Sphinx's format."""
    lines = [
        f"{name} py:{role} 1 {address.replace('$', name)} -\n"
        for name, role, address in entries(project)
    ]
    return _HEAD.format(project).encode() + zlib.compress("".join(lines).encode(), 9)


def missing() -> list[str]:
    """Return the names that their libraries do not have, among those installed."""
    found = []
    for project in NAMES:
        for name, role, _ in entries(project):
            parts = name.split(".") if "." in name else ["builtins", name]
            cut = len(parts) if role == "module" else len(parts) - 1
            try:
                module = import_module(".".join(parts[:cut]))
            except ImportError:
                found.append(name)
                continue
            if role != "module" and not hasattr(module, parts[-1]):
                found.append(name)
    return found


if __name__ == "__main__":
    if missing():
        raise SystemExit(f"not in their libraries: {', '.join(missing())}")
    FOLDER.mkdir(exist_ok=True)
    for each in NAMES:
        (FOLDER / f"{each}.inv").write_bytes(inventory(each))

"""The part of a graph that one process holds."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array
from nodeflow._disk.arrays import map_array, map_tensor
from nodeflow._disk.manifest import Manifest

PART_KIND, VERSION = "graph part", 1


def part_folder(folder: Path, part: int) -> Path:
    """Return the folder of a part."""
    return folder / f"part-{part}"


class GraphPart(Frozen):
    """One part of a graph in a folder of parts: its masters and its edges. ``GraphParts.part`` opens it.

    All arrays are mapped and read-only, and all ids are those of the whole graph.

    ``masters``, int64 ``[m]``, are the nodes that the part owns, and ``rows``, int64 ``[r]``, those with a row of
    in-edges here, both ascending. With edges "in" both are the same, and a row may be empty; else rows are the
    destinations of the edges here. The in-edges of ``rows[i]`` are ``indptr[i]`` to ``indptr[i + 1]`` of ``src`` and
    ``edge_ids``, int32 or int64 ``[num_edges]``, in the order in which ``Graph.csc()`` of the whole graph has them.
    ``ndata`` maps names to columns with a row per master, ``edata`` to columns with a row per edge here. ``part`` is
    the number of the part, ``identity`` the partition that it belongs to.

    >>> import tempfile
    >>> from nodeflow import Graph
    >>> from nodeflow.distributed import partition_graph
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     part = partition_graph(graph, folder + "/ring", 2, method="ranges", progress=False).part(1)
    ...     print(part.masters, part.src, part.edge_ids)
    [2 3] [1 2] [1 2]
    """

    __slots__ = ("edata", "edge_ids", "folder", "identity", "indptr", "masters", "ndata", "part", "rows", "src")
    folder: Path
    part: int
    identity: str
    masters: Ints
    rows: Ints
    indptr: Ints
    src: Array
    edge_ids: Array
    ndata: dict[str, Tensor]
    edata: dict[str, Tensor]

    def __init__(
        self, folder: Path, part: int, identity: str, num_masters: int, num_edges: int, *, verify: bool = False
    ) -> None:
        try:
            manifest = Manifest.read(folder, PART_KIND, VERSION, contents=verify)
        except FileNotFoundError as error:
            raise ValueError(f"part {part} is missing: {error}; copy its folder there") from None
        found, arrays = manifest.facts, manifest.arrays
        if (found.get("part"), found.get("identity")) != (part, identity):
            raise ValueError(
                f"{folder} holds part {found.get('part')} of partition {found.get('identity')}, and not part {part} of "
                f"{identity}: it comes from another folder"
            )
        names = ("masters", "rows", "indptr", "src", "edge_ids")
        frames = {
            kind: {name.removeprefix(f"{kind}/"): name for name in arrays if name.startswith(f"{kind}/")}
            for kind in ("ndata", "edata")
        }
        try:
            shapes = {name: arrays[name].shape for name in names}
            ends = {arrays[name].shape[0] for name in frames["edata"].values()}
            own = {arrays[name].shape[0] for name in frames["ndata"].values()}
        except (KeyError, IndexError):
            shapes, ends, own = {}, set(), set()
        whole = shapes == {
            "masters": (num_masters,), "rows": shapes.get("rows"), "src": (num_edges,), "edge_ids": (num_edges,),
            "indptr": tuple(size + 1 for size in shapes.get("rows", ())),
        }  # fmt: skip
        if not whole or not ends <= {num_edges} or not own <= {num_masters}:
            raise ValueError(f"{folder} has a manifest whose arrays do not fit together: it is damaged")
        self._set(
            folder=folder, part=part, identity=identity, **{name: map_array(folder, arrays[name]) for name in names},
            **{kind: {name: map_tensor(folder, arrays[key]) for name, key in columns.items()}
               for kind, columns in frames.items()},
        )  # fmt: skip

    @property
    def num_edges(self) -> int:
        """Number of edges here."""
        return len(self.src)

    def __repr__(self) -> str:
        return f"GraphPart({self.part}: {len(self.masters)} masters, {self.num_edges} edges)"

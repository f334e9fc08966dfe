"""The base of folders of cut graphs: those that a buffer reads, and those of which processes hold a part each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array, FileLike
from nodeflow._disk.arrays import ArrayFile, map_array
from nodeflow._disk.manifest import Manifest


class CutGraph(Frozen):
    """A graph in a folder, cut into ``num_parts`` parts; ``num_nodes`` and ``num_edges`` are those of the whole.

    ``method`` says how the nodes were cut: the name of a method, or "given". ``ndata`` and ``edata`` are the names of
    the columns, ``train`` the training nodes, None where none were given. All arrays are read-only and mapped.

    A subclass has the kind and version of its folders in ``layout``.
    """

    layout: ClassVar[tuple[str, int]]
    folder: Path
    manifest: Manifest
    num_nodes: int
    num_edges: int
    num_parts: int
    method: str
    ndata: list[str]
    edata: list[str]
    train: Ints | None
    _arrays: dict[str, Array]
    _verify: bool

    def __init__(self, folder: FileLike, *, verify: bool = False) -> None:
        path = Path(folder).absolute()
        manifest = Manifest.read(path, *self.layout, contents=verify)
        facts = manifest.facts
        self._set(folder=path, manifest=manifest, _verify=verify)
        with sound(path):
            # the folders of ``Partitions`` have had this word from the first version on
            count = facts["num_partitions" if "num_partitions" in facts else "num_parts"]
            self._set(num_nodes=int(facts["num_nodes"]), num_edges=int(facts["num_edges"]), num_parts=int(count))
            for kind in ("ndata", "edata"):
                self._set(**{kind: [name if isinstance(name, str) else name["name"] for name in facts[kind]]})
            self._set(method=str(facts["method"]))
            check_shapes(manifest.arrays, self._read(facts))
        arrays = {name: map_array(path, array) for name, array in manifest.arrays.items() if "/" not in name}
        self._set(_arrays=arrays, train=arrays.get("train"))
        self._take_arrays()

    @classmethod
    def open(cls, folder: FileLike, *, verify: bool = False) -> Self:
        """Open a folder.

        Sizes and types of all files are checked; ``verify`` checks the checksums too, which reads everything. The
        folders of parts that processes hold may be missing, and are checked when ``part`` opens them. Raises
        FileNotFoundError for a folder without a manifest, ValueError for one of another kind or version and for files
        that are missing, damaged or foreign.
        """
        return cls(folder, verify=verify)

    @abstractmethod
    def _read(self, facts: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Set the facts of the manifest; return the shapes of arrays by name, of columns without their rows."""

    @abstractmethod
    def _take_arrays(self) -> None:
        """Set attributes from the mapped arrays, which have the right shapes."""

    def _shown(self, *sizes: str) -> str:
        columns = [f"{kind}: {', '.join(f)}" for kind, f in (("ndata", self.ndata), ("edata", self.edata)) if f]
        return f"{type(self).__name__}({', '.join([*sizes, *columns])})"


@contextmanager
def sound(folder: Path) -> Iterator[None]:
    """Raise one ValueError for whatever a damaged manifest causes in its reader."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError):
        raise ValueError(f"{folder} has a manifest whose sizes and arrays do not fit together: it is damaged") from None


def check_shapes(arrays: Mapping[str, ArrayFile], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise KeyError or ValueError unless arrays have these shapes; rows of columns, "ndata/x", may be of any."""
    for name, shape in shapes.items():
        if arrays[name].shape[: len(shape) if "/" in name else None] != shape:
            raise ValueError(name)

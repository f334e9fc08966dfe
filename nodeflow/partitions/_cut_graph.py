"""What the folders of cut graphs share: those that a buffer reads, and those of which processes hold a part each."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Self

from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import FileLike
from nodeflow._disk.manifest import Manifest


class CutGraph(Frozen):
    """A graph in a folder, cut into parts. A subclass maps the arrays of its layout.

    ``train`` are the training nodes, None where none were given. All arrays are read-only and mapped.
    """

    __slots__ = ("_verify", "folder", "manifest", "train")
    layout: ClassVar[tuple[str, int]]
    folder: Path
    manifest: Manifest
    train: Ints | None
    _verify: bool

    def __init__(self, folder: FileLike, *, verify: bool = False) -> None:
        path = Path(folder).absolute()
        manifest = Manifest.read(path, *self.layout, contents=verify)
        self._set(folder=path, manifest=manifest, _verify=verify)
        try:
            whole = self._fits()
        except (KeyError, TypeError, ValueError, IndexError):
            whole = False
        if not whole:
            raise ValueError(f"{path} has a manifest whose sizes and arrays do not fit together: it is damaged")
        self._map()

    @classmethod
    def open(cls, folder: FileLike, *, verify: bool = False) -> Self:
        """Open a folder.

        Sizes and types of all files are checked; ``verify`` checks the checksums too, which reads everything. The
        folders of parts that processes hold may be missing, and are checked when ``part`` opens them. Raises
        FileNotFoundError for a folder without a manifest, ValueError for one of another kind or version and for files
        that are missing, damaged or foreign.
        """
        return cls(folder, verify=verify)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the whole graph."""
        return int(self.manifest.facts["num_nodes"])

    @property
    def num_edges(self) -> int:
        """Number of edges of the whole graph."""
        return int(self.manifest.facts["num_edges"])

    @property
    def num_parts(self) -> int:
        """Number of parts."""
        return int(self.manifest.facts["num_parts"])

    @property
    def method(self) -> str:
        """How the nodes were cut: the name of a method, or "given"."""
        return str(self.manifest.facts["method"])

    @property
    def ndata(self) -> list[str]:
        """Names of the node columns."""
        return [column if isinstance(column, str) else column["name"] for column in self.manifest.facts["ndata"]]

    @property
    def edata(self) -> list[str]:
        """Names of the edge columns."""
        return [column if isinstance(column, str) else column["name"] for column in self.manifest.facts["edata"]]

    def __repr__(self) -> str:
        columns = [f"{kind}: {', '.join(f)}" for kind, f in (("ndata", self.ndata), ("edata", self.edata)) if f]
        return f"{type(self).__name__}({', '.join([*self._sizes(), *columns])})"

    @abstractmethod
    def _fits(self) -> bool:
        """Return whether the facts of the manifest and the arrays fit together; it may also raise where they do not."""

    @abstractmethod
    def _map(self) -> None:
        """Map the arrays."""

    @abstractmethod
    def _sizes(self) -> list[str]:
        """Return what ``repr`` says beside the columns."""

"""Readers of files for the calls of the table, which state the files: texts, bytes, arrays and
matrices by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from _support.rings import EDGES, ring
from _support.text_folders import OGB_FILES, RING_FILES, write_files

from nodeflow import Graph, storage
from nodeflow.datasets import Dataset, build_graph, read_edge_list, read_folder, read_ogb


def readers(place: Path) -> dict[str, Callable[..., Any]]:
    """Return functions that write files into a new folder and read them, by name."""
    number = count()

    def written(files: Mapping[str, Any]) -> Path:
        return write_files(place / f"files{next(number)}", files)

    def read(files: Mapping[str, Any], *, labels: bool = False) -> Dataset:
        return read_folder(written(files), labels=labels)

    def ringed(files: Mapping[str, Any]) -> Dataset:
        """Read a ring of 8 nodes in which some files are others."""
        return read_folder(written({**RING_FILES, **files}))

    def six(files: Mapping[str, Any]) -> Dataset:
        """Read a ring of 6 nodes with further files."""
        return read_folder(written({"edges.csv": EDGES, **files}))

    def columns(**ndata: Any) -> Dataset:
        """Return the labels and split of a ring of 6 nodes with these columns."""
        return Dataset("d", ring(**ndata)).of_type()

    def papers(train: Any = (), target: str = "", **columns: Any) -> Dataset:
        """Return the labels and split of 4 papers with these columns, beside 2 authors."""
        ends = {("author", "writes", "paper"): ([0, 1], [1, 3])}
        author = columns.pop("author", 2)
        graph = Graph.typed({"author": author, "paper": columns}, ends)
        return Dataset("d", graph, train, target=target).of_type()

    def saved(train: Any = (), **ndata: Any) -> Dataset:
        """Write an edge with columns of its two nodes into a graph folder, and read it."""
        folder = place / f"files{next(number)}"
        Dataset("d", Graph.from_edges([0], [1], ndata=ndata), train).save(folder)
        return read_folder(folder)

    def listed(text: str | bytes, name: str = "edges.txt", **options: Any) -> Graph:
        return read_edge_list(written({name: text}) / name, **options)

    def built(files: Mapping[str, Any], **options: Any) -> Graph:
        """Build a graph of all files, ``{name}`` in options being the path of one."""
        folder = written(files)
        return build_graph(
            [folder / name for name in files], folder / "g", progress=False, **options
        )

    def of_arrays(arrays: Mapping[str, Any], *edges: str, ndata: str = "", **options: Any) -> Graph:
        """Build a graph of arrays, named without their ending; a node column is one of them."""
        folder = written({f"{name}.npy": array for name, array in arrays.items()})
        paths = [folder / f"{name}.npy" for name in edges or arrays]
        if ndata:
            options["ndata"] = {"x": folder / f"{ndata}.npy"}
        return build_graph(paths[0], folder / "g", progress=False, **options)

    def opened(files: Mapping[str, Any], *options: Any, **named: Any) -> Any:
        """Open the first of some files as rows."""
        return storage.open(written(files) / next(iter(files)), *options, **named)

    def tensors(size: int = 64, shape: Any = (16,), dtype: str = "F32") -> bytes:
        """Return a ``.safetensors`` file with the facts of a tensor, and ``size`` bytes."""
        facts = {"dtype": dtype, "shape": shape, "data_offsets": [0, 64]}
        text = json.dumps({"x": facts}).encode()
        return len(text).to_bytes(8, "little") + text + bytes(size)

    def ogb(files: Mapping[str, str]) -> Dataset:
        packed = {f"{name}.csv.gz": text for name, text in {**OGB_FILES, **files}.items()}
        return read_ogb(written(packed))

    made = (
        written,
        read,
        ringed,
        six,
        columns,
        papers,
        saved,
        listed,
        built,
        of_arrays,
        opened,
        tensors,
        ogb,
    )
    return {function.__name__: function for function in made}

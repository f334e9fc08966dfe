"""The data set of a run: read from a folder, or from parts in several processes; and the edges of
task link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from nodeflow._core.base.checks import blaming
from nodeflow._core.base.files import is_file
from nodeflow._core.rows.rows import whole_column
from nodeflow._core.schema import Relation, Schema
from nodeflow._files.text.words import is_number
from nodeflow.datasets import LABELS, Dataset, debian, read_folder, split_rows
from nodeflow.distributed import HALO, DistributedGraph, GraphParts
from nodeflow.graph import Graph
from nodeflow.training._checkpoints import read_tensors, write_tensors
from nodeflow.training._graph import edge_types, with_columns
from nodeflow.training._names import NamedDataset, Names
from nodeflow.transform import filter_edges, random_split

PARTS = ("train", "val", "test")
SPLIT = "split"
"""Edge column with the part of every edge: 0 train, 1 validation, 2 test."""
_FILE = "links.safetensors"
_NAMES = "names.safetensors"


class LinkEdges(NamedTuple):
    """The edges of a data set that task link learns, and the graph of those of training, in the
    direction of the data.

    Triples are by part of the split ``[n, 3]`` (source, relation, destination), or without
    relations ``[n, 2]``; they are edges of ``target``, a relation of the schema. The graph has all
    edges of the others but the reverses of held-out ones. ``relation`` is an edge column with the
    relations of triples.
    """

    target: Relation
    relation: str | None
    triples: dict[str, Tensor]
    graph: Graph

    def write(self, folder: Path) -> None:
        write_tensors(
            folder / _FILE, self.triples, {"target": list(self.target), "relation": self.relation}
        )


@dataclass(frozen=True, eq=False, repr=False)
class CutLinks(NamedDataset):
    """A data set whose graph, of training edges alone, lies on several processes, and the triples
    of all edges.
    """

    links: LinkEdges | None = None


def cut_links(dataset: Dataset) -> LinkEdges | None:
    """Return the triples of a data set whose edges were cut into parts, None of any other."""
    if isinstance(dataset, CutLinks):
        return dataset.links
    return None


def learned_part(dataset: Dataset, task: str, target: str) -> Dataset:
    """Return a data set with the labels and split of a target; for task "link" as it is."""
    if task == "link":
        return dataset
    labelled = dataset.of_type(target)
    if task == "regression":
        return _with_numbers(labelled)
    return labelled


def _with_numbers(dataset: Dataset) -> Dataset:
    """Return a data set whose classes are numbers to predict: what their names say, else the
    numbers of the classes.
    """
    label = dataset.graph.ndata.get("label")
    names = dataset.class_names
    if label is None or label.is_floating_point():
        return dataset
    numbers = label.double().masked_fill(label < 0, torch.nan)
    if names is not None:
        for word in names:
            if not is_number(word):
                raise ValueError(
                    f"task 'regression' needs numbers as labels, but data set {dataset.name!r} has "
                    f"classes such as {word!r}; choose task 'classification'"
                )
        # the label -1 of a node without one takes the last
        numbers = torch.tensor([*map(float, names), torch.nan], dtype=torch.float64)[label]
    graph = with_columns(dataset.graph, {"label": numbers.float()})
    return replace(dataset, graph=graph, num_classes=0, class_names=None)


def described(dataset: Dataset) -> Dataset:
    """Return a data set with the labels and split of its only node type that has labels; with
    several as it is.
    """
    # of several types none is the obvious one
    if len(_labelled_types(dataset)) > 1:
        return dataset
    return dataset.of_type()


def _labelled_types(dataset: Dataset) -> list[str]:
    return [name for name, part in dataset.graph.nodes.items() if {*LABELS} & {*part.data}]


def no_labels(dataset: Dataset, target: str, purpose: str = "trained") -> str:
    """Say that a data set has no labels of a target, and which types have some."""
    of_target = ""
    if target:
        of_target = f" of {target!r}"
    labelled = ", ".join(_labelled_types(dataset))
    others = ""
    if labelled:
        others = f"; nodes with labels are of type {labelled}"
    return (
        f"data set {dataset.name!r} has no labels{of_target}, so a model cannot be {purpose} on "
        f"it{others}"
    )


def learned_relation(schema: Schema, target: str) -> Relation:
    """Return the relation whose links are learned; raises KeyError and ValueError where ``target``
    names none.
    """
    if target:
        return schema.relation(target)
    if len(schema.relations) != 1:
        names = ", ".join(repr(" ".join(relation)) for relation in schema.relations)
        raise ValueError(
            f"target must name the relation whose links are learned: {names or 'there is none'}"
        )
    return next(iter(schema.relations))


def relation_column(dataset: Dataset, edge_type: str) -> str | None:
    """Return the edge column with the relations of links, ``edge_type`` or a usual one; None for
    none.
    """
    links = cut_links(dataset)
    if links is not None:
        return links.relation
    return edge_types(dataset.graph, edge_type)


def split_edges(dataset: Dataset, edge_type: str, target: str = "") -> LinkEdges:
    """Return the edges of a relation of a data set by part, those of the column "split" or drawn at
    random.
    """
    links = cut_links(dataset)
    if links is not None:
        return links
    full = dataset.graph
    learned = learned_relation(full.schema, target)
    relation = relation_column(dataset, edge_type)
    parts = _parts(full, learned)
    src, dst = full.edges()
    columns = [src, dst]
    if relation is not None:
        columns.insert(1, torch.as_tensor(full.edata[relation]).long())
    triples = {}
    for part, part_ids in parts.items():
        triples[part] = torch.stack([column[part_ids] for column in columns], 1)
    kept = torch.ones(full.num_edges, dtype=torch.bool)
    kept[_slice(full, learned)] = False
    kept[parts["train"]] = True
    # a reverse would give away the edge that is held out
    held_out = torch.cat([parts["val"], parts["test"]])
    # an edge as one number, which fits 64 bits for up to three thousand million nodes
    pairs = src[held_out] * full.num_nodes + dst[held_out]
    for reverse in full.schema.reverses_of(learned):
        ids = _slice(full, reverse)
        kept[ids] = ~torch.isin(dst[ids] * full.num_nodes + src[ids], pairs)
    graph = filter_edges(full, kept)
    for frame in (graph.edata, graph.relations[learned].data):
        for name in {SPLIT, "parent_eid"} & set(frame):
            del frame[name]
    if relation is not None:
        graph.edata[relation] = torch.as_tensor(graph.edata[relation]).long()
    return LinkEdges(learned, relation, triples, graph)


def _slice(graph: Graph, relation: Relation) -> slice:
    ids = graph.relations[relation].ids
    return slice(ids.start, ids.stop)


def _parts(graph: Graph, relation: Relation) -> dict[str, Tensor]:
    """Return the ids of the edges of a relation in every part, ascending."""
    edges = graph.relations[relation]
    frames = [(edges.data, edges.ids.start), (graph.edata, 0)]
    parts = split_rows(frames, edges.ids, "the data set", "edge")
    every = np.arange(edges.ids.start, edges.ids.stop)
    if parts is None:
        among = torch.from_numpy(every)
        # edges between the same two nodes stay together, or one would give away the other
        drawn = random_split(graph, [0.8, 0.1, 0.1], of="edges", among=among)
        return dict(zip(PARTS, drawn, strict=True))
    missing = np.setdiff1d(every, np.concatenate(parts))
    if len(missing):
        raise ValueError(
            "every edge must be in a part that a column 'split' or masks say, but edge "
            f"{missing[0]} is in none; give it to one, or take it out with transform.filter_edges"
        )
    return dict(zip(PARTS, map(torch.from_numpy, parts), strict=True))


def read_dataset(name: str) -> Dataset:
    """Return the data set "debian", or the one in a folder; the task reports missing labels."""
    if name == "debian":
        return debian()
    return read_folder(name, labels=False)


def read_parts(folder: str, target: str = "", *, links: bool, halo: float = HALO) -> Dataset:
    """Return the data set in a folder of parts, of which each process opens its own; collective.

    Its labels are those of ``target``. Labels of all nodes, or with ``links`` the triples of all
    edges, are in the memory of every process.
    """
    if not dist.is_initialized():
        raise ValueError(
            "partitions is for parts in several processes, and this is one: start torchrun "
            f"--nproc-per-node N -m nodeflow train --partitions {folder}; for a partition buffer "
            "give storage 'partitions'"
        )
    graph = DistributedGraph.open(folder, halo=halo)
    parts = GraphParts.open(folder)
    path = Path(folder)
    if parts.edges != "in":
        raise ValueError(
            f"{folder} has edges {parts.edges!r}, but training finds neighbours where the edges "
            "into a node lie together: write it with nodeflow partition --for processes --edges in"
        )
    split: dict[str, Any] = {}
    for part in PARTS:
        ids = getattr(parts, part)
        if ids is None:
            ids = ()
        split[part] = torch.from_numpy(np.array(ids, np.int64))
    names = read_names(path) or Names.of(Dataset(path.name, graph))
    if links:
        edges = _read_links(path, graph, target)
        return CutLinks(path.name, graph, **split, names=names, links=edges)
    if "label" not in graph.ndata:
        raise ValueError(f"{folder} has no labels, so a model cannot be trained on it")
    # labels take little memory, and a seed may be of any process
    graph.ndata["label"] = whole_column(graph.ndata["label"])
    of_target = range(graph.num_nodes)
    if target:
        of_target = graph.schema.ids(target)
    train = split["train"]
    if ((train < of_target.start) | (train >= of_target.stop)).any():
        raise ValueError(
            f"{folder} was cut for nodes that are not {target!r}: cut it with nodeflow partition "
            "--target"
        )
    # class codes are numbered here where the parts were cut in Python, else when the data were read
    num_classes = len(names.classes or ())
    numbered = Dataset(path.name, graph, **split, num_classes=num_classes, target=target).of_type()
    classes = names.classes
    if numbered.class_names:
        classes = [*numbered.class_names]
    return NamedDataset(
        path.name,
        numbered.graph,
        **split,
        num_classes=numbered.num_classes,
        class_names=tuple(classes) if classes else None,
        target=target,
        names=replace(names, classes=classes),
    )


def write_names(folder: Path, dataset: Dataset) -> None:
    """Write the names of a data set into the folder of its parts or partitions, which have numbers
    only.
    """
    names = Names.of(dataset).with_nodes(dataset)
    write_tensors(folder / _NAMES, names.tensors(), names.to_json())


def read_names(folder: Path) -> Names | None:
    """Return what ``write_names`` wrote; None without the file, ValueError for a damaged one."""
    file = folder / _NAMES
    if not is_file(file):
        return None
    facts, tensors = read_tensors(file)
    with blaming(
        f"{file} is damaged, or no file of names", TypeError, KeyError, ValueError, AttributeError
    ):
        return Names.from_json(facts, tensors)


def _read_links(folder: Path, graph: Graph, target: str) -> LinkEdges:
    """Return what ``LinkEdges.write`` wrote into a folder of parts, of the relation that ``target``
    names.
    """
    file = folder / _FILE
    if not is_file(file):
        raise ValueError(
            f"{folder} has no {_FILE}, so links cannot be learned: write it with --links"
        )
    facts, triples = read_tensors(file)
    sound = (
        isinstance(facts, dict)
        and facts.keys() == {"target", "relation"}
        and triples.keys() == {*PARTS}
        and len(facts["target"]) == 3
    )
    if not sound:
        raise ValueError(f"{file} is damaged, or no file of links: write it with --links")
    source, name, destination = facts["target"]
    words = f"{source} {name} {destination}"
    # of one relation nothing need be said
    known = {name, words} if graph.schema.has_several else {"", name, words}
    if target not in known:
        raise ValueError(
            f"{folder} was cut for links of {words!r}, so target must name these, got {target!r}"
        )
    return LinkEdges((source, name, destination), facts["relation"], triples, graph)

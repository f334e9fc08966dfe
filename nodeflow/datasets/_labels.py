"""Labels and splits: one rule for the columns, files and masks in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_array, describe, first_true
from nodeflow._core.base.dtypes import as_float32
from nodeflow._core.base.types import Array
from nodeflow._core.rows.rows import Rows, is_collective, whole_column
from nodeflow._files.text.titles import plain
from nodeflow.datasets._files import ids_below

LABELS = ("label", "y")
"""Names of columns of labels, the usual one first."""

PARTS = ("train", "val", "test")
PART_WORDS = {
    **dict.fromkeys(("train", "training", "trn", "tr"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "va"), "val"),
    **dict.fromkeys(("test", "testing", "tst", "te"), "test"),
}
"""The words that people have for the parts of a split."""
_MASK_TITLES = ("{}mask", "{}masks", "mask{}", "is{}", "in{}", "{}idx", "{}set")
MASKS = {title.format(word): part for word, part in PART_WORDS.items() for title in _MASK_TITLES}
"""Titles of masks of a part, as ``plain`` writes them: train_mask, trainMask, is_train,
train_idx.
"""
_SPLITS = {"split": "split", **{part: part for part in PARTS}, **MASKS}
"""Titles of columns that say a split, as ``plain`` writes them: one of the numbers of its parts,
and masks of parts.
"""
SUBSETS = ("split", "splits", "set", "subset", "fold", "folds", "partition")
"""Titles of columns of a table, perhaps with a number, that say a split by words for its parts."""

# below it a number of classes costs nothing, so classes keep their numbers
_CODES = 100
# of more numbers than this for every class that occurs, nearly all would be outputs of nothing
_GAPS = 10
# from here on floats have no fractions, and say nothing of classes
_EXACT = 2.0**53

Labels: TypeAlias = "tuple[Tensor, int, tuple[str, ...] | None]"
"""A column of labels in the types of ``Dataset``, the number of classes, and codes that became
their names, or None.
"""


def split_titles(titles: Iterable[str]) -> dict[str, str]:
    """Return the titles of the columns that say a split, and for each "split", or the part that it
    is a mask of.

    Masks may have a number, train_mask_0: those of one of several splits.
    """
    words = {title: plain(title) for title in titles}
    parts = {}
    for title, word in words.items():
        part = _SPLITS.get(word) or MASKS.get(word.rstrip("0123456789"))
        if part is not None:
            parts[title] = part
    # A column is_valid without is_train says that a row is good, not that it is for validation.
    flags = [title for title in parts if words[title].startswith("is")]
    # alone it is a usual title of a flag that has nothing to do with a split
    if [words[title] for title in flags] == ["isvalid"]:
        del parts[flags[0]]
    return parts


def label_column(
    raw: Tensor, where: str, split: Sequence[Ints | Tensor] | None = None, num_classes: int = 0
) -> Labels:
    """Return labels as ``Dataset`` has them; ValueError, which begins with ``where``, for what are
    none.

    - Integers and bools are classes, -1 is none. Class codes that leave most numbers out (one in
      ten occurs, of a hundred or more) get the numbers 0, 1, ... in their order, and the codes
      become the names.
    - Floats are numbers to predict, NaN is none. But whole ones from 0 on beside NaN are classes,
      which a table with gaps has as floats: the labels of the ``split`` decide, if there is one,
      and of others those that fit remain.
    - One row per node is several labels, or several numbers; a row of one is one label.

    ``num_classes``: how many classes are stated, whose numbers stay as they are.
    """
    if (
        raw.layout != torch.strided
        or raw.ndim not in (1, 2)
        or raw.is_complex()
        or raw.is_quantized
    ):
        raise ValueError(
            f"{where} must have one number, or one row, per node, got {describe(raw)} "
            f"({raw.layout})"
        )
    # Many tables keep labels as [nodes, 1]; one class of several labels has this shape too, if it
    # is stated.
    if raw.shape[1:] == (1,) and num_classes != 1:
        raw = raw[:, 0]
    # what files make of -1 where their type or their writer does not know it
    if raw.dtype == torch.uint8 and {254, 255} & {*raw.unique().tolist()} == {255}:
        raise ValueError(
            f"{where} holds 255 as an unsigned byte, which -1 becomes there: write labels as int64"
        )
    if not (raw.is_floating_point() or num_classes) and raw.long().unique().tolist() == [-1, 1]:
        raise ValueError(f"{where} holds 1 and -1, which is no label: write two classes as 1 and 0")
    if raw.ndim == 1 and raw.is_floating_point():
        # tables write integers beside gaps as floats: such labels are classes, with NaN for none
        is_class = (raw == raw.floor()) & (raw >= 0) & (raw < _EXACT)
        nodes = torch.cat([torch.arange(0), *map(torch.as_tensor, split or ())])
        among = nodes if len(nodes) else torch.arange(len(raw))
        labelled = among[~raw[among].isnan()]
        if len(labelled) and bool(raw.isnan().any()) and bool(is_class[labelled].all()):
            raw = torch.where(is_class, raw, -1).long()
    if raw.ndim == 2 or raw.is_floating_point():
        return _rows_or_numbers(raw, where), raw.shape[1] if raw.ndim == 2 else 0, None
    label = raw.long()
    classes = label.numpy()
    if (node := first_true(classes < -1)) is not None:
        raise ValueError(
            f"{where} must hold labels from 0, or -1 for none, but node {node} has {classes[node]}"
        )
    # codes such as 90210 would make a classifier of 90,211 outputs, nearly all of nothing
    top = int(classes.max(initial=-1))
    codes = np.unique(classes[classes >= 0]) if top >= _CODES and not num_classes else classes[:0]
    if num_classes or are_dense(len(codes), top):
        return label, top + 1, None
    ranks = np.where(classes < 0, -1, np.searchsorted(codes, classes))
    return torch.from_numpy(ranks), len(codes), tuple(map(str, codes.tolist()))


def _rows_or_numbers(raw: Tensor, where: str) -> Tensor:
    """Return several labels per node, or numbers to predict, as float32."""
    # By way of float64: whole numbers that float32 would round are refused.
    numbers = raw
    if raw.dtype != torch.float32:
        wide = raw.double().numpy()
        numbers = torch.from_numpy(as_float32(wide, where))
    # integers have no NaN for a label that is not known
    if not raw.is_floating_point() and is_binary(numbers.abs()):
        numbers = numbers.masked_fill(numbers < 0, torch.nan)
    return numbers


def are_dense(count: int, top: int) -> bool:
    """Return whether ``count`` different classes, the largest of them ``top``, keep their
    numbers.
    """
    return top < max(_CODES, _GAPS * count)


def is_binary(rows: Tensor) -> bool:
    """Return whether rows of labels are 0 and 1, apart from NaN."""
    return bool(((rows == 0) | (rows == 1) | rows.isnan()).all())


def has_label(labels: Tensor) -> Tensor:
    """Return whether each node has a label, bool ``[num_nodes]``; of several none may be NaN."""
    if labels.ndim == 2:
        known = ~labels.isnan().any(1)
        if is_binary(labels):
            known &= (labels > 0).any(1)
        return known
    if labels.is_floating_point():
        return ~labels.isnan()
    return labels >= 0


def labelled_split(
    parts: Sequence[Ints] | None,
    where: str,
    label: Tensor | None,
    num_nodes: int,
    names: Sequence[str] | None = None,
) -> list[Tensor]:
    """Return a split of nodes; None splits those with a label at random, always the same way: 1/2,
    1/4, 1/4.

    Raises ValueError, which names the file or folder ``where``, for a training node without label.
    """
    labelled = np.zeros(num_nodes, np.bool_)
    if label is not None:
        labelled = has_label(label).numpy()
    if parts is None:
        nodes = np.flatnonzero(labelled)
        # Always the same, so that results of one data set can be compared; numpy keeps this
        # generator as it is.
        order = np.random.default_rng(0).permutation(len(nodes))
        half = len(nodes) // 2
        quarter = len(nodes) // 4
        parts = [nodes[np.sort(chosen)] for chosen in np.split(order, [half, half + quarter])]
    elif label is not None and label.ndim == 1 and len(bare := parts[0][~labelled[parts[0]]]):
        node = str(bare[0])
        if names is not None:
            node = repr(names[bare[0]])
        raise ValueError(f"{where} holds node {node} for training, which has no label; take it out")
    return [torch.from_numpy(part) for part in parts]


def split_of(arrays: dict[str, Array], num_nodes: int) -> list[Ints]:
    """Return the parts of a split, given by the names of their files, as int64 node ids.

    Raises ValueError for what is no node, and for a node that is twice in one part, or in two
    parts.
    """
    parts = {name: ids_below(num_nodes, array, name) for name, array in arrays.items()}
    for name, ids in parts.items():
        values, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            raise ValueError(
                f"{name} holds node {values[counts.argmax()]} {counts.max()} times; keep it once"
            )
    check_disjoint(parts, "node")
    return list(parts.values())


def check_disjoint(parts: Mapping[str, Ints], noun: str, where: str = "") -> None:
    """Raise ValueError, which begins with ``where``, for a node or an edge (``of``) that is in two
    parts of a split.
    """
    for (part, ids), (other, others) in combinations(parts.items(), 2):
        shared = np.intersect1d(ids, others)
        if len(shared):
            raise ValueError(
                f"{where}{part} and {other} must not share {noun}s, but {noun} {shared[0]} is in both"
            )


def split_rows(
    frames: Iterable[tuple[Mapping[str, Tensor | Rows], int]], within: range, where: str, noun: str
) -> list[Ints] | None:
    """Return the ids of nodes or edges (``of``) in each part, by the first frame whose columns say
    it, or None.

    A frame has a row per id from the number beside it on, ``within`` among these, and masks, or a
    column ``split`` of 0, 1, 2 and -1 for none. Raises ValueError, which begins with ``where``, for
    columns that say no split, or two.
    """
    for frame, start in frames:
        titles = split_titles(name for name in frame if not is_collective(frame[name]))
        parts = [*titles.values()]
        if len(parts) > len({*parts}) or ("split" in parts and len(parts) > 1):
            raise ValueError(
                f"{where} has the columns {', '.join(titles)}, which say its split twice; keep one "
                "way"
            )
        if titles:
            members = dict.fromkeys(PARTS, np.zeros(0, np.int64))
            for name, part in titles.items():
                members |= _members(name, part, frame[name], where, noun, start)
            check_disjoint(members, noun, f"{where}: ")
            return [ids[(ids >= within.start) & (ids < within.stop)] for ids in members.values()]
    return None


def _members(
    name: str, part: str, column: Tensor | Rows, where: str, noun: str, start: int
) -> dict[str, Ints]:
    """Return the ids of nodes or edges in each part that a column says, all or a mask of one
    ``part``.
    """
    words = f"{where}: {noun} column {name!r}"
    values = as_array(whole_column(column), words)
    if values.size != len(values):
        raise ValueError(
            f"{words} must have one entry per {noun}, got shape {values.shape}; of several splits "
            "keep one, such as column[:, 0]"
        )
    values = values.reshape(-1)
    is_mask = part != "split"
    if is_mask:
        rule = f"be a mask, bool [{noun}s]"
        numbers = {part: 1}
        is_known = np.isin(values, (0, 1))
    else:
        rule = "hold 0 (train), 1 (validation) or 2 (test), or -1 for none"
        numbers = {name: number for number, name in enumerate(PARTS)}
        # a split of bools would be of two parts, whose names nobody said
        is_known = np.isin(values, (-1, 0, 1, 2)) & (values.dtype != np.bool_)
    if (row := first_true(~is_known)) is not None:
        raise ValueError(
            f"{words} must {rule}, got {column.dtype} {list(column.shape)} with {values[row]} for "
            f"{noun} {row + start}; rename it if it is none"
        )
    return {part: np.flatnonzero(values == number) + start for part, number in numbers.items()}

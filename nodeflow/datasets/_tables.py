"""Tables of words in text files: edges and nodes, ids from names, columns of labels, features and
splits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._base.checks import Ints, first_true
from nodeflow._base.dtypes import as_float32
from nodeflow._base.types import Array
from nodeflow._text.table import rows_of_words
from nodeflow._text.titles import NODE, RELATIONS, places_of_ends, plain, titled_columns
from nodeflow._text.words import (
    DATE,
    NAME,
    TRUTH,
    Fault,
    column_of,
    is_code,
    is_integer,
    is_number,
    kind_of,
    numbered,
    short,
    whole_numbers,
)
from nodeflow.datasets._files import check_room
from nodeflow.datasets._labels import PART_WORDS, PARTS, SUBSETS, are_dense, split_titles

_PARTS = {
    "": -1,
    "0": 0,
    "1": 1,
    "2": 2,
    **{word: PARTS.index(part) for word, part in PART_WORDS.items()},
}
_RULES = {
    False: "train, val or test (or 0, 1, 2 under the title split), or have a title that begins "
    "with _ to be left out",
    True: "true and false, or 1 and 0, or be renamed if it is no mask",
}
"""What a column of a split, or a mask, must hold."""
_FLAGS = {"true": 1, "false": 0, "1": 1, "0": 0, "1.0": 1, "0.0": 0}
_NO_LABEL = ("", "nan", "-1")
_LIKE_TITLES = (
    "reads like titles; take it out, or if it is a triple, put a line head, relation, tail before "
    "it"
)
_CHUNK = 256  # few enough that the garbage collector does not scan them twice


@dataclass(frozen=True, slots=True)
class Words:
    """The columns of a text file, by title, as words; ``skip`` rows of the file come before the
    first of them.
    """

    path: Path
    columns: dict[str, tuple[str, ...]]
    skip: int = 1

    def error(self, row: int, words: str) -> ValueError:
        """Return the ValueError for a row of the columns, which names its line."""
        line = next(islice(rows_of_words(self.path), self.skip + row, None))[0]
        return ValueError(f"{self.path}, line {line}: {words}")


def read_words(
    path: Path,
    titles: Sequence[str] | None = None,
    *,
    optional: Collection[str] = (),
    skip: int = 1,
) -> Words:
    """Read a text file, as ``read_folder`` describes them, into columns.

    ``titles`` None takes the first row; ``skip`` counts the rows before the data, including the row
    of titles. Only the ``optional`` columns may have empty entries; others without any entry are
    left out. Raises ValueError with the line.
    """
    rows = rows_of_words(path)
    head = list(islice(rows, skip))
    if titles is None:
        if not head:
            raise ValueError(f"{path} is empty; its first line must name its columns")
        line, titles = head[0]
        for title in titles:
            if not title or (titles.count(title) > 1 and title[0] != "_"):
                raise ValueError(
                    f"{path}, line {line}: every column needs a title of its own, got {titles}; a "
                    "title that begins with _ leaves its column out"
                )
    # tuples of strings cost the garbage collector nothing
    pieces: list[list[tuple[str, ...]]] = [[] for _ in titles]
    while chunk := list(islice(rows, _CHUNK)):
        if {len(fields) for _, fields in chunk} != {len(titles)}:
            line, fields = next(row for row in chunk if len(row[1]) != len(titles))
            wanted = f"{len(titles)} columns ({', '.join(titles)})"
            hint = ", ...; every column needs a title, and every row an entry" * (
                len(fields) > len(titles)
            )
            raise ValueError(
                f"{path}, line {line}: expected {wanted}, got {len(fields)}: {fields[:9]}{hint}"
            )
        for done, piece in zip(
            pieces, zip(*(fields for _, fields in chunk), strict=True), strict=True
        ):
            done.append(piece)
    columns = {
        title: tuple(chain.from_iterable(pieces[at]))
        for at, title in enumerate(titles)
        if title[:1] != "_"
    }
    table = Words(path, columns, skip)
    needed = [*titles[:1], *(titles[at] for at in places_of_ends(titles) or ())]
    for title, column in columns.copy().items():
        if title not in (*optional, *needed) and column and not any(column):
            del columns[title]  # some programs write every column that they know
        elif title not in optional and "" in column:
            hint = f"; a title that begins with _, such as _{title}, leaves the column out" * (
                title not in needed
            )
            raise table.error(column.index(""), f"the entry of column {title!r} is empty{hint}")
    return table


def error_at(tables: Sequence[Words], row: int, words: str) -> ValueError:
    """Return the ValueError for a row of some tables, one after the other."""
    for table in tables[:-1]:
        size = len(next(iter(table.columns.values())))
        if row < size:
            return table.error(row, words)
        row -= size
    return tables[-1].error(row, words)


def typed(words: Sequence[str], tables: Sequence[Words]) -> tuple[Array, tuple[str, ...] | None]:
    """Return a column as ``column_of`` does; ``words`` are those of the rows of ``tables``, one
    after the other.
    """
    return column_of(words, partial(error_at, tables))


def parts(table: Words, title: str, part: str) -> NDArray[Any]:
    """Return a column of a split: ``part`` "split" as int8 0, 1, 2, and -1 for an empty entry; a
    mask as bools.
    """
    is_mask = part != "split"
    known = _FLAGS if is_mask else _PARTS
    names, codes = numbered(table.columns[title])
    for at, name in enumerate(names):
        # the numbers of subset or fold may be those of parts, or of folds of a cross-validation
        if name.lower() not in known or (
            not is_mask and plain(title) != "split" and is_number(name)
        ):
            row = int((codes == at).argmax())
            raise table.error(row, f"column {title!r} must hold {_RULES[is_mask]}, got {name!r}")
    return np.array([known[name.lower()] for name in names], np.bool_ if is_mask else np.int8)[
        codes
    ]


def _splits(table: Words) -> dict[str, str]:
    """Return the titles of a table that say a split, as ``split_titles`` does, with those such as
    ``subset``.
    """
    subsets = (title for title in table.columns if plain(title).rstrip("0123456789") in SUBSETS)
    splits = split_titles(table.columns) | dict.fromkeys(subsets, "split")
    if [*splits.values()].count("split") > 1:
        raise table_error(
            table.path,
            f"names {', '.join(splits)}, which say a split twice; keep one, or begin with _",
        )
    return splits


class Numbering(NamedTuple):
    """The id of every node that a text file names; ``names`` by id, None where the ids are the
    file's own numbers.
    """

    ids: dict[int | str, int]
    num_nodes: int
    names: tuple[str, ...] | None

    def of(self, words: Iterable[str]) -> dict[str, int]:
        """Return the id of each word, -1 where no node has that name."""
        if not isinstance(next(iter(self.ids), 0), int):
            return {word: self.ids.get(word, -1) for word in words}
        return {word: self.ids.get(int(word), -1) if is_integer(word) else -1 for word in words}


class Edges(NamedTuple):
    """Edges of a graph: ``src`` and ``dst`` int64 ``[num_edges]``, columns, and names where the
    files have them.
    """

    num_nodes: int
    src: Ints
    dst: Ints
    columns: dict[str, Array]
    node_names: tuple[str, ...] | None = None
    category_names: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Nodes(NamedTuple):
    """The nodes of a table; rows are in the order of ``numbering``, and ``rows`` has the row in the
    table of each id.

    ``times`` are columns of dates.
    """

    path: Path
    numbering: Numbering
    label: Array | None
    num_classes: int
    class_names: tuple[str, ...] | None
    feat: NDArray[np.float32] | None
    feature_names: tuple[str, ...] | None
    split: dict[str, Tensor]
    rows: Ints
    times: dict[str, Array]


def number_nodes(words: Iterable[str], fault: Fault) -> Numbering:
    """Number different words in their order; integers stay as they stand if they are all of those
    from 0 to n - 1.

    A negative integer gets no id. ``fault`` is that of ``whole_numbers``.
    """
    words = list(words)
    integers = whole_numbers(words, fault)
    if integers is None:
        return Numbering({word: at for at, word in enumerate(words)}, len(words), tuple(words))
    numbers = [number for number in integers if number >= 0]
    if max(numbers, default=-1) == len(numbers) - 1:
        return Numbering({number: number for number in numbers}, len(numbers), None)
    return Numbering(
        {number: at for at, number in enumerate(numbers)}, len(numbers), tuple(map(str, numbers))
    )


def read_edges(path: Path, nodes: Nodes | None = None) -> Words:
    """Read a table of edges, whose first row has titles; source and destination become src and dst.

    ``titled_columns`` says which these are. Raises ValueError where the first row may be an edge:
    where it has numbers, names of ``nodes``, or words that are there again, and where nothing tells
    titles from names.
    """
    table = read_words(path)
    titles = list(table.columns)
    if len(titles) < 2:
        between = "commas" if ".csv" in path.suffixes else "tabs"
        raise table_error(
            path,
            f"must name two or more columns, such as src and dst, with {between} between: {titles}",
        )
    if places_of_ends(titles) is None and not _are_titles(table, nodes):
        raise table_error(
            path,
            f"must name the columns, but {titles} reads like an edge; put the line src,dst before, "
            "or name the columns of the ends src and dst",
        )
    names = titled_columns(titles, f"{path}: its first line")
    return Words(path, dict(zip(names, table.columns.values(), strict=True)), table.skip)


def _are_titles(table: Words, nodes: Nodes | None) -> bool:
    """Return whether the first row of a table of edges, of words that are not known, has titles."""
    titles = list(table.columns)
    ends = [table.columns[title] for title in titles[:2]]
    if is_integer(titles[0]) or titles[0] in chain(*ends):
        return False
    if nodes is not None:
        return min(nodes.numbering.of(titles[:2]).values()) < 0
    # numbers below a word, which they are the title of
    below = [words for title, words in table.columns.items() if not is_number(title)]
    return not ends[0] or any(all(map(is_number, words)) for words in below)


def table_error(path: Path, words: str) -> ValueError:
    """Return the ValueError for the titles of a file."""
    return ValueError(f"{path}: its first line {words}")


def read_triples(files: Sequence[Path | None]) -> list[Words]:
    """Read triples (head, relation, tail) of a training, a validation and a test file; any may be
    missing.

    A first row of titles, in any order, names the columns. After a first row with the number of
    triples, as OpenKE writes it, these are (head, tail, relation).
    """
    tables = []
    for part, file in enumerate(files):
        if file is None:
            continue
        first = next((fields for _, fields in rows_of_words(file)), [])
        titles = ["src", "relation", "dst"]
        skip = 0
        ends = places_of_ends(first)
        is_counted = len(first) == 1 and is_integer(first[0])
        if is_counted:
            titles = ["src", "dst", "relation"]
            skip = 1
        elif "2id." in file.name:
            raise ValueError(
                f"{file}, line 1: expected the number of triples, as OpenKE writes it, got {first}"
            )
        elif (
            len(first) == 3
            and ends is not None
            and plain(first[3 - sum(ends)]) in (*RELATIONS, "type", "label")
        ):
            titles = list(titled_columns(first, str(file)))
            skip = 1
            titles[3 - sum(ends)] = "relation"
        # u and v are titles of edges, and names of nodes in small examples
        elif len(first) == 3 and (
            plain(first[1]) in RELATIONS or (ends is not None and first[0] != "u")
        ):
            raise ValueError(f"{file}, line 1: {first} {_LIKE_TITLES}")
        table = read_words(file, titles, skip=skip)
        size = len(table.columns["src"])
        if is_counted and size != int(first[0]):
            raise ValueError(
                f"{file}, line 1: it says that there are {first[0]} triples, got {size}; copy it "
                "again"
            )
        tables.append(Words(file, {**table.columns, "split": (str(part),) * size}, skip))
    later = {
        *chain.from_iterable(
            words[1:] for table in tables for words in [*table.columns.values()][:3]
        )
    }
    for table in tables:
        first = [words[0] for words in [*table.columns.values()][:3] if len(words) > 1]
        if (
            len({*first}) == 3
            and later.isdisjoint(first)
            and table.skip == 0
            and not any(map(is_number, first))
        ):
            raise ValueError(f"{table.path}, line 1: {first} {_LIKE_TITLES}")
    return tables


def number_edges(
    tables: Sequence[Words], nodes: Nodes | None, rows_of: str, num_rows: int | None
) -> Edges:
    """Return the edges of ``tables`` of the same columns, src and dst among them.

    Without a table of nodes, ``rows_of`` is the name of a file whose rows belong to nodes by number
    ("" without one), and ``num_rows`` their number, if it is known. Raises ValueError with the line
    of an end that is no node.
    """
    pairs = (zip(table.columns["src"], table.columns["dst"], strict=True) for table in tables)
    words, codes = numbered(chain.from_iterable(chain.from_iterable(pairs)))
    if nodes is not None:
        numbering = nodes.numbering
        what = f"a node of {nodes.path}"
    elif rows_of:
        numbers = [int(word) for word in words if is_integer(word)]
        top = max(numbers, default=-1) if num_rows is None else num_rows - 1
        numbering = Numbering(
            {number: number for number in numbers if 0 <= number <= top}, top + 1, None
        )
        what = (
            f"a number from 0 to {top}, for a row of {rows_of} (a file nodes.csv may give names to "
            "the rows)"
        )
    else:
        numbering = number_nodes(
            words, lambda at, why: error_at(tables, int((codes == at).argmax()) // 2, why)
        )
        what = "a name, or an integer from 0"
    ids = np.array(list(numbering.of(words).values()), np.int64)
    if (at := first_true(ids[codes] < 0)) is not None:
        row, end = divmod(at, 2)
        raise error_at(
            tables, row, f"{('src', 'dst')[end]} must be {what}, got {short(words[codes[at]])}"
        )
    src = ids[codes[::2]]
    dst = ids[codes[1::2]]
    columns: dict[str, Array] = {}
    categories = {}
    splits = _splits(tables[0])
    for title in tables[0].columns:
        if title in splits:
            columns["split" if splits[title] == "split" else title] = np.concatenate(
                [parts(table, title, splits[title]) for table in tables]
            )
        elif title not in ("src", "dst"):
            column = tuple(chain.from_iterable(table.columns[title] for table in tables))
            columns[title], names = (
                _relations(column, tables) if title == "relation" else typed(column, tables)
            )
            if names is not None:
                categories[title] = names
    return Edges(numbering.num_nodes, src, dst, columns, numbering.names, categories)


def _relations(
    words: Sequence[str], tables: Sequence[Words]
) -> tuple[Ints, tuple[str, ...] | None]:
    """Return the relation of each row: integers as they stand, or numbers of names, with the
    names.
    """
    names, codes = numbered(words)
    integers = whole_numbers(
        names, lambda at, why: error_at(tables, int((codes == at).argmax()), why)
    )
    if integers is None:
        return codes, tuple(names)
    return np.array(integers, np.int64)[codes], None


def read_nodes(path: Path) -> Nodes:
    """Read a table of nodes: ids or names, and columns label, split and features; raises ValueError
    with the line.
    """
    table = read_words(path, optional=("label", *SUBSETS))
    title, words = next(iter(table.columns.items()), ("", ()))
    id_columns = [other for other in table.columns if plain(other) in ("id", "nodeid")]
    splits = _splits(table)
    if title in ("", "label", *splits) or (id_columns and title not in id_columns):
        raise table_error(
            path, f"must begin with a column of ids or names of nodes, got {list(table.columns)}"
        )
    # a first row of values instead of titles has a number in it, or is a single name
    is_row = len(table.columns) == 1 or any(
        is_number(word) or kind_of(word) != NAME for word in table.columns
    )
    if is_row and NODE.fullmatch(title) is None:
        raise table_error(
            path,
            f"must name the columns, but {list(table.columns)} reads like a node; put a line of "
            "titles before, such as id, or, if it has titles, call the first column id or name",
        )
    distinct = list(dict.fromkeys(words))
    numbering = number_nodes(distinct, lambda at, why: table.error(words.index(distinct[at]), why))
    number = numbering.of(words)
    seen: set[int] = set()
    for row, word in enumerate(words):
        if number[word] < 0 or number[word] in seen:
            wrong = (
                f"node {word!r} is there twice" if number[word] >= 0 else f"no node can be {word!r}"
            )
            raise table.error(row, f"{wrong}; a node is a name, or an integer from 0, on one line")
        seen.add(number[word])
    order = np.argsort([number[word] for word in words])  # row of each id
    label, num_classes, class_names = (
        labels_of(table) if "label" in table.columns else (None, 0, None)
    )
    split = {
        "split" if part == "split" else other: parts(table, other, part)
        for other, part in splits.items()
    }
    titles = [other for other in table.columns if other not in (title, "label", *splits)]
    dated = [other for other in titles if DATE in map(kind_of, table.columns[other])]
    times = {other: typed(table.columns[other], [table])[0][order] for other in dated}
    titles = [other for other in titles if other not in times]
    features = [_feature(table, other) for other in titles]
    return Nodes(
        path,
        numbering,
        None if label is None else label[order],
        num_classes,
        class_names,
        np.stack(features, 1)[order] if features else None,
        tuple(titles) if titles else None,
        {other: torch.from_numpy(column[order]) for other, column in split.items()},
        order,
        times,
    )


def _feature(table: Words, title: str) -> NDArray[np.float32]:
    column, names = typed(table.columns[title], [table])
    if names is not None:
        row, word = next(
            (row, word)
            for row, word in enumerate(table.columns[title])
            if kind_of(word) == NAME or is_code(word)
        )
        raise table.error(
            row,
            f"column {title!r} must hold numbers, got {short(word)}; numbers are features; a title "
            f"that begins with _, such as _{title}, leaves the column out",
        )
    return as_float32(column, f"{table.path}, column {title!r}")


def labels_of(table: Words) -> tuple[Array, int, tuple[str, ...] | None]:
    """Return the column ``label``, the number of classes that have names or columns, else 0, and
    the names, or None.

    An entry that is empty or nan is no label: -1, nan, or a row of zeros. Numbers that are all
    whole are integers.
    """
    words, codes = numbered(table.columns["label"])
    if any(";" in word for word in words):
        return _several_labels(table, words, codes)
    present = [word for word in words if word and word.lower() != "nan"]
    if {*map(kind_of, present)} == {TRUTH}:
        present.sort(key=str.lower)  # False is class 0, as it is in arrays
    if not all(is_number(word) and not is_code(word) for word in present):
        number = {word: at for at, word in enumerate(present)}
        # refuses numbers in other forms, and gaps among numbers, which would be classes by mistake
        typed([word if word in number else present[0] for word in table.columns["label"]], [table])
        return (
            np.array([number.get(word, -1) for word in words], np.int64)[codes],
            len(present),
            tuple(present),
        )
    if not all(float(word).is_integer() for word in present):
        values, _ = typed([word or "nan" for word in table.columns["label"]], [table])
        return as_float32(values, f"{table.path}, column 'label'"), 0, None
    beyond = [abs(float(word or "nan")) >= 2.0**63 for word in words]
    if (row := first_true(np.array(beyond, np.bool_)[codes])) is not None:
        raise table.error(
            row, f"label must be a class in 64 bits, got {short(table.columns['label'][row])}"
        )
    # not through float64, which keeps 53 bits of an integer
    numbers = [
        int(word) if is_integer(word) else int(float(word)) if word in {*present} else -1
        for word in words
    ]
    label = np.array(numbers, np.int64)[codes]
    if (row := first_true(label < -1)) is not None:
        raise table.error(
            row, f"label must be a class from 0, or -1 or empty for none, got {label[row]}"
        )
    return label, 0, None


def _several_labels(
    table: Words, words: list[str], codes: Ints
) -> tuple[NDArray[np.float32], int, tuple[str, ...] | None]:
    lists = [
        [label for part in word.split(";") if (label := part.strip()).lower() not in _NO_LABEL]
        for word in words
    ]
    names = list(dict.fromkeys(chain.from_iterable(lists)))
    are_integers = all(is_integer(name) and int(name) >= 0 for name in names)
    whole = are_integers and are_dense(len(names), max(map(int, names), default=-1))
    number = {name: int(name) if whole else at for at, name in enumerate(names)}
    width = max(number.values(), default=-1) + 1
    check_room(4 * len(codes) * width, f"{table.path}: a matrix of labels [{len(codes)}, {width}]")
    rows = np.zeros((len(words), width), np.float32)
    for row, labels in enumerate(lists):
        rows[row, [number[label] for label in labels]] = 1
    return rows[codes], width, None if whole else tuple(names)

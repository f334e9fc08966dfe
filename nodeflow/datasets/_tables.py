"""Tables of words in text files: edges and nodes, ids from names, columns of labels, features and
splits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints, first_true
from nodeflow._core.base.dtypes import as_float32
from nodeflow._core.base.types import Array
from nodeflow._files.text.table import rows_of_words
from nodeflow._files.text.titles import ENDS, NODE, RELATIONS, places_of_ends, plain, titled_columns
from nodeflow._files.text.words import (
    DATE,
    NAME,
    TRUTH,
    WordColumn,
    is_code,
    is_integer,
    is_number,
    kind_of,
    short,
)
from nodeflow.datasets._files import check_room
from nodeflow.datasets._labels import PART_WORDS, PARTS, SUBSETS, are_dense, split_titles

_TRIPLE = ("src", "relation", "dst")
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
_CHUNK = 256  # rows


@dataclass(frozen=True, slots=True)
class Words:
    """The columns of text files, by title, as words.

    ``files`` have the rows, one after the other: each file, the number of its rows before the
    first of these, and how many these are.
    """

    files: tuple[tuple[Path, int, int], ...]
    columns: dict[str, list[str]]

    @property
    def path(self) -> Path:
        """The first file."""
        return self.files[0][0]

    def column(self, title: str) -> WordColumn:
        """Return a column by its different words."""
        return WordColumn(self.columns[title], self.error)

    def error(self, row: int, words: str) -> ValueError:
        """Return the ValueError for a row of the columns, which names its file and line."""
        first = 0
        for path, skip, size in self.files:
            if row < first + size:
                # The file is read again: lines are known to the reader alone, and errors are
                # rare.
                line, _ = next(islice(rows_of_words(path), skip + row - first, None))
                return ValueError(f"{path}, line {line}: {words}")
            first += size
        raise IndexError(f"row {row} of {first}")


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
        titles = _titles(path, head)
    columns = _columns(path, titles, rows)
    ends = places_of_ends(titles) or ()
    kept = {}
    for place, (title, column) in enumerate(zip(titles, columns, strict=True)):
        is_needed = place == 0 or place in ends
        # some programs write every column that they know
        is_bare = not is_needed and title not in optional and column and not any(column)
        if title[:1] != "_" and not is_bare:
            kept[title] = column
    table = Words(((path, skip, len(columns[0])),), kept)
    for title, column in kept.items():
        if title not in optional and "" in column:
            hint = ""
            if titles.index(title) not in (0, *ends):
                hint = f"; a title that begins with _, such as _{title}, leaves the column out"
            raise table.error(column.index(""), f"the entry of column {title!r} is empty{hint}")
    return table


def _titles(path: Path, head: Sequence[tuple[int, list[str]]]) -> list[str]:
    """Return the titles of a file, which are its first row."""
    if not head:
        raise ValueError(f"{path} is empty; its first line must name its columns")
    line, titles = head[0]
    for title in titles:
        if not title or (titles.count(title) > 1 and title[0] != "_"):
            raise ValueError(
                f"{path}, line {line}: every column needs a title of its own, got {titles}; a "
                "title that begins with _ leaves its column out"
            )
    return titles


def _columns(
    path: Path, titles: Sequence[str], rows: Iterator[tuple[int, list[str]]]
) -> list[list[str]]:
    """Return the columns of rows, which have one entry for each title."""
    columns: list[list[str]] = [[] for _ in titles]
    # rows become columns a few at a time, since the garbage collector scans lists of lists
    while chunk := list(islice(rows, _CHUNK)):
        for line, fields in chunk:
            if len(fields) != len(titles):
                raise ValueError(
                    f"{path}, line {line}: expected {len(titles)} columns ({', '.join(titles)}), "
                    f"got {len(fields)}: {fields[:9]}; every column needs a title, and every row "
                    "an entry"
                )
        for place, words in enumerate(zip(*(fields for _, fields in chunk), strict=True)):
            columns[place] += words
    return columns


def parts(table: Words, title: str, name: str) -> NDArray[Any]:
    """Return a column of a split: one with the ``name`` "split" as int8 0, 1, 2, and -1 for an empty
    entry; a mask as bools.
    """
    is_mask = name != "split"
    known = _PARTS
    dtype: type[np.generic] = np.int8
    if is_mask:
        known = _FLAGS
        dtype = np.bool_
    # the numbers of subset or fold may be those of parts, or of folds of a cross-validation
    takes_numbers = is_mask or plain(title) == "split"
    column = table.column(title)
    for number, word in enumerate(column.names):
        if word.lower() not in known or (not takes_numbers and is_number(word)):
            why = f"column {title!r} must hold {_RULES[is_mask]}, got {word!r}"
            raise column.error(number, why)
    numbers = [known[word.lower()] for word in column.names]
    return np.array(numbers, dtype)[column.codes]


def _splits(table: Words) -> dict[str, str]:
    """Return the titles of a table that say a split, with those such as ``subset``, and the name of
    each column: "split", or the title of a mask.
    """
    splits = {}
    for title, part in split_titles(table.columns).items():
        splits[title] = title if part != "split" else part
    for title in table.columns:
        if plain(title).rstrip("0123456789") in SUBSETS:
            splits[title] = "split"
    if [*splits.values()].count("split") > 1:
        raise table_error(
            table.path,
            f"names {', '.join(splits)}, which say a split twice; keep one, or begin with _",
        )
    return splits


class NodeIds(NamedTuple):
    """The id of every node that a text file names, by its word; ``names`` by id, None where the ids
    are the file's own numbers.
    """

    ids: dict[str, int]
    num_nodes: int
    names: tuple[str, ...] | None

    def of(self, words: Iterable[str]) -> Ints:
        """Return the id of each word, -1 where no node has that name."""
        return np.array([self.ids.get(word, -1) for word in words], np.int64)


class TableEdges(NamedTuple):
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

    ``columns`` are "label" and "feat", as far as there are any, and columns of dates by their title.
    """

    path: Path
    numbering: NodeIds
    rows: Ints
    columns: dict[str, Tensor]
    split: dict[str, Tensor]
    num_classes: int
    class_names: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None


def number_nodes(column: WordColumn) -> NodeIds:
    """Number different words in their order; integers stay as they stand if they are all of those
    from 0 to n - 1.

    A negative integer gets no id. Raises the errors of ``whole_numbers``.
    """
    names = column.names
    integers = column.integers()
    if integers is not None:
        names = [name for name in names if name[0] != "-"]
        if max(integers, default=-1) == len(names) - 1:
            return NodeIds({name: int(name) for name in names}, len(names), None)
    return NodeIds({name: number for number, name in enumerate(names)}, len(names), tuple(names))


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
    columns = zip(names, table.columns.values(), strict=True)
    return Words(table.files, dict(columns))


def _are_titles(table: Words, nodes: Nodes | None) -> bool:
    """Return whether the first row of a table of edges, of words that are not known, has titles."""
    titles = list(table.columns)
    ends = [table.columns[title] for title in titles[:2]]
    if is_integer(titles[0]) or titles[0] in chain(*ends):
        return False
    if nodes is not None:
        return bool((nodes.numbering.of(titles[:2]) < 0).any())
    # numbers below a word, which they are the title of
    below = [words for title, words in table.columns.items() if not is_number(title)]
    return not ends[0] or any(all(map(is_number, words)) for words in below)


def table_error(path: Path, words: str) -> ValueError:
    """Return the ValueError for the titles of a file."""
    return ValueError(f"{path}: its first line {words}")


def read_triples(files: Sequence[Path | None]) -> Words:
    """Read triples (head, relation, tail) of a training, a validation and a test file; any may be
    missing. The column ``split`` has the number of the file.

    A first row of titles, in any order, names the columns. After a first row with the number of
    triples, as OpenKE writes it, these are (head, tail, relation).
    """
    tables = []
    columns: dict[str, list[str]] = {"src": [], "relation": [], "dst": [], "split": []}
    for part, file in enumerate(files):
        if file is not None:
            table = _triples(file)
            table.columns["split"] = [str(part)] * table.files[0][2]
            tables.append(table)
            for title in columns:
                columns[title] += table.columns[title]
    # Titles that are not known stand in the first row, and its words in no other. An edge has at
    # least one end, or a relation, that other edges have too.
    later = {word for table in tables for title in _TRIPLE for word in table.columns[title][1:]}
    for table in tables:
        path, skip, size = table.files[0]
        if skip == 0 and size > 1:
            first = [table.columns[title][0] for title in _TRIPLE]
            is_new = len({*first}) == 3 and later.isdisjoint(first)
            if is_new and not any(map(is_number, first)):
                raise ValueError(f"{path}, line 1: {first} {_LIKE_TITLES}")
    return Words(tuple(table.files[0] for table in tables), columns)


def _triples(file: Path) -> Words:
    """Read the triples of one file."""
    _, first = next(rows_of_words(file), (0, []))
    if len(first) == 1 and is_integer(first[0]):
        table = read_words(file, ["src", "dst", "relation"])
        size = len(table.columns["src"])
        if size != int(first[0]):
            raise ValueError(
                f"{file}, line 1: it says that there are {first[0]} triples, got {size}; copy it "
                "again"
            )
        return table
    if "2id." in file.name:
        raise ValueError(
            f"{file}, line 1: expected the number of triples, as OpenKE writes it, got {first}"
        )
    ends = places_of_ends(first)
    if len(first) == 3 and ends is not None:
        other = 3 - sum(ends)
        if plain(first[other]) in (*RELATIONS, "type", "label"):
            titles = list(titled_columns(first, str(file)))
            titles[other] = "relation"
            return read_words(file, titles)
    # u and v are titles of edges, and names of nodes in small examples
    has_ends = ends is not None and first[0] != "u"
    if len(first) == 3 and (has_ends or plain(first[1]) in RELATIONS):
        raise ValueError(f"{file}, line 1: {first} {_LIKE_TITLES}")
    return read_words(file, _TRIPLE, skip=0)


def number_edges(
    table: Words, nodes: Nodes | None, rows_of: str, num_rows: int | None
) -> TableEdges:
    """Return the edges of a table, whose columns of ends are src and dst.

    Without a table of nodes, ``rows_of`` is the name of a file whose rows belong to nodes by number
    ("" without one), and ``num_rows`` their number, if it is known. Raises ValueError with the line
    of an end that is no node.
    """
    # source before destination, edge by edge: the order in which names are numbered
    pairs = zip(table.columns["src"], table.columns["dst"], strict=True)
    # Both ends are one column: a word is the same node at either, and integers stay only if all
    # are.
    ends = WordColumn(chain.from_iterable(pairs), lambda place, why: table.error(place // 2, why))
    if nodes is not None:
        numbering = nodes.numbering
        expected = f"a node of {nodes.path}"
    elif rows_of:
        numbers = [int(word) for word in ends.names if is_integer(word)]
        top = max(numbers, default=-1)
        if num_rows is not None:
            top = num_rows - 1
        ids_of_rows = {str(n): n for n in numbers if 0 <= n <= top}
        numbering = NodeIds(ids_of_rows, top + 1, None)
        hint = "(a file nodes.csv may give names to the rows)"
        expected = f"a number from 0 to {top}, for a row of {rows_of} {hint}"
    else:
        numbering = number_nodes(ends)
        expected = "a name, or an integer from 0"
    ids = numbering.of(ends.names)[ends.codes]
    if (place := first_true(ids < 0)) is not None:
        word = short(ends.names[ends.codes[place]])
        raise table.error(place // 2, f"{ENDS[place % 2]} must be {expected}, got {word}")
    columns: dict[str, Array] = {}
    categories = {}
    splits = _splits(table)
    for title in table.columns:
        if title in splits:
            columns[splits[title]] = parts(table, title, splits[title])
        elif title not in ENDS:
            values = _relations if title == "relation" else WordColumn.values
            columns[title], names = values(table.column(title))
            if names is not None:
                categories[title] = names
    return TableEdges(
        numbering.num_nodes, ids[::2], ids[1::2], columns, numbering.names, categories
    )


def _relations(column: WordColumn) -> tuple[Ints, tuple[str, ...] | None]:
    """Return the relation of each row: integers as they stand, or numbers of names, with the
    names.
    """
    integers = column.integers()
    if integers is None:
        return column.codes, tuple(column.names)
    return np.array(integers, np.int64)[column.codes], None


def read_nodes(path: Path) -> Nodes:
    """Read a table of nodes: ids or names, and columns label, split and features; raises ValueError
    with the line.
    """
    table = read_words(path, optional=("label", *SUBSETS))
    titles = list(table.columns)
    splits = _splits(table)
    id_columns = [title for title in titles if plain(title) in ("id", "nodeid")]
    if (
        not titles
        or titles[0] in ("label", *splits)
        or (id_columns and titles[0] not in id_columns)
    ):
        raise table_error(path, f"must begin with a column of ids or names of nodes, got {titles}")
    # a first row of values instead of titles has a number in it, or is a single name
    is_row = len(titles) == 1 or any(is_number(word) or kind_of(word) != NAME for word in titles)
    if is_row and NODE.fullmatch(titles[0]) is None:
        raise table_error(
            path,
            f"must name the columns, but {titles} reads like a node; put a line of titles before, "
            "such as id, or, if it has titles, call the first column id or name",
        )
    numbering, ids = _number_rows(table, titles[0])
    # Ids may be in any order in the file, and rows of columns lie by id.
    order = np.argsort(ids)  # row of each id
    columns: dict[str, Array] = {}
    split: dict[str, Array] = {}
    features = {}
    num_classes = 0
    class_names = None
    for title in titles[1:]:
        if title == "label":
            columns[title], num_classes, class_names = labels_of(table)
        elif title in splits:
            split[splits[title]] = parts(table, title, splits[title])
        elif DATE in map(kind_of, table.columns[title]):
            if title == "feat":
                raise ValueError(f"{path}: column 'feat' holds dates; give it a title such as time")
            columns[title], _ = table.column(title).values()
        else:
            values = _numbers(table.column(title), title)
            features[title] = as_float32(values, f"{path}, column {title!r}")
    if features:
        columns["feat"] = np.stack(list(features.values()), 1)
    return Nodes(
        path,
        numbering,
        order,
        {name: torch.from_numpy(column[order]) for name, column in columns.items()},
        {name: torch.from_numpy(column[order]) for name, column in split.items()},
        num_classes,
        class_names,
        tuple(features) or None,
    )


def _number_rows(table: Words, title: str) -> tuple[NodeIds, Ints]:
    """Return the numbering of nodes, and the id of each row; ValueError for one that is no node, or
    there twice.
    """
    nodes = table.column(title)
    numbering = number_nodes(nodes)
    ids = numbering.of(nodes.names)[nodes.codes]
    _, first_rows = np.unique(nodes.codes, return_index=True)
    # a row is wrong where its word has no id, or where the word was there before
    is_wrong = ids < 0
    is_repeated = np.ones(len(ids), np.bool_)
    is_repeated[first_rows] = False
    if (row := first_true(is_repeated | is_wrong)) is not None:
        word = table.columns[title][row]
        wrong = f"no node can be {word!r}" if is_wrong[row] else f"node {word!r} is there twice"
        raise table.error(row, f"{wrong}; a node is a name, or an integer from 0, on one line")
    return numbering, ids


def _numbers(column: WordColumn, title: str) -> Array:
    """Return a column of numbers; ValueError for a word that is none, or whose sign makes it another
    word than its number.
    """
    values, names = column.values()
    for number, word in enumerate(names or ()):
        if not is_number(word) or is_code(word) or word[0] == "+":
            raise column.error(
                number,
                f"column {title!r} must hold numbers, got {short(word)}; numbers are features; a "
                f"title that begins with _, such as _{title}, leaves the column out",
            )
    return values


def labels_of(table: Words) -> tuple[Array, int, tuple[str, ...] | None]:
    """Return the column ``label``, the number of classes that have names or columns, else 0, and
    the names, or None.

    An entry that is empty or nan is no label: -1, nan, or a row of zeros. Numbers that are all
    whole are integers.
    """
    column = table.column("label")
    if any(";" in word for word in column.names):
        return _several_labels(table, column)
    present = [word for word in column.names if word and word.lower() != "nan"]
    if {*map(kind_of, present)} == {TRUTH}:
        present.sort(key=str.lower)  # False is class 0, as it is in arrays
    if not all(is_number(word) and not is_code(word) for word in present):
        number = {word: place for place, word in enumerate(present)}
        # refuses numbers in other forms, and gaps among numbers, which would be classes by mistake
        known = (word if word in number else present[0] for word in table.columns["label"])
        WordColumn(known, table.error).values()
        numbers = [number.get(word, -1) for word in column.names]
        return np.array(numbers, np.int64)[column.codes], len(present), tuple(present)
    # integers stay exact beside gaps, which floats would round
    gap = "-1" if all(map(is_integer, present)) else "nan"
    known = (word if word in present else gap for word in table.columns["label"])
    values = _numbers(WordColumn(known, table.error), "label")
    is_class = np.isnan(values) | (np.isfinite(values) & (values == np.floor(values)))
    if not is_class.all():
        return as_float32(values, f"{table.path}, column 'label'"), 0, None
    classes = np.where(np.isnan(values), -1, values)
    if (row := first_true((classes < -1) | (classes >= 2.0**63))) is not None:
        word = short(table.columns["label"][row])
        expected = "a class from 0, in 64 bits, or -1 or empty for none"
        raise table.error(row, f"label must be {expected}, got {word}")
    return classes.astype(np.int64), 0, None


def _several_labels(
    table: Words, column: WordColumn
) -> tuple[NDArray[np.float32], int, tuple[str, ...] | None]:
    # Different words are split once, however many nodes have them.
    lists = []
    for word in column.names:
        labels = [label.strip() for label in word.split(";")]
        lists.append([label for label in labels if label.lower() not in _NO_LABEL])
    names = list(dict.fromkeys(chain.from_iterable(lists)))
    number = {name: place for place, name in enumerate(names)}
    class_names: tuple[str, ...] | None = tuple(names)
    if all(is_integer(name) and int(name) >= 0 for name in names):
        numbers = {name: int(name) for name in names}
        if are_dense(len(names), max(numbers.values(), default=-1)):
            number = numbers
            class_names = None
    width = max(number.values(), default=-1) + 1
    size = len(column.codes)
    check_room(4 * size * width, f"{table.path}: a matrix of labels [{size}, {width}]")
    rows = np.zeros((len(lists), width), np.float32)
    for row, labels in enumerate(lists):
        rows[row, [number[label] for label in labels]] = 1
    return rows[column.codes], width, class_names

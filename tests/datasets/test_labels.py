"""Labels and splits, in every form in which they come: columns, files, masks, objects of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.text_folders import folder_of
from torch import Tensor

from nodeflow import Graph
from nodeflow.convert import from_networkx, from_pyg
from nodeflow.datasets import Dataset, read_folder

NAN = float("nan")
TRAIN, VAL, TEST = [0, 3], [1], [2, 5]  # node 4 is in none
EDGES = "src,dst\n" + "".join(f"{v},{(v + 1) % 6}\n" for v in range(6))


def bools(rows: list[int]) -> Tensor:
    return torch.tensor([v in rows for v in range(6)])


MASKS = {"train_mask": bools(TRAIN), "val_mask": bools(VAL), "test_mask": bools(TEST)}
CLASSES = torch.tensor([0, 1, 0, 1, -1, 1])


def ring(**ndata: Any) -> Graph:
    return Graph.from_edges(range(6), [1, 2, 3, 4, 5, 0], ndata=ndata)


def parts(data: Dataset) -> list[list[int]]:
    return [ids.tolist() for ids in data.splits.values()]


# ---- splits


def of_networkx() -> Graph:
    networkx = pytest.importorskip("networkx")
    graph = networkx.cycle_graph(6)
    for v in graph:
        graph.nodes[v].update({name: bool(mask[v]) for name, mask in MASKS.items()}, label=int(CLASSES[v]))
    return from_networkx(graph, node_columns=["label", *MASKS])[0]


def of_pyg() -> Graph:
    data = pytest.importorskip("torch_geometric.data")
    ends = torch.stack(ring().edges())
    return from_pyg(data.Data(edge_index=ends, y=CLASSES[:, None], num_nodes=6, **MASKS))


WAYS: dict[str, Callable[[], Graph]] = {
    "label": lambda: ring(label=CLASSES, **MASKS),
    "y": lambda: ring(y=CLASSES, **MASKS),
    "both": lambda: ring(y=CLASSES.flip(0), label=CLASSES, **MASKS),
    "short names": lambda: ring(label=CLASSES, train=bools(TRAIN), val=bools(VAL), test=bools(TEST)),
    "numbers": lambda: ring(label=CLASSES, **{name: mask.byte() for name, mask in MASKS.items()}),
    "columns of one": lambda: ring(label=CLASSES, **{name: mask.float()[:, None] for name, mask in MASKS.items()}),
    "valid_mask": lambda: ring(
        label=CLASSES, train_mask=bools(TRAIN), valid_mask=bools(VAL), test_mask=MASKS["test_mask"]
    ),
    "other titles": lambda: ring(label=CLASSES, is_train=bools(TRAIN), devMask=bools(VAL), testing_idx=bools(TEST)),
    "split": lambda: ring(label=CLASSES, split=torch.tensor([0, 1, 2, 0, -1, 2], dtype=torch.int8)),
    "networkx": of_networkx,
    "pyg": of_pyg,
}


@pytest.mark.parametrize("way", WAYS)
def test_masks_are_the_split(way: str, tmp_path: Path) -> None:
    graph = WAYS[way]()
    data = Dataset("d", graph).of_type()
    assert (parts(data), data.num_classes) == ([TRAIN, VAL, TEST], 2)
    assert data.graph.ndata["label"].tolist() == CLASSES.tolist()
    assert data.of_type() is data
    graph.save(tmp_path / "graph")
    data.save(tmp_path / "data")
    for folder in ("graph", "data"):
        assert parts(read_folder(tmp_path / folder)) == [TRAIN, VAL, TEST]
    # what is given goes before columns
    given = Dataset("d", graph, train=[1], test=[0])  # type: ignore[arg-type]
    assert parts(given.of_type()) == [[1], [], [0]]
    # also of a type that is not the only one, by columns of its own and of all nodes
    papers = dict(graph.ndata)
    edges = {("author", "writes", "paper"): ([0], [1])}
    typed = Dataset("d", Graph.typed({"author": 2, "paper": papers}, edges))
    assert parts(typed.of_type("paper")) == [[v + 2 for v in part] for part in (TRAIN, VAL, TEST)]
    whole = Graph.typed({"author": 2, "paper": {"y": CLASSES}}, edges)
    for name, mask in MASKS.items():
        whole.ndata[name] = torch.cat([torch.zeros(2, dtype=torch.bool), mask])
    assert parts(Dataset("d", whole).of_type("paper")) == parts(typed.of_type())


@pytest.mark.parametrize(("yes", "no"), [("True", "False"), ("1", "0"), ("true", "0.0")])
def test_masks_in_text_are_no_features(yes: str, no: str, tmp_path: Path) -> None:
    rows = [["id", "x", "label", *MASKS]]
    for v in range(6):
        rows.append([str(v), "0.5", str(CLASSES[v].item()), *(yes if mask[v] else no for mask in MASKS.values())])
    table = "\n".join(map(",".join, reversed(rows[1:])))
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, nodes_csv=f"{','.join(rows[0])}\n{table}\n"))
    assert (parts(data), data.feature_names, data.num_classes) == ([TRAIN, VAL, TEST], ("x",), 2)


def test_files_of_masks(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv=EDGES)
    np.save(folder / "labels.npy", CLASSES)
    for name, mask in MASKS.items():
        np.save(folder / f"{name}.npy", mask)
    data = read_folder(folder)
    assert (parts(data), data.unread_files) == ([TRAIN, VAL, TEST], ())
    np.save(folder / "val.npy", VAL)
    with pytest.raises(ValueError, match=r"text has a split in columns, so .*val\.npy must not be there"):
        read_folder(folder)
    (folder / "val.npy").unlink()
    (folder / "nodes.csv").write_text("id,train_mask\n" + "".join(f"{v},1\n" for v in range(6)))
    with pytest.raises(ValueError, match=r"nodes\.csv has a split in columns, so .*_mask\.npy must not be there"):
        read_folder(folder)


@pytest.mark.parametrize("names", [("train", "valid"), ("train_idx", "valid_idx"), ("idx_train", "idx_val")])
def test_files_of_ids(names: tuple[str, str], tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv=EDGES)
    np.save(folder / "labels.npy", CLASSES)
    for name, ids in zip(names, (TRAIN, VAL), strict=True):
        np.save(folder / f"{name}.npy", ids)
    data = read_folder(folder)
    assert (parts(data), data.unread_files) == ([TRAIN, VAL, []], ())
    np.save(folder / "training.npy", TRAIN)
    with pytest.raises(ValueError, match=r"must hold one of .*\.npy and .*\.npy, got both; remove the one not meant"):
        read_folder(folder)


TITLES = ("is_{}", "in_{}", "mask_{}", "{}_masks", "{}_mask_0", "{}_set", "{}_idx")


@pytest.mark.parametrize("form", TITLES)
@pytest.mark.parametrize("words", [("train", "valid", "test"), ("tr", "va", "te")])
def test_titles_of_masks(form: str, words: tuple[str, ...], tmp_path: Path) -> None:
    titles = [form.format(word) for word in words]
    masks = [bools(part).long().tolist() for part in (TRAIN, VAL, TEST)]
    rows = "".join(f"{v},{v % 2},{v / 2},{masks[0][v]},{masks[1][v]},{masks[2][v]}\n" for v in range(6))
    nodes = f"id,label,size,{','.join(titles)}\n{rows}"
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, nodes_csv=nodes))
    assert (parts(data), data.feature_names) == ([TRAIN, VAL, TEST], ("size",))


def test_masks_beside_a_table_in_another_order(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv="src,dst\n0,1\n2,3\n", nodes_csv="id,label\n3,0\n1,1\n0,0\n2,1\n")
    np.save(folder / "train_mask.npy", [True, True, False, False])
    assert read_folder(folder).train.tolist() == [1, 3]


def test_arrays_beside_a_table_of_other_ids(tmp_path: Path) -> None:
    """Numbers in arrays are its ids, and rows are its rows."""
    folder = folder_of(tmp_path, nodes_csv="id,label\n3,0\n1,1\n4,0\n2,1\n")
    np.savez(folder / "edges.npz", src=[1, 2, 3], dst=[2, 3, 1])
    np.save(folder / "train_mask.npy", [True, True, False, False])
    data = read_folder(folder)
    assert data.node_names is not None
    src, dst = ([data.node_names[v] for v in ends.tolist()] for ends in data.graph.edges())
    assert (src, dst) == (["1", "2", "3"], ["2", "3", "1"])
    assert {data.node_names[v] for v in data.train.tolist()} == {"3", "1"}
    (folder / "train_mask.npy").unlink()
    np.save(folder / "train_nodes.npy", [4, 1])
    data = read_folder(folder)
    assert data.node_names is not None
    assert {data.node_names[v] for v in data.train.tolist()} == {"4", "1"}
    np.save(folder / "train_nodes.npy", [0, 1])
    with pytest.raises(ValueError, match=r"train_nodes\.npy has node 0, which .*nodes\.csv does not list"):
        read_folder(folder)


@pytest.mark.parametrize("words", [("0", "1", "NA"), ("1.5", "?", "2"), ("1,5", "cat", "dog"), ("1", "None", "2")])
def test_labels_that_are_numbers_but_for_gaps(words: tuple[str, ...], tmp_path: Path) -> None:
    rows = "".join(f'{v},"{words[v % 3]}"\n' for v in range(6))
    with pytest.raises(ValueError, match=r"nodes\.csv, line \d: .* looks like a (missing entry|number)"):
        read_folder(folder_of(tmp_path, edges_csv=EDGES, nodes_csv=f"id,label\n{rows}"))


@pytest.mark.parametrize("none", ["nan", "-1", "NaN", ""])
def test_several_labels_of_which_one_is_none(none: str, tmp_path: Path) -> None:
    nodes = f"id,label\n0,a;b\n1,b\n2,{none}\n3,a\n4,a\n5,b\n"
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, nodes_csv=nodes))
    assert data.class_names == ("a", "b")
    assert data.graph.ndata["label"].tolist() == [[1, 1], [0, 1], [0, 0], [1, 0], [1, 0], [0, 1]]


def test_a_matrix_of_integers_with_gaps() -> None:
    rows = torch.tensor([[1, 0], [0, 1], [-1, -1], [1, -1], [0, 0], [1, 1]])
    data = Dataset("d", ring(y=rows, train_mask=bools([0, 1]))).of_type()
    wanted = torch.where(rows < 0, NAN, rows.float())
    torch.testing.assert_close(data.graph.ndata["label"], wanted, equal_nan=True)
    numbers = Dataset("d", ring(y=rows.float(), train_mask=bools([0, 1]))).of_type()  # floats say NaN themselves
    torch.testing.assert_close(numbers.graph.ndata["label"], rows.float())


def test_false_is_the_first_class(tmp_path: Path) -> None:
    nodes = "id,label\n0,True\n1,False\n2,\n3,True\n4,False\n5,True\n"
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, nodes_csv=nodes))
    assert (data.graph.ndata["label"].tolist(), data.class_names) == ([1, 0, -1, 1, 0, 1], ("False", "True"))


def test_ids_of_nodes_are_the_first_column(tmp_path: Path) -> None:
    nodes = "age,id,label\n2,0,1\n0,1,0\n1,2,1\n"
    with pytest.raises(ValueError, match="must begin with a column of ids or names of nodes"):
        read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n1,2\n", nodes_csv=nodes))


def test_signs_are_no_classes() -> None:
    with pytest.raises(ValueError, match="holds 1 and -1, which is no label: write two classes as 1 and 0"):
        Dataset("d", ring(y=torch.tensor([1, -1, 1, 1, -1, -1]))).of_type()
    with pytest.raises(ValueError, match="holds 1 and -1"):
        Dataset("d", ring(y=torch.tensor([[1, -1]] * 6))).of_type()


def test_a_byte_that_was_minus_one_is_no_class() -> None:
    for label in ([0, 1, 255, 1, 0, 1], [[0, 255]] * 6):
        with pytest.raises(ValueError, match="holds 255 as an unsigned byte, which -1 becomes there"):
            Dataset("d", ring(y=torch.tensor(label, dtype=torch.uint8))).of_type()
    largest = Dataset("d", ring(y=torch.tensor([255, 254] * 3, dtype=torch.uint8))).of_type()
    assert largest.class_names == ("254", "255")


def test_a_file_of_a_split(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv=EDGES)
    np.save(folder / "labels.npy", CLASSES)
    np.save(folder / "split.npy", [0, 1, 2, 0, -1, 2])
    data = read_folder(folder)
    assert (parts(data), data.unread_files) == ([TRAIN, VAL, TEST], ())


FILLED = ("Subset", "fold_1", "split0")


@pytest.mark.parametrize("title", ["set", "Subset", "fold", "partition", "fold_1", "split0"])
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_columns_that_read_like_a_split(title: str, form: str, tmp_path: Path) -> None:
    words = ["train", "Valid", "test", "train", "", "test"]
    between = "\t" if form == "tsv" else ","
    lines = [f"id,label,{title}", *(f"{v},{v % 2},{words[v] or 'test' * (title in FILLED)}" for v in range(6))]
    nodes = {f"nodes_{form}": "\n".join(lines).replace(",", between)}
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, **nodes))
    last = [2, 4, 5] if title in FILLED else TEST
    assert (parts(data), data.feature_names) == ([TRAIN, VAL, last], None)
    edges = "".join(f"{v},{(v + 1) % 6},{words[v] or 'test'}\n" for v in range(6))
    data = read_folder(folder_of(tmp_path, edges_csv=f"src,dst,{title}\n{edges}"))
    assert {name: column.tolist() for name, column in data.graph.edata.items()} == {"split": [0, 1, 2, 0, 2, 2]}
    # numbers may be parts or folds, and are no feature
    for number in ("0", "7", "1.5"):
        numbers = f"id,label,{title}\n" + "".join(f"{v},{v % 2},{number}\n" for v in range(6))
        (tmp_path / "text" / f"nodes.{form}").write_text(numbers.replace(",", between))
        with pytest.raises(
            ValueError, match=rf"line 2: column '{title}' must hold train, val or test \(or 0.*'{number}'"
        ):
            read_folder(tmp_path / "text")
    (tmp_path / "text" / f"nodes.{form}").unlink()
    (tmp_path / "text" / "edges.csv").write_text(f"src,dst,{title}\n0,1,2\n1,0,0\n")
    with pytest.raises(ValueError, match=rf"edges\.csv, line 2: column '{title}' must hold train"):
        read_folder(tmp_path / "text", labels=False)


def test_a_split_in_two_columns(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must begin with a column of ids or names of nodes, got \['fold', 'x'\]"):
        read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n", nodes_csv="fold,x\n0,5\n1,6\n"))
    nodes = "id,label,split,fold\n0,0,train,test\n1,1,test,train\n"
    with pytest.raises(ValueError, match=r"nodes\.csv: its first line names split, fold, which say a split twice"):
        read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n", nodes_csv=nodes))


@pytest.mark.parametrize(
    "name", ["split.npz", "splits.json", "split_0.npy", "train_mask.npz", "train_ids.txt", "valid.txt", "test.csv.gz",
             "idx_train.pt", "val.tsv", "train_idx.npy.gz"],
)  # fmt: skip
def test_files_of_a_split_in_a_form_that_is_not_read(name: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv=EDGES, nodes_csv="id,label\n" + "".join(f"{v},1\n" for v in range(6)))
    for other in ("training.log", "train.py", "test_notes.txt", "validity.csv"):
        (folder / other).write_text("a")
    (folder / "test").mkdir()
    assert read_folder(folder).unread_files == ("validity.csv",)
    (folder / name).write_bytes(b"0\n1\n")
    with pytest.raises(
        ValueError, match=r"reads like a split, in a form that is not read: save ids of nodes as train\.npy"
    ):
        read_folder(folder)


def test_files_of_triples_are_no_split_of_nodes(tmp_path: Path) -> None:
    files = {f"{part}_txt": "a\tr\tb\nb\tr\tc\n" for part in ("train", "valid", "test")}
    assert read_folder(folder_of(tmp_path, **files), labels=False).graph.num_edges == 6


def test_a_flag_that_is_no_mask_stays_a_column(tmp_path: Path) -> None:
    nodes = "id,label,is_valid\n0,0,1\n1,1,0\n"
    data = read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n", nodes_csv=nodes))
    assert data.feature_names == ("is_valid",)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "two parts": (
        {"train_mask": bools([2, 4]), "test_mask": bools([4])},
        "train and test must not share nodes, but node 4 is in both",
    ),
    "several splits": (
        {"train_mask": torch.ones(6, 10, dtype=torch.bool)},
        r"column 'train_mask' must have one entry per node, got shape \(6, 10\); of several splits keep one",
    ),
    "numbers": (
        {"train_mask": torch.arange(6)},
        r"'train_mask' must be a mask, bool \[nodes\], got torch.int64 \[6\] with 2 for node 2",
    ),
    "none": ({"val": torch.tensor([0, NAN, 1, 1, 1, 1])}, "'val' must be a mask, .* with nan for node 1"),
    "two names": (
        {"val_mask": bools([1]), "valid_mask": bools([1])},
        "val_mask, valid_mask, which say",
    ),
    "two ways": ({"split": torch.zeros(6, dtype=torch.int64), "train": bools([1])}, "which say its split twice"),
    "split": ({"split": torch.arange(6)}, r"column 'split' must hold 0 \(train\), .* with 3 for node 3"),
    "bools": ({"split": bools([1])}, r"column 'split' must hold 0 \(train\)"),
    "no label": ({"train_mask": bools([4])}, "holds node 4 for training, which has no label"),
}


@pytest.mark.parametrize("what", BAD)
def test_columns_that_are_no_split(what: str) -> None:
    columns, words = BAD[what]
    for name in ("label", "y"):
        with pytest.raises(ValueError, match=words):
            Dataset("d", ring(**{name: CLASSES}, **columns)).of_type()


def test_text_that_is_no_mask(tmp_path: Path) -> None:
    for rows, words in (
        ("0,0,1,0\n1,1,yes,0\n", "line 3: column 'train_mask' must hold true and false, or 1 and 0, .*, got 'yes'"),
        ("0,0,1,1\n1,1,0,0\n", "train and test must not share nodes, but node 0 is in both"),
    ):
        nodes = f"id,label,train_mask,test_mask\n{rows}"
        with pytest.raises(ValueError, match=words):
            read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n", nodes_csv=nodes))


# ---- labels


ROWS = [[0, 1, 1], [1, 0, 0], [0, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]]
FORMS: dict[str, tuple[Any, list[Any], str, int]] = {
    "0/1 matrix": (np.array(ROWS), ROWS, "float32", 3),
    "matrix of bools": (np.array(ROWS, bool), ROWS, "float32", 3),
    "one column": (np.array([[0], [2], [1], [0], [-1], [1]]), [0, 2, 1, 0, -1, 1], "int64", 3),
    "a column of floats": (np.array([[0.5], [2], [1], [0], [1], [1]]), [0.5, 2, 1, 0, 1, 1], "float32", 0),
    "bools": (np.array([0, 1, 0, 1, 1, 0], bool), [0, 1, 0, 1, 1, 0], "int64", 2),
    "bytes": (np.array([0, 1, 0, 1, 1, 0], np.uint8), [0, 1, 0, 1, 1, 0], "int64", 2),
    "classes with gaps": (np.array([0, 1, NAN, 1, 0, 3]), [0, 1, -1, 1, 0, 3], "int64", 4),
    "halves": (np.array([0, 1, NAN, 1, 0, 2], np.float16), [0, 1, -1, 1, 0, 2], "int64", 3),
    "numbers": (np.array([0, 1.5, NAN, 1, 0, 3]), [0, 1.5, NAN, 1, 0, 3], "float32", 0),
    "floats without gaps": (np.array([0.0, 1, 2, 1, 0, 3]), [0, 1, 2, 1, 0, 3], "float32", 0),
    "below zero": (np.array([-1, 1, NAN, 1, -1, 1]), [-1, 1, NAN, 1, -1, 1], "float32", 0),
    "one class": (np.zeros(6, int), [0] * 6, "int64", 1),
    "gaps between classes": (np.array([1, 9, 4, 1, 9, -1]), [1, 9, 4, 1, 9, -1], "int64", 10),
}


@pytest.mark.parametrize("form", FORMS)
def test_one_rule_for_labels(form: str, tmp_path: Path) -> None:
    raw, rows, dtype, num_classes = FORMS[form]
    folder = folder_of(tmp_path, edges_csv=EDGES)
    np.save(folder / "labels.npy", raw)
    sets = {"npy": read_folder(folder)}
    for name in ("label", "y"):
        sets[name] = Dataset("d", ring(**{name: raw})).of_type()
        sets[name].graph.save(tmp_path / name)
        sets[f"saved {name}"] = read_folder(tmp_path / name)
    of_type = Graph.typed({"a": 1, "b": {"y": raw}}, {("a", "to", "b"): ([0], [0])})
    sets["typed"] = Dataset("d", of_type).of_type()
    for way, data in sets.items():
        label = data.graph.ndata["label"][-6:]
        assert (str(label.dtype), data.num_classes) == (f"torch.{dtype}", num_classes), way
        assert torch.equal(label.double().nan_to_num(77), torch.tensor(rows).double().nan_to_num(77)), way
        assert sum(map(len, data.splits.values())) > 3, way
        assert data.of_type() is data, way


def test_labels_of_the_split_tell_what_floats_are() -> None:
    label = torch.tensor([0.0, 1, 0, 1, 0.5, NAN])
    data = Dataset("d", ring(label=label), train=[0, 1], val=[2], test=[3])  # type: ignore[arg-type]
    of_classes = data.of_type()
    assert of_classes.graph.ndata["label"].tolist() == [0, 1, 0, 1, -1, -1]
    assert of_classes.num_classes == 2
    numbers = Dataset("d", ring(label=label), train=[0, 4]).of_type()  # type: ignore[arg-type]
    assert torch.equal(numbers.graph.ndata["label"].nan_to_num(7), label.nan_to_num(7))


@pytest.mark.parametrize("number", [2**24 + 1, 1_700_000_001, 2**53 - 1, -(2**24) - 1, 1_700_000_001.5])
def test_numbers_that_float32_rounds_are_refused(number: float, tmp_path: Path) -> None:
    """Else two times or counts would become the same."""
    close = number - 1 if number > 0 else number + 1
    rows = [f"0,{number}", f"1,{close}", "2,3"]
    folder = folder_of(tmp_path, edges_csv="src,dst\n0,1\n1,2\n", nodes_csv="\n".join(["id,when", *rows]))
    where = {"nodes.csv": r"nodes\.csv, column 'when'", "label": r"nodes\.csv, column 'label'"}
    for title, words in where.items():
        titled = "id,when" if title == "nodes.csv" else "id,label"
        (folder / "nodes.csv").write_text("\n".join([titled, *rows, "3,0.5"]))
        with pytest.raises(
            ValueError, match=rf"{words} holds {number}.* which float32 rounds to .*write times as dates"
        ):
            read_folder(folder, labels=False)
    (folder / "nodes.csv").unlink()
    for name in ("features", "labels"):
        kind = float if name == "labels" else None
        array = np.array([[number], [close], [3]], np.int64 if number == int(number) and kind is None else np.float64)
        np.save(folder / f"{name}.npy", array)
        exact = array.dtype == np.float64 and name == "features"  # which stays float64
        if exact:
            assert read_folder(folder, labels=False).graph.ndata["feat"].tolist() == array.tolist()
        else:
            with pytest.raises(ValueError, match=rf"{name}\.npy holds .* in entry 0, which float32 rounds to"):
                read_folder(folder, labels=False)
        (folder / f"{name}.npy").unlink()
    with pytest.raises(ValueError, match="which float32 rounds to"):
        Dataset("d", ring(y=np.array([number, close, 2, 3, 4, 0.5]))).of_type()


def test_large_numbers_that_float32_keeps(tmp_path: Path) -> None:
    nodes = f"id,x,label\n0,{2**24},{2**30}\n1,-{2**24 + 2},0.1\n2,0.1,inf\n"
    data = read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n1,2\n", nodes_csv=nodes))
    assert data.graph.ndata["feat"].flatten().tolist() == [2**24, -(2**24) - 2, np.float32(0.1)]
    assert data.graph.ndata["label"].tolist() == [2**30, np.float32(0.1), np.inf]
    large = np.array([23_456_789.5, 350_000_000.25, 0.5, 1, 2, 3])  # measured ones, as exact as float32 is
    assert torch.equal(Dataset("d", ring(y=large)).of_type().graph.ndata["label"], torch.tensor(large).float())
    # class codes are no numbers to predict
    codes = Dataset("d", ring(y=np.array([20_000_001, 20_000_002, NAN, 20_000_001, 3, 3]))).of_type()
    assert codes.class_names == ("3", "20000001", "20000002")


@pytest.mark.parametrize("gaps", [False, True])
def test_class_codes_become_names(gaps: bool, tmp_path: Path) -> None:
    codes = np.array([90210, 10001, 90210, 60601, 10001, 60601])
    raw, rows = codes, [2, 0, 2, 1, 0, 1]
    if gaps:
        raw, rows = np.where(np.arange(6) == 1, NAN, codes), [2, -1, 2, 1, 0, 1]
    folder = folder_of(tmp_path, edges_csv=EDGES)
    np.save(folder / "labels.npy", raw)
    words = ["" if code != code else f"{code:.0f}" for code in raw]
    lines = "".join(f"{v},{word}\n" for v, word in enumerate(words))
    sets = [read_folder(folder), Dataset("d", ring(y=raw)).of_type()]
    sets[0].save(tmp_path / "saved")
    sets.append(read_folder(tmp_path / "saved"))
    (folder / "labels.npy").unlink()
    (folder / "nodes.csv").write_text(f"id,label\n{lines}")
    sets.append(read_folder(folder))
    for data in sets:
        assert (data.num_classes, data.class_names) == (3, ("10001", "60601", "90210"))
        assert data.graph.ndata["label"].tolist() == rows
    # a number of classes that is stated, and classes that nearly all occur, stay
    stated = Dataset("d", ring(label=codes), num_classes=100_000).of_type()
    assert (stated.num_classes, stated.class_names) == (100_000, None)
    many = Graph.from_edges([], [], num_nodes=400, ndata={"y": torch.arange(400) * 3})
    assert Dataset("d", many).of_type().num_classes == 3 * 399 + 1


def test_several_class_codes_become_names(tmp_path: Path) -> None:
    nodes = "id,label\n0,90210;10001\n1,\n2,10001\n"
    data = read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n1,2\n", nodes_csv=nodes))
    assert (data.num_classes, data.class_names) == (2, ("90210", "10001"))
    assert data.graph.ndata["label"].tolist() == [[1, 1], [0, 0], [0, 1]]

"""Labels: one rule for the columns and files in which they come."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.rings import EDGES, NAN, bools, ring
from _support.text_folders import folder_of

from nodeflow import Graph
from nodeflow.datasets import Dataset, read_folder


@pytest.mark.parametrize("none", ["nan", "-1", "NaN", ""])
def test_several_labels_of_which_one_is_none(none, tmp_path):
    nodes = f"id,label\n0,a;b\n1,b\n2,{none}\n3,a\n4,a\n5,b\n"
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, nodes_csv=nodes))
    assert data.class_names == ("a", "b")
    assert data.graph.ndata["label"].tolist() == [[1, 1], [0, 1], [0, 0], [1, 0], [1, 0], [0, 1]]


def test_a_matrix_of_integers_with_gaps():
    rows = torch.tensor([[1, 0], [0, 1], [-1, -1], [1, -1], [0, 0], [1, 1]])
    data = Dataset("d", ring(y=rows, train_mask=bools([0, 1]))).of_type()
    wanted = torch.where(rows < 0, NAN, rows.float())
    torch.testing.assert_close(data.graph.ndata["label"], wanted, equal_nan=True)
    # floats say NaN themselves
    numbers = Dataset("d", ring(y=rows.float(), train_mask=bools([0, 1]))).of_type()
    torch.testing.assert_close(numbers.graph.ndata["label"], rows.float())


def test_false_is_the_first_class(tmp_path):
    nodes = "id,label\n0,True\n1,False\n2,\n3,True\n4,False\n5,True\n"
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, nodes_csv=nodes))
    assert (data.graph.ndata["label"].tolist(), data.class_names) == (
        [1, 0, -1, 1, 0, 1],
        ("False", "True"),
    )


def test_a_byte_that_was_minus_one_is_no_class():
    largest = Dataset("d", ring(y=torch.tensor([255, 254] * 3, dtype=torch.uint8))).of_type()
    assert largest.class_names == ("254", "255")


ROWS = [[0, 1, 1], [1, 0, 0], [0, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]]
FORMS = {
    "np.array(ROWS)": "ROWS, 'float32', 3",
    "np.array(ROWS, bool)": "ROWS, 'float32', 3",
    "np.array([[0], [2], [1], [0], [-1], [1]])": "[0, 2, 1, 0, -1, 1], 'int64', 3",
    "np.array([[0.5], [2], [1], [0], [1], [1]])": "[0.5, 2, 1, 0, 1, 1], 'float32', 0",
    "np.array([0, 1, 0, 1, 1, 0], bool)": "[0, 1, 0, 1, 1, 0], 'int64', 2",
    "np.array([0, 1, 0, 1, 1, 0], np.uint8)": "[0, 1, 0, 1, 1, 0], 'int64', 2",
    "np.array([0, 1, NAN, 1, 0, 3])": "[0, 1, -1, 1, 0, 3], 'int64', 4",
    "np.array([0, 1, NAN, 1, 0, 2], np.float16)": "[0, 1, -1, 1, 0, 2], 'int64', 3",
    "np.array([0, 1.5, NAN, 1, 0, 3])": "[0, 1.5, NAN, 1, 0, 3], 'float32', 0",
    "np.array([0.0, 1, 2, 1, 0, 3])": "[0, 1, 2, 1, 0, 3], 'float32', 0",
    "np.array([-1, 1, NAN, 1, -1, 1])": "[-1, 1, NAN, 1, -1, 1], 'float32', 0",
    "np.zeros(6, int)": "[0] * 6, 'int64', 1",
    "np.array([1, 9, 4, 1, 9, -1])": "[1, 9, 4, 1, 9, -1], 'int64', 10",
}
"""Labels of six nodes, and what they become: rows, their type, and the number of classes."""


@pytest.mark.parametrize("form", FORMS)
def test_one_rule_for_labels(form, tmp_path):
    raw = eval(form)
    rows, dtype, num_classes = eval(FORMS[form])
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
        assert torch.equal(
            label.double().nan_to_num(77), torch.tensor(rows).double().nan_to_num(77)
        ), way
        assert sum(map(len, data.splits.values())) > 3, way
        assert data.of_type() is data, way


def test_labels_of_the_split_tell_what_floats_are():
    label = torch.tensor([0.0, 1, 0, 1, 0.5, NAN])
    data = Dataset("d", ring(label=label), train=[0, 1], val=[2], test=[3])  # type: ignore[arg-type]
    of_classes = data.of_type()
    assert of_classes.graph.ndata["label"].tolist() == [0, 1, 0, 1, -1, -1]
    assert of_classes.num_classes == 2
    numbers = Dataset("d", ring(label=label), train=[0, 4]).of_type()  # type: ignore[arg-type]
    assert torch.equal(numbers.graph.ndata["label"].nan_to_num(7), label.nan_to_num(7))


@pytest.mark.parametrize(
    "number", [2**24 + 1, 1_700_000_001, 2**53 - 1, -(2**24) - 1, 1_700_000_001.5]
)
def test_numbers_that_float32_rounds_are_refused(number, tmp_path):
    """Else two times or counts would become the same."""
    close = number - 1 if number > 0 else number + 1
    rows = [f"0,{number}", f"1,{close}", "2,3"]
    folder = folder_of(
        tmp_path, edges_csv="src,dst\n0,1\n1,2\n", nodes_csv="\n".join(["id,when", *rows])
    )
    where = {"nodes.csv": r"nodes\.csv, column 'when'", "label": r"nodes\.csv, column 'label'"}
    for title, words in where.items():
        titled = "id,when" if title == "nodes.csv" else "id,label"
        (folder / "nodes.csv").write_text("\n".join([titled, *rows, "3,0.5"]))
        with pytest.raises(
            ValueError,
            match=rf"{words} holds {number}.* which float32 rounds to .*write times as dates",
        ):
            read_folder(folder, labels=False)
    (folder / "nodes.csv").unlink()
    for name in ("features", "labels"):
        kind = float if name == "labels" else None
        array = np.array(
            [[number], [close], [3]],
            np.int64 if number == int(number) and kind is None else np.float64,
        )
        np.save(folder / f"{name}.npy", array)
        exact = array.dtype == np.float64 and name == "features"  # which stays float64
        if exact:
            assert read_folder(folder, labels=False).graph.ndata["feat"].tolist() == array.tolist()
        else:
            with pytest.raises(
                ValueError, match=rf"{name}\.npy holds .* in entry 0, which float32 rounds to"
            ):
                read_folder(folder, labels=False)
        (folder / f"{name}.npy").unlink()
    with pytest.raises(ValueError, match="which float32 rounds to"):
        Dataset("d", ring(y=np.array([number, close, 2, 3, 4, 0.5]))).of_type()


def test_large_numbers_that_float32_keeps(tmp_path):
    nodes = f"id,x,label\n0,{2**24},{2**30}\n1,-{2**24 + 2},0.1\n2,0.1,inf\n"
    data = read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n1,2\n", nodes_csv=nodes))
    assert data.graph.ndata["feat"].flatten().tolist() == [2**24, -(2**24) - 2, np.float32(0.1)]
    assert data.graph.ndata["label"].tolist() == [2**30, np.float32(0.1), np.inf]
    # measured ones, as exact as float32 is
    large = np.array([23_456_789.5, 350_000_000.25, 0.5, 1, 2, 3])
    assert torch.equal(
        Dataset("d", ring(y=large)).of_type().graph.ndata["label"], torch.tensor(large).float()
    )
    # class codes are no numbers to predict
    codes = Dataset(
        "d", ring(y=np.array([20_000_001, 20_000_002, NAN, 20_000_001, 3, 3]))
    ).of_type()
    assert codes.class_names == ("3", "20000001", "20000002")


@pytest.mark.parametrize("gaps", [False, True])
def test_class_codes_become_names(gaps, tmp_path):
    codes = np.array([90210, 10001, 90210, 60601, 10001, 60601])
    raw = codes
    rows = [2, 0, 2, 1, 0, 1]
    if gaps:
        raw = np.where(np.arange(6) == 1, NAN, codes)
        rows = [2, -1, 2, 1, 0, 1]
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


def test_several_class_codes_become_names(tmp_path):
    nodes = "id,label\n0,90210;10001\n1,\n2,10001\n"
    data = read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n1,2\n", nodes_csv=nodes))
    assert (data.num_classes, data.class_names) == (2, ("90210", "10001"))
    assert data.graph.ndata["label"].tolist() == [[1, 1], [0, 0], [0, 1]]

"""Splits: one rule for the masks, columns and files in which they come."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.rings import CLASSES, EDGES, MASKS, TEST, TRAIN, VAL, bools, parts, ring
from _support.text_folders import folder_of

from nodeflow import Graph
from nodeflow.convert import from_networkx, from_pyg
from nodeflow.datasets import Dataset, read_folder


def of_networkx() -> Graph:
    networkx = pytest.importorskip("networkx")
    graph = networkx.cycle_graph(6)
    for v in graph:
        graph.nodes[v].update(
            {name: bool(mask[v]) for name, mask in MASKS.items()}, label=int(CLASSES[v])
        )
    return from_networkx(graph, node_columns=["label", *MASKS])[0]


def of_pyg() -> Graph:
    data = pytest.importorskip("torch_geometric.data")
    ends = torch.stack(ring().edges())
    return from_pyg(data.Data(edge_index=ends, y=CLASSES[:, None], num_nodes=6, **MASKS))


WAYS = {
    "label": "ring(label=CLASSES, **MASKS)",
    "y": "ring(y=CLASSES, **MASKS)",
    "both": "ring(y=CLASSES.flip(0), label=CLASSES, **MASKS)",
    "short names": ("ring(label=CLASSES, train=bools(TRAIN), val=bools(VAL), test=bools(TEST))"),
    "numbers": ("ring(label=CLASSES, **{name: mask.byte() for name, mask in MASKS.items()})"),
    "columns of one": (
        "ring(label=CLASSES, **{name: mask.float()[:, None] for name, mask in MASKS.items()})"
    ),
    "valid_mask": (
        "ring(label=CLASSES, train_mask=bools(TRAIN), valid_mask=bools(VAL), test_mask=MA"
        "SKS['test_mask'])"
    ),
    "other titles": (
        "ring(label=CLASSES, is_train=bools(TRAIN), devMask=bools(VAL), testing_idx=bools(TEST))"
    ),
    "split": ("ring(label=CLASSES, split=torch.tensor([0, 1, 2, 0, -1, 2], dtype=torch.int8))"),
    "networkx": "of_networkx()",
    "pyg": "of_pyg()",
}


@pytest.mark.parametrize("way", WAYS)
def test_masks_are_the_split(way, tmp_path):
    graph: Graph = eval(WAYS[way])
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
def test_masks_in_text_are_no_features(yes, no, tmp_path):
    rows = [["id", "x", "label", *MASKS]]
    for v in range(6):
        rows.append(
            [
                str(v),
                "0.5",
                str(CLASSES[v].item()),
                *(yes if mask[v] else no for mask in MASKS.values()),
            ]
        )
    table = "\n".join(map(",".join, reversed(rows[1:])))
    data = read_folder(
        folder_of(tmp_path, edges_csv=EDGES, nodes_csv=f"{','.join(rows[0])}\n{table}\n")
    )
    assert (parts(data), data.feature_names, data.num_classes) == ([TRAIN, VAL, TEST], ("x",), 2)


FILES: dict[str, dict[str, object]] = {
    "masks": {name: mask.numpy() for name, mask in MASKS.items()},
    "numbers": {"split": [0, 1, 2, 0, -1, 2]},
    "ids": {"train": TRAIN, "valid": VAL, "test": TEST},
    "idx behind": {"train_idx": TRAIN, "valid_idx": VAL, "test_idx": TEST},
    "idx before": {"idx_train": TRAIN, "idx_val": VAL, "idx_test": TEST},
}


@pytest.mark.parametrize("form", FILES)
def test_files_of_a_split(form, tmp_path):
    folder = folder_of(tmp_path, edges_csv=EDGES)
    np.save(folder / "labels.npy", CLASSES)
    for name, array in FILES[form].items():
        np.save(folder / f"{name}.npy", array)
    data = read_folder(folder)
    assert (parts(data), data.unread_files) == ([TRAIN, VAL, TEST], ())


TITLES = ("is_{}", "in_{}", "mask_{}", "{}_masks", "{}_mask_0", "{}_set", "{}_idx")


@pytest.mark.parametrize("form", TITLES)
@pytest.mark.parametrize("words", [("train", "valid", "test"), ("tr", "va", "te")])
def test_titles_of_masks(form, words, tmp_path):
    titles = [form.format(word) for word in words]
    masks = [bools(part).long().tolist() for part in (TRAIN, VAL, TEST)]
    rows = "".join(
        f"{v},{v % 2},{v / 2},{masks[0][v]},{masks[1][v]},{masks[2][v]}\n" for v in range(6)
    )
    nodes = f"id,label,size,{','.join(titles)}\n{rows}"
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, nodes_csv=nodes))
    assert (parts(data), data.feature_names) == ([TRAIN, VAL, TEST], ("size",))


def test_masks_beside_a_table_in_another_order(tmp_path):
    folder = folder_of(
        tmp_path, edges_csv="src,dst\n0,1\n2,3\n", nodes_csv="id,label\n3,0\n1,1\n0,0\n2,1\n"
    )
    np.save(folder / "train_mask.npy", [True, True, False, False])
    assert read_folder(folder).train.tolist() == [1, 3]


def test_arrays_beside_a_table_of_other_ids(tmp_path):
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


FILLED = ("Subset", "fold_1", "split0")


@pytest.mark.parametrize("title", ["set", "Subset", "fold", "partition", "fold_1", "split0"])
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_columns_that_read_like_a_split(title, form, tmp_path):
    words = ["train", "Valid", "test", "train", "", "test"]
    between = "\t" if form == "tsv" else ","
    lines = [
        f"id,label,{title}",
        *(f"{v},{v % 2},{words[v] or 'test' * (title in FILLED)}" for v in range(6)),
    ]
    nodes = {f"nodes_{form}": "\n".join(lines).replace(",", between)}
    data = read_folder(folder_of(tmp_path, edges_csv=EDGES, **nodes))
    last = [2, 4, 5] if title in FILLED else TEST
    assert (parts(data), data.feature_names) == ([TRAIN, VAL, last], None)
    edges = "".join(f"{v},{(v + 1) % 6},{words[v] or 'test'}\n" for v in range(6))
    data = read_folder(folder_of(tmp_path, edges_csv=f"src,dst,{title}\n{edges}"))
    assert {name: column.tolist() for name, column in data.graph.edata.items()} == {
        "split": [0, 1, 2, 0, 2, 2]
    }
    # numbers may be parts or folds, and are no feature
    for number in ("0", "7", "1.5"):
        numbers = f"id,label,{title}\n" + "".join(f"{v},{v % 2},{number}\n" for v in range(6))
        (tmp_path / "text" / f"nodes.{form}").write_text(numbers.replace(",", between))
        with pytest.raises(
            ValueError,
            match=rf"line 2: column '{title}' must hold train, val or test \(or 0.*'{number}'",
        ):
            read_folder(tmp_path / "text")
    (tmp_path / "text" / f"nodes.{form}").unlink()
    (tmp_path / "text" / "edges.csv").write_text(f"src,dst,{title}\n0,1,2\n1,0,0\n")
    with pytest.raises(ValueError, match=rf"edges\.csv, line 2: column '{title}' must hold train"):
        read_folder(tmp_path / "text", labels=False)


@pytest.mark.parametrize(
    "name", ["split.npz", "splits.json", "split_0.npy", "train_mask.npz", "train_ids.txt", "valid.txt", "test.csv.gz",
             "idx_train.pt", "val.tsv", "train_idx.npy.gz"],
)  # fmt: skip
def test_files_of_a_split_in_a_form_that_is_not_read(name, tmp_path):
    folder = folder_of(
        tmp_path, edges_csv=EDGES, nodes_csv="id,label\n" + "".join(f"{v},1\n" for v in range(6))
    )
    for other in ("training.log", "train.py", "test_notes.txt", "validity.csv"):
        (folder / other).write_text("a")
    (folder / "test").mkdir()
    assert read_folder(folder).unread_files == ("validity.csv",)
    (folder / name).write_bytes(b"0\n1\n")
    with pytest.raises(
        ValueError,
        match=r"reads like a split, in a form that is not read: save ids of nodes as train\.npy",
    ):
        read_folder(folder)


def test_files_of_triples_are_no_split_of_nodes(tmp_path):
    files = {f"{part}_txt": "a\tr\tb\nb\tr\tc\n" for part in ("train", "valid", "test")}
    assert read_folder(folder_of(tmp_path, **files), labels=False).graph.num_edges == 6


def test_a_flag_that_is_no_mask_stays_a_column(tmp_path):
    nodes = "id,label,is_valid\n0,0,1\n1,1,0\n"
    data = read_folder(folder_of(tmp_path, edges_csv="src,dst\n0,1\n", nodes_csv=nodes))
    assert data.feature_names == ("is_valid",)

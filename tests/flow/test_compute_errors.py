"""What message passing does when functions fail or do not fit: no frame changes, and the message
says why.
"""

import pytest
import torch
from _support.compute_example import columns, make_batch, same

from nodeflow import ALL, fn

COPY = fn.copy_u("h", "m")
SUM = fn.sum("m", "h")
TO_OLD = fn.sum("m", "old")


class BrokenError(Exception):
    pass


def broken(rows):
    raise BrokenError("broken on purpose")


def broken_later(nodes):
    nodes.data["old"]
    return broken(nodes)


@pytest.mark.parametrize(
    "run",
    [
        lambda b: b.flow_compute(0, COPY, TO_OLD, broken_later),
        lambda b: b.flow_compute(0, COPY, TO_OLD, broken_later, v=[0]),
        lambda b: b.flow_send_and_recv(0, [1], COPY, TO_OLD, broken),
        lambda b: b.flow_compute(0, broken, TO_OLD),
        lambda b: b.flow_compute(0, COPY, broken),
        lambda b: b.forward(COPY, SUM, [None, broken]),
        lambda b: b.apply_layers(ALL, lambda n: {"x": n.nodes()} if len(n) == 4 else broken(n)),
        lambda b: b.apply_flows(ALL, lambda e: {"x": e.edges()[0]} if len(e) == 7 else broken(e)),
        lambda b: [
            b.register_layer_computation(1, COPY, SUM),
            b.register_layer_computation(2, update=broken),
            b.compute(),
        ],
    ],
)
def test_when_a_function_raises_no_frame_has_changed(run):
    batch = make_batch()
    before = columns(batch)
    with pytest.raises(BrokenError, match="broken on purpose") as caught:
        run(batch)
    assert same(before, columns(batch))
    assert any("broken" in note or "lambda" in note for note in caught.value.__notes__)


def test_columns_set_by_a_function_that_raises_are_taken_back():
    batch = make_batch()
    before = columns(batch)

    def update(nodes):
        batch.layers[2].data["side"] = torch.ones(2)
        del batch.layers[0].data["h"]
        broken(nodes)

    with pytest.raises(BrokenError):
        batch.flow_compute(0, COPY, TO_OLD, update)
    assert same(before, columns(batch))


def test_notes_say_where_and_what_was_seen():
    batch = make_batch()
    with pytest.raises(BrokenError) as caught:
        batch.flow_compute(0, COPY, fn.sum("m", "out"), broken_later)
    (note,) = caught.value.__notes__
    assert "update function broken_later on flow 0->1 (4 -> 4 nodes, 7 edges)" in note
    assert "layer 1: old float64 [4, 3], out" in note

    def message(edges):
        return {"m": edges.src["h"] + edges.data["w"]}

    with pytest.raises(RuntimeError, match="size of tensor") as caught:
        batch.flow_compute(0, message, fn.sum("m", "out"))
    (note,) = caught.value.__notes__
    assert "layer 0: h float64 [7, 3]" in note
    assert "flow 0->1: w float64 [7]" in note


def test_rows_of_another_shape_or_type_are_not_mixed():
    batch = make_batch()
    for column in (torch.ones(4, 2, dtype=torch.float64), torch.ones(4, 3)):
        batch.layers[1].data["out"] = column
        with pytest.raises(ValueError, match="column 'out' of layer 1 has rows of shape"):
            batch.flow_compute(0, COPY, fn.sum("m", "out"), v=[0])
    batch.flow_compute(0, COPY, fn.sum("m", "out"))  # all rows: replaced
    assert batch.layers[1].data["out"].dtype == torch.float64


def sparse(rows, width):
    return torch.eye(rows, width, dtype=torch.float64).to_sparse_csr()


def test_sparse_rows_are_not_mixed_with_others():
    batch = make_batch()
    with pytest.raises(
        TypeError, match="message 'm' is a sparse matrix, but messages are combined dense"
    ):
        batch.flow_compute(0, lambda e: {"m": sparse(7, 3)}, SUM)
    with pytest.raises(
        TypeError, match="column 'x' of layer 1 is sparse, and only some rows are to be written"
    ):
        batch.apply_layers(1, lambda n: {"x": sparse(2, 3)}, v=[0, 2])
    batch.apply_layers(1, lambda n: {"x": sparse(4, 3)})  # all rows: stored as it is
    with pytest.raises(TypeError, match="column 'x' of layer 1 is sparse: set the whole column"):
        batch.apply_layers(1, lambda n: {"x": torch.ones(2, 3, dtype=torch.float64)}, v=[0, 2])
    assert torch.equal(batch.layers[1].data["x"].to_dense(), torch.eye(4, 3, dtype=torch.float64))

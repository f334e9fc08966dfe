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


def rows_missing(rows):
    return {"m": torch.ones(len(rows) + 1)}


def columns_by_degree(nodes):
    return {f"d{nodes.mailbox['m'].shape[1]}": nodes.mailbox["m"].sum(1)}


@pytest.mark.parametrize(
    ("message", "reduce", "kind", "words"),
    [
        (COPY, fn.sum("x", "h"), ValueError, r"takes message 'x', but the messages made are 'm'"),
        (
            lambda e: {"m": e.src["h"]},
            fn.sum("x", "h"),
            ValueError,
            r"takes message 'x', but the messages made are 'm'",
        ),
        (fn.copy_u("x", "m"), SUM, KeyError, r"no column 'x' in layer 0, which has 'h'"),
        (fn.copy_e("x", "m"), SUM, KeyError, r"no column 'x' in flow 0->1, which has 'w'"),
        (fn.v_add_u("x", "h", "m"), SUM, KeyError, r"no column 'x' in layer 1, which has 'old'"),
        (lambda e: {"m": e.dst["x"]}, SUM, KeyError, r"no column 'x' in layer 1, which has 'old'"),
        (
            COPY,
            lambda n: {"h": n.mailbox["x"]},
            KeyError,
            r"no column 'x' in the mailbox, which has 'm'",
        ),
        (lambda e: e.src["h"], SUM, TypeError, r"must return a dict of columns, got Tensor"),
        (
            lambda e: {"m": 3},
            SUM,
            TypeError,
            r"must return tensors and name them by str, but column 'm' is int 3",
        ),
        (
            lambda e: {3: e.src["h"]},
            SUM,
            TypeError,
            r"must return tensors and name them by str, but column 3 is Tensor",
        ),
        (
            rows_missing,
            SUM,
            ValueError,
            r"rows_missing must return one row per edge, here 7, but .* \(8,\)",
        ),
        (
            COPY,
            rows_missing,
            ValueError,
            r"must return one row per node, here 1, but column 'm' .*\(2,\)",
        ),
        (SUM, SUM, TypeError, r"message must be a built-in message function"),
        (COPY, COPY, TypeError, r"reduce must be a built-in reduce function"),
        (None, SUM, TypeError, r"message must be .*got NoneType None"),
        ([], SUM, ValueError, r"message is an empty list"),
        ([COPY] * 2, SUM, ValueError, r"two message functions make message 'm'"),
        (
            fn.u_mul_e("h", "bad", "m"),
            SUM,
            ValueError,
            r"column 'h' of layer 0.*column 'bad' of flow 0->1",
        ),
        (
            fn.u_mul_e("h", "bad", "m"),
            lambda n: {"h": n.mailbox["m"].sum(1)},
            ValueError,
            r"do not broadcast",
        ),
        (COPY, columns_by_degree, ValueError, r"must return the same columns for every degree"),
    ],
)
def test_functions_that_do_not_fit(message, reduce, kind, words):
    batch = make_batch()
    if getattr(message, "rhs", None) == "bad":
        batch.flows[0].data["bad"] = torch.ones(7, 2)
    before = columns(batch)
    with pytest.raises(kind, match=words):
        batch.flow_compute(0, message, reduce)
    assert same(before, columns(batch))


def test_updates_that_do_not_fit():
    batch = make_batch()
    for update, kind, words in [
        (
            lambda n: None,
            TypeError,
            "the update function .* must return a dict of columns, got NoneType None",
        ),
        (rows_missing, ValueError, "one row per node, here 4"),
        (
            lambda n: {"x": n.data["nope"]},
            KeyError,
            "no column 'nope' in layer 1, which has 'old', 'out'",
        ),
    ]:
        with pytest.raises(kind, match=words):
            batch.flow_compute(0, COPY, fn.sum("m", "out"), update)
    with pytest.raises(TypeError, match="func must be a function or module"):
        batch.apply_layers(0, 3)
    with pytest.raises(TypeError, match=r"return \{'x'"):
        batch.apply_layers(0, lambda n: n.data.__setitem__("x", 1))


def test_wrong_ids():
    batch = make_batch()
    pair = COPY, TO_OLD
    for error, words, call in (
        (
            ValueError,
            r"v\[2\] names node 3 again",
            lambda: batch.flow_compute(0, *pair, v=[3, 1, 3]),
        ),
        (IndexError, r"v\[0\] is 4", lambda: batch.flow_compute(0, *pair, v=[4])),
        (
            ValueError,
            r"edges\[1\] names edge 2 again",
            lambda: batch.flow_send_and_recv(0, [2, 2], *pair),
        ),
        (IndexError, r"edges\[0\] is 7", lambda: batch.apply_flows(0, COPY, edges=[7])),
        (
            ValueError,
            r"v\[1\] names node 0 again",
            lambda: batch.apply_layers(0, lambda n: {}, v=[0, 0]),
        ),
        (IndexError, "flow 2 is out of range", lambda: batch.flow_compute(2, *pair)),
        (TypeError, "one flow is computed at a time", lambda: batch.flow_compute(ALL, *pair)),
        (IndexError, "layer 3 is out of range", lambda: batch.apply_layers(3, lambda n: {})),
    ):
        with pytest.raises(error, match=words):
            call()


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

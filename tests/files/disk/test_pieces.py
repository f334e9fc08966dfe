"""Columns, texts and zeros that are written piece by piece: the same files for any size of a
piece.
"""

from __future__ import annotations

import errno

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from nodeflow._files.disk import arrays, streams, texts as text_files

DENSE = torch.arange(15.0).reshape(5, 3)
SPARSE = torch.tensor([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]).to_sparse_csr()


@given(st.integers(0, 9), st.integers(1, 40), st.sampled_from([0, 1, 12, 512]))
def test_pieces_are_all_rows_once_and_no_larger_than_was_said(rows, size, row):
    """A sparse row counts as 512 bytes, one without numbers as 1; a single row may be larger than a
    piece.
    """
    column = (
        torch.zeros(rows, row, dtype=torch.uint8)
        if row < 512
        else torch.zeros(rows, 3).to_sparse_csr()
    )
    most = max(1, size // max(row, 1)) if row < 512 else size
    pieces = streams.pieces_of(column, size if row < 512 else 512 * size)
    assert [i for start, stop in pieces for i in range(start, stop)] == list(range(rows))
    assert [stop - start for start, stop in pieces[:-1]] == [most] * (len(pieces) - 1)
    assert all(0 < stop - start <= most for start, stop in pieces)


@pytest.mark.parametrize("column", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_a_column_is_one_file_for_any_size_of_its_pieces(
    column,
    tmp_path,
    small_pieces,
    monkeypatch,
):
    pieces_of = streams.pieces_of
    described = []
    for size in (2**24, 7, 1):
        small_pieces(size)
        monkeypatch.setattr(
            "nodeflow._files.disk.streams.pieces_of",
            lambda column, size=size: pieces_of(column, size),
        )
        folder = tmp_path / str(size)
        described.append(streams.stream_column(folder / "x.npy", column))
        assert arrays.map_tensor(folder, described[-1]).to_dense().equal(column.to_dense())
        assert arrays.checksum(folder / described[-1].file) == described[-1].checksum
    assert described[1:] == described[:1] * 2


def test_rows_that_were_not_appended_are_zeros(tmp_path):
    for like, width in ((DENSE, (3,)), (SPARSE, (2,))):
        writer = streams.column_writer(tmp_path / "x.npy", like, 7)
        writer.append(like)
        column = arrays.map_tensor(tmp_path, writer.finish()).to_dense()
        assert column.equal(torch.cat([like.to_dense(), torch.zeros(7 - len(like), *width)]))


def test_numbers_are_converted_piece_by_piece(tmp_path, small_pieces):
    small_pieces(2)
    writer = streams.ArrayWriter(tmp_path / "x.npy", torch.int64, (3,))
    writer.append(DENSE.long())
    writer.convert(torch.float64)
    assert arrays.map_tensor(tmp_path, writer.finish()).equal(DENSE.double())


@pytest.mark.parametrize("supported", [True, False])
def test_room_is_taken_from_its_start_to_its_end(
    supported,
    tmp_path,
    small_pieces,
    failing,
):
    small_pieces(4)
    if not supported:
        failing("posix_fallocate", errno.EOPNOTSUPP)
    for size in (0, 3, 4, 9):
        (tmp_path / "x").write_bytes(b"abcde")
        with (tmp_path / "x").open("rb+") as opened:
            arrays.take_room(opened.fileno(), 5, size)
        assert (tmp_path / "x").read_bytes() == b"abcde" + bytes(size)


def test_numbers_of_a_file_begin_with_its_second_page(tmp_path):
    described = streams.stream_column(tmp_path / "x.npy", DENSE)
    assert arrays.read_header(tmp_path / described.file) == (np.dtype("float32"), (5, 3), 4096)
    assert (tmp_path / described.file).read_bytes()[4094:4096] == b" \n"
    assert np.load(tmp_path / described.file).tolist() == DENSE.tolist()


@pytest.mark.parametrize("length", [10_000, 10_001])
def test_a_header_may_be_so_long(length, tmp_path):
    text = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}".ljust(length - 1) + b"\n"
    (tmp_path / "x.npy").write_bytes(
        np.lib.format.magic(2, 0) + length.to_bytes(4, "little") + text + bytes(8)
    )
    if length == 10_000:
        assert arrays.read_header(tmp_path / "x.npy") == (np.dtype("int64"), (1,), length + 12)
    else:
        with pytest.raises(ValueError, match="its header has 10001 bytes"):
            arrays.read_header(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "damage", [(b"<i8", rb"\x3ci8"), (b" ", b"\0"), (b"1", b"\\\n1"), (b",)}\n", b"")], ids=str
)
def test_a_header_with_escapes_or_cut_off_is_no_table(damage, tmp_path):
    text = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}\n"
    begin = np.lib.format.magic(2, 0) + len(text).to_bytes(4, "little")
    (tmp_path / "x.npy").write_bytes(begin + text + bytes(8))
    assert arrays.read_header(tmp_path / "x.npy") == (np.dtype("int64"), (1,), len(text) + 12)
    wrong = text.replace(*damage)
    begin = np.lib.format.magic(2, 0) + max(len(text), len(wrong)).to_bytes(4, "little")
    (tmp_path / "x.npy").write_bytes(begin + wrong + bytes(8) * (len(wrong) >= len(text)))
    with pytest.raises(ValueError, match="its header is no table"):
        arrays.read_header(tmp_path / "x.npy")


@pytest.mark.parametrize("kind", ["<M8[s]", "|S8", "<U2", "|V8"])
def test_arrays_of_no_numbers_are_refused(kind, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3, kind))
    with pytest.raises(ValueError, match=r"its array has dtype .*, not numbers"):
        arrays.read_header(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("shape", "huge"), [([2**59 - 1], False), ([2**59], True), ([0, 2**58, 2], True), ([], False)]
)
def test_shapes_that_no_array_has_are_refused(shape, huge):
    facts = {"file": "x.npy", "dtype": "int8", "shape": shape, "checksum": 0}
    if huge:
        with pytest.raises(ValueError, match="is said to hold"):
            arrays.ArrayFile.of(facts)
    else:
        assert arrays.ArrayFile.of(facts).facts() == facts


def test_texts_are_the_same_for_any_number_written_at_a_time(tmp_path, small_pieces):
    words = ["", "é", "node", "", "\ud800", "flow"]
    for number in (1, 2, 100):
        small_pieces(number)
        texts = text_files.map_texts(
            tmp_path, text_files.write_texts(tmp_path, "names", words), "names"
        )
        assert isinstance(texts, text_files.Texts)
        assert list(texts) == words
        assert [texts[i] for i in range(-6, 0)] == words
        assert texts[1:-1:2] == tuple(words[1:-1:2])


def test_texts_show_the_first_three(tmp_path):
    words = ["a", "b", "c", "d"]
    shown = []
    for number in (0, 1, 3, 4):
        texts = text_files.map_texts(
            tmp_path, text_files.write_texts(tmp_path, "names", words[:number]), "names"
        )
        shown.append(repr(texts))
        assert texts != "abcd"[:number]
    assert shown == [
        "Texts(0: )",
        "Texts(1: 'a')",
        "Texts(3: 'a', 'b', 'c')",
        "Texts(4: 'a', 'b', 'c', ...)",
    ]


@pytest.mark.parametrize("shape", [(1,), (1, 3), (3, 1), (0, 3), (3, 0)])
def test_columns_of_one_row_or_number_and_of_none(shape, tmp_path):
    column = 5 + torch.arange(float(np.prod(shape))).view(shape)
    assert arrays.map_tensor(tmp_path, streams.stream_column(tmp_path / "x.npy", column)).equal(
        column
    )

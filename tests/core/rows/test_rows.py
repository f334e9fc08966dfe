"""Rows of dense and sparse columns against plain indexing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, strategies as st

from nodeflow._core.rows import csr, rows as row_tools


@st.composite
def matrices(draw: st.DrawFn) -> np.ndarray:
    rows = draw(st.integers(1, 6))
    columns = draw(st.integers(1, 5))
    cells = st.lists(st.integers(-2, 2), min_size=rows * columns, max_size=rows * columns)
    return np.array(draw(cells), np.float32).reshape(rows, columns)


@given(matrices(), st.data())
def test_rows_of_sparse_and_dense_columns(dense, data):
    ids = data.draw(st.lists(st.integers(0, len(dense) - 1), max_size=8))
    index = torch.tensor(ids, dtype=torch.int64)
    sparse = csr.from_scipy(scipy.sparse.csr_matrix(dense))
    taken = row_tools.take_rows(sparse, index)
    assert taken.layout == torch.sparse_csr
    assert taken.shape == (len(ids), dense.shape[1])
    assert np.array_equal(taken.to_dense().numpy(), dense[ids])
    assert np.array_equal(row_tools.take_rows(torch.from_numpy(dense), index).numpy(), dense[ids])


@pytest.mark.parametrize(
    "kind",
    [
        scipy.sparse.csr_array,
        scipy.sparse.coo_matrix,
        scipy.sparse.csc_matrix,
        scipy.sparse.lil_matrix,
    ],
)
def test_all_scipy_formats_come_over(kind):
    dense = np.array([[0, 1, 0], [2, 0, 3]])
    matrix = kind(dense)
    column = csr.from_scipy(matrix)
    assert column.dtype == torch.float32
    assert np.array_equal(column.to_dense().numpy(), dense)


def test_doubles_stay_doubles_and_memory_is_not_shared():
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    column = csr.from_scipy(matrix)
    matrix.data[:] = 9
    assert column.dtype == torch.float64
    assert torch.equal(column.to_dense(), torch.eye(3, dtype=torch.float64))


def test_only_sparse_matrices_come_over():
    with pytest.raises(TypeError, match="matrix must be a scipy sparse matrix, got ndarray"):
        csr.from_scipy(np.eye(3))


@given(st.data())
def test_rows_are_put_at_their_places(data):
    count = data.draw(st.integers(0, 9))
    # -1: at no place
    part_of = np.array([data.draw(st.integers(-1, 2)) for _ in range(count)], np.int64)
    whole = (torch.arange(4.0 * count).view(count, 4) % 3) * torch.from_numpy(part_of >= 0)[:, None]
    order = np.random.default_rng(count).permutation(count)
    places = [order[part_of[order] == part] for part in range(3)]
    parts = [(whole[torch.from_numpy(at)], at) for at in places]
    found = row_tools.put_rows([(rows.to_sparse_csr(), at) for rows, at in parts], count)
    assert found.layout == torch.sparse_csr
    assert found.to_dense().equal(whole)
    assert row_tools.put_rows(parts, count)[part_of >= 0].equal(whole[part_of >= 0])


def test_arrays_share_memory_and_say_when_they_must_not_be_written(tmp_path):
    array = np.arange(3.0)
    tensor = row_tools.from_numpy(array)
    array[0] = 5
    assert tensor[0] == 5
    assert not row_tools.is_read_only(tensor)
    np.save(tmp_path / "x.npy", array)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    column = row_tools.from_numpy(mapped)
    assert row_tools.is_read_only(column)
    assert np.shares_memory(column.numpy(), mapped)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_rows_of_columns_on_a_gpu():
    dense = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 0]], np.float32)
    ids = torch.tensor([2, 1, 1])
    for column in (torch.from_numpy(dense), csr.from_scipy(scipy.sparse.csr_matrix(dense))):
        taken = row_tools.take_rows(column.to("cuda"), ids)
        assert taken.device.type == "cuda"
        assert np.array_equal(taken.to_dense().cpu().numpy(), dense[[2, 1, 1]])


KINDS = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int8,
    torch.bool,
    torch.complex64,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 2), (16,), (0,)])
def test_many_rows_are_those_of_index_select(kind, shape):
    generator = torch.Generator().manual_seed(0)
    column = torch.randint(0, 100, (50, *shape), generator=generator).to(kind)
    for count in (1, 70_000):  # the first is too little for a loop of our own
        ids = torch.randint(0, 50, (2 * count,), generator=generator)
        for some in (ids[:count], ids[::2]):
            found = row_tools.fetch_rows(column, some)
            assert found.dtype == kind
            assert found.shape == (count, *shape)
            assert torch.equal(found, column[some])
            found.zero_()  # it is no view of the column
    assert bool(column.any()) == (0 not in shape)


def test_rows_from_the_middle_of_memory():
    """Not on the boundary of a word, as in a slice or a file with a header."""
    memory = torch.arange(100_002, dtype=torch.uint8)
    ids = torch.arange(9999, -1, -1).repeat(2)
    for start in range(3):
        column = memory[start : start + 100_000].view(10_000, 10)
        assert torch.equal(row_tools.fetch_rows(column, ids), column[ids])


@pytest.mark.parametrize("bad", [-1, 50])
def test_an_id_that_is_no_row_is_refused(bad):
    ids = torch.zeros(70_000, dtype=torch.int64)
    ids[69_999] = bad
    with pytest.raises(IndexError, match=f"there is no row {bad} in a column of 50 rows"):
        row_tools.fetch_rows(torch.zeros(50, 4), ids)


def test_gradients_flow_to_a_column_that_wants_them():
    column = torch.ones(50, 4, requires_grad=True)
    row_tools.fetch_rows(column, torch.zeros(70_000, dtype=torch.int64)).sum().backward()
    assert column.grad is not None
    assert column.grad[0].tolist() == [70_000.0] * 4


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_rows_are_differentiated_through_in_every_mode():
    column = torch.ones(50, 4)
    ids = torch.zeros(70_000, dtype=torch.int64)
    _, tangent = torch.func.jvp(lambda x: row_tools.take_rows(x, ids).sum(), (column,), (column,))
    assert tangent == 280_000
    assert (
        torch.vmap(lambda x: row_tools.take_rows(x, ids).sum())(column.repeat(2, 1, 1)).tolist()
        == [280_000] * 2
    )
    with torch.autograd.forward_ad.dual_level():
        both = torch.autograd.forward_ad.make_dual(column, column)
        assert torch.autograd.forward_ad.unpack_dual(
            row_tools.take_rows(both, ids)
        ).tangent.shape == (
            70_000,
            4,
        )


def test_threads_never_share_memory():
    column = torch.arange(60_000, dtype=torch.float32).view(-1, 4)
    wrong = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(60):
            ids = torch.randint(0, len(column), (5000 + 100 * seed,), generator=generator)
            rows = row_tools.fetch_rows(column, ids)
            other = row_tools.fetch_rows(column, ids.flip(0))
            if not (torch.equal(rows, column[ids]) and torch.equal(other, rows.flip(0))):
                wrong.append(seed)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


def test_rows_of_sparse_columns_join_and_zeros_have_the_same_type():
    above, below = (
        csr.from_scipy(scipy.sparse.csr_array(np.array(m))) for m in ([[1, 0], [0, 2]], [[0, 3]])
    )
    assert row_tools.concat_rows([above, below]).to_dense().tolist() == [[1, 0], [0, 2], [0, 3]]
    assert row_tools.concat_rows([row_tools.zero_rows(above, 0), below]).to_dense().tolist() == [
        [0, 3]
    ]
    zeros = row_tools.zero_rows(above, 3)
    assert (zeros.layout, zeros.dtype, tuple(zeros.shape)) == (
        torch.sparse_csr,
        torch.float32,
        (3, 2),
    )
    assert not zeros.to_dense().any()
    assert row_tools.zero_rows(torch.ones(2, 4, dtype=torch.int64), 1).tolist() == [[0, 0, 0, 0]]

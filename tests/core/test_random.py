"""The counter-based generator: known answers, exact uniformity, and arguments that are refused."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
from _support.sampler_reference import GOLDEN, MASK, Stream, chi_square, mix, stream
from hypothesis import given, strategies as st

from nodeflow.random import Random, derive_key, hash_ids


def below(key: int, ident: int, draw: int, bound: int) -> int:
    """What ``Random.integers`` gives, in exact integers."""
    return Stream(stream(key, ident), draw).below(bound)


# ---- known answers: a change of any of these is a changelog entry, because users' seeds then mean
# other numbers


def test_known_bits():
    ids = np.array([0, 1, 2**31, 2**62])
    assert [hex(b) for b in Random(0).bits(ids).tolist()] == [
        "0x568a9b0b1a2c05ec",
        "0x879b5eacfc8e2e5b",
        "0xe610e3e721eabc74",
        "0xb10df2a20bc255f4",
    ]
    assert [hex(b) for b in Random(2**64 - 1).bits(ids, draw=3).tolist()] == [
        "0x65bcdb076dabe152",
        "0x8d950ece0e5bae85",
        "0x208119c757c6c23d",
        "0xeeeaf5ca2c525446",
    ]


def test_known_uniform():
    assert Random(7).uniform([5, 6]).tolist() == [0.1550395725668463, 0.06729079224638279]


def test_known_integers():
    assert Random(7).integers([0, 1, 2], [10, 2**32 + 5, 2**62]).tolist() == [
        1,
        4070435095,
        552591075839334712,
    ]
    assert Random(7).integers(range(6), 1000, draw=1).tolist() == [501, 508, 607, 178, 504, 153]


def test_known_permutation():
    assert Random(7).permutation(10).tolist() == [8, 9, 6, 2, 5, 4, 0, 1, 3, 7]


def test_known_keys():
    assert hex(derive_key()) == "0x6e6f6465666c6f77"  # "nodeflow"
    assert hex(derive_key(0)) == "0xb1aed3de1907e8a1"
    assert hex(derive_key(1, 2, 3)) == "0x283da0ab8d0c7212"
    assert hex(derive_key(-1)) == "0x5f2e6dd70a98d4bd"


def test_known_hashes():
    assert hex(hash_ids(np.zeros(0, np.int64))) == "0x0"
    assert hex(hash_ids(np.array([3, 1, 2]))) == "0x765a4081e8ed89b2"


# ---- against the algorithm in Python integers


@given(st.lists(st.integers(-(2**200), 2**200) | st.text("aé€", max_size=30)))
def test_keys_take_all_bits_of_all_words(words):
    key = int.from_bytes(b"nodeflow", "big")
    for word in words:
        number = word if isinstance(word, int) else int.from_bytes(word.encode(), "big")
        bits, step = (number, GOLDEN) if number >= 0 else (-number - 1, 0xD1342543DE82EF95)
        for at in range(0, max(bits.bit_length(), 1), 64):
            key = mix((key + step) % 2**64 ^ mix((bits >> at) % 2**64))
            step = 0xAF251AF3B0F025B5
    assert derive_key(*words) == key


@pytest.mark.parametrize("key", [0, 1, 2**63, MASK, MASK - 4])
def test_bits_equal_splitmix(key):
    ids = np.array([0, 1, 2, 1000, 2**31 - 1, 2**31, 2**40, 2**63 - 2])
    for draw in (0, 1, 77):
        expected = [mix((stream(key & MASK, i) + (draw + 1) * GOLDEN) & MASK) for i in ids.tolist()]
        assert Random(key).bits(ids, draw).tolist() == expected
        # 53 bits of a double are all kept
        assert Random(key).uniform(ids, draw).tolist() == [(b >> 11) / 2**53 for b in expected]


BOUNDS = [
    1,
    2,
    3,
    5,
    2**16 + 1,
    2**31 + 1,
    2**32 - 1,
    2**32,
    2**32 + 1,
    2**33 + 1,
    3 * 2**61,
    2**63 - 1,
]


@pytest.mark.parametrize("bound", BOUNDS)
def test_integers_equal_exact_integers(bound):
    # 2**31 + 1 rejects nearly half of the words, so that the second branch is taken often
    expected = [below(9, i, 4, bound) for i in range(300)]
    assert Random(9).integers(range(300), bound, draw=4).tolist() == expected


def test_bits_are_uniform_and_independent():
    bits = Random(5).bits(np.arange(200_000))
    every = np.unpackbits(bits.view(np.uint8)).reshape(len(bits), 64)
    # each bit is fair, and each pair of bits agrees half of the time: 64 + 2016 tests at 5.5 sigma
    # (all: 8e-5)
    assert np.abs(every.mean(0) - 0.5).max() < 5.5 * 0.5 / np.sqrt(len(bits))
    signs = 2.0 * every - 1
    correlation = signs.T @ signs / len(bits)
    assert np.abs(correlation - np.eye(64)).max() < 5.5 / np.sqrt(len(bits))


@pytest.mark.parametrize(
    ("key", "change"),
    [
        (0, lambda ids: Random(0).uniform(ids, draw=1)),
        (0, lambda ids: Random(0).uniform(ids + 1)),
        (0, lambda ids: Random(0).uniform(ids << 32)),
        (0, Random(1).uniform),
        (derive_key(0, 1), Random(derive_key(1, 0)).uniform),
    ],
    ids=["draws", "ids", "high bits", "keys", "order of words"],
)
def test_streams_are_independent(key, change):
    # joint 8 x 8 table: a correlation of 0.02 has noncentrality 60 and is found about every other
    # time, 0.03 always
    ids = np.arange(150_000)
    both = Random(key).uniform(ids).numpy(), change(ids).numpy()
    assert chi_square(np.histogram2d(*both, bins=8, range=[[0, 1], [0, 1]])[0]) < 1


def test_hash_ids_tells_arrays_apart():
    arrays = [ids for size in range(4) for ids in itertools.product(range(3), repeat=size)]
    assert len({hash_ids(np.array(ids, np.int64)) for ids in arrays}) == len(arrays)


def test_permutation():
    for size in (0, 1, 2, 1000):
        assert Random(3).permutation(size).sort().values.tolist() == list(range(size))
    orders = [tuple(Random(key).permutation(4).tolist()) for key in range(24_000)]
    assert chi_square(np.unique(orders, axis=0, return_counts=True)[1]) < 1
    assert len(set(orders)) == 24


def test_it_travels():
    random = Random(derive_key(4, 2))
    for other in (pickle.loads(pickle.dumps(random)), copy.copy(random), copy.deepcopy(random)):
        assert other.key == random.key
        with pytest.raises(AttributeError, match="immutable"):
            other.key = 3


def test_kinds_of_ids():
    expected = Random(1).uniform([4, 5])
    for ids in (
        torch.tensor([4, 5]),
        torch.tensor([4, 5], dtype=torch.int32),
        np.array([4, 5], np.uint8),
        range(4, 6),
    ):
        assert Random(1).uniform(ids).equal(expected)
    assert Random(1).uniform([]).shape == (0,)
    assert Random(1).integers([], 5).shape == (0,)
    assert Random(1).integers([1, 2], torch.tensor([1, 1])).tolist() == [0, 0]


# ---- the words at the very border of rejection, too rare to come up by chance


def unmix(z: int) -> int:
    """The inverse of ``mix``."""

    def unshift(y: int, shift: int) -> int:
        x = y
        for _ in range(64 // shift + 1):
            x = y ^ (x >> shift)
        return x

    z = (unshift(z, 31) * pow(0x94D049BB133111EB, -1, 2**64)) & MASK
    z = (unshift(z, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64)) & MASK
    return unshift(z, 30)


def key_with_first_word(word: int) -> int:
    """The key under which the first word drawn for id 0, draw 0, is ``word``."""
    state = (unmix(word) - GOLDEN) & MASK
    inner = unmix(state) ^ mix(GOLDEN)
    return unmix(inner) ^ mix(GOLDEN)


@pytest.mark.parametrize("bound", [2**32, 2**32 + 1, 2**33 + 1, 3 * 2**61, 2**63 - 1])
def test_border_of_rejection_beyond_32_bits(bound):
    for word in (0, bound - 1, bound, bound + 1, 2 ** (bound - 1).bit_length() - 1):
        key = key_with_first_word(word)
        # integers have a stream of their own
        assert int(Random(key).bits(np.array([0]))[0]) != word
        number = Random(key).integers([0], bound).item()
        assert number == below(key, 0, 0, bound)
        if word < bound:
            assert number == word


@pytest.mark.parametrize("bound", [3, 5, 1001, 2**31 + 1, 2**32 - 1])
def test_border_of_rejection_in_32_bits(bound):
    surplus = 2**32 % bound
    for low in (0, surplus - 1, surplus, surplus + 1, bound - 1):
        # the half word whose product with the bound ends in ``low``
        high = (low * pow(bound, -1, 2**32)) % 2**32
        key = key_with_first_word(high << 32)
        number = Random(key).integers([0], bound).item()
        assert number == below(key, 0, 0, bound)
        if low >= surplus:
            assert number == (high * bound) >> 32

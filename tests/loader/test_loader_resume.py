"""NodeFlowLoader: its state, stored at any batch, and a loader that goes on from there."""

from __future__ import annotations

import json

import pytest
from _support.loader_tools import epoch, fingerprint, make

from nodeflow import NodeFlowLoader

pytestmark = pytest.mark.usefixtures("no_thread_is_left_behind")


@pytest.mark.parametrize(("workers", "prefetch"), [(0, 2), (1, 2), (3, 2), (3, 0)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True, "drop_last": True},
        {"seeds": [1, 2, 1] * 15, "shuffle": True},
        {"weights": [1.0 + k % 3 for k in range(60)]},
    ],
)
def test_resume_at_every_batch(workers, prefetch, options):
    """The state at any point, given to a new loader with another number of workers: the rest is the
    same.
    """

    def loader(w: int) -> NodeFlowLoader:
        return make(**{"batch_size": 13, **options, "num_workers": w, "prefetch": prefetch})

    straight = loader(0)
    epochs = [epoch(straight) for _ in range(4)]
    size = len(straight)

    running = loader(workers)
    states = [(running.state_dict(), 0, 0)]  # state, epoch and batch that come next
    for e in range(2):
        for k, _ in enumerate(running, 1):
            states.append((running.state_dict(), e, k))
        states.append((running.state_dict(), e + 1, 0))
    for state, e, k in states:
        resumed = loader(2 - workers % 2 if prefetch else 2)
        # plain numbers: it can be stored anywhere
        resumed.load_state_dict(json.loads(json.dumps(state)))
        assert resumed.state_dict() == state
        if k == size:
            e = e + 1
            k = 0
        assert epoch(resumed) == epochs[e][k:]
        assert epoch(resumed) == epochs[e + 1]


def test_state_before_a_batch_is_asked_for():
    loader = make(shuffle=True)
    epochs = [epoch(loader) for _ in range(3)]
    batches = iter(loader)  # epoch 3 has begun, and has given nothing
    resumed = make(shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    assert epoch(resumed) == [fingerprint(batch) for batch in batches]
    loader.set_epoch(1)
    resumed.load_state_dict(loader.state_dict())
    assert epoch(resumed) == epochs[1]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loader_can_go_back_also_where_workers_are_ahead(workers):
    loader = make(shuffle=True, num_workers=workers, prefetch=4)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    assert (state["epoch"], state["batch_number"]) == (0, 1)
    rest = [fingerprint(batch) for batch in batches]
    epoch(loader)
    for other in (loader, make(shuffle=True)):
        other.load_state_dict(state)
        assert epoch(other) == rest
        assert other.epoch == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iteration_that_goes_on_does_not_undo_what_is_set(workers):
    loader = make(num_workers=workers)
    state = loader.state_dict()
    for number, _ in enumerate(loader):
        if number == 1:
            loader.set_epoch(5)
    assert loader.epoch == 5
    assert len(list(loader)) == len(loader)
    assert loader.epoch == 5
    for number, _ in enumerate(loader):
        if number == 1:
            loader.load_state_dict(state)
    assert loader.state_dict() == state
    older = iter(loader)
    newer = iter(loader)
    next(newer)
    before = loader.state_dict()
    next(older)
    assert loader.state_dict() == before
    del older, newer


@pytest.mark.parametrize("wrong", [{"batch_number": 5}, {"epoch": -2}, {"seed": 1}])
def test_a_state_that_is_refused_changes_nothing(wrong):
    loader = make()
    next(iter(loader))
    before = loader.state_dict()
    with pytest.raises(ValueError, match=r"seed=1, this one has 0|state\['"):
        loader.load_state_dict({**before, **wrong})
    assert loader.state_dict() == before

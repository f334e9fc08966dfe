"""Settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass

from nodeflow._base.checks import as_count, as_int, as_number, check_one_of
from nodeflow.sampling._sampler import check_sizes
from nodeflow.training._methods import METHODS


@dataclass(frozen=True)
class Settings:
    """The settings of a training run; on one machine, the same settings give the same result.

    Args:
        model: "sage" (GraphSAGE) or "gcn".
        fanouts: neighbours drawn per node, one number per layer in flow order: the last belongs to the seeds; -1: all.
        batch_size: seeds per batch.
        hidden: width of the hidden layers.
        dropout: probability that an entry of a hidden layer is set to zero while training.
        learning_rate: learning rate of Adam.
        epochs: passes over the training nodes.
        seed: starting point of all random numbers.
        workers: threads that sample ahead; they change the speed only.
        direction: "in", "out", or "both", which adds the reverse of every edge unless the graph is symmetric.
        sampler: "neighbor", or "cv" for control variates, which need two fanouts or more.

    Raises ValueError for other values, TypeError for numbers of another type.

    >>> Settings(fanouts=(5, 5), epochs=1).batch_size
    1024
    """

    model: str = "sage"
    fanouts: tuple[int, ...] = (10, 10)
    batch_size: int = 1024
    hidden: int = 256
    dropout: float = 0.6
    learning_rate: float = 0.003
    epochs: int = 15
    seed: int = 0
    workers: int = 1
    direction: str = "both"
    sampler: str = "neighbor"

    def __post_init__(self) -> None:
        object.__setattr__(self, "fanouts", check_sizes(self.fanouts, "fanouts"))
        check_one_of(self.sampler, "sampler", METHODS)
        METHODS[self.sampler].check(self.model, self.fanouts)
        check_one_of(self.direction, "direction", ("in", "out", "both"))
        for name in ("batch_size", "hidden", "epochs"):
            as_count(getattr(self, name), name, 1)
        as_count(self.workers, "workers")
        as_int(self.seed, "seed")
        as_number(self.dropout, "dropout", least=0, below=1)
        as_number(self.learning_rate, "learning_rate", above=0)

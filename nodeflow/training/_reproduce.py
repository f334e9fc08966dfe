"""The subcommand ``nodeflow reproduce``: a finished run is run again, and compared step by step."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from nodeflow._core.base.version import __version__
from nodeflow._processes.exchanges import is_heard_by_all
from nodeflow._processes.transport import PeerError
from nodeflow.training._choices import Values
from nodeflow.training._folder import TRACE, Run, machine, read_result
from nodeflow.training._processes import process_group
from nodeflow.training._result import Trace, TracedStep, read_trace
from nodeflow.training._train_command import Silent
from nodeflow.training._trainer import Trainer


class Differs(Exception):  # noqa: N818  it is no error of the program
    """A batch of the run is another one than before; what follows would differ too."""


class _Comparison(Trace):
    """A trace that compares each step with that of an earlier run."""

    def __init__(self, earlier: list[TracedStep]) -> None:
        super().__init__()
        self.earlier = {step[:2]: step for step in earlier}
        self.first_loss = ""
        self.compared = 0

    def add(self, epoch: int, number: int, batch: Any, loss: float) -> None:
        before = len(self.steps)
        super().add(epoch, number, batch, loss)
        # the trace may have recorded this step, or left it out: then there is nothing to compare
        for step in self.steps[before:]:
            earlier = self.earlier.get(step[:2])
            if earlier is None:
                continue
            self.compared += 1
            place = f"epoch {step.epoch}, batch {step.batch}"
            if earlier.hash != step.hash:
                raise Differs(
                    f"differs first at {place}: another batch (hash {step.hash}, was "
                    f"{earlier.hash})"
                )
            if earlier.loss != step.loss:
                words = f"{place} (loss {step.loss!r}, was {earlier.loss!r})"
                self.first_loss = self.first_loss or words

    def differences(self) -> Iterator[str]:
        """Yield a line for losses that are others, and for steps of the earlier run that did not
        come.
        """
        if self.first_loss:
            yield f"the batches are the same, the losses not: first at {self.first_loss}"
        if self.compared < max(len(self.earlier), 1):
            yield f"of {len(self.earlier)} steps of the earlier run, {self.compared} came"


def reproduce(options: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Run a finished run again from its folder, and say at which step it first differs.

    Compared are the batches (by a hash of every 20th, and of the first of each epoch), the losses
    of these steps, and the scores at the end. Nothing is written. The status is 0 where all are the
    same, to the last bit, else 1. With several processes, as many as the run had, the first one
    compares and prints: the trace is of its batches.
    """
    with process_group() as peers:
        run = Run.read(options.folder, options.model)
        if run.processes != peers.size:
            raise ValueError(
                f"the run in {options.folder} had {run.processes} processes, and batches are "
                f"compared with those of the first; start as many, got {peers.size}"
            )
        result = read_result(options.folder)
        steps = read_trace(options.folder / TRACE)
        trainer = Trainer(run.dataset(), run.settings)
        # the trace has the batches of the first process; the others take part in its steps
        if not peers.is_first:
            try:
                trainer.run()
            except PeerError as error:
                if not is_heard_by_all(error):
                    raise
                raise Silent(1) from None
            return
        # told first, because they are the likely reasons of what differs
        for line in _other_circumstances(result):
            say(line)
        trainer.trace = comparison = _Comparison(steps)
        say(f"runs {options.folder} again: {len(steps)} steps are compared")
        try:
            scores = trainer.run().scores
        except Differs as difference:
            say(str(difference))
            raise Silent(1) from None
        differences = [*comparison.differences(), *_other_scores(result["scores"], scores)]
        for line in differences:
            say(line)
        if differences:
            raise Silent(1)
        say(f"the same, bit for bit: {comparison.compared} steps and all scores")


def _other_circumstances(result: Values) -> Iterator[str]:
    """Yield a line for each version and property of the machine that was another one."""
    now = {"nodeflow": __version__, "torch": str(torch.__version__), **machine()}
    then = {**result.get("versions", {}), **result.get("machine", {})}
    for name, value in now.items():
        was = then.get(name)
        if was != value:
            yield f"{name}: {value} now, {was} then"


def _other_scores(
    earlier: Mapping[str, Values], scores: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    for part, values in scores.items():
        for name, value in values.items():
            was = earlier.get(part, {}).get(name)
            if was != (None if math.isnan(value) else value):
                yield f"{part} {name} is {value!r}, was {was!r}"

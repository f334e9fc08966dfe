"""The state of a run in a file, written at once or not at all, and the times when it is saved."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor, nn

from nodeflow._core.base.checks import as_count, as_number, blaming, check_type
from nodeflow._core.base.files import is_file
from nodeflow._files.disk.manifest import replace_file
from nodeflow.training._settings import FREE, Settings

if TYPE_CHECKING:
    from nodeflow.training._trainer import Trainer

_KEY = "nodeflow"
_FACTS = re.compile(r'\{"checksum": "([0-9a-f]{8})", "facts": (.*)\}', re.DOTALL)


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a tree of dicts, lists, tuples, tensors, numbers, strings and None into one safetensors
    file.

    If it cannot be written, raises OSError, and an older file stays.
    """
    tensors: dict[str, Tensor] = {}
    write_tensors(path, tensors, _encoded(state, tensors, "state"))


def read_state(path: Path) -> Any:
    """Return the tree that ``write_state`` wrote; raises as ``read_tensors`` does."""
    tree, tensors = read_tensors(path)
    with blaming(
        f"{path} does not hold the state that it says it holds",
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        return _decoded(tree, tensors)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Any) -> None:
    """Write tensors by name and ``facts``, values of JSON, into a safetensors file, at once or not
    at all.

    With a checksum of both, the CRC-32 of what ``_checksum`` says.
    """
    content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(facts)
    # one entry, because safetensors writes several in random order, and equal runs should give
    # equal files
    entry = f'{{"checksum": "{_checksum(text, content)}", "facts": {text}}}'
    replace_file(path, to_safetensors(content, {_KEY: entry}))


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the CRC-32 of facts as text, then of name, type, shape and bytes of every tensor in
    the order of names.
    """
    # in the order of names: safetensors may give them in another
    value = zlib.crc32(text.encode())
    for name, tensor in sorted(tensors.items()):
        value = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), value)
        content = tensor.reshape(-1).view(torch.uint8).numpy()
        value = zlib.crc32(content.data, value)
    return f"{value:08x}"


def read_tensors(path: Path) -> tuple[Any, dict[str, Tensor]]:
    """Return the facts and the tensors of a file; raises FileNotFoundError, ValueError for a
    damaged one, OSError.
    """
    if not is_file(path):
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            # copies: tensors that map the file would change with it, and keep some systems from
            # replacing it
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  it is no dict
        match = _FACTS.fullmatch(metadata[_KEY])
        if match is None or match[1] != _checksum(match[2], tensors):
            raise ValueError("its contents have another checksum than when it was written")
        facts = json.loads(match[2])
    except KeyError:
        raise ValueError(
            f"{path} is no checkpoint of a training run: it does not say which model it holds"
        ) from None
    except (SafetensorError, OSError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, or no safetensors file: {error}") from error
    return facts, tensors


def _encoded(value: Any, tensors: dict[str, Tensor], name: str) -> Any:
    """Return ``value`` as JSON, with its tensors put into ``tensors`` by the path that leads to
    them.
    """
    if isinstance(value, Tensor):
        tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": name}
    if isinstance(value, Mapping):
        content = [[key, _encoded(x, tensors, f"{name}.{key}")] for key, x in value.items()]
        if all(isinstance(key, str) for key in value):
            return {"dict": dict(content)}
        return {"items": content}  # JSON has no other keys than strings
    if isinstance(value, (list, tuple)):
        items = [_encoded(item, tensors, f"{name}.{i}") for i, item in enumerate(value)]
        if isinstance(value, tuple):
            return {"tuple": items}
        return items
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"a state holds tensors, numbers, strings and None, got {type(value).__name__} at {name}"
    )


def _decoded(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "tuple":
        return tuple(_decoded(content, tensors))
    # of strings a dict, of other keys a list of pairs
    return {key: _decoded(item, tensors) for key, item in dict(content).items()}


def load_weights(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put saved weights into a network; raises RuntimeError where they do not fit, ValueError for
    NaN and infinity.

    A run stops at the first loss that is no number, so it saves no such weights.
    """
    network.load_state_dict(weights)
    for name, weight in network.named_parameters():
        _check_finite(weight, f"weight {name!r}")


def load_tensors(
    network: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]
) -> None:
    """Put a saved state into a network and its optimizer; raises as ``load_weights``, and what the
    optimizer raises.
    """
    load_weights(network, state["network"])
    optimizer.load_state_dict(state["optimizer"])
    for number, of_weight in optimizer.state_dict()["state"].items():
        for name, value in of_weight.items():
            if isinstance(value, Tensor):
                _check_finite(value, f"{name!r} of weight {number} in the optimizer")


def _check_finite(tensor: Tensor, what: str) -> None:
    if not tensor.isfinite().all():
        raise ValueError(f"its {what} holds NaN or infinity, which no run saves")


STATE = "state.safetensors"


@dataclass
class Checkpoints:
    """Saves the state of a run into one file of a folder, which always holds the last complete
    state.

    Args:
        folder: holds the file; created when the first state is saved. All processes use the same
            intervals, and rank 0 writes.
        epochs: epochs between two states; 0: none after epochs.
        minutes: minutes between two states, saved between two steps; 0: none.

    >>> from pathlib import Path
    >>> Checkpoints.every(Path("runs"), "10min")
    Checkpoints(folder=PosixPath('runs'), epochs=0, minutes=10.0)
    """

    folder: Path
    epochs: int = 1
    minutes: float = 0.0
    _saved: float = field(default_factory=lambda: time.monotonic(), init=False, repr=False)

    def __post_init__(self) -> None:
        check_type(self.folder, "folder", Path, "a pathlib.Path")
        as_count(self.epochs, "epochs")
        as_number(self.minutes, "minutes", least=0)

    @classmethod
    def every(cls, folder: Path, interval: str) -> Checkpoints:
        """Return the checkpoints of an interval: "2" epochs, "10min" minutes, "0" never but when
        stopped.

        Raises ValueError for another interval.
        """
        match = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?) ?min", interval.strip())
        if match is None:
            raise ValueError(
                "checkpoint_every must be a number of epochs, or of minutes as in '10min', got "
                f"{interval!r}"
            )
        epochs, minutes = match.groups()
        return cls(folder, epochs=int(epochs or 0), minutes=float(minutes or 0))

    def restore(self, run: Trainer, identity: str | None = None) -> bool:
        """Load the saved state into ``run``; return whether there is one.

        ``identity``: that of the run which the folder is of; None takes the state of any run with
        the same data and settings. Collective: rank 0 reads the file for all processes. Raises
        ValueError for a damaged file, for the state of another run, and the errors of
        ``run.load_state_dict``.
        """
        path = self.folder / STATE
        if not run.peers.of_first("whether there is a state", lambda: is_file(path)):
            return False
        state = run.peers.of_first("the state", lambda: read_state(path))
        with run.peers.together("the state"):
            with blaming(
                f"{path} cannot be gone on from",
                ValueError,
                LookupError,
                TypeError,
                AttributeError,
                OverflowError,
                RuntimeError,
            ):
                run.load_state_dict(state)
            if identity not in (None, run.identity):
                raise ValueError(
                    f"{path} is the state of another run than that of its folder: put its own file "
                    "back"
                )
        return True

    @property
    def is_due(self) -> bool:
        """Whether ``minutes`` have passed since the last state was saved; False for 0."""
        return bool(self.minutes) and time.monotonic() - self._saved >= 60 * self.minutes

    def after_epoch(self, run: Trainer, epoch: int) -> None:
        """Save if ``epoch`` is a multiple of ``epochs``."""
        if self.epochs and epoch % self.epochs == 0:
            self.save(run)

    def save(self, run: Trainer) -> None:
        """Save the state now. If it cannot be written, raises OSError and keeps the previous
        state.
        """
        # collective, so on all processes, also on those that write nothing
        state = run.state_dict()
        self._saved = time.monotonic()
        if not run.peers.is_first:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_state(self.folder / STATE, state)
        except OSError as error:
            raise OSError(
                f"cannot save the state in {self.folder}: {error.strerror or error}; a state saved "
                "before stays"
            ) from error


def check_same_run(
    before: Settings, settings: Settings, processes: int, file: str = "the state"
) -> None:
    """Raise ValueError if a file comes from a run with other settings; batch sizes are totals over
    processes.
    """
    # a schedule depends on the steps of all epochs; a partition buffer draws other batches than any
    # other storage
    fixed = set()
    if settings.optimizer.schedule != "constant":
        fixed.add("epochs")
    if "partitions" in (settings.storage.kind, before.storage.kind):
        fixed.add("storage")
    earlier = before.by_name()
    for name, value in settings.by_name().items():
        if earlier[name] != value and (name not in FREE or name in fixed):
            total = ""
            if name == "batch_size":
                total = f" for {processes} processes"
            raise ValueError(
                f"{file} is of a run with {name} = {earlier[name]!r}, got {value!r}{total}"
            )


def check_same_parts(before: Mapping[str, str], parts: Mapping[str, str]) -> None:
    """Raise ValueError if the user's own parts (model, loss, ...) have other names than in the
    saved run.
    """
    if before != parts:
        raise ValueError(
            f"the state is of a run with these parts of your own: {before}, got {parts}; pass them "
            "again when a run goes on"
        )

"""Settings of a training run, and their file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from nodeflow._base.checks import describe
from nodeflow._base.sizes import as_bytes
from nodeflow.sampling._sampler import check_sizes
from nodeflow.storage._partition_buffer import ORDERS
from nodeflow.training._methods import METHODS
from nodeflow.training._models import MODELS, check_model
from nodeflow.training._options import count, documented, flag, integer, number, one_of, option, table, text

TASKS = ("auto", "classification", "multilabel", "regression", "link")
DECODERS = ("dot", "distmult", "complex", "bilinear", "transe", "rotate", "mlp")
LINK_LOSSES = ("softmax", "logistic", "margin", "self-adversarial", "one-vs-all")
OPTIMIZERS = {
    "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
}  # fmt: skip
STORAGE = ("memory", "file", "cached", "lookahead", "partitions")
PARTITIONED = ("partitions", "slots", "order")
"""Settings that storage "partitions" alone reads."""
SCHEDULES = ("constant", "cosine", "linear")


def _fanouts(value: Any, name: str) -> tuple[int, ...] | None:
    return None if value is None else check_sizes(value, name)


def _memory(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string such as '2 GB', got {describe(value)}")
    as_bytes(value, name)
    return value


def _folder(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, the path of a folder, got {describe(value)}")
    return str(Path(value).absolute()) if value else ""  # the same from any folder, also in files of settings


def _model(value: Any, name: str) -> str:
    check_model(value, name)
    return str(value)


@documented
@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a training run; on one machine, the same settings give the same result.

    Every field is an option of ``nodeflow train`` and a line of its file of settings. ``fanouts`` None is the sampler's
    usual number for each of two layers.

    Raises ValueError for values that a field cannot have, TypeError for values of another type.

    >>> Settings(fanouts=(5, 5), epochs=1).batch_size
    1024
    >>> Settings(sampler="ladies").fanouts
    (512, 512)
    """

    task: str = one_of(
        "auto", TASKS,
        "what is learned: labels of nodes, or link: which edges are there; auto: by the labels (integers: "
        "classification, a matrix of 0 and 1: multilabel, other floats: regression)",
    )  # fmt: skip
    model: str = option(
        "sage", "the model, or module:factory, a function of your own with the arguments of nodeflow.nn.GraphSAGE",
        _model, choices=MODELS,
    )  # fmt: skip
    sampler: str = one_of(
        "neighbor", METHODS,
        "how batches are drawn; cv: control variates, where one or two drawn neighbours are enough, at the price of a "
        "stored row per node and hidden layer",
    )  # fmt: skip
    fanouts: tuple[int, ...] | None = option(
        None,
        "one number per layer in flow order (10 10 or 10,10), so the last belongs to the seeds: neighbours drawn per "
        "node, -1 = all; for fastgcn and ladies nodes drawn per layer; saint and cluster read only how many layers "
        "there are; cv computes the first layer from all neighbours, whatever its number",
        _fanouts,
    )  # fmt: skip
    batch_size: int = count(
        1024, "seeds per batch; for saint nodes drawn per subgraph, for cluster nodes per batch, both about", least=1
    )
    hidden: int = count(256, "width of hidden layers", least=1)
    dropout: float = number(0.6, "probability that an entry of a hidden layer is set to zero", below=1)
    norm: str = one_of("none", ("none", "batch", "layer"), "normalisation of hidden layers")
    residual: bool = flag("add the rows of the layer before to the rows of every layer")
    inputs: str = one_of(
        "auto", ("auto", "features", "embedding", "both"),
        "what enters the model: the features of the nodes, a learned row per node, or both beside each other; auto: "
        "features where there are any",
    )  # fmt: skip
    embedding: int = count(64, "width of the learned rows of nodes", least=1)
    edge_type: str = text(
        "", "edge column with the types of edges, for rgcn and links; empty: relation, etype, type or kind"
    )
    optimizer: str = one_of("adam", OPTIMIZERS, "the optimiser")
    learning_rate: float = number(0.003, "learning rate, the highest of the schedule", above=0)
    weight_decay: float = number(0.0, "weight decay of the optimiser")
    schedule: str = one_of(
        "constant", SCHEDULES, "how the learning rate falls over the epochs: not, along a cosine, or linearly, to 0"
    )
    warmup: float = number(0.0, "epochs over which the learning rate rises from 0")
    clip: float = number(0.0, "largest norm of the gradient of all weights; 0: any")
    label_smoothing: float = number(0.0, "share of the target that is spread over all classes", below=1)
    class_weights: str = one_of(
        "none", ("none", "balanced", "seeds"),
        "balanced: the loss of a class is divided by its share of the training labels; seeds: seeds are drawn with "
        "replacement, all classes equally often",
    )  # fmt: skip
    accumulate: int = count(1, "batches whose gradients are added up before a step", least=1)
    epochs: int = count(15, "passes over the training seeds", least=1)
    patience: int = count(0, "stop after so many epochs without a better validation score; 0: never")
    validate_every: int = count(1, "epochs between two validations", least=1)
    validate: str = one_of(
        "auto", ("auto", "sampled", "full"),
        "outputs of validation nodes: from sampled batches, or from full neighbourhoods; auto: sampled, but full "
        "for samplers of layers and subgraphs",
    )  # fmt: skip
    metric: str = text("", "the score of validation, by which the best epoch is chosen; empty: the task's first")
    decoder: str = one_of("distmult", DECODERS, "for task link: the score of a pair of rows of width embedding")
    decoder_options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the decoder, as name=value"
    )
    inverse: bool = flag("for task link: a source is asked for as the destination of an inverse relation of its own")
    link_loss: str = one_of(
        "softmax", LINK_LOSSES, "for task link: the loss of scores against negatives; one-vs-all: a softmax over all "
        "nodes, with model none",
    )  # fmt: skip
    negatives: int = count(256, "for task link: negatives per edge and side that is replaced", least=1)
    negative_law: str = one_of("uniform", ("uniform", "degree"), "for task link: how negatives are drawn")
    chunk: int = count(256, "for task link: edges of a batch that share their negatives", least=1)
    corrupt: str = one_of("both", ("destination", "source", "both"), "for task link: the end that negatives replace")
    margin: float = number(1.0, "for task link: the margin of losses that have one")
    n3: float = number(
        0.0, "for task link: weight of the N3 regularisation, the cubed norms of a triple's rows; decoder distmult or "
        "complex",
    )  # fmt: skip
    temperature: float = number(1.0, "for task link: how much more hard negatives weigh, for self-adversarial")
    seed: int = integer(0, "the same seed gives the same result")
    storage: str = one_of(
        "memory", STORAGE,
        "where the features lie: memory; file: rows are read when a batch needs them; cached: as file, with the rows "
        "in memory that are likely to be read most; lookahead: as file, with rows read as planned from the batches "
        "that come next. All but memory leave them in the file of a graph folder; the result is the same. partitions: "
        "training sees a few partitions of the graph at a time, which changes the result",
    )  # fmt: skip
    memory: str = option(
        "1 GB",
        "memory for rows of features that stay in a file, such as '512 MB' or '2 GB': of cached and lookahead, "
        "and for a piece of a full pass",
        _memory,
    )
    partitions: str = option(
        "",
        "for storage partitions: the folder that nodeflow partition wrote of DATA; else, under torchrun, the folder of "
        "parts that nodeflow partition --for processes wrote, one for each process, in place of DATA",
        _folder,
    )
    slots: int = count(0, "for storage partitions, which needs it: how many are in memory at a time")
    order: str = one_of(
        "comet", ORDERS,
        "for storage partitions: which ones are in memory together; comet: random groups; beta: fewest swaps for all "
        "pairs; dispersed: each is read once; sequential: those with training nodes stay, others beside them",
    )  # fmt: skip
    share: str = one_of(
        "even", ("even", "owned"),
        "with several processes, which seeds of a step a process takes: as many as the others, or those that it holds",
    )  # fmt: skip
    workers: int = count(1, "threads that sample ahead; they change the speed only")
    direction: str = one_of(
        "both", ("in", "out", "both"),
        "along which edges neighbours are found; both adds the reverse of every edge, unless the graph is symmetric "
        "already; parts for processes have the direction with which nodeflow partition wrote them: give the same",
    )  # fmt: skip
    device: str = text("cpu", "where the model is trained: cpu, cuda, cuda:1, or auto, a GPU where there is one")
    precision: str = one_of(
        "float32", ("float32", "bf16"), "type of products and hidden rows; sums over neighbours stay in float32"
    )
    compile: bool = flag("let torch.compile compile the model")
    sampler_options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the sampler, as name=value"
    )
    model_options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the model, as name=value"
    )

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, field.metadata["check"](getattr(self, field.name), field.name))
        method = METHODS[self.sampler]
        if self.fanouts is None:
            object.__setattr__(self, "fanouts", (method.fanout,) * 2)
        method.check(self)
        self._check_partitions()

    def _check_partitions(self) -> None:
        if self.storage != "partitions":
            if self.partitions and self.storage != "memory":
                raise ValueError(
                    f"partitions is read with storage 'partitions' only, or 'memory' for parts of several processes, "
                    f"got partitions = {self.partitions!r} with storage {self.storage!r}; give one of these"
                )
            if self.slots:
                raise ValueError(
                    f"slots is read with storage 'partitions' only, got slots = {self.slots!r} with storage "
                    f"{self.storage!r}; give storage 'partitions', or leave it out"
                )
            return
        if not self.partitions:
            raise ValueError(
                "storage 'partitions' needs partitions: the folder that nodeflow partition wrote; got none"
            )
        if not self.slots:
            raise ValueError("storage 'partitions' needs slots: how many partitions are in memory at a time; got none")
        if self.task == "link":
            raise ValueError(
                "storage must not be 'partitions' with task 'link', which draws negatives among all nodes; take "
                "another storage, or a storage.PartitionBuffer in a loop of your own"
            )
        if self.inputs in ("embedding", "both"):
            raise ValueError(
                f"inputs must be 'features' with storage 'partitions', since the learned rows of all nodes lie in "
                f"memory; got {self.inputs!r}"
            )

    @property
    def num_layers(self) -> int:
        """Number of layers of the model."""
        return len(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """``fanouts``, which are never None once the settings are made."""
        assert self.fanouts is not None
        return self.fanouts

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by name, in types that TOML and JSON have."""
        return {**asdict(self), "fanouts": list(self.sizes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Return the settings ``values``; raises ValueError for a name that is no setting."""
        names = [field.name for field in fields(cls)]
        unknown = [name for name in values if name not in names]
        if unknown:
            raise ValueError(
                f"there is no setting {unknown[0]!r} (= {values[unknown[0]]!r}); the settings are {', '.join(names)}"
            )
        return cls(**values)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the contents of a TOML file; raises FileNotFoundError, or ValueError for one that is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"no file of settings at {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}") from None

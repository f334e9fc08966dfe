"""The options of ``nodeflow train``, in groups: each is a field, which says what reads it.

What excludes what is in ``_rules``, names that an option may have in ``_choices``, options of the
command alone in ``_cli``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nodeflow.training._choices import (
    ALL_NODES,
    BUFFER,
    BY_NODE,
    CLASSES,
    DECODERS,
    ENCODER,
    HAS_N3,
    IN_TORCH,
    LINK,
    LOSS,
    LOSSES_OF_PAIRS,
    MODELS,
    NO_ESTIMATE,
    NO_FEATURES,
    NODES,
    ONE_VS_ALL,
    OPTIMIZERS,
    OWN,
    PARTS,
    READS_TYPES,
    SAMPLED,
    SAMPLERS,
    SCHEDULES,
    SEVERAL_TYPES,
    SOME_FEATURES,
    WHOLE,
    Conditions,
    Others,
)
from nodeflow.training._fields import (
    ComputedDefault,
    Group,
    NumbersOption,
    checks,
    count,
    flag,
    number,
    one_of,
    setting,
    table,
    text,
)

# what several options are read with
_OF_MODEL: Conditions = ({"model": Others("none", OWN)},)
_ENCODED: Conditions = ({"model": ENCODER},)
_SAMPLED: Conditions = ({"link_loss": SAMPLED},)
_OF_OPTIMIZER: Conditions = ({"optimizer": Others(OWN)},)
_OF_BUFFER: Conditions = ({"storage": BUFFER},)
_OF_PARTS: Conditions = ({"graph": (PARTS,)},)


def is_own(name: object) -> bool:
    """Whether the setting ``model`` is "module:factory", a factory of the user's own, which is
    imported.
    """
    return isinstance(name, str) and all(name.partition(":"))


def check_import(in_file: object, chosen: object) -> None:
    """Raise ValueError where a file names a model to import and nobody has ``chosen`` one beside it
    (None).
    """
    if is_own(in_file) and chosen is None:
        raise ValueError(
            f"its model is {in_file!r}, and no file chooses what is imported, which runs code: if "
            f"you trust that module, name it too: --model {in_file} for the command, "
            f"model={in_file!r} in Python"
        )


def check_model(value: object, name: str) -> str:
    """Return the name of a model; raises ValueError for another value."""
    if is_own(value):
        return str(value)
    checks().check_one_of(value, name, (*MODELS, "module:factory"))
    return str(value)


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Group):
    """The model, and the rows that enter it."""

    name: str = setting(
        "sage",
        "the model, or module:factory, a function of your own with the arguments of "
        "nodeflow.nn.GraphSAGE",
        check_model,
        name="model",
        metavar=f"{{{','.join(MODELS)}}}",
    )
    inputs: str = one_of(
        "auto features embedding both",
        "what enters the model: the features of the nodes, a learned row per node, or both beside "
        "each other; auto: features where there are any",
    )
    embedding: int = count(
        64,
        "width of the learned rows of nodes, and of the rows of links that a model gives",
        least=1,
        read=(
            {"inputs": ("embedding", "both")},
            {"inputs": ("auto",), "features": (NO_FEATURES, SOME_FEATURES)},
            {"task": LINK, "model": ENCODER},
        ),
    )
    hidden: int = count(
        256,
        "width of hidden layers",
        least=1,
        read=({"model": Others("none", OWN)}, {"model": (OWN,), "types": (SEVERAL_TYPES,)}),
    )
    dropout: float = number(
        ComputedDefault(
            "0.6; 0 with model none", lambda group: 0.0 if group.name == "none" else 0.6
        ),
        "probability that an entry of a hidden layer, with model none of a row, is set to zero",
        below=1,
        read=({"model": Others(OWN)},),
    )
    norm: str = one_of("none batch layer", "normalisation of hidden layers", read=_OF_MODEL)
    residual: bool = flag(
        "add the rows of the layer before to the rows of every layer", read=_OF_MODEL
    )
    options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the model, as name=value", name="model_options", read=_OF_MODEL
    )


@dataclass(frozen=True, kw_only=True)
class LinkSettings(Group):
    """Decoder, loss and negatives of task link."""

    read: ClassVar[Conditions] = ({"task": LINK},)

    decoder: str = one_of(DECODERS, "the score of a pair of rows", default="distmult")
    decoder_options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the decoder, as name=value", name="decoder_options"
    )
    inverse: bool = flag(
        "a source is asked for as the destination of an inverse relation of its own"
    )
    loss: str = one_of(
        (*LOSSES_OF_PAIRS, *ALL_NODES),
        "the loss of scores against negatives; or, with model none, a softmax over all nodes: "
        "one-vs-all: a mean over edges and sides; k-vs-all: over the other ends and relations that "
        "edges have, each with all its answers",
        name="link_loss",
    )
    negatives: int = count(
        256, "negatives per edge and side that is replaced", least=1, read=_SAMPLED
    )
    negative_law: str = one_of("uniform degree", "how negatives are drawn", read=_SAMPLED)
    chunk: int = count(256, "edges of a batch that share their negatives", least=1, read=_SAMPLED)
    corrupt: str = one_of(
        "destination source both", "the end that negatives replace", default="both", read=_SAMPLED
    )
    margin: float = number(
        1.0,
        "the margin of losses that have one",
        read=({"link_loss": ("margin", "self-adversarial"), "loss": (LOSS,)},),
    )
    n3: float = number(
        0.0,
        "weight of the N3 regularisation, the cubed norms of a triple's rows",
        read=({"decoder": HAS_N3},),
    )
    temperature: float = number(
        1.0,
        "how much more hard negatives weigh",
        read=({"link_loss": ("self-adversarial",), "loss": (LOSS,)},),
    )


def _check_fanouts(value: Any, name: str) -> tuple[int | dict[str, int], ...]:
    """Return checked fanouts; those by relation have it as text, which files can hold."""
    from nodeflow.sampling import check_fanouts

    return tuple(map(_as_text, check_fanouts(value)))


def _as_text(fanout: Any) -> int | dict[str, int]:
    if not isinstance(fanout, dict):
        return int(fanout)
    words = [" ".join(key) if isinstance(key, tuple) else str(key) for key in fanout]
    return dict(zip(words, fanout.values(), strict=True))


@dataclass(frozen=True, kw_only=True)
class SamplerSettings(Group):
    """The sampler, and the size of its batches."""

    name: str = one_of(
        SAMPLERS,
        "how batches are drawn; cv: control variates, where one or two drawn neighbours are "
        "enough, at the price of a stored row per node and hidden layer",
        name="sampler",
        read=_ENCODED,
    )
    fanouts: tuple[int | dict[str, int], ...] = setting(
        ComputedDefault(
            "by the sampler, for two layers", lambda group: (SAMPLERS[group.name].fanout,) * 2
        ),
        "one number per layer in flow order (10 10 or 10,10), so the last belongs to the seeds: "
        "neighbours drawn per node, -1 = all; or numbers by relation (writes=5,cites=10 10), for "
        "ladies by node type; for fastgcn and ladies nodes drawn per layer; saint and cluster read "
        "only how many layers there are; cv computes the first layer from all neighbours, whatever "
        "its number",
        _check_fanouts,
        action=NumbersOption,
        nargs="+",
        metavar="K",
        read=_ENCODED,
    )
    batch_size: int = count(
        1024,
        "seeds per batch; for saint nodes drawn per subgraph, for cluster nodes per batch, both "
        "about",
        least=1,
    )
    groups: int = count(
        0,
        "parts into which METIS cuts the graph (needs pymetis), so that seeds of a part come "
        "together and batches read fewer rows; 0: seeds come in a random order",
        read=(BY_NODE,),
    )
    mix: int = count(
        4,
        "groups whose seeds are shuffled together: 1 most local, as many as groups fully random",
        least=1,
        read=({**BY_NODE, "groups": Others(0)},),
    )
    options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the sampler, as name=value", name="sampler_options", read=_ENCODED
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # here, because it imports torch, which the help of the command does without
        from nodeflow.training._samplers import METHODS

        METHODS[self.name].check(self)


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings(Group):
    """The optimiser, and the schedule of the learning rate."""

    name: str = one_of(OPTIMIZERS, "the optimiser", name="optimizer")
    lr: float = number(
        0.003, "learning rate, the highest of the schedule", above=0, read=_OF_OPTIMIZER
    )
    weight_decay: float = number(0.0, "weight decay of the optimiser", read=_OF_OPTIMIZER)
    schedule: str = one_of(
        SCHEDULES,
        "how the learning rate falls over the epochs: not, along a cosine, or linearly, to 0",
    )
    warmup: float = number(
        0.0, "epochs over which the learning rate rises from 0", read=({"schedule": Others(OWN)},)
    )
    clip: float = number(0.0, "largest norm of the gradient of all weights; 0: any")
    accumulate: int = count(1, "batches whose gradients are added up before a step", least=1)


def _integer(value: Any, name: str) -> int:
    return int(checks().as_int(value, name))


def _memory(value: Any, name: str) -> str:
    checks().check_type(value, name, str, "a string such as '2 GB'")
    from nodeflow._core.base.sizes import as_bytes

    as_bytes(value, name)
    return str(value)


def _folder(value: Any, name: str) -> str:
    checks().check_type(value, name, str, "a string, the path of a folder")
    # the same from any folder, also in files of settings
    if value:
        value = str(Path(value).absolute())
    return str(value)


@dataclass(frozen=True, kw_only=True)
class GraphSettings(Group):
    """The edges along which messages go."""

    direction: str = one_of(
        "in out both",
        "along which edges neighbours are found; both adds the reverse of every edge, unless the "
        "graph is symmetric already; parts for processes have the direction with which nodeflow "
        "partition wrote them: give the same",
        default="both",
    )
    edge_type: str = text(
        "",
        "edge column of types (reverses get their own); empty: relation, etype, type or kind",
        read=({"task": LINK}, {"model": READS_TYPES}),
    )


@dataclass(frozen=True, kw_only=True)
class LossSettings(Group):
    """The loss of classes."""

    label_smoothing: float = number(
        0.0,
        "share of the target that is spread over all classes",
        below=1,
        read=({"task": CLASSES, "loss": (LOSS,)}, {"task": LINK, "link_loss": ONE_VS_ALL}),
    )
    class_weights: str = one_of(
        "none balanced seeds",
        "balanced: the loss of a class is divided by its share of the training labels; seeds: "
        "seeds are drawn with replacement, all classes equally often",
        read=({"task": CLASSES},),
    )


def _by_task(nodes: int, links: int) -> ComputedDefault:
    return ComputedDefault(
        f"{nodes}; {links} with task link", lambda group: links if group.task == "link" else nodes
    )


@dataclass(frozen=True, kw_only=True)
class RunSettings(Group):
    """The task, the epochs, and their validation."""

    task: str = one_of(
        "auto classification multilabel regression link",
        "what is learned: labels of nodes, or link: which edges are there; auto: by the labels of "
        "the split (integers: classification, a matrix of 0 and 1: multilabel, other floats: "
        "regression)",
    )
    target: str = text(
        "",
        "the node type whose labels are learned, or the relation whose links are; empty: the only "
        "one that has any",
    )
    seed: int = setting(0, "the same seed gives the same result", _integer, type=int, metavar="N")
    epochs: int = count(_by_task(30, 15), "passes over the training seeds", least=1)
    patience: int = count(
        _by_task(6, 0), "stop after so many epochs without a better validation score; 0: never"
    )
    validate_every: int = count(1, "epochs between two validations", least=1)
    validate: str = one_of(
        "auto sampled full",
        "outputs of validation nodes: from sampled batches, or from full neighbourhoods; auto: "
        "sampled, but full for samplers of layers and subgraphs",
        read=({"task": NODES, "sampler": Others(*NO_ESTIMATE)},),
    )
    metric: str = text(
        "", "the score of validation, by which the best epoch is chosen; empty: the task's first"
    )


@dataclass(frozen=True, kw_only=True)
class StorageSettings(Group):
    """The places of features, and of partitions of the graph."""

    kind: str = one_of(
        "memory file cached lookahead partitions",
        "where the features lie: memory; file: rows are read when a batch needs them; cached: as "
        "file, with the rows in memory that are likely to be read most; lookahead: as file, with "
        "rows read as planned from the batches that come next. All but memory leave them in the "
        "file of a graph folder; the result is the same. partitions: training sees a few "
        "partitions of the graph at a time, which changes the result",
        name="storage",
    )
    memory: str = setting(
        "1 GB",
        "memory for rows of features that stay in a file, such as '512 MB' or '2 GB': of cached "
        "and lookahead, and for a piece of a full pass",
        _memory,
        metavar="SIZE",
        read=({"storage": Others("memory", "file")}, {"storage": ("file",), "graph": (WHOLE,)}),
    )
    partitions: str = setting(
        "",
        "the folder that nodeflow partition wrote of DATA; with storage memory, under torchrun, "
        "the folder of parts that nodeflow partition --for processes wrote, one for each process, "
        "in place of DATA",
        _folder,
        metavar="FOLDER",
        read=({"storage": BUFFER}, {"graph": (PARTS,)}),
    )
    slots: int = count(
        ComputedDefault("none", lambda _: 0),
        "partitions in memory at a time, which storage partitions needs",
        read=_OF_BUFFER,
    )
    order: str = one_of(
        "comet beta dispersed sequential",
        "which parts are in memory together; comet: random groups; beta: fewest swaps for all "
        "pairs; dispersed: each is read once; sequential: those with training nodes stay, others "
        "beside them",
        read=_OF_BUFFER,
    )


@dataclass(frozen=True, kw_only=True)
class ComputeSettings(Group):
    """Devices, threads and processes."""

    device: str = text(
        "cpu", "where the model is trained: cpu, cuda, cuda:1, or auto, a GPU where there is one"
    )
    precision: str = one_of(
        "float32 bf16", "type of products and hidden rows; sums over neighbours stay in float32"
    )
    compile: bool = flag("let torch.compile compile the model")
    sample_on: str = one_of(
        "cpu device",
        "where batches are drawn: by compiled loops on the cpu, or by operations of torch on the "
        "device of the model; they are the same batches",
        read=(
            {"task": NODES, "sampler": IN_TORCH, "graph": (WHOLE,)},
            {"link_loss": SAMPLED, "model": ENCODER, "sampler": IN_TORCH, "graph": (WHOLE,)},
        ),
    )
    workers: int = count(
        1,
        "threads that sample ahead; they change the speed only",
        read=({"task": NODES}, {"link_loss": SAMPLED}),
    )
    share: str = one_of(
        "even owned",
        "with parts in several processes, which seeds of a step a process takes: as many as the "
        "others, or those that it holds",
        read=_OF_PARTS,
    )
    halo: float = number(
        1.0,
        "with parts in several processes, how many edges of near nodes of other parts a process "
        "keeps in memory, at most, for each of its own",
        read=_OF_PARTS,
    )

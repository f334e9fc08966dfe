"""LinkNetwork: rows of nodes and the decoder that compares them, and the settings of links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from nodeflow._rows.rows import whole_column
from nodeflow.flow import NodeFlow
from nodeflow.nn import DECODERS, Decoder
from nodeflow.training._answers import AnswerBatch
from nodeflow.training._fields import Group, count, flag, number, one_of, table
from nodeflow.training._network import Inputs, Network

LINK_LOSSES = ("softmax", "logistic", "margin", "self-adversarial", "one-vs-all")


@dataclass(frozen=True, kw_only=True)
class LinkSettings(Group):
    """Decoder, loss and negatives of task link."""

    decoder: str = one_of(DECODERS, "the score of a pair of rows", default="distmult")
    decoder_options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the decoder, as name=value", name="decoder_options"
    )
    inverse: bool = flag("a source is asked for as the destination of an inverse relation of its own")
    loss: str = one_of(
        LINK_LOSSES,
        "the loss of scores against negatives; one-vs-all: a softmax over all nodes, with model none",
        name="link_loss",
    )
    negatives: int = count(256, "negatives per edge and side that is replaced", least=1)
    negative_law: str = one_of("uniform degree", "how negatives are drawn")
    chunk: int = count(256, "edges of a batch that share their negatives", least=1)
    corrupt: str = one_of("destination source both", "the end that negatives replace", default="both")
    margin: float = number(1.0, "the margin of losses that have one")
    n3: float = number(0.0, "weight of the N3 regularisation, the cubed norms of a triple's rows")
    temperature: float = number(1.0, "how much more hard negatives weigh")

    def build_decoder(self, width: int, num_relations: int) -> Decoder:
        """Return a new decoder for rows of ``width``; ``num_relations`` 0: without relations.

        Raises ValueError for a width that the decoder cannot have, or relations that it needs.
        """
        if self.inverse and not num_relations:
            raise ValueError("inverse relations need an edge column of relations: name it with edge_type")
        options = {"inverse": True} if self.inverse else {}
        try:
            return DECODERS[self.decoder](width, num_relations or None, **options, **self.decoder_options)
        except TypeError as error:
            further = ", ".join(self.decoder_options) or "none"
            raise ValueError(
                f"decoder {self.decoder!r} cannot be made: {error} (decoder_options: {further})"
            ) from error


class LinkNetwork(Network):
    """The inputs, the model and the decoder of a run: ``network(batch)`` gives the rows that the decoder compares.

    Args:
        inputs: the rows that enter the model.
        model: None for none: the rows that enter are compared, with dropout.
        decoder: the scores of pairs of rows.
        dropout: without a model, the probability that an entry is set to zero.

    >>> from nodeflow.nn import DistMult
    >>> from nodeflow.training import Inputs
    >>> network = LinkNetwork(Inputs(3, features=0, embedding=4), None, DistMult(4), dropout=0.0)
    >>> rows = network.model(network.inputs.table)
    >>> network.decoder(rows[[0, 1]], rows[[1, 2]]).shape
    torch.Size([2])
    """

    def __init__(self, inputs: Inputs, model: nn.Module | None, decoder: Decoder, dropout: float) -> None:
        super().__init__(inputs, nn.Dropout(dropout) if model is None else model)
        self.decoder, self.encodes = decoder, model is not None

    def forward(self, batch: NodeFlow | AnswerBatch) -> Tensor:
        """Return the rows of the seeds, ``[layer_sizes[-1], width]``; of all nodes for a batch of answers."""
        if isinstance(batch, AnswerBatch):
            out: Tensor = self.model(whole_column(self.inputs.everywhere(batch.graph)))
        elif self.encodes:
            out = super().forward(batch)
        else:
            out = self.model(self.inputs(batch))
        return out

"""LinkNetwork: what a run of links trains, the rows of nodes and the decoder that compares them."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from nodeflow._rows.rows import whole_column
from nodeflow.flow import NodeFlow
from nodeflow.nn import Bilinear, ComplEx, Decoder, DistMult, DotProduct, MLPDecoder, RotatE, TransE
from nodeflow.training._answers import AnswerBatch
from nodeflow.training._network import Inputs, Network
from nodeflow.training._settings import Settings

_DECODERS: dict[str, Callable[..., Decoder]] = {
    "dot": DotProduct, "distmult": DistMult, "complex": ComplEx, "bilinear": Bilinear, "transe": TransE,
    "rotate": RotatE, "mlp": MLPDecoder,
}  # fmt: skip


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


def build_decoder(settings: Settings, width: int, num_relations: int) -> Decoder:
    """Return a new decoder of ``settings`` for rows of ``width``; ``num_relations`` 0: without relations.

    Raises ValueError for a width that the decoder cannot have, or relations that it needs.
    """
    if settings.inverse and not num_relations:
        raise ValueError("inverse relations need an edge column of relations: name it with edge_type")
    options = {"inverse": True} if settings.inverse else {}
    try:
        return _DECODERS[settings.decoder](width, num_relations or None, **options, **settings.decoder_options)
    except TypeError as error:
        given = ", ".join(settings.decoder_options) or "none"
        raise ValueError(f"decoder {settings.decoder!r} cannot be made: {error} (decoder_options: {given})") from error

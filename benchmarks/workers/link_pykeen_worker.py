"""PyKEEN on the work of ``link_speed.py``: ``RankBasedEvaluator`` and ``SLCWATrainingLoop``.

pip install torch==2.13.0 pykeen==1.11.1
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import pykeen  # noqa: E402
import torch  # noqa: E402
from link_work import Links, serve  # noqa: E402
from pykeen.evaluation import RankBasedEvaluator  # noqa: E402
from pykeen.models import ComplEx, DistMult  # noqa: E402
from pykeen.training import SLCWATrainingLoop  # noqa: E402
from pykeen.triples import CoreTriplesFactory  # noqa: E402


def evaluate(links: Links, decoder: str, batch: int) -> Callable[[], float]:
    factory = CoreTriplesFactory(
        links.train, num_entities=len(links.nodes), num_relations=len(links.relations)
    )
    width = links.nodes.shape[1]
    # complex numbers
    kind, width = (DistMult, width) if decoder == "distmult" else (ComplEx, width // 2)
    model = kind(triples_factory=factory, embedding_dim=width, random_seed=0).eval()
    with torch.no_grad():
        for part, rows in (
            (model.entity_representations, links.nodes),
            (model.relation_representations, links.relations),
        ):
            if decoder == "complex":  # real and imaginary parts lie side by side there
                rows = torch.stack(rows.chunk(2, 1), -1).flatten(1)
            next(part[0].parameters()).copy_(rows)
    evaluator = RankBasedEvaluator(filtered=True)

    def run() -> float:
        known = [links.train, links.valid]
        found = evaluator.evaluate(
            model, links.test, batch_size=batch, additional_filter_triples=known, use_tqdm=False
        )
        return float(found.get_metric("both.realistic.inverse_harmonic_mean_rank"))

    return run


def train(links: Links, decoder: str, batch: int) -> Callable[[], float]:
    factory = CoreTriplesFactory(
        links.train, num_entities=len(links.nodes), num_relations=len(links.relations)
    )
    width = links.nodes.shape[1]
    kind, width = (DistMult, width) if decoder == "distmult" else (ComplEx, width // 2)
    model = kind(
        triples_factory=factory,
        embedding_dim=width,
        random_seed=0,
        loss="BCEWithLogitsLoss",
        regularizer=None,
    )
    loop = SLCWATrainingLoop(
        model=model, triples_factory=factory, optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        negative_sampler="basic", negative_sampler_kwargs={"num_negs_per_pos": 256},
    )  # fmt: skip

    def run() -> float:
        losses = loop.train(
            factory,
            num_epochs=1,
            batch_size=batch,
            use_tqdm=False,
            use_tqdm_batch=False,
            num_workers=0,
        )
        return float(losses[-1])

    return run


if __name__ == "__main__":
    serve(
        {"evaluate": evaluate, "train": train},
        f"pykeen {pykeen.get_version()}, torch {torch.__version__}",
    )

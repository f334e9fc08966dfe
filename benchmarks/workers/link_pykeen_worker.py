"""PyKEEN on the work of ``link_evaluation.py``: ``RankBasedEvaluator``.

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
from pykeen.triples import CoreTriplesFactory  # noqa: E402


def make(links: Links, decoder: str, batch: int) -> tuple[Callable[[], float], str]:
    factory = CoreTriplesFactory(links.train, num_entities=len(links.nodes), num_relations=len(links.relations))
    width = links.nodes.shape[1]
    kind, width = (DistMult, width) if decoder == "distmult" else (ComplEx, width // 2)  # complex numbers
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

    def evaluate() -> float:
        known = [links.train, links.valid]
        found = evaluator.evaluate(model, links.test, batch_size=batch, additional_filter_triples=known, use_tqdm=False)
        return float(found.get_metric("both.realistic.inverse_harmonic_mean_rank"))

    return evaluate, f"pykeen {pykeen.get_version()}, torch {torch.__version__}, batches of {batch}"


if __name__ == "__main__":
    serve(make)

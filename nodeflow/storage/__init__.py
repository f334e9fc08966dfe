"""Features, embeddings and graphs larger than memory: rows learned for nodes, and pipelines around them."""

from nodeflow.storage._embedding_table import EmbeddingTable
from nodeflow.storage._pipeline import Pipeline

__all__ = ["EmbeddingTable", "Pipeline"]

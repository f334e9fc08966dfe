"""Features, embeddings and graphs larger than memory: rows learned for nodes, and pipelines around them."""

from nodeflow.storage._embedding_table import EmbeddingTable

__all__ = ["EmbeddingTable"]

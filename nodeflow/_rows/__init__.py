"""Rows of columns: dense tensors and sparse CSR matrices, gathered by id, joined, and packed for pickling."""

"""Rows of columns: dense tensors and sparse CSR matrices, gathered by id, joined, and packed for
pickling.

Columns that are not tensors follow the protocol ``Rows``; ``fetch_rows`` takes both.
"""

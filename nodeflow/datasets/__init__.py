"""Data sets: one that comes with the package, and readers for files of your own."""

from nodeflow.datasets._dataset import Dataset
from nodeflow.datasets.bundled import debian
from nodeflow.datasets.edge_list import read_edge_list
from nodeflow.datasets.folder import read_folder
from nodeflow.datasets.ogb import read_ogb

__all__ = ["Dataset", "debian", "read_edge_list", "read_folder", "read_ogb"]

"""Data sets: one that comes with the package, and readers for files of your own.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.datasets._build import build_graph, node_names, stored_as as stored_as
from nodeflow.datasets._bundled import debian
from nodeflow.datasets._dataset import (
    FEATURES as FEATURES,
    Dataset,
    columns_of_features as columns_of_features,
    features_of as features_of,
)
from nodeflow.datasets._edge_files import read_edge_list
from nodeflow.datasets._files import ids_of_integers as ids_of_integers, load_array as load_array
from nodeflow.datasets._folder import read_folder
from nodeflow.datasets._labels import (
    LABELS as LABELS,
    has_label as has_label,
    is_binary as is_binary,
    split_rows as split_rows,
)
from nodeflow.datasets._ogb import read_ogb

__all__ = [
    "Dataset",
    "build_graph",
    "debian",
    "node_names",
    "read_edge_list",
    "read_folder",
    "read_ogb",
]

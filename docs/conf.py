"""Settings of Sphinx for the documentation site; ``make docs`` builds it from these pages, notebooks and docstrings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _site.reference import import_of, members_of, type_aliases  # noqa: E402

from nodeflow import __version__  # noqa: E402

project = "nodeflow"
author = "the nodeflow contributors"
project_copyright = f"{author}, Apache-2.0"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "_site.backlinks",
    "_site.docstrings",
    "_site.mathml",
    "_site.mentions",
    "_site.searching",
    "_site.tables",
]
root_doc = "index"
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", r"_?[A-Z]\w*")
]  # aliases of types within a file of the package
nitpick_ignore = [  # types of libraries without an inventory here
    ("py:class", "Data"),
    ("py:class", "HeteroData"),
    ("py:class", "dgl.DGLGraph"),
    ("py:class", "hypothesis.strategies.SearchStrategy"),
    ("py:class", "igraph.Graph"),
    ("py:class", "pandas.DataFrame"),
    ("py:class", "torch.utils.flop_counter.FlopCounterMode"),
]

# Pages and notebooks. The tests execute the notebooks; the site shows what is stored.
nb_execution_mode = "off"
nb_number_source_lines = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# The reference: a page per room and public name, made by the templates in _site/templates/autosummary.
autosummary_imported_members = True
autosummary_ignore_module_all = False
autosummary_context = {"import_of": import_of, "members_of": members_of}
suppress_warnings = ["config.cache"]  # functions for the templates are no settings to compare

# Signatures and docstrings.
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: f"~nodeflow.types.{name}" for name in type_aliases()}
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
add_module_names = False

# Other libraries: small inventories that scripts/make_inventories.py writes, so that a build needs no network.
_ADDRESSES = {
    "python": "https://docs.python.org/3/",
    "torch": "https://docs.pytorch.org/docs/stable/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "networkx": "https://networkx.org/documentation/stable/",
    "matplotlib": "https://matplotlib.org/stable/",
}
intersphinx_mapping = {
    name: (url, str(HERE / "inventories" / f"{name}.inv")) for name, url in _ADDRESSES.items()
}
intersphinx_timeout = 1

# Formulas are MathML.
html_math_renderer = "mathml"

html_theme = "furo"
html_title = f"nodeflow {release}"
html_static_path = ["_site/static"]
templates_path = [str(HERE / "_site" / "templates")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options: dict[str, Any] = {"top_of_page_buttons": []}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
pygments_style = "tango"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

"""Sources of the documentation site: names, links, formulas. ``make docs`` builds it, with warnings
as errors.
"""

from __future__ import annotations

import inspect
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from _support.pages import ROOT
from _support.run_files import options

sys.path.append(str(ROOT / "docs"))

from _site import searching
from _site.forms import targets
from _site.reference import (
    first_page,
    import_of,
    members_of,
    public_classes,
    public_names,
    rooms,
    type_aliases,
)
from _site.settings_page import settings_page
from _site.staging import OTHER_PAGES, entries, place_of, stage, with_links

from nodeflow import NeighborSampler

INDEX = ROOT / "docs" / "index.md"
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if p.name != "index.md")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s#]*)(?:#([^()\s]*))?\)")


# ----------------------------------------------------------------------------------------------------------
# names

ELSEWHERE = {
    "nodeflow.convert.from_dgl": "needs DGL",
    "nodeflow.convert.from_dgl_blocks": "needs DGL",
    "nodeflow.convert.to_dgl": "needs DGL",
    "nodeflow.convert.to_dgl_blocks": "needs DGL",
    "nodeflow.propagation.ExchangePlan": "needs several processes; docs/distributed/processes.md "
    "has one",
}
"""Names whose docstrings have no example, and why. Exceptions and constants need none."""


def test_every_public_name_has_an_example_that_runs():
    """In its docstring, or in that of one of its methods; ``test_readme.py`` runs them."""
    without = []
    for full, value in public_names().items():
        if not callable(value) or (inspect.isclass(value) and issubclass(value, BaseException)):
            continue
        names = members_of(full) if inspect.isclass(value) else []
        texts = [value, *(getattr(value, name) for name in names)]
        if not any(">>>" in (inspect.getdoc(text) or "") for text in texts):
            without.append(full)
    assert sorted(without) == sorted(ELSEWHERE)


def test_every_public_name_says_what_it_is_for():
    assert [full for full, value in public_names().items() if not inspect.getdoc(value)] == []


def test_the_reference_lists_all_rooms_and_settings():
    assert all(f"   nodeflow.{room}\n" in first_page() for room in rooms())
    settings = settings_page()
    assert all(
        f"| `{option}` | `settings.{group}.{field.name}` | " in settings
        for group, option, field in options().values()
    )


def test_a_page_shows_members_of_private_bases_but_not_those_of_public_ones():
    full = "nodeflow.sampling.NeighborSampler"
    assert public_classes()[NeighborSampler] == full
    assert "settings" in members_of(full)
    assert "candidates" not in members_of(full)  # of its public base
    assert not {"__init__", "_compute"} & set(members_of("nodeflow.flow.NodeFlow"))
    # those of torch
    assert {"state_dict", "parameters"}.isdisjoint(members_of("nodeflow.nn.SAGEConv"))


def test_a_page_imports_from_the_top_where_it_can():
    sampler = import_of("nodeflow.sampling", "NeighborSampler")
    assert sampler == "from nodeflow import NeighborSampler"
    assert import_of("nodeflow.nn", "SAGEConv") == "from nodeflow.nn import SAGEConv"
    assert (
        import_of("nodeflow.compat.dgl", "NodeFlow") == "from nodeflow.compat.dgl import NodeFlow"
    )


NAMES = [
    "nodeflow.sampling.NeighborSampler",
    "nodeflow.nn",
    "nodeflow.nn.SAGEConv",
    "nodeflow.fn.sum",
    "nodeflow.flow.NodeFlow",
    "nodeflow.flow.NodeFlow.append",
    "nodeflow.flow.NodeFlow.seeds",
    "nodeflow.flow.NodeFlow.copy_from_parent",
    "nodeflow.graph.Frame.append",
    "nodeflow.graph.Graph.weight",
    "nodeflow.compat.dgl.NodeFlow",
]


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("NeighborSampler", "nodeflow.sampling.NeighborSampler"),
        ("nodeflow.NeighborSampler", "nodeflow.sampling.NeighborSampler"),
        ("nn.SAGEConv", "nodeflow.nn.SAGEConv"),
        ("fn.sum", "nodeflow.fn.sum"),
        ("NodeFlow.append", "nodeflow.flow.NodeFlow.append"),
        ("batch.seeds", "nodeflow.flow.NodeFlow.seeds"),
        ("copy_from_parent", "nodeflow.flow.NodeFlow.copy_from_parent"),
        ("nodeflow.nn", "nodeflow.nn"),
        ("NodeFlow", "nodeflow.flow.NodeFlow"),  # not that of compat.dgl
        ("compat.dgl.NodeFlow", "nodeflow.compat.dgl.NodeFlow"),
        ("sum", None),  # an ordinary word
        ("weight", None),
        ("nn", None),
        ("NoSuchSampler", None),
        ("NeighborSampler.nothing", None),
    ],
)
def test_what_a_literal_refers_to(text, full):
    assert targets(NAMES).get(text) == full


def test_a_word_that_two_names_end_with_refers_to_none():
    assert "b_c" not in targets(["nodeflow.a.b_c", "nodeflow.d.b_c"])


def test_types_in_signatures_are_explained():
    value, meaning = type_aliases()["PerFlow"]
    assert "Sequence[int]" in value
    assert "in flow order" in meaning


# ----------------------------------------------------------------------------------------------------------
# pages


def test_the_start_page_lists_every_page_and_notebook():
    """So every page is in the navigation of the site."""
    listed = {page for _, pages in entries(INDEX.read_text(encoding="utf-8")) for page in pages}
    found = {
        (INDEX.parent / page / "README.md" if page.endswith("/") else INDEX.parent / page).resolve()
        for page in listed
    }
    missing = [
        p
        for p in (*PAGES, *NOTEBOOKS)
        if p not in found and p.parent != ROOT / "docs" / "decisions"
    ]
    assert [str(path.relative_to(ROOT)) for path in missing] == []


def slug(heading: str) -> str:
    """The anchor that code hosts and the site give to a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize(
    "page",
    [INDEX, *PAGES, ROOT / "README.md", *(ROOT / p for p in OTHER_PAGES if p.endswith(".md"))],
    ids=str,
)
def test_anchors_of_links_are_headings(page):
    missing = []
    for target, anchor in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        file = page.parent / target if target else page
        if anchor and "://" not in target and file.suffix == ".md" and anchor not in anchors(file):
            missing.append(f"{target}#{anchor}")
    assert missing == []


def test_links_lead_from_place_to_place():
    assert with_links("[a](../../README.md)", "docs/samplers/labor.md") == "[a](../index.md)"
    assert with_links("[a](docs/nodeflow.md)", "CHANGELOG.md") == "[a](nodeflow.md)"
    assert with_links("[a](../nodeflow/)", "docs/index.md") == "[a](reference.rst)"
    assert with_links("[a](../nodeflow/nn)", "docs/layers.md") == "[a](reference/nodeflow.nn.rst)"
    # is not on the site
    assert with_links("[`x`](../nodeflow/nn/_conv.py)", "docs/custom-layers.md") == "`x`"
    assert (
        with_links("[a](../docs/sampling.md)", "notebooks/01-what-a-nodeflow-is.ipynb")
        == "[a](../sampling.md)"
    )
    assert with_links("[d](decisions/)", "docs/index.md") == "[d](decisions/README.md)"
    assert with_links("[a](https://example.org/x)", "CHANGELOG.md") == "[a](https://example.org/x)"
    code = "```text\n[a](docs/nodeflow.md)\n```"
    assert with_links(code, "CHANGELOG.md") == code
    assert place_of("nodeflow/fn.py") is None


def test_links_of_the_gathered_sources_lead_to_files(tmp_path):
    stage(tmp_path)
    stale = tmp_path / "gone.md"
    stale.write_text("")
    before = (tmp_path / "index.md").stat().st_mtime_ns
    stage(tmp_path)
    assert not stale.exists()
    # so that Sphinx reads what has changed only
    assert (tmp_path / "index.md").stat().st_mtime_ns == before
    missing = [
        f"{page.relative_to(tmp_path)}: {target}"
        for page in tmp_path.rglob("*.md")
        for target, _ in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8")))
        if target and "://" not in target and not (page.parent / target).exists()
    ]
    # pages of modules are made by Sphinx
    assert [link for link in missing if "reference/nodeflow." not in link] == []


def test_formulas_are_typeset():
    convert = pytest.importorskip("latex2mathml.converter").convert
    count = 0
    for page in PAGES:
        text = re.sub(r"`[^`\n]*`", "", _FENCED.sub("", page.read_text(encoding="utf-8")))
        for formula in re.findall(r"\$\$(.+?)\$\$|(?<!\$)\$([^$\n]+)\$", text, re.DOTALL):
            found = convert("".join(formula))
            assert "<math" in found
            assert "\\" not in found, f"{page}: {formula}"
            count += 1
    assert count > 0


_NUMBER = re.compile(r"\| *[-+−]?\d[\d.,]*(?: ±[^|]*)? *\|")
_FIGURES = re.compile(
    r"\*Figures of 20\d\d-\d\d-\d\d, nodeflow \d+\.\d+\.\d+, .*\[machine\]\(.*#the-machine\): .+\*"
)


def tables(text: str) -> list[tuple[list[str], str]]:
    """The tables of a page, each as its rows and the first line after it."""
    found = re.findall(r"((?:^\|.*\n)+)\n?(.*)", _FENCED.sub("", text), re.MULTILINE)
    return [(rows.splitlines()[2:], after) for rows, after in found]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "python benchmarks/" in page.read_text("utf-8")], ids=str
)
def test_figures_say_where_they_come_from(page):
    """Below a table most of whose rows have numbers: day, version, machine and command."""
    silent = [
        rows[0]
        for rows, after in tables(page.read_text(encoding="utf-8"))
        if sum(_NUMBER.search(row) is not None for row in rows) >= len(rows) / 2
        and not _FIGURES.fullmatch(after)
    ]
    assert silent == []


def test_the_search_has_the_prose_of_every_section():
    page = """<nav>menu</nav><article role="main" id="x"><section id="a"><h1>A<a class="headerlink" href="#a">#</a></h1>
    <p>one &amp; <em>two</em></p><pre>code</pre><section id="b"><h2>B</h2>
    <td><span class="column-name">x: </span>all</td>
    </section></section></article>"""
    assert searching.sections(page) == [("a", "A one & two"), ("b", "B all")]
    assert searching.sections("<p>no article</p>") == []


def test_tables_of_words_have_the_names_of_columns_in_their_cells():
    publish = pytest.importorskip("docutils.core").publish_doctree
    tables = pytest.importorskip("_site.tables")
    words = "many words of a long cell"
    text = f""".. list-table::
   :header-rows: 1

   * - sampler
     - draws
     - take it
   * - one
     - {words}
     - {words}
"""
    doctree = publish(text, settings_overrides={"report_level": 5})
    app = SimpleNamespace(builder=SimpleNamespace(format="html"))
    tables.name_cells(app, doctree)
    assert f"draws: {words}" in doctree.astext()
    numbers = publish(text.replace(words, "1"), settings_overrides={"report_level": 5})
    tables.name_cells(app, numbers)
    assert "draws: 1" not in numbers.astext()


def test_pages_of_modules_leave_out_what_is_for_those_who_change_them():
    before = pytest.importorskip("_site.docstrings").before_private_files
    assert (
        before("Rows.\n\nA column.\n\nWhere to change:\n\n- ``_files``\n\nMore.")
        == "Rows.\n\nA column."
    )
    assert before("Rows.\n\nNames serve rooms above, not users.") == "Rows."
    assert (
        before("Rows, also of ``_x``.\n\nA column:\n\n>>> 1")
        == "Rows, also of ``_x``.\n\nA column:\n\n>>> 1"
    )


# ---------------------------------------------------------------------------------------------------------
# scripts


def test_inventories_are_those_of_the_script_and_of_the_libraries():
    script = runpy.run_path(str(ROOT / "scripts" / "make_inventories.py"))
    assert script["missing"]() == []
    for project in script["NAMES"]:
        assert (script["FOLDER"] / f"{project}.inv").read_bytes() == script["inventory"](project)


def test_broken_links_of_a_built_site_are_found(tmp_path):
    broken_links = runpy.run_path(str(ROOT / "scripts" / "check_docs.py"))["broken_links"]
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="b.html#y">b</a><a href="#x">x</a><a href="https://e.org">e</a>'
    )
    (tmp_path / "b.html").write_text(
        '<h1 id="y"></h1><a href="a.html#z">a</a><a href="c.html">c</a><img src="d.png">'
    )
    assert broken_links(tmp_path) == (["b.html: a.html#z", "b.html: c.html", "b.html: d.png"], 5, 1)


def test_pages_of_a_built_site_that_show_where_it_was_built_are_found(tmp_path):
    check = runpy.run_path(str(ROOT / "scripts" / "check_docs.py"))
    assert str(ROOT) in check["BUILD_PATHS"]
    site = tmp_path / "site"
    (site / "reference").mkdir(parents=True)
    (site / "index.html").write_text("<p>from a folder: <code>/data/papers</code></p>")
    assert check["main"]([str(site)]) == 0
    (site / "reference" / "a.html").write_text(
        f"<p>x = &lt;module 'x' from '{ROOT}/nodeflow/x.py'&gt;</p>"
    )
    assert check["shown_paths"](site) == [f"reference/a.html: {ROOT}/nodeflow/x.py"]
    assert check["main"]([str(site)]) == 1


def test_the_picture_of_the_start_page_shows_the_node_flow_of_the_readme():
    text = (ROOT / "docs" / "pictures" / "node-flow.svg").read_text(encoding="utf-8")
    script = (ROOT / "scripts" / "draw_node_flow.py").read_text(encoding="utf-8")
    pairs = re.search(r"from_edges\((\[.*?\]), (\[.*?\])\)", script)
    assert pairs is not None
    assert sorted(zip(eval(pairs[1]), eval(pairs[2]), strict=True)) == [
        (2, 7),
        (3, 8),
        (5, 7),
        (8, 5),
        (9, 2),
    ]
    assert text.count("<!-- 7 -->") == 3  # node 7 is in every layer

"""What is printed in the README, in docs/ and in docstrings is true and runs."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
from _support.pages import ROOT, Block, blocks, run

import nodeflow
from nodeflow.datasets import debian
from nodeflow.training import Settings, Trainer

README = ROOT / "README.md"
INDEX = ROOT / "docs" / "index.md"
INSTALLING = ROOT / "docs" / "installing.md"
OTHER_TOOLS = ROOT / "docs" / "other-tools.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
MARKDOWN = [*sorted(ROOT.glob("*.md")), *PAGES]
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(nodeflow.__path__, "nodeflow.")
    if m.name != "nodeflow.__main__"
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


_LONG = (
    "custom-samplers",
    "link-prediction",
    "control-variates",
    "samplers/adaptive",
    "training-large",
)
LONG = {f"docs/{name}.md" for name in _LONG}
"""Pages that train models or average over many draws."""


def marked(page: Path) -> Any:
    return pytest.param(page, marks=pytest.mark.slow) if name_of(page) in LONG else page


@pytest.mark.slow
def test_the_training_loop_is_short_and_runs_as_printed(tmp_path):
    (loop,) = (block.text for block in blocks(README) if block.language == "python")
    assert len(loop.splitlines()) <= 25
    output = run("-W", "error", "-c", loop, cwd=tmp_path)
    promised = re.search(r"# about (0\.\d\d)$", loop, re.MULTILINE)
    printed = re.fullmatch(r"val accuracy (0\.\d\d)\n", output)
    assert promised is not None
    assert printed is not None, output
    # weights at the start are drawn anew in every process
    assert float(printed[1]) == pytest.approx(float(promised[1]), abs=0.05)


def test_the_pasted_output_is_of_the_data_set_as_it_is():
    assert repr(debian()) in [
        block.text.splitlines()[0] for block in blocks(INSTALLING) if block.language == "text"
    ]


TOOLS = {
    "wandb": "Weights & Biases",
    "tensorboard": "TensorBoard",
    "optuna": "Optuna",
    "lightning": "Lightning",
}
"""What the page on other tools needs, and its sections. They are not installed for development:
make test-tools.
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the tools have warnings of their own
@pytest.mark.parametrize("tool", TOOLS)
def test_other_tools(tool, tmp_path, monkeypatch):
    pytest.importorskip(tool, reason=f"an example with {tool}: make test-tools")
    monkeypatch.chdir(tmp_path)
    text = OTHER_TOOLS.read_text(encoding="utf-8")
    section = text.partition(f"## {TOOLS[tool]}\n")[2].partition("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert all(len(each.splitlines()) <= 15 for each in code)
    session: dict[str, Any] = {"__name__": "__page__", "debian": debian, "Trainer": Trainer}
    session["settings"] = Settings(fanouts=(2, 2), hidden=8, epochs=1)
    exec("".join(code), session)
    if tool == "lightning":
        position = session["loader"].state_dict()
        assert (position["epoch"], position["batch_number"]) == (1, 20)
        assert session["val_loader"].batch_number == len(session["val_loader"])
        assert session["accuracy"] > 0.1
    if tool == "optuna":
        assert len(session["study"].trials) == 3


@pytest.mark.parametrize(
    "page", [marked(page) for page in PAGES if blocks(page) and page != OTHER_TOOLS], ids=name_of
)
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(page):
        if block.language == "pycon":
            compare(block, name_of(page), session)
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), session)


def compare(block: Block, name: str, session: dict[str, Any]) -> None:
    """Run an interactive session, and fail where it prints something else than the page says."""
    test = doctest.DocTestParser().get_doctest(block.text, session, name, name, block.line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    session.update(test.globs)  # get_doctest works on a copy


_LARGER = [
    page
    for page in PAGES
    if page.parent.name in ("storage", "distributed") or page.stem == "storage"
]


@pytest.mark.parametrize("page", _LARGER, ids=name_of)
def test_code_of_the_pages_on_large_data_is_not_cut_off(page):
    """Beyond 88 columns a line of code is behind a scroll bar on the site."""
    assert [
        line for block in blocks(page) for line in block.text.splitlines() if len(line) > 88
    ] == []


EXAMPLES = {
    "nodeflow.convert._attributes": ["networkx", "igraph"],
    "nodeflow.convert._from_tables": ["pandas"],
    "nodeflow.convert._from_pyg": ["torch_geometric"],
    "nodeflow.convert._to_pyg": ["torch_geometric"],
    "nodeflow.convert._edge_tables": ["pandas"],
}
"""Libraries that examples of a module use, and that are not needed otherwise."""


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module):
    for library in EXAMPLES.get(module, ()):
        pytest.importorskip(library, reason=f"examples of {module} use {library}")
    # so that classes of an example are not taken for classes of the package
    own = {"__name__": "__example__"}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in _Finder().find(importlib.import_module(module), module, extraglobs=own):
        runner.run(test)
    assert not runner.failures, (
        f"see the output above: {runner.failures} examples of {module} print something else"
    )


class _Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions too, whose code lies in the module of the
    decorator.
    """

    def _from_module(self, module: Any, value: Any) -> bool:
        return super()._from_module(
            module, inspect.unwrap(value) if inspect.isfunction(value) else value
        )


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


_FILE = re.compile(r"`([\w./-]+\.(?:py|md)|(?:nodeflow|docs|tests|scripts)/[\w/]+)`")
_FOLDERS = ("nodeflow", "docs", "tests", "scripts", "benchmarks")


def test_files_named_in_pages_and_docstrings_exist():
    """A file is named by its path or by the end of it: ``_kernels/csr.py``, ``csr.py``."""
    inside = [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*")]
    ends = {f"/{name_of(path)}" for path in (*inside, *MARKDOWN)}
    texts = [
        *MARKDOWN,
        *(path for path in inside if path.suffix == ".py"),
        ROOT / "tests" / "README.md",
    ]
    missing = {
        f"{name_of(text)}: {name}"
        for text in texts
        for name in _FILE.findall(text.read_text(encoding="utf-8"))
        if not any(end.endswith(f"/{name.rstrip('/')}") for end in ends)
    }
    assert missing == set()


def test_messages_name_no_files_of_the_documentation():
    """An installed package has no folder ``docs``: messages name a page by its title. Docstrings
    are on the site.
    """
    found = []
    for path in sorted((ROOT / "nodeflow").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        strings = [
            node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings
        ]
        found += [
            f"{name_of(path)}:{node.lineno}"
            for node in strings
            if re.search(r"docs/|\.md\b", str(node.value))
        ]
    assert found == []


@pytest.mark.parametrize(
    "door", sorted((ROOT / "nodeflow").glob("[a-z]*/__init__.py")), ids=lambda p: p.parent.name
)
def test_files_that_a_door_describes_exist(door):
    """``_graph``, or ``_plan.choose`` for a function in it."""
    words = importlib.import_module(f"nodeflow.{door.parent.name}").__doc__ or ""
    names = set(re.findall(r"``(_[a-z]\w*)(?:\.\w+)?``", words))
    assert names <= {path.stem for path in (*door.parent.iterdir(), *door.parent.parent.iterdir())}


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_blocks_say_their_language(page):
    # py: programs
    assert {block.language for block in blocks(page)} <= {"python", "pycon", "sh", "text", "py"}


def test_the_package_table_names_what_there_is():
    rows = re.findall(
        r"^\| (`nodeflow[\w.`, ]*) \| (.*) \|$", INDEX.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) > 5
    for modules, words in rows:
        found = [importlib.import_module(name) for name in re.findall(r"`([\w.]+)`", modules)]
        names = [name for name in re.findall(r"`(\w+)`", words) if name != "debian"]
        assert not [name for name in names if not any(hasattr(module, name) for module in found)]

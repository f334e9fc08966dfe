"""The shape of the package: imports point one way, and importing it loads nothing that is optional."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import networkx

import nodeflow

ROOT = Path(nodeflow.__file__).parent


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module) -> set[str]:
    """Modules imported when the file runs: at its top level, outside ``if TYPE_CHECKING``."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def import_graph() -> networkx.DiGraph:
    files = {module_name(path): path for path in ROOT.rglob("*.py")}
    graph = networkx.DiGraph()
    for name, path in files.items():
        targets = imported(ast.parse(path.read_text())) & files.keys()
        # the package's own __init__ collects the public names; "from nodeflow import ops" means nodeflow.ops
        graph.add_edges_from((name, target) for target in targets if target not in ("nodeflow", name))
    return graph


def test_imports_make_no_circle() -> None:
    graph = import_graph()
    assert graph.number_of_edges() > 50
    assert list(networkx.simple_cycles(graph)) == []


def test_kernels_know_nothing_of_the_rest() -> None:
    graph = import_graph()
    for name in graph:
        if name.startswith("nodeflow._kernels"):
            assert all(target.startswith("nodeflow._kernels") for target in graph.successors(name))


def test_autograd_lives_in_ops_only() -> None:
    for path in ROOT.rglob("*.py"):
        if "torch.autograd" in path.read_text():
            assert path.parent.name == "ops", path


def test_import_loads_nothing_optional() -> None:
    optional = ["matplotlib", "networkx", "hypothesis", "torch_geometric", "dgl", "IPython", "pymetis"]
    code = f"import nodeflow, sys; print([name for name in {optional} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_public_names_exist_and_submodules_load_when_asked_for() -> None:
    for name in nodeflow.__all__:
        assert hasattr(nodeflow, name)
    code = "import nodeflow; nodeflow.nn.SAGEConv; nodeflow.datasets.debian; nodeflow.transform.reverse"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)

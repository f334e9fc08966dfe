"""Links from every mention of a public name in a page, such as ``NeighborSampler`` or
``batch.seeds``, to its page.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from _site.forms import targets
from _site.reference import public_classes, type_aliases

_CALL = re.compile(r"([A-Za-z_][\w.]*)(\(.*\))?", re.DOTALL)
_PLAIN = (nodes.reference, nodes.title, addnodes.desc_signature, addnodes.toctree)


def link_mentions(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make links of the literals that are public names."""
    domain = app.env.get_domain("py")
    known = _known(app.env)
    for literal in list(doctree.findall(nodes.literal)):
        call = _CALL.fullmatch(literal.astext())
        full = known.get(call[1]) if call is not None else None
        if full is None or _inside(literal, _PLAIN):
            continue
        wanted = addnodes.pending_xref("", refdomain="py", reftype="obj")
        link = domain.resolve_xref(
            app.env, docname, app.builder, "obj", full, wanted, literal.deepcopy()
        )
        if link is not None and link.get("refuri", "#").partition("#")[0]:
            literal.replace_self(link)


def name_classes(app: Sphinx, doctree: nodes.document) -> None:
    """Give bare classes in signatures their full names: Sphinx may know several of a name."""
    full_names = {kind.__name__: full for kind, full in reversed(public_classes().items())}
    for xref in doctree.findall(addnodes.pending_xref):
        full = full_names.get(xref.get("reftarget", ""))
        if xref.get("refdomain") == "py" and full is not None:
            xref["reftarget"] = full
            xref["refspecific"] = False


def _known(env: BuildEnvironment) -> dict[str, str]:
    if not hasattr(env, "nodeflow_targets"):
        objects = env.get_domain("py").objects
        env.nodeflow_targets = targets(list(objects))  # type: ignore[attr-defined]
    known: dict[str, str] = env.nodeflow_targets  # type: ignore[attr-defined]
    return known


def _inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> Any:
    """Find the page of a type in a signature, which names the file that defines a class.

    A class of the package that is not public has no page, and stays text.
    """
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py":
        return None
    bare = target.rpartition(".")[2]
    public = {
        f"{kind.__module__}.{kind.__qualname__}": full for kind, full in public_classes().items()
    }
    full = public.get(target) or _known(env).get(target) or _known(env).get(bare)
    if bare in type_aliases():
        full = f"nodeflow.types.{bare}"
    domain = env.get_domain("py")
    if full is not None and full != target:
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, content)
    return _in_inventories(app, target) or (content if target.startswith("nodeflow.") else None)


def _in_inventories(app: Sphinx, target: str) -> nodes.reference | None:
    """Return a link to a name of another library, which may be written without its module."""
    package, _, _ = target.partition(".")
    bare = target.rpartition(".")[2]
    inventory: dict[str, Any] = getattr(app.env, "intersphinx_inventory", {})
    for names in inventory.values():
        for name, item in names.items():
            same = "." not in target or name.partition(".")[0] == package
            if same and name.rpartition(".")[2] == bare:
                title = f"(in {item.project_name})"
                return nodes.reference("", bare, internal=False, refuri=item.uri, reftitle=title)
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("doctree-read", name_classes)
    app.connect("doctree-resolved", link_mentions)
    app.connect("missing-reference", resolve, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 4}

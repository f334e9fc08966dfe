"""Links from every mention of a public name to its page, and from the page back to the guides that
mention it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from _site.public_names import lookup, private_paths, private_words, public_names, rooms, targets
from _site.reference_pages import type_aliases

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_NO_GUIDES = ("index", "changelog", "license", "tests")
_FEW = 6
_PLAIN = (
    nodes.reference,
    nodes.title,
    addnodes.pending_xref,
    addnodes.desc_signature,
    addnodes.toctree,
)


class used_in(nodes.General, nodes.Element):  # noqa: N801, as docutils calls its nodes
    """The place of the list of guides on the page of a name."""


class UsedIn(SphinxDirective):
    """``.. used-in:: nodeflow.graph.Graph`` lists the guides and notebooks that mention a name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Leave a mark, which becomes the list when all pages have been read."""
        return [used_in(name=self.arguments[0])]


def link_mentions(app: Sphinx, doctree: nodes.document) -> None:
    """Make references of the literals that are public names, and note which guide mentions what."""
    here = app.env.current_document.docname
    found: Counter[str] = Counter()
    room = room_of_page(here)
    nested = room if "." in room else ""  # its names stand back elsewhere, and not on its own pages
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext()
        # a member of the class that the page is about
        own = targets().get(f"{here.removeprefix('reference/')}.{text}")
        full = own or lookup(text, nested) or _external(app, text)
        if full is None or _inside(literal, _PLAIN):
            continue
        found[full] += 1
        if here != f"reference/{full}":
            link = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=full,
                refdoc=here,
                refexplicit=True,
                refwarn=True,
            )
            literal.replace_self(link)
            link += literal
    # a bare class in a signature; Sphinx knows several of a name
    for xref in doctree.findall(addnodes.pending_xref):
        bare = xref.get("reftarget", "")
        full = (targets().get(f"{nested}.{bare}") if nested else None) or private_paths().get(bare)
        if xref.get("refdomain") == "py" and full is not None and "." not in bare:
            xref["reftarget"] = full
            xref["refspecific"] = False
    for block in doctree.findall(nodes.literal_block):
        if "python" in block.get("language", "") or block.get("language") in ("pycon", "ipython3"):
            words = (word for word in _WORD.findall(block.astext()) if re.search("[A-Z_]", word))
            found.update(full for word in words if (full := lookup(word)))
    if not here.startswith("reference") and here not in _NO_GUIDES:
        _mentions(app.env)[here] = found


def _inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def _external(app: Sphinx, text: str) -> str | None:
    """Return the full name of a thing of another library: of ``torch.Tensor``, and of
    ``DataLoader``.
    """
    full = re.sub(r"^np\.", "numpy.", text.removesuffix("()"))
    if "." not in full and not (re.search("[a-z][A-Z]", full) and full.isidentifier()):
        return None
    inventory: dict[str, Any] = getattr(app.env, "intersphinx_inventory", {})
    names = {
        name
        for group in inventory.values()
        for name in group
        if name == full or name.endswith(f".{full}")
    }
    return names.pop() if len(names) == 1 else None


def _mentions(env: BuildEnvironment) -> dict[str, Counter[str]]:
    """Return how often each guide mentions which names; it is part of the environment that Sphinx
    stores.
    """
    if not hasattr(env, "nodeflow_mentions"):
        env.nodeflow_mentions = {}  # type: ignore[attr-defined]
    found: dict[str, Counter[str]] = env.nodeflow_mentions  # type: ignore[attr-defined]
    return found


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Drop what a page mentioned before it is read again."""
    _mentions(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    """Take over what a reading process found."""
    _mentions(env).update(
        {name: found for name, found in _mentions(other).items() if name in docnames}
    )


def pages_to_write(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return the pages of names whose list of guides has changed."""
    now = _by_name(env)
    before: dict[str, list[str]] = getattr(env, "nodeflow_used_in", {})
    env.nodeflow_used_in = now  # type: ignore[attr-defined]
    changed = [name for name in {*now, *before} if now.get(name) != before.get(name)]
    return [page for name in changed if (page := f"reference/{name}") in env.found_docs]


def _by_name(env: BuildEnvironment) -> dict[str, list[str]]:
    """Return the guides that mention each public name or a member of it, those first that do so
    most often.
    """
    found: dict[str, Counter[str]] = {}
    for guide, names in _mentions(env).items():
        for name, count in names.items():
            for full in (name, name.rpartition(".")[0]):
                found.setdefault(full, Counter())[guide] += count
    return {
        name: sorted(guides, key=lambda guide: (-guides[guide], guide))
        for name, guides in found.items()
    }


def write_used_in(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the mark by links to the guides; of many, the last ones unfold."""
    for mark in list(doctree.findall(used_in)):
        guides = _by_name(app.env).get(mark["name"], [])
        if not guides:
            mark.parent.remove(mark)
            continue
        few = guides[:_FEW]
        more = guides[_FEW:]
        shown = nodes.paragraph("", "", nodes.strong(text="Used in: "), *_links(app, few, docname))
        shown["classes"] += ["used-in", "no-search"]
        rest: list[nodes.Node] = []
        if more:
            summary = f'<details class="used-in no-search"><summary>and {len(more)} more</summary>'
            rest = [
                nodes.raw("", summary, format="html"),
                nodes.paragraph("", "", *_links(app, more, docname)),
                nodes.raw("", "</details>", format="html"),
            ]
        mark.replace_self([shown, *rest])


def _links(app: Sphinx, guides: Sequence[str], docname: str) -> list[nodes.Node]:
    """Return links to guides from a page, with commas between them."""
    found: list[nodes.Node] = []
    for guide in guides:
        words = app.env.titles[guide].astext()
        uri = app.builder.get_relative_uri(docname, guide)
        found += [
            nodes.Text(", " if found else ""),
            nodes.reference("", words, refuri=uri, internal=True),
        ]
    return found


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> Any:
    """Find the page of a type in a signature: annotations name the file that defines a class, or
    the bare class.

    A class of the package that is not public has no page, and stays text.
    """
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py":
        return None
    bare = target.rpartition(".")[2]
    if bare in type_aliases() and (target == bare or target.startswith("nodeflow.")):
        full = f"nodeflow.types.{bare}"
    else:
        full = (
            private_paths().get(target)
            or targets().get(target)
            or (private_paths().get(bare) or "")
        )
    domain = env.get_domain("py")
    if full and full != target:
        found = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, content)
        if found is not None:
            return found
    other = _in_inventories(app, target)
    if other is not None:
        uri, version = other
        return nodes.reference("", "", content, internal=False, refuri=uri, reftitle=version)
    private = target.startswith("nodeflow.") and any(
        part.startswith("_") for part in target.split(".")
    )
    return content if private or target in private_words() else None


def _in_inventories(app: Sphinx, target: str) -> tuple[str, str] | None:
    """Return the address of a name of another library, which may be written without its module:
    ``Tensor``.

    An annotation may name the file that defines a class, ``torch.nn.modules.module.Module``: the
    package and the last part tell which name is meant.
    """
    package, _, _ = target.partition(".")
    bare = target.rpartition(".")[2]
    inventory: dict[str, Any] = getattr(app.env, "intersphinx_inventory", {})
    for names in inventory.values():
        for name, item in names.items():
            same = "." not in target or name.partition(".")[0] == package
            if same and name.rpartition(".")[2] == bare:
                return item.uri, f"(in {item.project_name})"
    return None


def room_of_page(pagename: str) -> str:
    """Return the room that a page is about, or that of the name that it documents; "" for other
    pages.
    """
    place = pagename.removeprefix("reference/nodeflow.")
    return (
        place
        if place != pagename and place in rooms()
        else next((p.room for p in public_names() if p.page == pagename), "")
    )


def siblings(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Show the names of a room beside the pages of the room: they are too many for the navigation
    of every page.
    """
    room = room_of_page(pagename)
    context["room_names"] = []
    if room:
        inside = [public for public in public_names() if public.room == room]
        context["room"] = room
        context["room_names"] = [
            (p.name, context["pathto"](p.page), p.page == pagename) for p in inside
        ]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.add_node(used_in)
    app.add_directive("used-in", UsedIn)
    app.connect("doctree-read", link_mentions)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", pages_to_write)
    app.connect("doctree-resolved", write_used_in)
    app.connect("missing-reference", resolve, priority=400)
    app.connect("html-page-context", siblings)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 3}

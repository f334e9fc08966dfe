"""Links from the pages of source code back to the pages of names.

``sphinx.ext.viewcode`` takes all names of a file for those of one module; a file may have names of
two.
"""

from __future__ import annotations

import re
from typing import Any

_BACK = re.compile(r'(class="viewcode-back" href="[^"#]*reference/([\w.]+)\.html#)([\w.]+)')


def _anchored(link: re.Match[str]) -> str:
    """The link with the anchor of the name whose page it leads to, or of a member of that class."""
    start, full, anchor = link.groups()
    name = full.rpartition(".")[2]
    return start + re.sub(rf"^.*?\.{name}\b", full, anchor)


def _mend(_: Any, pagename: str, __: str, context: dict[str, Any], ___: Any) -> None:
    if pagename.startswith("_modules/"):
        context["body"] = _BACK.sub(_anchored, context["body"])


def setup(app: Any) -> dict[str, Any]:
    """Mend the links when a page of source code is written."""
    app.connect("html-page-context", _mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The page of all settings of a training run, a table per group, made from their fields and
rules.
"""

from __future__ import annotations

import re

from nodeflow.training._fields import default_of, option_of
from nodeflow.training._rules import where_read
from nodeflow.training._settings import FIELDS, GROUPS, conditions_of

_HEAD = """# Settings of a training run

Every setting is an option of `nodeflow train`, a keyword of
{py:obj}`Settings <nodeflow.training.Settings>`, and a line in a table of its file of settings (`run.toml`). A setting
that a run will not read is refused.
"""


def settings_page() -> str:
    """Return the page in Markdown."""
    parts = [_HEAD]
    for group, kind in GROUPS.items():
        parts.append(
            f"## [{group}]\n\n{kind.__doc__}\n\n| option | in Python | default | meaning "
            "|\n|---|---|---|---|"
        )
        parts += [_row(name) for name, (place, _) in FIELDS.items() if place == group]
        parts[-1] += "\n"
    return "\n".join(parts)


def _row(name: str) -> str:
    group, one = FIELDS[name]
    choices = one.metadata["words"].get("choices", ())
    meaning = [
        one.metadata["help"],
        *([f"one of {', '.join(f'`{choice}`' for choice in choices)}"] if choices else []),
    ]
    if read := where_read(*conditions_of(name)):
        meaning.append(f"read with {read}")
    text = ". ".join(part[0].upper() + part[1:] for part in meaning).replace("|", "\\|")
    text = re.sub(r"'([\w. -]+)'", r"`\1`", text)
    return f"| `{option_of(one)}` | `settings.{group}.{one.name}` | {default_of(one)} | {text}. |"

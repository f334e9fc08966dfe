"""The page of wrong calls and their errors, made from the table that the tests run."""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[2] / "tests"

_HEAD = """# Wrong calls and their errors

Every line is a test: the call raises this error, whose message has these words, at once and without the memory that it
asks for. `graph` has 20 nodes and 40 edges, `batch` comes from `sampler` on it, and `flow` has 3 sources and 2
destinations; `rows`, `feat` and `weight` are matrices that fit them, `frame` is a data frame. `read`, `listed`,
`built`, `opened` and other functions that no room has write the files that they are given, and read them. `one`,
`times_of` and `linked` call `from_tables` with tables of the columns that they are given: any column, times, and two
columns of keys. `nested` is a batch with `reuse=True`, `pyg` is `torch_geometric.data`, and `old` and `old_flow` are a
graph and a NodeFlow of `nodeflow.compat.dgl`, which is `dgl`.
"""


def errors_page() -> str:
    """Return the page in Markdown."""
    if str(_TESTS) not in sys.path:
        sys.path.append(str(_TESTS))
    from calls.by_hand import BY_HAND

    parts = [_HEAD]
    for about, rows in BY_HAND.items():
        lines = [
            f"| `{_cell(call)}` | {_errors(error)} | {_words(words)} |"
            for call, error, words in rows
        ]
        parts.append(
            "\n".join(
                [
                    f"## {about}\n",
                    "| call | error | words of the message |",
                    "|---|---|---|",
                    *lines,
                    "",
                ]
            )
        )
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _errors(error: str) -> str:
    return " or ".join(f"`{name.strip()}`" for name in error.strip("()").split(","))


def _words(words: str) -> str:
    return f"`{_cell(words)}`" if words else ""

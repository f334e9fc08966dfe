"""Draws docs/pictures/rooms.png: the rooms of the package and their imports, read from the source.

``python scripts/draw_rooms.py`` writes the picture, and prints the imports as the table of
docs/architecture.md has them. An import that follows from others (a -> c where a -> b -> c) is left
out.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from _support.rooms import ROOMS, direct, imports_between  # noqa: E402

# of a box
WIDTH = 1.9
HEIGHT = 0.52


def levels(below: dict[str, list[str]]) -> list[list[str]]:
    """Group the rooms by the length of their longest way down."""
    level: dict[str, int] = {}
    for room in ROOMS:
        level[room] = 1 + max((level[other] for other in below[room]), default=-1)
    return [[room for room in ROOMS if level[room] == i] for i in range(max(level.values()) + 1)]


def places(rows: list[list[str]], below: dict[str, list[str]]) -> dict[str, tuple[float, float]]:
    """Put every room over the middle of the rooms that it imports, and neighbours in a row
    apart.
    """
    place: dict[str, tuple[float, float]] = {}
    for y, row in enumerate(rows):
        wanted = {
            r: sum(place[o][0] for o in below[r]) / len(below[r]) if below[r] else 0.0 for r in row
        }
        row = sorted(row, key=wanted.__getitem__)
        middle = sum(wanted.values()) / len(row)
        for i, room in enumerate(row):
            place[room] = (middle + 2.5 * (i - (len(row) - 1) / 2), 1.05 * y)
    return place


def draw(path: Path) -> None:
    """Write the picture."""
    below = direct(imports_between())
    place = places(levels(below), below)
    xs, ys = zip(*place.values(), strict=True)
    width = max(xs) - min(xs) + 3
    height = max(ys) - min(ys) + 1.2
    figure = Figure(figsize=(width, height * 0.9), layout="constrained")
    axis = figure.subplots()
    for room, others in below.items():
        for other in others:
            x, y = place[room]
            to_x, to_y = place[other]
            axis.annotate(
                "",
                (to_x, to_y + HEIGHT / 2),
                (x, y - HEIGHT / 2),
                zorder=0,
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": "0.45",
                    "linewidth": 1,
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
            )
    for room, (x, y) in place.items():
        face = "#e8e8e8" if room.startswith("_") else "#cfe3f7"
        corner = (x - WIDTH / 2, y - HEIGHT / 2)
        box = FancyBboxPatch(
            corner,
            WIDTH,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.1",
            fc=face,
            ec="0.3",
            zorder=1,
        )
        axis.add_patch(box)
        axis.text(x, y, room, ha="center", va="center", fontsize=11, family="monospace")
    axis.set(
        xlim=(min(xs) - 1.3, max(xs) + 1.3), ylim=(min(ys) - 0.5, max(ys) + 0.5), aspect="equal"
    )
    axis.set_axis_off()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(ROOT / "docs" / "pictures" / "rooms.png")
    imports = direct(imports_between())
    for name in reversed(ROOMS):
        print(f"| `{name}` | {', '.join(f'`{other}`' for other in imports[name]) or 'nothing'} |")

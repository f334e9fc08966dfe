"""Run notebooks from top to bottom and store what they print and draw.

    python scripts/run_notebooks.py                                      # all of notebooks/, in place
    python scripts/run_notebooks.py notebooks/01-what-a-nodeflow-is.ipynb
    python scripts/run_notebooks.py --into FOLDER notebooks/*.ipynb      # leave the originals as they are

A notebook is read by every visitor of the repository, and differences between its versions are
reviewed. So only what the code computes is stored: no times of execution, no version of Python.
Pictures are stored with a palette of 64 colours, which makes them three times smaller. A notebook
whose code raises is not written.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the executed notebook of ``path``, which is left as it is; its kernel works in
    ``folder``.

    Raises nbclient's CellExecutionError where a cell raises, and nbformat's ValidationError for a
    file that is not a notebook.
    """
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    notebook["metadata"] = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = smaller(output.data["image/png"])
    return notebook


def smaller(picture: str) -> str:
    """Return a picture, PNG in base 64, with a palette of 64 colours."""
    written = io.BytesIO()
    image = (
        Image.open(io.BytesIO(base64.b64decode(picture)))
        .convert("RGB")
        .quantize(64, dither=Image.Dither.NONE)
    )
    image.save(written, "PNG", optimize=True)
    return base64.b64encode(written.getvalue()).decode("ascii")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", type=Path, help="files; default: all of notebooks/")
    parser.add_argument("--into", type=Path, help="folder for the results; default: in place")
    args = parser.parse_args()
    # kernels inherit these: this repository's package, and one thread, so that sums have one order
    # on every machine
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYTHONDIR"] = str(Path(folder) / "ipython")  # no settings of the user
        for path in args.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb")):
            began = time.perf_counter()
            notebook = run(path, Path(folder))
            target = path if args.into is None else args.into / path.name
            nbformat.write(notebook, target)
            size = target.stat().st_size / 1000
            print(
                f"{path.name}: {time.perf_counter() - began:.1f} s, {size:.0f} kB", file=sys.stderr
            )


if __name__ == "__main__":
    main()

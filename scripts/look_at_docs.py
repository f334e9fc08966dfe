"""Looks at the built site in headless Chromium: pages that are wider than the window, and pictures
of pages.

    python scripts/look_at_docs.py                           # widths of 400 and 1,400 pixels, all pages
    python scripts/look_at_docs.py --pictures FOLDER index   # PNG of pages, at both widths, light and dark

It ends with 1 if a page is wider than its window. The browser takes commands through a pipe (Chrome
DevTools Protocol).
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (400, 1400)
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--remote-debugging-pipe",
)
OVERFLOW = """(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const inScroller = e => { for (; e; e = e.parentElement) {
    const flow = getComputedStyle(e).overflowX;
    if (flow != 'visible' && e !== document.documentElement && e !== document.body) return true; } return false; };
  const wide = [...document.querySelectorAll('article *')].filter(e =>
    e.getBoundingClientRect().right > width + 1 && !inScroller(e));
  return ['scrollWidth ' + document.documentElement.scrollWidth,
    ...wide.slice(0, 3).map(e => e.tagName + '.' + e.className + ': ' + e.textContent.trim().slice(0, 60))];
})()"""


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # the browser reads commands from descriptor 3 and writes answers to 4
        command = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                command,
                "bash",
                program,
                *OPTIONS,
                f"--user-data-dir={self._folder.name}",
                "about:blank",
            ],
            pass_fds=(to_read, to_write),
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._left = b""
        self._number = 0
        self._session = ""
        pages = [t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        target = pages[0]["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self.send("Page.enable")

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._left += more
        text, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Run a command and return its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while (message := self._message()).get("id") != self._number:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        result: dict[str, Any] = message["result"]
        return result

    def size(self, width: int, height: int = 1000, *, dark: bool = False) -> None:
        """Set the size of the window, and what the system prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path, query: str = "") -> None:
        """Go to a page and wait until it is loaded."""
        self.send("Page.navigate", url=path.as_uri() + query)
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page; a promise is waited for."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        return found["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write what the window shows."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "pages", nargs="*", help="pages without .html, with #anchor or ?query; all without names"
    )
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--pictures", type=Path, help="folder for PNG of the pages")
    parser.add_argument("--height", type=int, default=1000)
    options = parser.parse_args(arguments)
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("needs Chromium: apt-get install chromium")
    site = options.site.resolve()
    every = sorted(
        p.relative_to(site).with_suffix("").as_posix()
        for p in site.rglob("*.html")
        if "_static" not in p.parts
    )
    browser = Browser(program)
    wide = 0
    try:
        for width in WIDTHS:
            for dark in (False, True) if options.pictures else (False,):
                browser.size(width, options.height, dark=dark)
                for page in options.pages or every:
                    name, sign, rest = page.partition("?" if "?" in page else "#")
                    browser.open(site / f"{name}.html", sign + rest)
                    found = browser.evaluate(OVERFLOW)
                    wide += bool(found)
                    if found:
                        print(f"{width} {page}: {'; '.join(found)}")
                    if options.pictures:
                        if "?" in page:
                            # the search is running
                            browser.evaluate("new Promise(done => setTimeout(done, 1500))")
                        options.pictures.mkdir(parents=True, exist_ok=True)
                        stem = "".join(c if c.isalnum() or c in ".-_" else "-" for c in page)
                        browser.picture(
                            options.pictures / f"{stem}-{width}-{'dark' if dark else 'light'}.png"
                        )
    finally:
        browser.close()
    print(
        f"{len(options.pages or every)} pages at {' and '.join(map(str, WIDTHS))} pixels: {wide} "
        "wider than the window"
    )
    return 1 if wide else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Accessibility of ten pages, at three widths, light and dark: axe-core in Chromium reports no serious problem.

axe-core comes from npm into the cache folder of the user. Without npm or Chromium the check is skipped, with a line
that says what is missing. A small server adds axe and a call of it to each page; the browser prints the page after it
ran.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

VERSION = "4.14.1"
PAGES = (
    "",
    "quickstart/",
    "agents/",
    "reference/accord.Agent/",
    "session-updates/tool_call/",
    "commands/run/",
    "performance/",
    "inspect/",
    "troubleshooting/",
    "security/",
)
"""Every kind of page: with code, with pictures, with wide tables, written by hand and generated."""
WIDTHS = (390, 1024, 1440)
"""A phone, a tablet and a screen, in pixels: the navigation is another one in each."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SERIOUS = {"serious", "critical"}

RUN = b"""<style>* { transition: none !important; }</style><script src="/axe.min.js"></script><script>
addEventListener("load", async () => {
  const kept = document.createElement("script");
  kept.type = "application/json";
  const violations = [];
  for (const scheme of ["default", "slate"]) {
    document.body.dataset.mdColorScheme = scheme;
    violations.push(...(await axe.run()).violations);
  }
  kept.textContent = JSON.stringify(violations.map(({ id, impact, help, nodes }) =>
    ({ id, impact, help, nodes: nodes.map((it) => it.target.join(" ")) }))).replaceAll("<", "\\\\u003c");
  kept.id = "axe-found";
  document.body.append(kept);
});
</script></body>"""
FOUND = re.compile(r'<script type="application/json" id="axe-found">(.*?)</script>', re.DOTALL)


class Unavailable(Exception):
    """Something that the check needs is not here; the text says what."""


class Problem(NamedTuple):
    """A violation that axe reports."""

    page: str
    width: int
    impact: str
    rule: str
    what: str
    where: str

    def line(self) -> str:
        return f"{self.page or 'index'} ({self.width} px): {self.impact}: {self.rule}: {self.what} ({self.where})"


def problems(folder: Path) -> list[Problem]:
    """The serious problems of the pages of a built site; raises Unavailable where they cannot be looked for.

    The server has the folder of all versions, because the menu of versions is read from there.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise Unavailable(f"there is no browser: {', '.join(BROWSERS)}")
    if missing := [page for page in PAGES if not (folder / page / "index.html").is_file()]:
        raise SystemExit(f"the site has no page {', '.join(missing)}: name others in {Path(__file__).name}")
    script = axe().read_bytes()
    with served(folder.parent, script) as site:
        address = f"{site}/{folder.name}"
        found = [it for page in PAGES for width in WIDTHS for it in problems_of(page, width, browser, address)]
    return [it for it in found if it.impact in SERIOUS]


def axe() -> Path:
    """The script of axe-core in the user's cache folder; npm fetches it once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "accord" / f"axe-core-{VERSION}"
    script = cache / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable("there is no npm")
        command = [npm, "install", "--silent", "--ignore-scripts", "--prefix", str(cache), f"axe-core@{VERSION}"]
        cache.mkdir(parents=True, exist_ok=True)
        if subprocess.run(command, check=False, capture_output=True).returncode or not script.is_file():
            raise Unavailable(f"npm could not fetch axe-core {VERSION}")
    return script


def problems_of(page: str, width: int, browser: str, address: str) -> Iterator[Problem]:
    """What axe reports of one page in a window of this width."""
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        options += [f"--window-size={width},900"]
        command = [browser, *options, "--virtual-time-budget=20000", "--dump-dom", f"{address}/{page}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    result = FOUND.search(done.stdout)
    if result is None:
        raise SystemExit(f"axe did not run on {page or 'index'}: {done.stderr[-2000:]}")
    found: list[dict[str, Any]] = json.loads(result[1])
    for it in found:
        yield Problem(page, width, str(it["impact"]), it["id"], it["help"], ", ".join(it["nodes"][:3]))


@contextmanager
def served(folder: Path, script: bytes) -> Generator[str]:
    """A folder on a port of this machine, with axe in each page."""

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            file = Path(self.translate_path(self.path))
            page = file / "index.html" if file.is_dir() else file
            if self.path == "/axe.min.js":
                self.answer(script, "text/javascript")
            elif page.suffix == ".html" and page.is_file():
                self.answer(page.read_bytes().replace(b"</body>", RUN), "text/html; charset=utf-8")
            else:
                super().do_GET()

        def answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

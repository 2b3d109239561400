# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
"""Opens each page of a built site in a browser, and fails if one is wider than a narrow screen:
python3 widths.py _out/site. CHROMIUM names the browser."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

WIDTH = 400
RESULT = re.compile(r"<li>([^<]*): (\d+)</li>")

# A browser without a window is 500 pixels wide at least, so each page is in a separate frame.
PROBE = """<!DOCTYPE html>
<meta charset="utf-8">
<title>Widths</title>
<ul></ul>
<script>
const pages = PAGES
function measure(page) {
  return new Promise((done) => {
    const frame = document.createElement("iframe")
    frame.style.cssText = "width: WIDTHpx; height: 800px"
    frame.addEventListener("load", () => {
      const list = document.querySelector("ul")
      for (const part of frame.contentDocument.querySelectorAll("details")) part.open = true
      setTimeout(() => {
        const item = list.appendChild(document.createElement("li"))
        item.textContent = `${page}: ${frame.contentDocument.scrollingElement.scrollWidth}`
        frame.remove()
        done()
      }, 500)
    })
    frame.src = page
    document.body.append(frame)
  })
}
(async () => { for (const page of pages) await measure(page) })()
</script>
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_):
        pass


def measure(site):
    """Return the widths of all pages."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        sys.exit("cannot find chromium: install it, or name it in CHROMIUM")
    pages = sorted(str(p.relative_to(site)) for p in site.rglob("*.html") if p.name != "404.html")
    found = {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    probe = site / "widths-probe.html"
    with tempfile.TemporaryDirectory() as profile:
        # Several short runs: the virtual time of one ends before a hundred pages are measured.
        for i in range(0, len(pages), 10):
            part = pages[i:i + 10]
            probe.write_text(PROBE.replace("PAGES", repr(part)).replace("WIDTH", str(WIDTH)), encoding="utf-8")
            run = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--virtual-time-budget=60000",
                 "--dump-dom", f"http://127.0.0.1:{server.server_port}/{probe.name}"],
                capture_output=True, text=True, check=False, timeout=600)
            found |= {m[1]: int(m[2]) for m in RESULT.finditer(run.stdout)}
    probe.unlink()
    server.shutdown()
    return pages, found


def main(site):
    pages, found = measure(site)
    faults = 0
    for page in pages:
        width = found.get(page)
        if width is None:
            print(f"{page}: not measured")
        elif width > WIDTH:
            print(f"{page}: {width} pixels wide")
        else:
            continue
        faults += 1
    print(f"{len(pages)} pages, {faults} wider than {WIDTH} pixels or not measured")
    return 1 if faults or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))

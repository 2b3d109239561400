# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
"""Requests every link of a built site that leads to another site: python3 links.py _out/site."""

import concurrent.futures
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag

AGENT = "tailscale-gateway-links"


class Links(HTMLParser):
    """Collects the addresses to which a page links."""

    def __init__(self, html):
        super().__init__()
        self.found = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        href = dict(attrs).get("href") or ""
        if tag == "a" and href.startswith(("http://", "https://")):
            self.found.add(urldefrag(href)[0])


def fault(url):
    """Return why a link is broken, or nothing."""
    request = urllib.request.Request(url, headers={"User-Agent": AGENT})
    try:
        with urllib.request.urlopen(request, timeout=30):
            return None
    except urllib.error.HTTPError as e:
        # A refusal of a program, or of many requests, is no broken link.
        return None if e.code in (403, 429) else str(e)
    except (OSError, ValueError) as e:
        return str(e)


def main(site):
    pages = {}
    for path in sorted(Path(site).rglob("*.html")):
        for url in Links(path.read_text(encoding="utf-8")).found:
            pages.setdefault(url, path.relative_to(site))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        faults = [(url, f) for url, f in zip(pages, pool.map(fault, pages)) if f]
    for url, f in faults:
        print(f"{pages[url]}: {url}: {f}")
    print(f"{len(pages)} links, {len(faults)} broken")
    return 1 if faults or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

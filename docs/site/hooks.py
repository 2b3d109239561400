# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
"""Hooks with which MkDocs builds the site from pages that GitHub renders as well.

- The navigation is the index, docs/README.md, and that of the reference.
- Headings have the anchors that GitHub gives them.
- Links to files outside of docs/ lead to the repository. A missing file is a warning, which
  --strict turns into a failure.
- Lists are indented for Python-Markdown. A page that it and GitHub (CommonMark) would still
  render with different lists, code blocks or tables is a warning, too.
- Cells of wide tables have the heading of their column, so that site.css can stack them on a
  narrow screen.
- An anchor that a page has twice is a warning.
- Mermaid comes from a Python package, checked by its digest. A page that loads something from
  another site is a warning.
"""

import hashlib
import logging
import os
import posixpath
import re
from collections import Counter
from html.parser import HTMLParser
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import urlsplit

from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markdown_it import MarkdownIt
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks.site")

SITE = Path(__file__).parent
ROOT = SITE.parent.parent

# The branch or tag whose files the site links.
REF = os.environ.get("SITE_REF") or "main"

# The digest of mermaid.min.js in the package mermaid 11.16.0 of the npm registry.
MERMAID = "74d7c46dabca328c2294733910a8aa1ed0c37451776e8d5295da38a2b758fb9b"

SECTION = re.compile(r"^## (.+)$")
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\)")
ANCHOR = re.compile(r"\sid=\"([^\"]+)\"")
RESOURCE = re.compile(r"<(?:script|img|iframe|link(?! rel=\"canonical\"))\s[^>]*(?:src|href)=\"(https?://[^\"]+)")
MARKER = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")

# GitHub's Markdown, as far as these pages use it.
COMMONMARK = MarkdownIt("commonmark").enable("table")


class State:
    """The page that is being rendered, its source, and its anchors so far."""

    page = None
    source = ""
    anchors = Counter()


def slug(text, _separator):
    """Return the anchor that GitHub gives a heading: as slug and unique of test/docs."""
    text = re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")
    n = State.anchors[text]
    State.anchors[text] += 1
    return f"{text}-{n}" if n else text


def blob(path):
    """Return the repository's URL of a file or a folder."""
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"https://github.com/tailscale-gateway/tailscale-gateway/{kind}/{REF}/{path}"


class Links(Treeprocessor):
    """Rewrites links from docs/ to other files of the repository."""

    def run(self, root):
        for a in root.iter("a"):
            parts = urlsplit(a.get("href", ""))
            if parts.scheme or parts.netloc or not parts.path or State.page is None:
                continue
            here = posixpath.dirname("docs/" + State.page.file.src_uri)
            path = posixpath.normpath(posixpath.join(here, parts.path))
            if path.startswith("docs/") and not (ROOT / path).is_dir():
                continue  # MkDocs checks these
            if not (ROOT / path).exists():
                log.warning("%s: no such file: %s", State.page.file.src_uri, parts.path)
            a.set("href", blob(path) + ("#" + parts.fragment if parts.fragment else ""))


class Cells(Treeprocessor):
    """Labels the cells of tables with more than two columns."""

    def run(self, root):
        for table in root.iter("table"):
            labels = ["".join(th.itertext()) for th in table.iter("th")]
            if len(labels) < 3:
                continue
            table.set("data-columns", str(len(labels)))
            for tr in table.find("tbody").iter("tr"):
                for label, td in zip(labels, tr.iter("td")):
                    td.set("data-label", label)


class Repository(Extension):
    """Registers Links before MkDocs resolves relative links, which it does last, and Cells."""

    def extendMarkdown(self, md):
        md.treeprocessors.register(Cells(md), "repository-cells", 4)
        md.treeprocessors.register(Links(md), "repository-links", 5)


def index(path):
    """Return the entries of an index page by its sections, with targets relative to docs/."""
    out = {}
    section = None
    folder = posixpath.dirname(path)
    for line in (ROOT / "docs" / path).read_text(encoding="utf-8").splitlines():
        if m := SECTION.match(line):
            section = m[1]
        elif section and (m := ENTRY.match(line)):
            target = posixpath.normpath(posixpath.join(folder, m[2]))
            if target.startswith("../"):
                target = blob(target[3:])
            out.setdefault(section, []).append({m[1]: target})
    return out


def reference():
    """Return the pages of the reference: the index, kinds by group, and all that no index lists."""
    kinds = index("reference/README.md")
    listed = {t for i in (kinds, index("README.md")) for entries in i.values() for e in entries for t in e.values()}
    pages = sorted(f"reference/{p.name}" for p in (ROOT / "docs/reference").glob("*.md"))
    others = [p for p in pages if p not in listed and p != "reference/README.md"]
    return ["reference/README.md", *({g: k} for g, k in kinds.items()), *others]


def on_config(config):
    nav = [{"Home": "README.md"}]
    for section, entries in index("README.md").items():
        nav.append({section: [{title: reference() if target == "reference/README.md" else target}
                              for e in entries for title, target in e.items()]})
    config.nav = nav
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    config.markdown_extensions.append(Repository())
    return config


def on_files(files, config):
    script = distribution("mermaidx").locate_file("mermaidx/assets/mermaid.js").read_bytes()
    if hashlib.sha256(script).hexdigest() != MERMAID:
        raise PluginError("mermaid.min.js is not that of mermaid 11.16.0")
    files.append(File.generated(config, "assets/mermaid.min.js", content=script))
    for name in ("site.css", "site.js"):
        files.append(File.generated(config, f"assets/{name}", content=(SITE / name).read_text(encoding="utf-8")))
    icon = (ROOT / "package/icon.svg").read_text(encoding="utf-8")
    files.append(File.generated(config, "assets/icon.svg", content=icon))
    return files


def reindent(markdown):
    """Return a page whose list items are indented by four spaces, as Python-Markdown requires.

    In CommonMark the content of an item begins where the text after its marker does.
    """
    lines = markdown.split("\n")
    enclosing = [[] for _ in lines]
    for token in COMMONMARK.parse(markdown):
        if token.type == "list_item_open":
            start, end = token.map
            offset = len(MARKER.match(lines[start])[0])
            for i in range(start, min(end, len(lines))):
                enclosing[i].append((start, offset))
    for i, items in enumerate(enclosing):
        if not items or not lines[i].strip():
            continue
        start, offset = items[-1]
        if i == start:
            lines[i] = "    " * (len(items) - 1) + lines[i].lstrip()
        else:
            indent = len(lines[i]) - len(lines[i].lstrip())
            lines[i] = "    " * len(items) + lines[i][min(indent, offset):]
    return "\n".join(lines)


def on_page_markdown(markdown, page, **_):
    State.page, State.anchors = page, Counter()
    State.source = markdown
    if page.file.src_uri == "README.md":
        page.meta["hide"] = ["navigation"]  # The page is its own index.
    return reindent(markdown)


class Shape(HTMLParser):
    """Counts the elements by which two readings of a page are compared."""

    COUNTED = ("ul", "ol", "li", "pre", "table", "tr", "blockquote", "h1", "h2", "h3", "h4",
               "dl", "dt", "dd", "details", "summary")

    def __init__(self, html):
        super().__init__()
        self.counts = Counter()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in self.COUNTED:
            self.counts[tag] += 1


def on_page_content(html, page, **_):
    here = Shape(html).counts
    there = Shape(COMMONMARK.render(State.source)).counts
    for tag in Shape.COUNTED:
        if here[tag] != there[tag]:
            log.warning("%s: %d elements <%s> here, %d on GitHub: leave empty lines around lists, code blocks and tables",
                        page.file.src_uri, here[tag], tag, there[tag])
    for anchor, n in Counter(ANCHOR.findall(html)).items():
        if n > 1:
            log.warning("%s: %d elements have the anchor %s", page.file.src_uri, n, anchor)
    return html


def on_post_page(output, page, **_):
    for url in RESOURCE.findall(output):
        log.warning("%s: loads %s from another site", page.file.src_uri, url)
    return output

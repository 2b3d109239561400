# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
"""Adds a built site to the folder of all versions: python3 publish.py _out/site _out/pages v0.1.0.

The folder is what a web server serves, such as GitHub Pages from a branch:

- main/ is that of the branch main, and v0.1/ that of the newest release of v0.1.
- versions.json lists them in mike's form, from which the site has its selector of versions.
- index.html leads to the newest release, or to main while there is none.
"""

import json
import re
import shutil
import sys
from pathlib import Path

RELEASE = re.compile(r"^(v\d+\.\d+)\.\d+$")
MINOR = re.compile(r"^v(\d+)\.(\d+)$")
MAIN = "main"

REDIRECT = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Tailscale Gateway</title>
<meta http-equiv="refresh" content="0; url={0}/index.html">
<a href="{0}/index.html">Tailscale Gateway</a>
</html>
"""


def folder(version):
    """Return the folder of a version, or nothing if a version such as a pre-release has none."""
    if version == MAIN:
        return MAIN
    m = RELEASE.match(version)
    return m[1] if m else None


def order(name):
    """Return a key by which newer releases come first, and main last."""
    m = MINOR.match(name)
    return (0, -int(m[1]), -int(m[2])) if m else (1,)


def versions(names):
    """Return the content of versions.json for folders."""
    names = sorted(names, key=order)
    return [{"version": n, "title": n, "aliases": ["latest"] if n == names[0] else []} for n in names]


def publish(site, pages, version):
    """Add a site to the pages of all versions, and return what it did."""
    name = folder(version)
    if name is None:
        raise ValueError(f"{version} has no site: only main and releases have one")
    pages.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(pages / name, ignore_errors=True)
    shutil.copytree(site, pages / name)
    names = [p.name for p in pages.iterdir() if p.is_dir() and (p.name == MAIN or MINOR.match(p.name))]
    listed = versions(names)
    (pages / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (pages / "index.html").write_text(REDIRECT.format(listed[0]["version"]), encoding="utf-8")
    # GitHub Pages would otherwise omit files that begin with an underscore.
    (pages / ".nojekyll").touch()
    missing = pages / listed[0]["version"] / "404.html"
    if missing.exists():
        shutil.copy(missing, pages / "404.html")
    return f"{name}: published {version}"


if __name__ == "__main__":
    if sys.argv[1] == "--folder":
        if not (found := folder(sys.argv[2])):
            sys.exit(f"{sys.argv[2]} has no site: only main and releases have one")
        print(found)
    else:
        print(publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))

# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of hooks.py: what a strict build must refuse, and what pages may contain."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(Path(__file__).parent))

import markdown  # noqa: E402

import hooks  # noqa: E402


def build(page):
    """Build the site with a page in place of docs/claims.md, and return the exit code and the log."""
    with tempfile.TemporaryDirectory() as d:
        tree = Path(d)
        for path in ROOT.iterdir():
            if path.name not in (".git", "_out", "docs", "mkdocs.yml"):
                (tree / path.name).symlink_to(path)
        # MkDocs looks for docs/ beside its configuration, so that is a copy.
        (tree / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), encoding="utf-8")
        (tree / "docs").mkdir()
        for path in (ROOT / "docs").iterdir():
            (tree / "docs" / path.name).symlink_to(path)
        (tree / "docs" / "claims.md").unlink()
        (tree / "docs" / "claims.md").write_text(page, encoding="utf-8")
        run = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict"],
                             cwd=tree, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr


class TestBuild(unittest.TestCase):
    def test_good(self):
        code, log = build("# Differences\n\n## Differences\n\n[a](services.md#tls), [b](../examples/tls.yaml), [c](#differences-1)\n")
        self.assertEqual(code, 0, log)

    def test_refused(self):
        page = "# Differences\n\n[a](gone.md)\n[b](services.md#gone)\n[c](../examples/gone.yaml)\n![d](https://example.com/d.png)\n\nText\n- one\n- two\n\n<a id=\"e\"></a> <a id=\"e\"></a>\n"
        code, log = build(page)
        self.assertNotEqual(code, 0)
        for want in ("'gone.md'", "'services.md#gone'", "no such file: ../examples/gone.yaml", "elements <ul>", "loads https://example.com/d.png", "2 elements have the anchor e"):
            self.assertIn(want, log)


class TestCells(unittest.TestCase):
    def test_labels(self):
        convert = markdown.Markdown(extensions=["tables", hooks.Repository()]).convert
        self.assertIn('<td data-label="`b` c">2</td>'.replace("`", ""), convert("| a | `b` c | d |\n|---|---|---|\n| 1 | 2 | 3 |\n"))
        self.assertNotIn("data-", convert("| a | b |\n|---|---|\n| 1 | 2 |\n"))


class TestReindent(unittest.TestCase):
    def test_items(self):
        cases = {
            "- a\n  b\n\n  c\n": "- a\n    b\n\n    c\n",
            "1. a\n\n       code\n": "1. a\n\n        code\n",
            "- a\n  - b\n    c\n": "- a\n    - b\n        c\n",
            "no list\n  at all\n": "no list\n  at all\n",
        }
        for text, want in cases.items():
            with self.subTest(text):
                self.assertEqual(hooks.reindent(text), want)


if __name__ == "__main__":
    unittest.main()

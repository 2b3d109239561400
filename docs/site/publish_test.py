# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of publish.py."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import publish  # noqa: E402


class TestPublish(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = Path(folder.name, "site")
        self.pages = Path(folder.name, "pages")
        self.site.mkdir()

    def publish(self, version):
        (self.site / "index.html").write_text(version, encoding="utf-8")
        (self.site / "404.html").write_text("no page of " + version, encoding="utf-8")
        return publish.publish(self.site, self.pages, version)

    def listed(self):
        return [(v["version"], v["aliases"]) for v in json.loads((self.pages / "versions.json").read_text(encoding="utf-8"))]

    def read(self, name):
        return (self.pages / name).read_text(encoding="utf-8")

    def test_main_alone(self):
        self.publish("main")
        self.assertEqual(self.listed(), [("main", ["latest"])])
        self.assertIn("url=main/index.html", self.read("index.html"))

    def test_releases(self):
        for version in ("main", "v0.9.0", "v0.10.0", "v0.9.1"):
            self.publish(version)
        self.assertEqual(self.listed(), [("v0.10", ["latest"]), ("v0.9", []), ("main", [])])
        self.assertIn("url=v0.10/index.html", self.read("index.html"))
        self.assertEqual(self.read("v0.9/index.html"), "v0.9.1")
        self.assertEqual(self.read("404.html"), "no page of v0.10.0")

    def test_replaced(self):
        (self.site / "gone.html").touch()
        self.publish("main")
        (self.site / "gone.html").unlink()
        self.publish("main")
        self.assertFalse((self.pages / "main/gone.html").exists())

    def test_without_site(self):
        for version in ("v0.1.0-rc.1", "v1", "../main", "release-0.1"):
            with self.subTest(version):
                with self.assertRaisesRegex(ValueError, "has no site"):
                    self.publish(version)
        self.assertFalse(self.pages.exists())


if __name__ == "__main__":
    unittest.main()

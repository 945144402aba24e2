"""Opens the shipped front end in headless Chromium with recorded pictures, without Jupyter and without a kernel."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness import Browser, open_view

__all__ = ["Browser", "open_view"]

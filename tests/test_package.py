"""The wheel: it holds the bundle, needs no Node, and imports in a clean environment."""

import importlib.metadata
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import graphwidget

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
    wanted = (
        "static/widget.js",
        "static/picture.js",
        "static/widget.css",
        "notebooks/01_what_is_freed.ipynb",
        "py.typed",
    )
    for name in wanted:
        assert f"graphwidget/{name}" in names


def test_the_source_archive_holds_what_builds_and_tests_it(tmp_path):
    build = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.glob("*.tar.gz")
    names = {name.partition("/")[2] for name in tarfile.open(made).getnames()}
    wanted = {
        "graphwidget/py.typed",
        "graphwidget/static/widget.js",
        "js/build.mjs",
        "js/package.json",
        "tests/test_package.py",
    }
    assert wanted | {"Makefile", "setup/suites.py", "SECURITY.md", "CITATION.cff", "LICENSE"} <= names
    assert not [name for name in names if name.startswith(("js/node_modules", "js/test", "bench", ".make"))]


def test_the_citation_names_this_version():
    assert f"\nversion: {graphwidget.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_in_the_browsers_python_it_installs_without_native_code(wheel):
    (metadata,) = importlib.metadata.distributions(path=[str(wheel)])
    wanted = [Requirement(one) for one in metadata.requires]
    engine = next(one for one in wanted if one.name == "quickjs-ng")
    assert engine.marker.evaluate() and not engine.marker.evaluate({"sys_platform": "emscripten"})


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

"""Who may import whom, and what `import graphwidget` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import graphwidget

PACKAGE = Path(graphwidget.__file__).parent

# room -> the rooms it may import at any time; a function-level import counts, too. A room is a folder, or a file that
# stands for itself; what lies in none of them belongs to the room around it. Lower rooms stand first.
RECORDS = {"model", "torch_internals"}
BELOW_CALLS = RECORDS | {"capture.owners", "capture.lines", "capture.graph"}
EXPLAINS = {"model", "engine", "diagnosis.source", "diagnosis.wording", "diagnosis.reuse", "diagnosis.fixes"}
ANSWERS = RECORDS | {"engine", "capture", "diagnosis", "render", "replies", "exports"}
ALLOWED = {
    "model": set(),
    "torch_internals": {"model"},
    "engine": {"model"},
    "capture.tensor_swaps": set(),
    "capture.installed": set(),
    "capture.owners": RECORDS | {"capture.installed"},
    "capture.lines": RECORDS | {"capture.installed", "capture.owners"},
    "capture.python": RECORDS | {"capture.tensor_swaps"},
    "capture.graph": RECORDS | {"capture.python"},
    "capture.calls": BELOW_CALLS,
    "capture.writes": BELOW_CALLS,
    "capture.errors": BELOW_CALLS | {"capture.installed"},
    "capture": RECORDS | {"capture"},
    "diagnosis.source": {"model"},
    "diagnosis.wording": {"model", "diagnosis.source"},
    "diagnosis.reuse": {"model", "engine", "diagnosis.source", "diagnosis.wording"},
    "diagnosis.fixes": EXPLAINS,
    "diagnosis.no_graph": EXPLAINS,
    "diagnosis.written": {"model", "diagnosis.wording"},
    "diagnosis.prediction": {"model", "engine", "diagnosis.wording", "diagnosis.written"},
    "diagnosis.steps": {"model", "engine", "diagnosis.wording", "diagnosis.written"},
    "diagnosis.findings": EXPLAINS | {"diagnosis.no_graph"},
    "diagnosis": {"model", "engine", "diagnosis"},
    "render": {"model"},
    "replies": {"model", "engine", "capture.ghosts", "diagnosis", "render"},
    "exports": {"model", "engine", "diagnosis", "render", "replies"},
    "version": set(),
    "record": {
        "model",
        "capture.calls.history",
        "capture.calls.counting.models",
        "capture.ghosts",
        "diagnosis",
        "render",
        "exports",
        "notebook.views.recorded",
        "version",
    },
    "arguments": set(),
    "notebook": {
        "arguments",
        "model",
        "torch_internals",
        "engine",
        "capture",
        "diagnosis",
        "render",
        "replies",
        "exports",
        "record",
        "programs.recording.environment",
        "trials",
        "api",
        "notebook",
        "replay",
    },
    "notebook.session": set(),
    "notebook.requests": ANSWERS | {"notebook.live", "notebook.sources", "notebook.trying"},
    "notebook.views": ANSWERS
    | {"notebook.requests", "notebook.session", "notebook.sources", "notebook.trying", "record"},
    "api": {
        "arguments",
        "model",
        "engine",
        "capture",
        "diagnosis",
        "notebook.session",
        "notebook.views",
        "notebook.live",
        "notebook.notes",
        "record",
    },  # fmt: skip
    "replay": {"arguments", "model", "engine", "capture", "notebook.session", "notebook.live"},
    "trials": {"model", "diagnosis", "torch_internals"},
    "programs.recording.environment": {"record", "programs"},
    "programs": {
        "programs.recording.environment",
        "trials",
        "model",
        "engine",
        "capture",
        "diagnosis",
        "render",
        "exports",
        "notebook",
        "record",
    },
    "cli": {"model", "exports", "programs", "trials", "notebook", "record"},
    "__main__": {"cli"},
    "__init__": {
        "model",
        "capture",
        "notebook",
        "api",
        "record",
        "replay",
        "programs.recording.environment",
        "version",
    },
}
# The imports that go up, and only inside a function: `Snapshot.export` and its `to_*` methods read one table, and
# a finding that is printed is worded as everywhere.
UP = {"model.graph.exports": "exports.formats", "model.findings": "render.report"}
WITHOUT_TORCH = ("model", "engine", "diagnosis", "render", "replies", "trials")


def room_of(module: str) -> str:
    """The innermost room of a module, told by its dotted name inside the package."""
    while module not in ALLOWED and "." in module:
        module = module.rpartition(".")[0]
    return module


def allowed(room: str, target: str) -> bool:
    """Whether a file of `room` may import the module `target`: its room, or one around it, is in the table."""
    own = ALLOWED.get(room, set())
    return room_of(target) == room or any(target == one or target.startswith(one + ".") for one in own)


def imports(tree: ast.Module, module: list[str]) -> list[tuple[str, bool]]:
    """(dotted name, whether it is inside a function) of every import of a file; types-only ones are left out."""
    found: list[tuple[str, bool]] = []
    work: list[tuple[ast.AST, bool]] = [(tree, False)]
    while work:
        node, inside = work.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found += [(f"{name}.{alias.name}", inside) for alias in node.names]
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        work += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def violations(package: Path) -> list[str]:
    """Imports against the direction, as ``file: what``."""
    wrong = []
    for path in sorted(package.rglob("*.py")):
        parts = list(path.relative_to(package.parent).with_suffix("").parts)
        room = room_of(".".join(parts[1:]))
        module = parts[:-1]  # the package that the file lies in
        for name, inside in imports(ast.parse(path.read_text(encoding="utf-8")), module):
            words = name.split(".")
            where = f"{path.relative_to(package)}: {name}"
            if words[0] == package.name and len(words) > 1:
                target = ".".join(words[1:])
                fine = target == "__version__" or allowed(room, target)
                up = inside and target.startswith(UP.get(".".join(parts[1:]), target + "."))
                if not fine and not up:
                    wrong.append(where)
            elif words[0] == "torch" and room.split(".")[0] in WITHOUT_TORCH:
                wrong.append(where)
    return wrong


def circles(package: Path) -> set[str]:
    """The files that import each other in a circle, however long it is."""
    files = {".".join(p.relative_to(package).with_suffix("").parts): p for p in package.rglob("*.py")}

    def file_of(module: str) -> str:
        while module and module not in files and f"{module}.__init__" not in files:
            module = module.rpartition(".")[0]
        return module if module in files else f"{module}.__init__".lstrip(".")

    left: dict[str, set[str]] = {}
    for name, path in files.items():
        found = imports(ast.parse(path.read_text(encoding="utf-8")), [package.name, *name.split(".")[:-1]])
        own = [one.removeprefix(package.name).lstrip(".") for one, _ in found if one.split(".")[0] == package.name]
        left[name] = {file_of(one) for one in own} - {name}
    for file, above in UP.items():
        left.get(file, set()).discard(above)
    size = -1
    while size != len(left):  # a file that imports none of those left, or that none of them imports, is in no circle
        size = len(left)
        imported = {target for targets in left.values() for target in targets}
        left = {name: targets & left.keys() for name, targets in left.items() if name in imported}
        left = {name: targets for name, targets in left.items() if targets & left.keys()}
    return set(left)


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles(PACKAGE) == set()


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "graphwidget"
    package.mkdir()
    for name, line in {
        "a": "from graphwidget import b",
        "b": "def f():\n    from graphwidget.c import x",
        "c": "from .a import y",
        "above": "from graphwidget import a",
        "below": "",
    }.items():
        (package / f"{name}.py").write_text(f"{line}\nfrom graphwidget import below\n" if name != "below" else line)
    (package / "__init__.py").touch()
    assert circles(package) == {"a", "b", "c"}


def test_imports_run_one_way() -> None:
    assert violations(PACKAGE) == []


def test_every_file_lies_in_a_known_room() -> None:
    names = (path.relative_to(PACKAGE).with_suffix("").parts for path in PACKAGE.rglob("*.py"))
    assert {room_of(".".join(name)) for name in names} <= ALLOWED.keys()


@pytest.mark.parametrize(
    "file, line",
    [
        ("capture/x.py", "from graphwidget.notebook import widget"),
        ("capture/x.py", "from ..diagnosis import diagnose"),
        ("capture/graph/x.py", "from graphwidget.capture import tracker"),
        ("capture/owners/x.py", "from ..graph import walk"),
        ("diagnosis/x.py", "import torch"),
        ("engine/x.py", "def f():\n    from torch import nn"),
        ("engine/x.py", "from graphwidget.diagnosis.source import syntax"),
        ("diagnosis/fixes/x.py", "from graphwidget.diagnosis.findings import leak"),
        ("render/x.py", "import graphwidget.capture.tracker"),
        ("model/x.py", "from graphwidget.render import text"),
        ("model/x.py", "def f():\n    from graphwidget.capture import tracker"),
        ("model/x.py", "def f():\n    from graphwidget.exports.formats import export"),
        ("model/graph/exports.py", "from graphwidget.exports.formats import export"),
        ("model/graph/exports.py", "def f():\n    from graphwidget.render import text"),
        ("model/findings.py", "from graphwidget.render.report import finding_lines"),
        ("model/findings.py", "def f():\n    from graphwidget.render.text import edges"),
        ("notebook/session.py", "from graphwidget.notebook import extension"),
        ("api.py", "from graphwidget.notebook import extension"),
        ("api.py", "from .cli import main"),
    ],
)
def test_a_planted_wrong_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    planted = tmp_path / "graphwidget" / file
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(line)
    assert len(violations(tmp_path / "graphwidget")) == 1


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running `code`."""
    program = f"{textwrap.dedent(code)}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


HEAVY = {"torch", "anywidget", "ipywidgets", "networkx", "IPython", "quickjs", "_quickjs"}


def test_importing_graphwidget_loads_nothing_heavy() -> None:
    assert not HEAVY & loaded_after("import graphwidget; dir(graphwidget)")


def test_that_test_can_fail() -> None:
    assert "networkx" in HEAVY & loaded_after("import graphwidget, networkx")


def test_the_model_and_pure_rooms_need_no_torch() -> None:
    code = """
        import graphwidget
        from graphwidget import Snapshot
        from graphwidget.engine import forecast, memory
        from graphwidget.diagnosis.diagnose import diagnose
        from graphwidget.render import dot, json_export, text, wire
        Snapshot().to_text(), Snapshot().to_json(), Snapshot().to_dot()
    """
    assert not HEAVY & loaded_after(code)


def test_networkx_is_loaded_when_it_is_asked_for() -> None:
    loaded = loaded_after("from graphwidget import Snapshot; Snapshot().to_networkx()")
    assert "networkx" in loaded and "torch" not in loaded


def test_tracking_loads_no_widget() -> None:
    loaded = loaded_after("import graphwidget as gw\nwith gw.track() as t: pass")
    assert "torch" in loaded and "anywidget" not in loaded


def test_loading_the_extension_loads_no_widget() -> None:
    code = """
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config
        config = Config()
        config.HistoryManager.enabled = False
        InteractiveShell.instance(config=config).run_cell("%load_ext graphwidget")
    """
    loaded = loaded_after(code)
    assert "graphwidget.notebook.extension" in loaded and "anywidget" not in loaded


NOT_AT_LOAD = ("anywidget", "ipywidgets", "networkx", "quickjs", "_quickjs", "nbformat", "nbclient", "tqdm",
               "graphwidget.engine", "graphwidget.diagnosis", "graphwidget.render", "graphwidget.notebook.views.widget", "graphwidget.cli")  # fmt: skip


def test_loading_the_extension_loads_what_records_and_nothing_else() -> None:
    shell = (
        "import torch\nfrom IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()"
    )
    own = loaded_after(shell + "\nshell.run_cell('%load_ext graphwidget')") - loaded_after(shell)
    assert "graphwidget.capture.tracker" in own
    assert not [name for name in own for other in NOT_AT_LOAD if name == other or name.startswith(other + ".")]


def test_what_explains_is_loaded_when_it_is_asked() -> None:
    code = """
        import torch
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_cell("%load_ext graphwidget")
        shell.user_ns["torch"] = torch
        shell.run_cell("x = torch.ones(2, requires_grad=True); y = x.exp().sum(); y.backward(); y.backward()")
    """
    assert {"graphwidget.engine.forecast", "graphwidget.diagnosis.diagnose"} <= loaded_after(code)


def test_every_public_name_is_there() -> None:
    for name in graphwidget.__all__:
        assert getattr(graphwidget, name) is not None
    assert set(graphwidget.__all__) <= set(dir(graphwidget))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'snapshoot'"):
        graphwidget.snapshoot


def test_the_version_is_that_of_the_package() -> None:
    metadata = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{graphwidget.__version__}"\n' in metadata


def test_each_test_file_has_a_name_of_its_own() -> None:
    """Two of one name cannot be collected in one command."""
    tests = Path(__file__).parent
    names = [path.name for path in tests.rglob("test_*.py") if not {*path.parts[-4:-1]} & {"projects", "traps"}]
    assert sorted({name for name in names if names.count(name) > 1}) == []

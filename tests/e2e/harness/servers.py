"""The servers: Jupyter (Lab and Notebook 7 in one process), Voila, marimo and plain files."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from .kernel import Kernel
from .process import Server, free_port

LAB_SETTINGS = {
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}


def _env(home: Path, extra: dict[str, str] | None = None) -> dict[str, str]:
    """This process's environment with every per-user Jupyter folder under `home`."""
    env = dict(os.environ)
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    for name in (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTERLAB_SETTINGS_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
        "IPYTHONDIR",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
        "XDG_DATA_HOME",
    ):
        folder = home / name.lower()
        folder.mkdir(parents=True, exist_ok=True)
        env[name] = str(folder)
    env.update(extra or {})
    return env


class _Workplace:
    """A throw-away folder with `root` (copies of what the test needs) and `home`."""

    def __init__(self, files: list[str | Path]):
        self.folder = Path(tempfile.mkdtemp(prefix="graphwidget-e2e-"))
        self.root, self.home = self.folder / "root", self.folder / "home"
        self.root.mkdir()
        self.home.mkdir()
        for file in map(Path, files):
            if file.is_dir():
                shutil.copytree(file, self.root / file.name)
            else:
                shutil.copy(file, self.root / file.name)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class JupyterServer(Server):
    """`jupyter lab` on loopback; it also serves /notebooks (Notebook 7).

    `files` are copied into a throw-away root. `windowing` is Lab's notebook windowing mode:
    "none" keeps every cell in the DOM; "full" and "contentVisibility" are closer to a user's.
    `options` go to the command line, e.g. {"ServerApp.iopub_msg_rate_limit": 1e5}.
    """

    def __init__(
        self,
        files: list[str | Path] = (),
        windowing: str = "none",
        settings: dict[str, dict] | None = None,
        options: dict[str, object] | None = None,
        env: dict[str, str] | None = None,
        timeout_s: float = 60,
    ):
        self._place = _Workplace(list(files))
        self.root = self._place.root
        self.token = secrets.token_hex(16)
        environ = _env(self._place.home, env)
        self.runtime = Path(environ["JUPYTER_RUNTIME_DIR"])
        lab = dict(LAB_SETTINGS)
        lab["@jupyterlab/notebook-extension/tracker"] = {"windowingMode": windowing}
        lab.update(settings or {})
        for name, value in lab.items():
            file = Path(environ["JUPYTERLAB_SETTINGS_DIR"]) / f"{name}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(value))
        page_config = Path(environ["JUPYTER_CONFIG_DIR"]) / "labconfig/page_config.json"
        page_config.parent.mkdir()
        page_config.write_text('{"buildCheck": false, "buildAvailable": false}')  # saves a node run
        port = free_port()
        flags = {
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.port": port,
            "ServerApp.port_retries": 0,
            "ServerApp.root_dir": self.root,
            "ServerApp.open_browser": False,
            "ServerApp.allow_root": True,
            "IdentityProvider.token": self.token,
            "LabApp.expose_app_in_browser": True,  # window.jupyterapp
            "JupyterNotebookApp.expose_app_in_browser": True,
            "LabApp.extension_manager": "readonly",  # no look-up on PyPI
            "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
            **(options or {}),
        }
        argv = [sys.executable, "-m", "jupyterlab", *(f"--{k}={v}" for k, v in flags.items())]
        super().__init__(argv, f"http://127.0.0.1:{port}", self._place.folder / "server.log", environ, self.root)
        self.wait_ready(f"/api/status?token={self.token}", timeout_s)

    def page_url(self, path: str) -> str:
        return f"{self.url}/{path}{'&' if '?' in path else '?'}token={self.token}"

    def kernel(self, kernel_id: str) -> Kernel:
        return Kernel(self.runtime / f"kernel-{kernel_id}.json")

    def stop(self, grace_s: float = 10) -> None:
        super().stop(grace_s)
        self._place.remove()


class VoilaServer(Server):
    """`voila` on loopback: the page of one notebook, which runs when the page opens."""

    def __init__(self, notebook: str | Path, timeout_s: float = 60):
        self._place = _Workplace([notebook])
        environ = _env(self._place.home, None)
        port = free_port()
        argv = [sys.executable, "-m", "voila", Path(notebook).name, "--no-browser", f"--port={port}"]
        super().__init__(argv, f"http://127.0.0.1:{port}", self._place.folder / "server.log", environ, self._place.root)
        self.wait_ready("/static/favicon.ico", timeout_s)

    def stop(self, grace_s: float = 10) -> None:
        super().stop(grace_s)
        self._place.remove()


class MarimoServer(Server):
    """`marimo edit` or `marimo run` on loopback; in both, all cells run when the page opens."""

    def __init__(self, notebook: str | Path, mode: str = "edit", timeout_s: float = 60):
        self._place = _Workplace([notebook])
        environ = _env(self._place.home, None)
        config = Path(environ["XDG_CONFIG_HOME"]) / "marimo/marimo.toml"
        config.parent.mkdir()
        config.write_text("[runtime]\nauto_instantiate = true\n")  # an editor does not run cells by itself
        port = free_port()
        flags = ["--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
        flags += ["--skip-update-check"] if mode == "edit" else []
        argv = [sys.executable, "-m", "marimo", "--yes", mode, Path(notebook).name, *flags]
        super().__init__(argv, f"http://127.0.0.1:{port}", self._place.folder / "server.log", environ, self._place.root)
        self.wait_ready("/health", timeout_s)

    def stop(self, grace_s: float = 10) -> None:
        super().stop(grace_s)
        self._place.remove()


class FileServer(Server):
    """A folder over http on loopback (ES modules and workers do not load from file://)."""

    def __init__(self, folder: str | Path):
        port = free_port()
        argv = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
        log = Path(tempfile.mkstemp(prefix="graphwidget-e2e-", suffix=".log")[1])
        super().__init__(argv, f"http://127.0.0.1:{port}", log, dict(os.environ), Path(folder))
        self.wait_ready("/")

    def stop(self, grace_s: float = 10) -> None:
        super().stop(grace_s)
        self.log_file.unlink(missing_ok=True)

"""Open the first lecture in JupyterLab: what `graphwidget demo` and `make demo` do."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

FOLDER = "graphwidget-lectures"
START_SECONDS = 120


def open_lecture(port: int | None = None, *, browser: bool = True) -> int:
    """Copy the lectures to a folder here, serve them, print the URL, and stay until interrupted.

    Parameters
    ----------
    port
        Port of the server; None: a free one.
    browser
        Open a browser too, where there is a screen.

    Returns
    -------
    The exit status: 0, or 2 if JupyterLab is missing or does not start.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        print("graphwidget demo needs JupyterLab: pip install jupyterlab", file=sys.stderr)
        return 2
    folder = copy_lectures(Path.cwd() / FOLDER)
    first = sorted(folder.glob("*.ipynb"))[0].name
    port, token = port or _free_port(), secrets.token_hex(16)
    base = f"http://127.0.0.1:{port}"
    url = f"{base}/lab/tree/{first}?token={token}"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being ended stops the server, too
    server = subprocess.Popen(_command(folder, port, token))
    try:
        if not _answers(server, f"{base}/api/status?token={token}"):
            print(f"graphwidget demo: JupyterLab did not start on port {port}", file=sys.stderr)
            return 2
        print(f"\nThe first lecture: {url}\nThe notebooks are in {folder}. Stop with Ctrl+C.\n", flush=True)
        if browser and _has_screen():
            webbrowser.open(url)
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
        server.wait()
    return 0


def copy_lectures(folder: Path) -> Path:
    """Copy the lectures that are not there yet: what the user changed stays."""
    folder.mkdir(exist_ok=True)
    for lecture in _lectures():
        if not (folder / lecture.name).exists():
            shutil.copy(lecture, folder)
    return folder


def _lectures() -> list[Path]:
    """The notebooks of the installed package, or of the checkout that it is run from."""
    package = Path(__file__).resolve().parent.parent
    for place in (package / "notebooks", package.parent / "notebooks"):
        found = sorted(place.glob("*.ipynb"))
        if found:
            return found
    raise FileNotFoundError("the lecture notebooks are missing from this installation of graphwidget")


def _command(folder: Path, port: int, token: str) -> list[str]:
    flags = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": hasattr(os, "geteuid") and os.geteuid() == 0,
        "ServerApp.log_level": "WARN",
        "IdentityProvider.token": token,
    }
    return [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in flags.items())]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(server: subprocess.Popen[bytes], url: str) -> bool:
    """Wait until the server answers; False if it ended or takes too long."""
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    return False


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

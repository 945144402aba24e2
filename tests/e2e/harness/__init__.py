"""Drive JupyterLab, Notebook 7, Voila and marimo in headless Chromium and look at what the widget does there."""

from .browser import Browser, Log, screenshot
from .frontends import JupyterPage
from .kernel import Kernel
from .pictures import open_view, rest, show
from .process import wait_for
from .servers import FileServer, JupyterServer, MarimoServer, VoilaServer

__all__ = [
    "Browser",
    "FileServer",
    "JupyterPage",
    "JupyterServer",
    "Kernel",
    "Log",
    "MarimoServer",
    "VoilaServer",
    "open_view",
    "rest",
    "screenshot",
    "show",
    "wait_for",
]

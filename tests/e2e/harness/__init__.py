"""Drive JupyterLab and Notebook 7 in headless Chromium and look at what the widget does there."""

from .browser import Browser, Log, screenshot
from .frontends import JupyterPage
from .kernel import Kernel
from .process import wait_for
from .servers import FileServer, JupyterServer

__all__ = ["Browser", "FileServer", "JupyterPage", "JupyterServer", "Kernel", "Log", "screenshot", "wait_for"]

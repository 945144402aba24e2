"""The kernel in which `graphwidget explain` runs a notebook: Jupyter's own, with the tracker on and one more request.

The answer is made here, where the record is, and goes back in the reply to that request. No part of it passes through
the notebook's variables. This module is imported before the notebook's folder is first on Python's path.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from IPython.core.error import StdinNotImplementedError

from graphwidget.notebook import extension, session
from graphwidget.programs import answers, running
from graphwidget.programs.journal import ANSWER, CELL, Journal
from graphwidget.programs.target import Start
from graphwidget.trials import effects, rerun
from graphwidget.trials.asked import Asked
from graphwidget.trials.children import Forks

__all__ = ["main"]

NO_INPUT = "`{}` was called, and nobody is there to answer: `graphwidget explain` runs a notebook without a person."

_MOST_SOCKET_PATH = 90  # characters: the system takes about 100
_SETTINGS = (
    "--HistoryManager.enabled=False",  # the program is no part of the user's history
    "--InteractiveShell.colors=nocolor",
)


class Kernel(IPythonKernel):
    """Runs cells, and makes the answer at the end."""

    msg_types = [*IPythonKernel.msg_types, f"{ANSWER}_request"]
    shell: Any  # there is one as long as the kernel serves, and so is the session
    session: Any
    program: Path | None = None  # the file, if it is no notebook
    forks: Forks | None = None

    def watch(self) -> None:
        """Begin to record."""
        extension.load_ipython_extension(self.shell)
        self.tracker = session.tracker_of(self.shell)
        self.journal = Journal(self.shell, self.tracker.place_of_error)
        self.shell.ask_exit = self.ends
        self.again = rerun.now("")
        self.effects = effects.watch(self.again.folder)
        self.effects.follow(self.tracker)

    def ends(self) -> None:
        """`exit()` in a cell: the program has ended, but the kernel has to give the answer first."""
        self.shell.payload_manager.write_payload({"source": "ask_exit"})

    async def execute_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Run a cell, and record its error."""
        with self.journal.ran(parent["metadata"][CELL]):
            await super().execute_request(stream, ident, parent)  # type: ignore[no-untyped-call]

    async def graphwidget_answer_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Make the answer in the requested format."""
        asked = parent["content"]
        try:
            # The notebook may have unloaded the extension, or loaded it again.
            self.tracker = session.tracker_of(self.shell)
        except KeyError:
            pass
        try:
            self.journal.exit = int(self.journal.exit != 0)
            self.journal.stopped = asked["stopped"]
            start = Start(asked["target"], tuple(asked["arguments"]))
            path = str(self.program or asked["target"])
            again = replace(self.again, target=path, arguments=start.arguments, notebook=self.program is None)
            wish = Asked(asked["wanted"], again, self.effects, asked["seconds"], self.forks)
            wish = wish.with_cells(asked["cells"], asked["order"])
            answer = answers.answer(asked["format"], start, self.tracker, self.journal, asked=wish)
            content = {"text": answer.text, "status": answer.status}
        except Exception as error:
            content = {"problem": f"{type(error).__name__}: {error}"}
        self.session.send(stream, f"{ANSWER}_reply", content, parent, ident=ident)

    def raw_input(self, prompt: str = "") -> str:
        """`input()` in a cell."""
        raise StdinNotImplementedError(NO_INPUT.format("input()"))

    def getpass(self, prompt: str = "", stream: Any = None, **_options: Any) -> str:
        """`getpass.getpass()` in a cell."""
        raise StdinNotImplementedError(NO_INPUT.format("getpass()"))


def main(connection_file: str, launcher: str, script: str | None = None, arguments: Sequence[str] = ()) -> None:
    """Serve until the client asks to shut down.

    Parameters
    ----------
    connection_file
        Where to write how to connect. Nobody else may look into its folder: the sockets lie there, too.
    launcher
        What a notebook sees as `sys.argv[0]`, as in any kernel.
    script, arguments
        The file, if it is no notebook, and its ``sys.argv[1:]``.
    """
    Kernel.forks = Forks.begin()  # while there is but one thread
    sys.argv = [launcher, "-f", connection_file]
    app = IPKernelApp.instance(kernel_class=Kernel)
    sockets = connection_file.removesuffix(".json")
    reachable = ["--transport=ipc", f"--ip={sockets}"] if len(sockets) < _MOST_SOCKET_PATH else []
    app.initialize([*sys.argv[1:], *_SETTINGS, *reachable])
    if script is not None:
        running.pose_as(Path(script), arguments, app.shell)
        app.kernel.program = Path(script)
    app.kernel.watch()
    app.start()

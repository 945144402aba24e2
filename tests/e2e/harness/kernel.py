"""Ask the kernel behind a notebook, without going through the page."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from jupyter_client.blocking import BlockingKernelClient


class Kernel:
    """A second client of a running kernel, through its connection file.

    Requests are silent: no execution count, no history, and IPython fires `pre_execute` and
    `post_execute` but neither `pre_run_cell` nor `post_run_cell`.
    """

    def __init__(self, connection_file: Path, timeout_s: float = 60):
        self._timeout_s = timeout_s
        self._client = BlockingKernelClient(connection_file=str(connection_file))
        self._client.load_connection_file()
        self._client.start_channels(stdin=False, hb=False)

    def eval(self, expression: str) -> Any:
        """The value of an expression in the user's namespace; it must survive JSON."""
        return self._ask("", expression)

    def exec(self, code: str) -> None:
        self._ask(code, "None")

    def _ask(self, code: str, expression: str) -> Any:
        reply = self._client.execute(
            code,
            silent=True,
            store_history=False,
            user_expressions={"v": f"__import__('json').dumps({expression})"},
            reply=True,
            timeout=self._timeout_s,
        )["content"]
        if reply["status"] != "ok":
            raise RuntimeError(f"{reply['ename']}: {reply['evalue']}")
        value = reply["user_expressions"]["v"]
        if value["status"] != "ok":
            raise RuntimeError(f"{value['ename']}: {value['evalue']}")
        return json.loads(ast.literal_eval(value["data"]["text/plain"]))

    def close(self) -> None:
        self._client.stop_channels()

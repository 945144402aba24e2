"""`graphwidget explain` for many programs: torch is imported once, each program runs in a fork of its own.

Reads lines `path<TAB>order` and answers each with one line of JSON: [document or null, reason]. The document's
`_status` is the exit status.
"""

import json
import os
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from IPython.core import ultratb

from graphwidget import cli
from runs import plain

# What each fork would import by itself when it needs it: two thirds of the time that an explanation takes.
IN_EACH_FORK = (
    "bdb",
    "nbformat",
    "IPython.core.completerlib",
    "IPython.core.magics",
    "graphwidget.notebook.extension",
    "graphwidget.notebook.notes",
    "graphwidget.programs.answers",
    "graphwidget.programs.running",
)


def in_child(arguments, out, err):
    """Run the command with its output in files, and return the exit status."""
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    try:
        return cli.main(arguments)
    except BaseException:
        traceback.print_exc()
        return 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def answer(path, order):
    arguments = ["explain", "--no-try", "--format", "json", *(["--order", order] if order else []), path]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os._exit(in_child(arguments, out, err))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        if status not in (0, 1):
            return None, f"exit {status}: {err.read().decode(errors='replace')[-1500:]}"
        return {**json.loads(out.read()), "_status": status}, None


def show_a_traceback():
    """Show a traceback once for all forks: IPython reads and parses the shown files of torch, which takes 0.6 s.

    The backward fails before the engine starts: a process in which the engine has run must not be forked.
    """
    try:
        torch.zeros(1).backward()
    except RuntimeError:
        ultratb.AutoFormattedTB(mode="Context").structured_traceback(*sys.exc_info())


def main():
    for name in IN_EACH_FORK:
        import_module(name)
    plain.preload()
    show_a_traceback()
    for line in sys.stdin:
        path, order = line.rstrip("\n").split("\t")
        print(json.dumps(answer(path, order)), flush=True)


if __name__ == "__main__":
    main()

"""Python runs this at the start of the child processes of ``graphwidget run``, which has put this folder on their path.

It takes the folder off the path again, runs the `sitecustomize` that the process would have run without it, and imports
graphwidget, which reads in the environment whether to record. It must never keep a process from starting.
"""

import os
import sys


def _their_own(folder):
    ours = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)


def _begin(folder):
    root = os.path.abspath(os.path.join(folder, *[os.pardir] * 4))  # the folder that graphwidget lies in
    sys.path.insert(0, root)
    try:
        import graphwidget  # noqa: F401
    finally:
        sys.path.remove(root)


_folder = os.path.dirname(os.path.abspath(__file__))
try:
    _their_own(_folder)
finally:
    try:
        _begin(_folder)
    except Exception:  # another version of Python, or an environment without our parts: then nothing is recorded
        pass

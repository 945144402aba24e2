"""PyTorch's autograd graph, live in the notebook.

In IPython and Jupyter::

    %load_ext graphwidget      # from now on cells and backward calls are recorded
    %graphwidget               # the live view

In a script, in marimo, in a test: `view`, `snapshot`, `forecast`, `steps`, `predict`, `explain` and `track`; `load`
opens the record of a run.
Everything else that is public is a record that these functions return.

Names are imported when they are first used: `import graphwidget` alone loads neither torch nor
anywidget nor networkx.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphwidget.version import __version__ as __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from graphwidget.api import explain, forecast, predict, snapshot, steps, track, view
    from graphwidget.capture.tracker import Tracker
    from graphwidget.model import (
        Answer,
        BackwardCall,
        Comparison,
        Drawing,
        Event,
        Finding,
        Fix,
        Forecast,
        Kind,
        Leaf,
        ModuleCall,
        Node,
        NonFinite,
        Owner,
        Place,
        Prediction,
        SavedTensor,
        SlotState,
        Snapshot,
        Step,
        Steps,
        Storage,
        TensorRef,
        VariableChange,
    )
    from graphwidget.notebook.views.widget import AutogradView
    from graphwidget.record.problems import UnreadableRecord
    from graphwidget.record.run_record import RunRecord, load

_HOMES = {
    "graphwidget.api": ("explain", "forecast", "predict", "snapshot", "steps", "track", "view"),
    "graphwidget.replay": ("find_nan",),
    "graphwidget.capture.tracker": ("Tracker",),
    "graphwidget.notebook.views.widget": ("AutogradView",),
    "graphwidget.record.problems": ("UnreadableRecord",),
    "graphwidget.record.run_record": ("RunRecord", "load"),
    "graphwidget.model": (
        "Answer",
        "BackwardCall",
        "Comparison",
        "Drawing",
        "Event",
        "Finding",
        "Fix",
        "Forecast",
        "Kind",
        "Leaf",
        "ModuleCall",
        "Node",
        "NonFinite",
        "Owner",
        "Place",
        "Prediction",
        "SavedTensor",
        "SlotState",
        "Snapshot",
        "Step",
        "Steps",
        "Storage",
        "TensorRef",
        "VariableChange",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "AutogradView",
    "BackwardCall",
    "Comparison",
    "Drawing",
    "Event",
    "Finding",
    "Fix",
    "Forecast",
    "Kind",
    "Leaf",
    "ModuleCall",
    "Node",
    "NonFinite",
    "Owner",
    "Place",
    "Prediction",
    "RunRecord",
    "SavedTensor",
    "SlotState",
    "Snapshot",
    "Step",
    "Steps",
    "Storage",
    "TensorRef",
    "Tracker",
    "UnreadableRecord",
    "VariableChange",
    "explain",
    "find_nan",
    "forecast",
    "load",
    "load_ipython_extension",
    "predict",
    "snapshot",
    "steps",
    "track",
    "unload_ipython_extension",
    "view",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Switch tracking on in this shell: what ``%load_ext graphwidget`` calls.

    Examples
    --------
    >>> import graphwidget
    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> shell = InteractiveShell()
    >>> graphwidget.load_ipython_extension(shell)
    >>> "graphwidget" in shell.magics_manager.magics["line"]
    True
    >>> graphwidget.unload_ipython_extension(shell)
    """
    from graphwidget.notebook import extension

    extension.load_ipython_extension(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Switch tracking off and restore everything: what ``%unload_ext graphwidget`` calls.

    Examples
    --------
    >>> import graphwidget
    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> shell = InteractiveShell()
    >>> graphwidget.load_ipython_extension(shell)
    >>> "graphwidget" in shell.magics_manager.magics["line"]
    True
    >>> graphwidget.unload_ipython_extension(shell)
    >>> "graphwidget" in shell.magics_manager.magics["line"]
    False
    """
    from graphwidget.notebook import extension

    extension.unload_ipython_extension(shell)


if os.environ.get("GRAPHWIDGET_RECORD"):
    from graphwidget.programs.recording import environment

    environment.begin()

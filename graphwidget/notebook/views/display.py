"""What stands in a notebook's output beside the widget: a picture and text, for all who cannot show the widget.

An untrusted notebook in JupyterLab shows no widget and no SVG, but PNG; so do GitHub, and others that only read the
file. A notebook that is run for a file (nbconvert, papermill, Quarto) gets no widget at all: the HTML that is made of
it would prefer the widget, and draw it with scripts from elsewhere.
"""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from graphwidget.model import Drawing, Event
from graphwidget.render import raster, text

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

    from graphwidget.capture.tracker import Tracker
    from graphwidget.notebook.views.widget import AutogradView

__all__ = ["Standing", "beside", "is_watched"]

log = logging.getLogger("graphwidget")

# Of a larger graph there is text only: nobody should wait for a picture that nobody may see.
MAX_NODES = 2000
SCALE = 1.5  # pixels for one px: sharp enough beside text, in a file that is kept small
_WIDGETS = "application/vnd.jupyter.widget-view+json"


def is_watched() -> bool:
    """Whether a front end may show the widget.

    Who runs a notebook from start to end for a file tells the kernel that nobody can answer `input()`. So does Voila,
    which has a page; it can be told by the variables that it gives to its kernels.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    get_parent = getattr(kernel, "get_parent", None)
    if (
        get_parent is None
        or os.environ.get("SERVER_SOFTWARE", "").startswith("voila")
        or "VOILA_BASE_URL" in os.environ
    ):
        return True
    try:
        content = get_parent("shell").get("content") or {}
    except Exception as error:  # unknown counts as watched
        log.warning("graphwidget: who runs this notebook is unknown", exc_info=error)
        return True
    return content.get("allow_stdin") is not False


def beside(drawing: Drawing, bundle: Any) -> Any:
    """An output with a widget (data, or data and metadata), completed with picture and text. Never raises."""
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    data = {**data, "text/plain": text.picture(drawing)}
    if not is_watched():
        data.pop(_WIDGETS, None)
    if 0 < len(drawing.snapshot) <= MAX_NODES:
        try:
            picture = raster.to_raster(drawing, scale=SCALE)
        except ImportError:
            pass  # no quickjs-ng
        except Exception as error:  # nothing of ours raises into a user's cell
            log.warning("graphwidget: no picture beside the widget", exc_info=error)
        else:
            data["image/png"] = base64.b64encode(picture.png).decode("ascii")
            metadata = {**metadata, "image/png": {"width": picture.width, "height": picture.height}}
    return data, metadata


class Standing:
    """The output of ``%graphwidget`` in a notebook that is run for a file: a picture that follows, as the widget would.

    It is replaced after each cell until the view is shown again, so that each picture belongs to its part of the
    notebook. Where a widget is shown nothing is replaced.
    """

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None

    def follow(self, handle: DisplayHandle | None, view: AutogradView, tracker: Tracker) -> None:
        """From now on `handle` is the output that follows."""
        self.let_go()
        if handle is None or is_watched():
            return

        def after(event: Event) -> None:
            if event.kind != "cell":
                return
            try:
                handle.update(view)
            except Exception as error:  # nothing of ours raises into a user's cell
                log.warning("graphwidget: the picture in the notebook is not the last one", exc_info=error)

        self._stop = tracker.subscribe(after)

    def let_go(self) -> None:
        """The last picture stays."""
        if self._stop is not None:
            self._stop()
        self._stop = None

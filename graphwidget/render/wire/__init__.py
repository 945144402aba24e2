"""The message from the kernel to the page.

`columns` writes numbers and texts; `graph` and `story` write the two halves of a message (`moments` the events in it),
`message` writes a whole one, and `changes` writes the differences to it.
"""

from graphwidget.render.wire.changes import delta
from graphwidget.render.wire.message import SCHEMA, Base, OfferedRoot, encode, offer
from graphwidget.render.wire.moments import MAX_EVENTS
from graphwidget.render.wire.story import MAX_CALLS

__all__ = ["MAX_CALLS", "MAX_EVENTS", "SCHEMA", "Base", "OfferedRoot", "delta", "encode", "offer"]

"""The message from the kernel to the page: `columns` writes numbers, `graph` and `story` the two halves, `message` all.

`delta` says what changed since an earlier message.
"""

from graphwidget.render.wire.message import MAX_CALLS, MAX_EVENTS, SCHEMA, Base, OfferedRoot, delta, encode, offer

__all__ = ["MAX_CALLS", "MAX_EVENTS", "SCHEMA", "Base", "OfferedRoot", "delta", "encode", "offer"]

"""Every private name of torch that graphwidget uses, and what graphwidget relies on it for.

Each name is looked up when graphwidget is imported (see `private`), with a sentence that says what is lost
without it; versions are never compared. Nothing here runs an unpack hook, recomputes a checkpoint, bumps a
version counter or keeps an object alive. Tensor properties are read through the descriptors of the base
class, so that no subclass's property or `__torch_function__` runs; `quiet` switches off the modes that would
intercept even those reads.

One read is never pure: a *stale view* (a view whose base, or another view of it, was modified in place
since) gets new nodes, with new sequence numbers, when its `.grad_fn`, `.is_leaf` or `.retains_grad` is
read, and when a slot that saved it is unpacked. `maybe_stale_view` detects such views without rebuilding them.
"""

# Each part lists its names in `__all__`.
from graphwidget.torch_internals.checkpoints import *
from graphwidget.torch_internals.engine import *
from graphwidget.torch_internals.files import *
from graphwidget.torch_internals.memory import *
from graphwidget.torch_internals.modules import *
from graphwidget.torch_internals.nodes import *
from graphwidget.torch_internals.private import *
from graphwidget.torch_internals.state import *
from graphwidget.torch_internals.tensors import *

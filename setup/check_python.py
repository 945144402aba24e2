"""Print a clear message about missing requirements before pip fails with an obscure one. Runs on any Python 3."""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 (this file is what an older Python reads)
    sys.exit(
        "graphwidget needs Python 3.10 or newer; this is %d.%d.\n" % sys.version_info[:2]  # noqa: UP031
        + "Install one and run: make PYTHON=python3.11 demo"
    )
try:
    import ensurepip  # noqa: F401
except ImportError:
    sys.exit("This Python cannot make virtual environments. On Debian or Ubuntu: apt install python3-venv")

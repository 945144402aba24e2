"""`python -m graphwidget` is the command `graphwidget`."""

import sys

from graphwidget.cli import main

sys.exit(main())

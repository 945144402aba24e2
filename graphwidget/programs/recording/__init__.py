"""Recording that nobody began by hand: asked for by the environment, and by `graphwidget run`."""

"""The export methods of a snapshot.

The code that writes a graph is in `render`, in the table `FORMATS`. Its import is the only one from this room to a
room above it.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

__all__ = ["Exportable"]


class Exportable:
    """The export methods that `Snapshot` inherits."""

    def export(self, format: str, path: str | PathLike[str] | None = None) -> Any:
        """The graph in another form.

        Parameters
        ----------
        format
            ``"text"``, ``"json"``, ``"html"``, ``"svg"``, ``"png"``, ``"dot"`` or ``"networkx"``.
        path
            A file to write to, in UTF-8. Default: none is written.

        Returns
        -------
        The text, the bytes of a PNG file, or the `networkx.MultiDiGraph`; None if it was written to `path`.

        Raises
        ------
        ValueError
            If there is no such format, or if a path is given for ``"networkx"``.
        ImportError
            If quickjs-ng (``"svg"``, ``"png"``) or networkx is not installed.
        OSError
            If `path` cannot be written.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> graph = graphwidget.snapshot((w * 2).sum())
        >>> print(graph.export("dot").splitlines()[0])
        digraph autograd {
        """
        from graphwidget.exports.formats import export

        return export(self, format, path)  # type: ignore[arg-type]  # a Snapshot: no other class has these methods

    def to_text(self) -> str:
        """A picture in characters: one line per node from the losses to the leaves.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> loss = (w * 2).sum()
        >>> print(graphwidget.snapshot(loss).to_text().splitlines()[0])
        Autograd graph: 2 nodes, 1 leaf, 1 root; 8 B held
        """
        return str(self.export("text"))

    def to_json(self) -> str:
        """The graph as JSON text: one object per node, for other programs. Sizes are in bytes, calls count from 1.

        Examples
        --------
        >>> import json, torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> graph = json.loads(graphwidget.snapshot((w * 2).sum()).to_json())
        >>> [node["name"] for node in graph["nodes"]]
        ['SumBackward0', 'MulBackward0', 'AccumulateGrad']
        """
        return str(self.export("json"))

    def to_dot(self) -> str:
        """The graph in Graphviz' language.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> graphwidget.snapshot((w * 2).sum()).to_dot().count("->")
        2
        """
        return str(self.export("dot"))

    def to_networkx(self) -> Any:
        """A `networkx.MultiDiGraph` with uids as nodes, edges from loss to leaves.

        Raises
        ------
        ImportError
            If networkx is not installed.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> graph = graphwidget.snapshot((w * 2).sum()).to_networkx()
        >>> len(graph.nodes), len(graph.edges)
        (3, 2)
        """
        return self.export("networkx")

    def to_svg(self) -> str:
        """A static picture as SVG text.

        Raises
        ------
        ImportError
            If quickjs-ng is not installed.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> graphwidget.snapshot((w * 2).sum()).to_svg()[:4]
        '<svg'
        """
        return str(self.export("svg"))

    def to_png(self, path: str | PathLike[str]) -> None:
        """Write a static picture to `path` as PNG, for places that take no SVG.

        Raises
        ------
        ImportError
            If quickjs-ng is not installed.
        OSError
            If `path` cannot be written.

        Examples
        --------
        >>> import os, tempfile, torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> path = os.path.join(tempfile.mkdtemp(), "graph.png")
        >>> graphwidget.snapshot((w * 2).sum()).to_png(path)
        >>> os.path.getsize(path) > 1000  # bytes
        True
        """
        self.export("png", path)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write the view to `path` as one HTML file, to look around in: it needs no kernel and no network.

        Raises
        ------
        OSError
            If `path` cannot be written.

        Examples
        --------
        >>> import os, tempfile, torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> path = os.path.join(tempfile.mkdtemp(), "graph.html")
        >>> graphwidget.snapshot((w * 2).sum()).to_html(path)
        >>> os.path.getsize(path) > 1000  # bytes
        True
        """
        self.export("html", path)

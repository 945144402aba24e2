"""One table of formats for a snapshot, the command line and the view's export menu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from build import reused_product

from graphwidget.cli import main
from graphwidget.exports.formats import FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_a_snapshot_has_a_method_for_each_format(name: str, tmp_path: Path) -> None:
    graph = reused_product()
    written = graph.export(name)
    method = getattr(graph, f"to_{name}")
    if name in ("html", "png"):
        path = tmp_path / f"graph.{name}"
        assert method(path) is None
        assert path.read_bytes() == (written.encode("utf-8") if isinstance(written, str) else written)
    elif name == "networkx":
        assert method().nodes == written.nodes
    else:
        assert method() == written


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.suffix and not form.binary])
def test_what_has_a_suffix_is_text_and_can_be_written_to_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph{FORMATS[name].suffix}"
    assert reused_product().export(name, path) is None
    assert path.read_text(encoding="utf-8") == reused_product().export(name)
    assert FORMATS[name].media_type and FORMATS[name].program


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'jason'. Did you mean 'json'\?") as raised:
        reused_product().export("jason")
    assert all(name in str(raised.value) for name in FORMATS)


def test_an_object_cannot_be_written_to_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leave path out"):
        reused_product().export("networkx", tmp_path / "graph")
    assert not any(tmp_path.iterdir())


def test_the_command_line_offers_the_formats_of_a_program(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    offered = ",".join(name for name, form in FORMATS.items() if form.program)
    assert f"--format {{{offered}}}" in capsys.readouterr().out and "networkx" not in offered

"""Static pictures: SVG drawn by the front end's own code."""

from __future__ import annotations

import sys
import threading
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from build import chain, leaf, reused_product, snapshot
from stories import story

from graphwidget.model import Snapshot
from graphwidget.render import picture

SVG = "{http://www.w3.org/2000/svg}"


def all_text(svg: str) -> str:
    return " | ".join("".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text"))


def nodes(svg: str) -> dict[str, dict[str, str]]:
    groups = ET.fromstring(svg).iter(f"{SVG}g")
    return {g.attrib["data-uid"]: dict(g.attrib) for g in groups if "data-node" in g.attrib}


def test_a_snapshot_becomes_well_formed_svg_that_names_its_nodes() -> None:
    svg = reused_product().to_svg()
    assert nodes(svg)["4"]["data-node"] == "MvBackward0"
    assert nodes(svg)["4"]["data-state"] == "freed"
    assert nodes(svg)["9"]["data-state"] == "held"
    assert nodes(svg)["6"]["data-ghost"] == "true"
    words = all_text(svg)
    for word in ("MvBackward0", "self", "freed", "In[1]:6", "loss"):
        assert word in words


def test_the_finding_and_its_ways_out_stand_below_the_drawing() -> None:
    svg = picture.to_svg(story())
    words = all_text(svg)
    assert "Call 2 needs saved tensors that call 1 freed." in words
    assert "Compute y inside the loop: y = t @ a" in words
    root = ET.fromstring(svg)
    assert root.findtext(f"{SVG}title") == "Autograd graph after In[2], which raised"
    assert "call 1 freed" in (root.findtext(f"{SVG}desc") or "")


def test_a_picture_needs_nothing_from_elsewhere() -> None:
    svg = picture.to_svg(story())
    assert "<script" not in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in svg


def test_light_and_dark_are_in_one_file_unless_one_is_asked_for() -> None:
    assert "prefers-color-scheme" in picture.to_svg(story())
    dark = picture.to_svg(story(), theme="dark")
    assert "prefers-color-scheme" not in dark
    assert "#13161a" in dark


def test_a_wrong_theme_or_a_wrong_object_is_refused_with_the_next_step() -> None:
    with pytest.raises(ValueError, match="theme is 'auto', 'light' or 'dark', not 'blue'"):
        picture.to_svg(story(), theme="blue")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not of int: call gw.snapshot"):
        picture.to_svg(3)  # type: ignore[arg-type]


def test_an_empty_graph_is_drawn_too() -> None:
    assert ET.fromstring(Snapshot().to_svg()).tag == f"{SVG}svg"


def test_names_from_the_notebook_stay_text() -> None:
    evil = "<b>'&\ud800\0"
    graph = snapshot([reused := leaf(evil)], roots={evil: 0})
    assert reused.leaf is not None
    drawing = replace(story(), snapshot=graph, findings=(replace(story().findings[0], headline=evil, node_uid=None),))
    assert "<b>" not in picture.to_svg(drawing)
    ET.fromstring(picture.to_svg(drawing))


def test_a_graph_of_thousands_of_nodes_is_folded_to_a_screen() -> None:
    assert len(nodes(chain(3000).to_svg())) <= 60


def test_any_thread_may_draw() -> None:
    drawn: list[str] = []
    threads = [threading.Thread(target=lambda: drawn.append(picture.to_svg(story()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drawn == [picture.to_svg(story())] * 2


def test_without_the_engine_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_quickjs", None)
    with pytest.raises(ImportError, match="pip install quickjs-ng"):
        reused_product().to_svg()


def test_in_the_browsers_python_it_names_what_works_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_quickjs", None)
    monkeypatch.setattr(sys, "platform", "emscripten")
    with pytest.raises(ImportError, match=r"use to_text\(\) or to_dot\(\)"):
        reused_product().to_svg()

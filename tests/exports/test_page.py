"""The one-file page: what it holds, what it may load, and that no text of the user's program becomes code."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from build import chain, leaf, reused_product, snapshot
from stories import story

from graphwidget.exports import page, recording
from graphwidget.exports.formats import export
from graphwidget.model import Drawing, Event
from graphwidget.render import picture


class Elements(HTMLParser):
    """The elements of a page as a browser's parser finds them: tag, attributes, and the text inside."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))

    def handle_data(self, data: str) -> None:
        if self.found:
            self.found[-1][2].append(data)

    def texts(self, tag: str) -> list[str]:
        return ["".join(text) for each, _, text in self.found if each == tag]


def recorded(html: str) -> dict[str, Any]:
    (text,) = re.findall(r'id="recording">([^<]*)<', html)
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    pieces = data.pop("pieces")
    for answer in data["answers"].values():
        if answer.get("wire"):
            stretches = list(zip(answer["wire"][::2], answer["wire"][1::2]))
            answer["wire"] = "".join("".join(pieces[first : first + count]) for first, count in stretches)
    return data


def told() -> Drawing:
    """A story whose first event has a stored picture."""
    first, last = story().events
    return replace(story(), events=(replace(first, snapshot=reused_product()), last))


def test_the_file_holds_the_view_the_findings_and_the_words(tmp_path: Path) -> None:
    path = tmp_path / "graph.html"
    export(story(), "html", path)
    html = path.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert "✕ Call 2 needs saved tensors that call 1 freed." in html
    assert "1. Compute y inside the loop: y = t @ a" in html
    assert "The graph in words" in html
    assert json.loads(recorded(html)["wire"])["schema"] == 2


def test_earlier_moments_and_the_owners_of_nodes_are_recorded() -> None:
    answers = recorded(page.to_html(told()))["answers"]
    assert json.loads(answers["snapshot 0"]["wire"])["event"] == 0
    assert "snapshot 1" not in answers, "the last moment is the picture itself"
    uids = reused_product().uid
    assert {f"inspect {uid}" for uid in uids} <= answers.keys()
    assert any(kept["path"] == "loss" for uid in uids for kept in answers[f"inspect {uid}"]["keptBy"])


def test_what_is_packed_is_what_was_recorded_and_equal_rows_are_there_once() -> None:
    events = tuple(Event(n, "cell", n, snapshot=chain(300)) for n in range(12))
    drawing = Drawing(chain(300), events=events, current_event=11)
    html = page.to_html(drawing)
    made = recording.recording(drawing)
    assert recorded(html) == json.loads(json.dumps(made))
    text = gzip.decompress(base64.b64decode(recording.packed(made)))
    pieces = json.loads(text)["pieces"]
    assert len(set(pieces)) == len(pieces)
    assert len(text) < len(json.dumps(made))


def test_moments_beyond_the_limit_are_shown_as_not_stored(monkeypatch: Any) -> None:
    events = tuple(Event(n, "cell", n, snapshot=chain(50)) for n in range(6))
    drawing = Drawing(chain(50), events=events, current_event=5)
    made = recording.recording(drawing)["answers"]
    without = sum(len(json.dumps(made[name])) for name in made if not name.startswith("snapshot"))
    monkeypatch.setattr(recording, "MOST", without + 3 * len(json.dumps(made["snapshot 2"])))
    made = recording.recording(drawing)
    stored = [int(name.split()[1]) for name in made["answers"] if name.startswith("snapshot")]
    kept = [event["id"] for event in json.loads(made["wire"])["events"][:-1] if event["kept"]]
    assert sorted(stored) == kept and kept[-1] == 4 and 1 <= len(kept) < 5


def test_nothing_is_loaded_and_only_the_script_in_the_file_may_run() -> None:
    html = page.to_html(story())
    elements = Elements(html)
    assert not [attrs for _, attrs, _ in elements.found if {"src", "href"} & attrs.keys()]
    assert "url(" not in html.replace("url(#", "")
    (policy,) = [attrs["content"] for tag, attrs, _ in elements.found if tag == "meta" and "http-equiv" in attrs]
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-")
    *_, script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_text_of_the_program_stays_text() -> None:
    evil = "</script><script>alert(1)</script></pre><img src=x onerror=alert(2)><!-- &amp; \" ' \ud800\0"
    graph = snapshot([leaf(evil)], roots={evil: 0})
    finding = replace(story().findings[0], headline=evil, text=evil, node=evil, node_uid=None)
    drawing = replace(told(), snapshot=graph, findings=(finding,))
    html = page.to_html(drawing, title=evil)
    html.encode("utf-8")
    tags = [tag for tag, *_ in Elements(html).found]
    assert tags.count("script") == 2 and "img" not in tags and "iframe" not in tags
    assert "alert(1)" in Elements(html).texts("title")[0]
    assert evil in json.loads(recorded(html)["wire"])["strings"], "it is drawn as it is"


def test_a_page_needs_no_engine_for_the_static_picture(monkeypatch: Any) -> None:
    def missing(*_: object, **__: object) -> str:
        raise ImportError("quickjs-ng")

    monkeypatch.setattr(picture, "run_engine", missing)
    html = page.to_html(story())
    assert "<svg" not in html.partition("<script")[0]
    assert recorded(html)["wire"]

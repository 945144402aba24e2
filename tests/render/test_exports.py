from __future__ import annotations

import json
import re

import networkx
from build import HELD, N, leaf, reused_product, snapshot


def test_networkx_has_every_node_edge_and_input_number() -> None:
    graph = snapshot(
        [N("A", (1, (1, 1))), N("B", ((2, 3),), (("self", (2,), HELD),)), leaf("w", shape=(4,))], roots={"loss": 0}
    )
    nx = graph.to_networkx()
    assert isinstance(nx, networkx.MultiDiGraph)
    assert nx.nodes[101]["name"] == "B" and nx.nodes[101]["saved"][0]["state"] == "held"
    assert sorted(data["input_nr"] for _, _, data in nx.edges(data=True)) == [0, 1, 3]
    assert nx.graph["roots"] == {"loss": 100}
    assert nx.nodes[102]["leaf"]["shape"] == [4] and nx.nodes[102]["labels"] == ["w"]


def test_json_names_nodes_by_uid_and_unknown_is_null() -> None:
    document = json.loads(reused_product().to_json())
    assert document["schema"] == 1 and document["held_bytes"] == 12
    by_uid = {node["uid"]: node for node in document["nodes"]}
    assert by_uid[9]["next"] == [[4, 0]] and by_uid[9]["module"] is None
    assert by_uid[4]["saved"][0] == {
        "name": "self",
        "state": "freed",
        "dtype": "float32",
        "shape": [3, 4],
        "bytes": 48,
        "storage": None,
        "freed_by": 1,  # calls count from 1, as in the text
    }
    assert by_uid[103]["sequence_nr"] is None and by_uid[103]["leaf"]["has_grad"] is True
    assert by_uid[4]["place"]["line"] == 6
    assert document["roots"][0]["path"] == "loss" and document["roots"][0]["node"] == 10


def test_dot_draws_each_node_once_and_each_edge() -> None:
    dot = reused_product().to_dot()
    assert len(re.findall(r"^  n\d+ \[", dot, re.M)) == 7
    assert len(re.findall(r" -> ", dot)) == 6
    assert "freed by call 1" in dot and 'style="dotted"' in dot and 'style="bold"' in dot


def test_dot_escapes_what_would_end_its_strings() -> None:
    dot = snapshot([N("A")], names={'d["k\\"]\n': 0}).to_dot()
    assert 'd[\\"k\\\\\\"]\\n' in dot


def test_the_text_of_a_snapshot_is_the_text_picture() -> None:
    assert reused_product().to_text().startswith("Autograd graph: 5 nodes (2 gone)")

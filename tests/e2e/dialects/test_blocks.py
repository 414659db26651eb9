"""docs/blocks.md says what becomes of each kind of block at each provider; here each of its cells is tried."""

import json
from typing import Any

import pytest

from tests.e2e.dialects import blocks
from tests.e2e.dialects.blocks import KINDS, Kind, documented, fate
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME, NAMES
from tests.e2e.dialects.script import TOOLS
from tests.e2e.dialects.wire import WIRES
from tests.servers.bridge import PROJECT
from tests.servers.client import Client, folded
from tests.servers.records import Records
from tests.servers.script import sse_answer

PAGE = PROJECT / "docs" / "blocks.md"
RECORDED = {"left out": b"left-out", "recorded": b"citations-ignored"}
# A conversation of the script whose first call is answered by hand.
CALL = {"type": "tool_use", "id": "toolu_0123456789abcdefghijklmn", "name": "Read", "input": {"path": "a.txt"}}


def messages(kind: Kind) -> list[Any]:
    ask = {"role": "user", "content": "[chain blocks ids=own] Go."}
    if not kind.in_result:
        return [{"role": "user", "content": [{"type": "text", "text": "[chain blocks ids=own] Go."}, kind.block]}]
    result = {"type": "tool_result", "tool_use_id": CALL["id"], "content": [kind.block]}
    return [ask, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [result]}]


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@pytest.mark.parametrize("name", NAMES)
def test_a_block_meets_the_fate_that_the_table_says(
    name: str, kind: Kind, client: Client, models: Models, records: Records
) -> None:
    models.lenient = True
    provider = BY_NAME[name]
    response = client.ask(*messages(kind), model=provider.route, tools=TOOLS)
    expected = documented(PAGE.read_text(encoding="utf-8"))[name][kind.name]
    if response.status_code == 400:
        error = response.json()["error"]
        path = "messages.2.content.0.content.0" if kind.in_result else "messages.0.content.1"
        assert error["type"] == "invalid_request_error"
        assert error["message"].startswith(path), error
        assert models.requests == []
        found = "refused"
    else:
        assert response.status_code == 200, response.text
        (sent,) = models.requests
        assert provider.dialect.refused(sent.body, long_ids=False) == []
        found = fate(sent.json(), kind)
    if kind.name == "citations" and found == "text":
        found = "recorded"
    assert found == expected
    if found in RECORDED:
        (turn,) = records.ended(client.api_key, 1)
        assert RECORDED[found] in turn.notes


def test_the_table_has_every_provider_and_every_kind() -> None:
    cells = documented(PAGE.read_text(encoding="utf-8"))
    assert tuple(cells) == NAMES
    assert all(tuple(row) == tuple(blocks.BY_NAME) for row in cells.values())


MEDIA = [kind for kind in KINDS if not kind.in_result]


@pytest.mark.parametrize("kind", MEDIA, ids=[kind.name for kind in MEDIA])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "anthropic"])
def test_a_block_for_another_model_does_not_end_the_conversation(
    name: str, kind: Kind, client: Client, models: Models
) -> None:
    """What a model refuses when it is new is left out of its history: it was said to another model."""
    models.lenient = True
    first = messages(kind)
    response = client.ask(*first, {"role": "assistant", "content": "Seen."}, "Go on.", model=BY_NAME[name].route)
    assert response.status_code == 200, response.text
    (sent,) = models.requests
    assert BY_NAME[name].dialect.refused(sent.body, long_ids=False) == []


CITED = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "A fact."},
    "citations": {"enabled": True},
}
REMINDERS = [{"role": "system", "content": f"Reminder {number}."} for number in range(3)]


@pytest.mark.parametrize("name", ["openai-responses", "gemini"])
def test_what_could_not_be_told_is_recorded_with_the_turn_that_it_came_in(
    name: str, client: Client, models: Models, records: Records
) -> None:
    """Once, and wherever it stands: reminders become one with what the user said before them."""
    wire = WIRES[name]
    history: list[Any] = []
    for number in range(3):
        asked = {"role": "user", "content": [{"type": "text", "text": f"Look {number}."}, CITED]}
        history += [asked, *(REMINDERS if number == 0 else [])]
        models.queue(wire.path, sse_answer(*wire.text, *wire.end))
        blocks = folded(client.events(*history, model=BY_NAME[name].route))
        history.append({"role": "assistant", "content": blocks})
    turns = records.ended(client.api_key, 3)
    cited = [
        note["what"].partition(":")[0]
        for turn in turns
        for note in json.loads(bytes(turn.notes))
        if note["rule"] == "citations-ignored"
    ]
    assert sorted(cited) == ["messages.0.content.1", "messages.5.content.1", "messages.7.content.1"]

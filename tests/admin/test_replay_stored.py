"""Turns of a real bridge run again by the command, on both databases: the request that was sent is sent once more."""

import json

from tests.api.conftest import (
    BOTH,
    Connect,
    Served,
    connect,
    database,
    postgres_served,
    serve_shared,
    served,
    shared_upstream,
    sqlite_served,
)
from tests.servers import chat
from tests.servers.client import TOOL, Client, result

__all__ = ["connect", "database", "postgres_served", "serve_shared", "served", "shared_upstream", "sqlite_served"]


def two_steps(served: Served, client: Client) -> str:
    """A call and its result; the request id of the second turn."""
    served.chat(chat.calls(("call_1", "get_weather", {"city": "Rome"})), chat.text("It is sunny."))
    first = client.ask("Weather?", tools=[TOOL], system="Be short.").json()
    call = next(block for block in first["content"] if block["type"] == "tool_use")
    said = ("Weather?", {"role": "assistant", "content": first["content"]}, result(call["id"]))
    second = client.ask(*said, tools=[TOOL], system="Be short.")
    assert second.status_code == 200
    return second.headers["request-id"]


@BOTH
def test_a_stored_turn_is_sent_again_as_it_was(served: Served, connect: Connect) -> None:
    client = connect(served)
    turn = two_steps(served, client)
    served.records.ended(client.api_key, 2)
    served.chat(chat.text("It rains."))
    served.bridge.manage("replay_turn", turn)
    *_, before, again = served.upstream.requests
    assert again.body == before.body
    row = served.records.rows("Replay").get(turn__request_id=turn)
    assert (row.status, row.exact) == ("complete", True)
    assert json.loads(bytes(row.content))[0]["text"] == "It rains."
    assert served.records.turns(client.api_key).count() == 2


@BOTH
def test_a_stored_turn_is_made_anew_with_all_that_it_had(served: Served, connect: Connect) -> None:
    client = connect(served)
    turn = two_steps(served, client)
    served.records.ended(client.api_key, 2)
    served.chat(chat.text("It rains."))
    served.bridge.manage("replay_turn", turn, "--target", "openai/gpt-other")
    *_, before, again = [request.body.replace(b'\\": \\"', b'\\":\\"') for request in served.upstream.requests]
    # The answer is stored as its upstream spelled it, whatever the client made of its spaces.
    assert json.loads(again)["model"] == "gpt-other"
    assert again.replace(b"gpt-other", b"gpt-test") == before

"""A refused block is named as the client counts."""

import pytest

from translation.errors import InvalidRequest
from translation.places import told
from translation.values import Image, Message, Text

PICTURE = Image("url", "https://a.example/1")
ASKED = (Message("user", (Text("a"),)), Message("user", (Text("b"), PICTURE)), Message("user", (Text("c"),)))
SENT = (Message("user", (Text("a"), Text("b"), PICTURE, Text("c"))),)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("messages.0.content.2.source: no", "messages.1.content.1.source: no"),
        ("messages.0.content.0: no", "messages.0.content.0: no"),  # a text that the bridge has put there
        ("messages.0.content.9: no", "messages.0.content.9: no"),
        ("messages.5.content.0: no", "messages.5.content.0: no"),
        ("tool_choice: no", "tool_choice: no"),
    ],
)
def test_a_block_is_named_by_its_place_in_the_clients_request(said: str, heard: str) -> None:
    assert told(InvalidRequest(said), SENT, ASKED).message == heard


def test_of_equal_messages_the_newest_is_meant() -> None:
    twice = (ASKED[1], Message("assistant", (Text("x"),)), ASKED[1])
    assert told(InvalidRequest("messages.2.content.1: no"), twice, twice).message == "messages.2.content.1: no"

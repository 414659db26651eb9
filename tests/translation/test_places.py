"""A refused block, and one that cannot be told as it is, are named as the client counts."""

import pytest

from translation.errors import InvalidRequest
from translation.places import noted, told
from translation.values import Image, Message, Note, Text

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


def note(what: str, message: int) -> Note:
    return Note("degradation", "rule", what, message)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (note("messages.0.content.2: no", 0), note("messages.1.content.1: no", 1)),
        (note("messages.0.content.2.content.4: no", 0), note("messages.1.content.1.content.4: no", 1)),
        (note("messages.0: no", 0), note("messages.1: no", 1)),  # the newest of those that it is made of
        (note("messages.1.content.0: no", 1), note("messages.1.content.0: no", 1)),  # what the bridge has put there
        (note("metadata: no", -1), note("metadata: no", -1)),
    ],
)
def test_a_note_is_about_the_clients_own_message(given: Note, wanted: Note) -> None:
    sent = (*SENT, Message("assistant", (Text("(no content)"),)))
    assert noted((given,), sent, ASKED) == (wanted,)


def test_what_the_bridge_put_first_belongs_to_the_first_message() -> None:
    sent = (Message("user", (Text("(earlier messages are not available)"),)), ASKED[0])
    assert noted((note("messages.0: no", 0),), sent, ASKED) == (note("messages.0: no", 0),)


def test_of_equal_messages_each_has_its_notes() -> None:
    """They are one value; of those that were left out the older ones are meant."""
    asked = (ASKED[1], ASKED[1], Message("assistant", (Text("x"),)), ASKED[1])
    notes = noted((note("messages.0.content.1", 0), note("messages.2.content.1", 2)), asked[1:], asked)
    assert [each.message for each in notes] == [1, 3]


def test_notes_of_a_history_that_is_sent_as_it_was_asked_stay() -> None:
    notes = (note("messages.2.content.0: no", 2),)
    assert noted(notes, ASKED, ASKED) is notes

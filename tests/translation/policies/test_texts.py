"""R2 in user turns, R6, R7 and R8: what the user's messages say."""

import pytest

from tests.translation.policies.requests import AGENTIC, CONSERVATIVE, answer, asked, call, fired, result, under, user
from translation.history import repair
from translation.policies.texts import REPEATED, loose
from translation.providers.profiles import PROFILES
from translation.values import Message, Text, ToolResult

REMINDER = "<system-reminder>\nThe todo list is empty.\n</system-reminder>"


def test_agentic_keeps_reminders_in_user_turns() -> None:
    request = asked(user(REMINDER, "hi"))
    assert under(AGENTIC, request) == (request, ())


def test_conservative_strips_reminders_from_user_turns_and_results() -> None:
    read = ToolResult("toolu_0", (Text(f"# readme\n{REMINDER}"), Text("more")))
    governed, notes = under(CONSERVATIVE, asked(user(REMINDER, f"hi {REMINDER}"), answer(call(0)), user(read)))
    assert governed.messages[0] == Message("user", (Text("hi"),))
    assert governed.messages[2].blocks == (ToolResult("toolu_0", (Text("# readme"), Text("more"))),)
    assert [note.message for note in notes if note.rule == "R2"] == [0, 2]


def test_agentic_drops_an_echo_beside_a_result_and_keeps_what_is_new() -> None:
    request = asked(user("Read README."), answer(call(0)), user(result(0), "Read README.", "And the license."))
    governed, notes = under(AGENTIC, request)
    assert governed.messages[2] == Message("user", (result(0), Text("And the license.")))
    assert governed.messages[:2] == request.messages[:2]
    assert (fired(notes), notes[0].message) == (["R8"], 2)


def test_an_echo_of_an_echo_is_one_too() -> None:
    request = asked(
        user("Read."), answer(call(0)), user(result(0), "Read."), answer(call(1)), user(result(1, "other"), "Read.")
    )
    governed, notes = under(AGENTIC, request)
    assert [len(message.blocks) for message in governed.messages] == [1, 1, 1, 1, 1]
    assert fired(notes) == ["R8", "R8"]


def test_agentic_keeps_a_real_repeat() -> None:
    request = asked(user("continue"), answer("Done so far."), user("continue"))
    governed, notes = under(AGENTIC, request)
    assert governed is request
    assert notes == ()


def test_agentic_compares_with_the_last_text_only() -> None:
    request = asked(user("A"), answer("ok"), user("B"), answer(call(0)), user(result(0), "A"))
    assert under(AGENTIC, request) == (request, ())


def test_conservative_drops_text_beside_results_that_was_said_before() -> None:
    request = asked(user("A!"), answer("ok"), user("B"), answer(call(0)), user(result(0), "a", "C"))
    governed, notes = under(CONSERVATIVE, request)
    assert governed.messages[4].blocks == (result(0), Text("C"))
    assert "R6" in fired(notes)


@pytest.mark.parametrize("again", ["Read README", "read  readme!", "READ\nREADME。"])
def test_conservative_drops_a_repeated_text_however_it_is_written(again: str) -> None:
    governed, notes = under(CONSERVATIVE, asked(user("Read README."), answer("It says hello."), user(again)))
    assert governed.messages[2] == Message("user", (REPEATED,))
    assert fired(notes).count("R8") == 1


def test_conservative_leaves_nothing_of_a_repeated_text_where_the_turn_holds_something_else() -> None:
    """E3: the text comes again as a message of its own, after the result."""
    turn = (user("Read README."), answer(call(0)), user(result(0)))
    governed, notes = under(CONSERVATIVE, asked(*turn, user("read readme")))
    repaired, _ = repair(governed, PROFILES["openai"])
    assert [message.blocks for message in repaired.messages] == [message.blocks for message in turn]
    assert fired(notes).count("R8") == 1


def test_conservative_keeps_what_else_the_message_says() -> None:
    governed, _ = under(
        CONSERVATIVE, asked(user("Read."), answer("ok"), user("Read.", "Slowly."), answer("ok"), user("slowly"))
    )
    assert governed.messages[2].blocks == (Text("Slowly."),)
    assert governed.messages[4].blocks == (REPEATED,)


def test_conservative_keeps_a_new_text() -> None:
    request = asked(user("Read README."), answer("ok"), user("Re-read README."))
    governed, _ = under(CONSERVATIVE, request)
    assert governed.messages == request.messages


def test_a_reminder_is_nobodys_last_text() -> None:
    request = asked(
        user("Read."), answer(call(0)), user(result(0), REMINDER), answer(call(1)), user(result(1), "Read.")
    )
    governed, notes = under(AGENTIC, request)
    assert governed.messages[2] == request.messages[2]
    assert fired(notes) == ["R8"]


def test_texts_of_punctuation_alone_differ() -> None:
    assert loose("?") != loose("!")
    assert loose(" ? ") == loose("?")

"""Loop detection and the guardrail that follows it."""

import pytest
from msgspec.structs import replace

from tests.translation.policies.requests import (
    AGENTIC,
    CONSERVATIVE,
    answer,
    asked,
    call,
    fired,
    loop,
    result,
    switched,
    under,
    user,
)
from translation.errors import RepeatedCall, TruncatedStream
from translation.events import Event, Failed, Finished, TextDelta, ToolEnded, ToolStarted
from translation.policies import Policy, Watch, watched, with_reminder
from translation.policies.policy import GUARDRAIL
from translation.providers.profiles import PROFILES
from translation.values import Request, Text

REMINDER = Text(f"<system-reminder>\n{GUARDRAIL}\n</system-reminder>")


def test_the_third_equal_result_is_flagged_once() -> None:
    request = asked(user("Go on."), *loop(4))
    governed, notes = under(AGENTIC, request)
    assert governed is request
    assert (fired(notes), notes[0].message) == (["Loop"], 6)
    assert "Read" in notes[0].what


def test_the_fifth_brings_the_guardrail_after_that_turn_and_keeps_it_there() -> None:
    governed, notes = under(AGENTIC, asked(user("Go on."), *loop(7)))
    assert [message.blocks[-1] == REMINDER for message in governed.messages].index(True) == 10
    assert sum(REMINDER in message.blocks for message in governed.messages) == 1
    assert governed.messages[10].raw == b""
    assert fired(notes) == ["Loop", "R10"]


def test_a_loop_that_goes_on_is_reminded_of_again() -> None:
    governed, _ = under(AGENTIC, asked(user("Go on."), *loop(10)))
    assert [i for i, message in enumerate(governed.messages) if REMINDER in message.blocks] == [10, 20]


@pytest.mark.parametrize("again", [True, False])
def test_other_results_and_a_word_from_the_user_are_no_loop(again: bool) -> None:
    other = [answer(call(90)), user(result(90, "changed"))] if not again else [answer("ok"), user("Refresh it.")]
    request = asked(user("Go on."), *loop(2), *other, *loop(2 if again else 1), answer("done"), user("Bye."))
    assert fired(under(AGENTIC, request)[1]) == (["Loop"] if not again else [])


def test_reminders_in_results_do_not_hide_a_loop() -> None:
    reminders = [f"# readme\n\n<system-reminder>\n{left} tokens left\n</system-reminder>" for left in range(4)]
    turns = [(answer(call(n)), user(result(n, text))) for n, text in enumerate([*reminders, "# readme"])]
    governed, notes = under(AGENTIC, asked(user("Go on."), *(message for turn in turns for message in turn)))
    assert fired(notes) == ["Loop", "R10"]
    assert governed.messages[-1].blocks == (result(4), REMINDER)
    assert governed.messages[2].blocks == (result(0, reminders[0]),)


def test_different_arguments_are_no_loop() -> None:
    calls = [(answer(call(n, b'{"n":%d}' % n)), user(result(n))) for n in range(6)]
    request = asked(user("Go on."), *(message for pair in calls for message in pair))
    assert under(AGENTIC, request) == (request, ())


def test_without_a_guardrail_nothing_is_added() -> None:
    request = asked(user("Go on."), *loop(5))
    assert under(replace(AGENTIC, guardrail=""), request)[0] is request


def test_a_rule_that_is_switched_off_does_not_fire() -> None:
    request = asked(user("Go on."), *loop(5))
    assert under(switched(AGENTIC, flag_loop=False, remind_of_loop=False), request) == (request, ())


def watching(request: Request, policy: Policy = CONSERVATIVE) -> Watch | None:
    return watched(request, PROFILES["openai"], policy)


def test_only_a_conservative_route_to_another_model_watches_and_only_a_loop() -> None:
    request = asked(user("Go on."), *loop(3))
    assert watching(request) is not None
    assert watching(request, AGENTIC) is None
    assert watched(request, PROFILES["anthropic"], CONSERVATIVE) is None
    assert watching(asked(user("Go on."), *loop(2))) is None
    assert watching(asked(user("Go on."), *loop(3), answer("ok"), user("Again, please."))) is None
    assert watching(request, replace(CONSERVATIVE, guardrail="")) is None


def test_an_answer_that_repeats_the_call_is_not_let_through() -> None:
    watch = watching(asked(user("Go on."), *loop(3)))
    assert watch is not None
    assert watch.feed([TextDelta("Let me look."), ToolStarted(0, "Read")]) == []
    with pytest.raises(RepeatedCall, match="Read was called again"):
        watch.feed([ToolEnded(0, '{ "path": "README" }')])


ENDS: tuple[Event, ...] = (
    ToolEnded(0, '{"path":"LICENSE"}'),
    Finished("stop"),
    Failed(TruncatedStream("cut")),
)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end).__name__)
def test_any_other_answer_is_held_until_that_is_clear(end: Event) -> None:
    watch = watching(asked(user("Go on."), *loop(3)))
    assert watch is not None
    start: list[Event] = [TextDelta("Let me look."), ToolStarted(0, "Read")]
    assert watch.feed(start[:1]) == []
    assert watch.feed([start[1], end]) == [*start, end]
    assert watch.feed([TextDelta("more")]) == [TextDelta("more")]


def test_the_reminder_follows_the_newest_turn() -> None:
    request = asked(user("Go on."), *loop(3))
    reminded = with_reminder(request, CONSERVATIVE)
    assert reminded.messages[:-1] == request.messages[:-1]
    assert reminded.messages[-1].blocks == (*request.messages[-1].blocks, REMINDER)

"""Broken histories and the legal ones that they become."""

import pytest

from translation.adapter import Target
from translation.history import OPENER, repair
from translation.providers.anthropic import Anthropic
from translation.providers.profile import Profile
from translation.providers.profiles import PROFILES
from translation.values import (
    Block,
    Image,
    Link,
    Message,
    Origin,
    Other,
    RedactedThinking,
    Request,
    ServerToolResult,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolReference,
    ToolResult,
    ToolUse,
)

CHAT, NATIVE = PROFILES["openai"], PROFILES["anthropic"]
GEMINI, CLAUDE = Origin("gemini", "g", b"state"), Origin("anthropic", "c")


def user(*blocks: Block | str) -> Message:
    return Message("user", tuple(Text(block) if isinstance(block, str) else block for block in blocks), raw=b"as sent")


def assistant(*blocks: Block | str, origin: Origin | None = None) -> Message:
    said = tuple(Text(block) if isinstance(block, str) else block for block in blocks)
    return Message("assistant", said, raw=b"as sent", origin=origin)


def system(*texts: str) -> Message:
    return Message("system", tuple(map(Text, texts)), raw=b"as sent")


def call(id_: str, link: Link | None = None) -> ToolUse:
    return ToolUse(id_, "Read", b'{"a":1}', link)


def result(id_: str, *blocks: Block | str, error: bool = False) -> ToolResult:
    said = tuple(Text(block) if isinstance(block, str) else block for block in blocks)
    return ToolResult(id_, said, is_error=error)


def said(*messages: Message, to: str = "openai") -> tuple[list[tuple[str, tuple[Block, ...]]], list[str]]:
    request = Request(model="m", max_tokens=1, messages=messages)
    repaired, notes = repair(request, PROFILES[to])
    assert all(note.kind == "repair" and note.what.startswith(f"messages.{note.message}: ") for note in notes)
    return [(message.role, message.blocks) for message in repaired.messages], [note.rule for note in notes]


MISSING = ToolResult("A", (Text("[no result: interrupted]"),), is_error=True)
PICTURE = Image("base64", "QQ==", "image/png")


@pytest.mark.parametrize("profile", [CHAT, NATIVE])
def test_a_legal_history_is_the_same_object(profile: Profile) -> None:
    request = Request(
        model="m",
        max_tokens=1,
        messages=(
            user("q"),
            assistant(Thinking("hm", "s"), "a", call("A"), call("B"), origin=GEMINI),
            user(result("A", "1"), result("B", PICTURE), "and", PICTURE),
            assistant("done"),
        ),
    )
    repaired, notes = repair(request, profile)
    assert repaired is request
    assert notes == ()


def test_results_come_first_in_the_order_of_the_calls_and_other_content_keeps_its_order() -> None:
    messages, rules = said(
        user("q"), assistant(call("A"), call("B")), user("t1", result("B", "2"), PICTURE, result("A", "1"), "t2")
    )
    assert messages[2] == ("user", (result("A", "1"), result("B", "2"), Text("t1"), PICTURE, Text("t2")))
    assert rules == ["results-first", "results-ordered"]


def test_a_call_without_result_is_marked_as_interrupted_before_the_text() -> None:
    messages, rules = said(user("q"), assistant(call("A"), call("B")), user(result("B", "2"), "go on"))
    assert messages[2] == ("user", (MISSING, result("B", "2"), Text("go on")))
    assert rules == ["result-missing"]


def test_a_call_whose_turn_holds_fewer_results_than_calls_is_marked_too() -> None:
    messages, rules = said(user("q"), assistant(call("B"), call("A")), user(result("B", "2")))
    assert messages[2] == ("user", (result("B", "2"), MISSING))
    assert rules == ["result-missing"]


def test_an_answer_that_ends_the_history_with_a_call_gets_a_user_message() -> None:
    messages, rules = said(user("q"), assistant(call("A")))
    assert messages[2:] == [("user", (MISSING,))]
    assert rules == ["result-missing"]


def test_of_two_results_the_last_counts() -> None:
    messages, rules = said(user("q"), assistant(call("A")), user(result("A", "1"), result("A", "2")))
    assert messages[2] == ("user", (result("A", "2"),))
    assert rules == ["duplicate-result-dropped"]


def test_a_late_result_becomes_text_and_its_call_is_marked_as_interrupted() -> None:
    messages, rules = said(
        user("q"), assistant(call("A")), user("wait"), assistant("ok"), user(result("A", "1", PICTURE, error=True))
    )
    assert messages[2] == ("user", (MISSING, Text("wait")))
    assert messages[4] == ("user", (Text("[result of an earlier tool call A] (error) 1"), PICTURE))
    assert rules == ["result-missing", "orphan-result-demoted"]


def test_an_orphan_without_content_says_so() -> None:
    messages, _ = said(user(result("A")), assistant("ok"), user("b"))
    assert messages[0] == ("user", (Text("[result of an earlier tool call A] (no output)"),))


def test_an_id_used_again_in_a_later_turn_is_told_apart() -> None:
    link = Link("A", "Read", "Read", "call_0", b"{}", GEMINI)
    messages, rules = said(
        user("q"),
        assistant(call("A", link)),
        user(result("A", "1")),
        assistant(call("A", link), call("A_2"), origin=GEMINI),
        user(result("A_2", "3"), result("A", "2")),
    )
    assert messages[1][1] == (call("A", link),)
    assert messages[3][1] == (ToolUse("A_2", "Read", b'{"a":1}'), ToolUse("A_2_2", "Read", b'{"a":1}'))
    assert messages[4][1] == (result("A_2", "2"), result("A_2_2", "3"))
    assert rules == ["id-repeated", "id-repeated", "results-ordered"]


def test_calls_of_one_answer_that_share_an_id_take_their_results_in_turn() -> None:
    messages, rules = said(
        user("q"), assistant(call("A"), call("A")), user(result("A", "0"), result("A", "1"), result("A", "2"))
    )
    assert messages[2][1] == (result("A", "1"), result("A_2", "2"))
    assert rules == ["id-repeated", "duplicate-result-dropped"]


def test_equal_roles_in_a_row_become_one_message() -> None:
    messages, rules = said(
        user("a"), user("b"), assistant("c"), assistant(call("A")), user(result("A", "1")), user("d")
    )
    assert messages == [
        ("user", (Text("a"), Text("b"))),
        ("assistant", (Text("c"), call("A"))),
        ("user", (result("A", "1"), Text("d"))),
    ]
    assert rules == ["merged", "merged", "merged"]


def test_an_answer_that_comes_first_gets_a_user_message_before_it() -> None:
    messages, rules = said(assistant("a"), user("b"))
    assert messages[0] == ("user", OPENER.blocks)
    assert rules == ["opener"]


def test_a_compaction_stays_the_first_thing_that_anthropic_reads() -> None:
    summary = Other("compaction", b'{"type":"compaction","content":"s","signature":"x"}')
    request = Request(model="m", max_tokens=1, messages=(assistant(summary), user("b")))
    assert repair(request, NATIVE) == (request, ())
    assert repair(request, NATIVE)[0] is request
    assert said(assistant("a", summary), user("b"), to="anthropic")[1] == ["opener"]
    assert said(assistant(summary), user("b"))[1] == ["opener"]


def test_a_compaction_stands_for_what_came_before_it() -> None:
    """The API ignores that, so clients go on to send it."""
    summary = Other("compaction", b'{"type":"compaction","content":"s"}')
    old = (user("a"), assistant(call("A")), system("x"), user(result("A", "1"), "b"))
    new = (assistant(summary, "c", call("B")), user(result("B", "2"), PICTURE))
    messages, rules = said(*old, *new)
    assert messages == [("user", OPENER.blocks), *((message.role, message.blocks) for message in new)]
    assert rules == ["system-in-place", "compacted", "opener"]
    assert said(*old, *new, *old[1:], *new)[0] == messages
    assert said(*old, *new, to="anthropic")[0] == [
        (message.role, message.blocks) for message in (*old[:2], *old[3:1:-1], *new)
    ]


@pytest.mark.parametrize(
    "raw", [b'{"type":"compaction","content":null}', b'{"type":"compaction","content":7}', b'{"type":"odd"}']
)
def test_a_compaction_that_failed_stands_for_nothing(raw: bytes) -> None:
    kind = "odd" if b"odd" in raw else "compaction"
    messages, rules = said(user("a"), assistant(Other(kind, raw), "c"), user("d"))
    failed = kind == "compaction"  # "the server treats them as no-ops": nothing that a model should read
    assert messages[1][1] == (Text("c"),) if failed else (Other(kind, raw), Text("c"))
    assert (len(messages), rules) == (3, ["empty-dropped"] if failed else [])


def test_system_messages_become_reminders_where_they_stand_after_results() -> None:
    messages, rules = said(
        user("q"), system("one"), assistant(call("A")), system("two", ""), user(result("A", "1"), "t"), assistant("b")
    )
    assert messages[0] == ("user", (Text("q"), Text("<system-reminder>\none\n</system-reminder>")))
    assert messages[2] == (
        "user",
        (result("A", "1"), Text("<system-reminder>\ntwo\n</system-reminder>"), Text("t")),
    )
    assert rules == ["system-in-place", "system-in-place", "merged", "results-first", "merged"]


def test_a_system_message_that_only_changes_the_effort_stays_where_anthropic_reads_it() -> None:
    """Thinking after it is refused when it is moved or removed."""
    change = Message("system", (), b"as sent", effort="low")
    request = Request(model="m", max_tokens=1, messages=(user("a"), assistant("b"), change, user("c"), change))
    assert repair(request, NATIVE)[0] is request
    assert Anthropic().build(request, Target("anthropic", "m", NATIVE)).body.count(b"as sent") == 5
    assert said(*request.messages)[0] == [("user", (Text("a"),)), ("assistant", (Text("b"),)), ("user", (Text("c"),))]
    assert [repair(request, profile)[0].effort for profile in (NATIVE, CHAT)] == ["", "low"]


def test_a_target_that_takes_system_messages_gets_them_but_never_between_a_call_and_its_result() -> None:
    two = system("two")
    request = Request(
        model="m",
        max_tokens=1,
        messages=(user("q"), system("one"), assistant(call("A")), two, user(result("A", "1"))),
    )
    repaired, notes = repair(request, NATIVE)
    assert repaired.messages == (*request.messages[:3], request.messages[4], two)
    assert [note.rule for note in notes] == ["system-moved"]


def test_a_system_message_between_the_results_of_a_batch_comes_after_them() -> None:
    batch = (user("q"), assistant(call("A"), call("B")))
    split = (user(result("A", "1")), system("s"), user(result("B", "2")), system("t"), user("more"))
    messages, rules = said(*batch, *split, to="anthropic")
    assert messages[2:] == [
        ("user", (result("A", "1"),)),
        ("user", (result("B", "2"),)),
        ("system", (Text("s"),)),
        ("system", (Text("t"),)),
        ("user", (Text("more"),)),
    ]
    assert rules == ["system-moved"]
    said_before, _ = said(*batch, *split, assistant("done"), to="anthropic")
    assert said_before[:-1] == messages


def test_a_call_that_only_a_system_message_follows_is_answered_before_it() -> None:
    messages, rules = said(user("q"), assistant(call("A")), system("s"), assistant("b"), to="anthropic")
    assert [role for role, _ in messages] == ["user", "assistant", "user", "system", "assistant"]
    assert rules == ["system-moved", "result-missing"]


def test_system_messages_alone_get_a_user_message() -> None:
    messages, rules = said(system("s"), to="anthropic")
    assert messages == [("system", (Text("s"),)), ("user", OPENER.blocks)]
    assert rules == ["opener"]


def test_empty_text_is_left_out_unless_nothing_else_is_there() -> None:
    messages, rules = said(
        user("", "q"), assistant("\n\n", call("A")), user(result("A", "", "1")), assistant(""), user("")
    )
    assert messages == [
        ("user", (Text("q"),)),
        ("assistant", (call("A"),)),
        ("user", (result("A", "1"),)),
        ("assistant", (Text("(no content)"),)),
        ("user", (Text("(no content)"),)),
    ]
    dropped = "empty-dropped"
    assert rules == [dropped, dropped, dropped, dropped, "placeholder", dropped, "placeholder"]


def test_an_empty_result_says_that_there_was_no_output() -> None:
    messages, rules = said(user("q"), assistant(call("A"), call("B")), user(result("A"), result("B", " ")))
    assert messages[2][1] == (result("A", "(no output)"), result("B", "(no output)"))
    assert rules == ["result-empty", "result-empty"]


def test_the_api_itself_takes_an_empty_result_in_completion_order_and_messages_in_a_row() -> None:
    request = Request(
        model="m",
        max_tokens=1,
        messages=(
            user("a"),
            user("b"),
            assistant(call("A")),
            assistant(call("B")),
            user(result("B")),
            user(result("A", ToolReference("Fetch")), "c"),
        ),
    )
    assert repair(request, NATIVE) == (request, ())


@pytest.mark.parametrize(
    "turn",
    [
        (user("t", result("A", "1")),),
        (user(result("A", "1")), user()),
        (user(result("A", "1"), ""),),
        (user(result("A", "")),),
        (user(result("A", "1"), Thinking("hm")),),
        (user(result("A", "1"), call("B")),),
        (user(result("A", "1"), ToolReference("Fetch")),),
        (user(result("A", "1"), result("B", "1")),),
        (user("t"),),
    ],
)
def test_what_the_api_would_refuse_is_repaired_for_it_too(turn: tuple[Message, ...]) -> None:
    messages, rules = said(user("q"), assistant(call("A")), *turn, to="anthropic")
    assert len(messages) == 3
    assert isinstance(messages[2][1][0], ToolResult)
    assert rules


def test_a_repeated_id_is_told_apart_for_the_api_too() -> None:
    turn = assistant(call("A")), user(result("A", "1"))
    messages, _ = said(user("q"), *turn, *turn, to="anthropic")
    assert messages[4][1] == (result("A_2", "1"),)


def test_an_answer_of_only_thinking_gets_a_placeholder_and_keeps_its_thinking() -> None:
    thought = Thinking("hm", "s")
    request = Request(model="m", max_tokens=1, messages=(user("q"), assistant(thought, origin=CLAUDE), user("b")))
    for profile in (CHAT, NATIVE):
        repaired, _ = repair(request, profile)
        assert repaired.messages[1] == Message("assistant", (thought, Text("(no content)")), origin=CLAUDE)


def test_an_empty_last_answer_is_no_prefill() -> None:
    assert said(user("q"), assistant("")) == ([("user", (Text("q"),))], ["empty-dropped", "empty-dropped"])
    assert said(user("q"), assistant("The")) == ([("user", (Text("q"),)), ("assistant", (Text("The"),))], [])


def test_calls_of_users_and_results_of_assistants_become_text() -> None:
    messages, rules = said(
        user("q", call("A"), RedactedThinking("x")), assistant("a", result("B", "1"), ToolReference("Fetch")), user("b")
    )
    assert messages[0][1] == (Text("q"), Text('[tool call Read] {"a":1}'))
    assert messages[1][1] == (
        Text("a"),
        Text("[result of an earlier tool call B] 1"),
        Text("[tool available: Fetch]"),
    )
    assert rules == ["call-in-user-message", "thinking-in-user-message", "result-in-answer", "reference-worded"]


def merged(one: Message, other: Message) -> Message:
    request = Request(model="m", max_tokens=1, messages=(user("q"), one, other, user("b")))
    return repair(request, CHAT)[0].messages[1]


def test_answers_of_one_upstream_that_became_one_keep_thinking_but_not_the_state_of_either() -> None:
    thought = Thinking("hm")
    both = merged(assistant(thought, "a", origin=GEMINI), assistant("b", origin=Origin("gemini", "g", b"other")))
    assert both == Message("assistant", (thought, Text("a"), Text("b")), origin=Origin("gemini", "g"))


def test_answers_of_one_turn_that_became_one_keep_its_state() -> None:
    assert merged(assistant("a", origin=GEMINI), assistant("b", origin=GEMINI)).origin == GEMINI


def test_answers_of_different_upstreams_that_became_one_lose_their_thinking() -> None:
    both = merged(assistant(Thinking("hm"), "a", origin=GEMINI), assistant(RedactedThinking("x"), "b", origin=CLAUDE))
    assert both == Message("assistant", (Text("a"), Text("b")))
    assert merged(assistant("a"), assistant("b", origin=CLAUDE)).origin is None
    assert merged(assistant("a"), assistant("b")).origin is None


DEFERRED = tuple(Tool(name, schema=b"{}", defer_loading=name != "Read") for name in ("Read", "Fetch", "Grep", "Edit"))


def loaded(*messages: Message, to: str = "openai", choice: ToolChoice | None = None) -> list[str]:
    request = Request(model="m", max_tokens=1, messages=messages, tools=DEFERRED, tool_choice=choice, raw_tools=b"[]")
    return [tool.name for tool in repair(request, PROFILES[to])[0].tools]


def test_deferred_tools_wait_until_they_are_named() -> None:
    found = user(result("A", ToolReference("Fetch"), "x"))
    assert loaded(user("q")) == ["Read"]
    assert loaded(user("q"), choice=ToolChoice("tool", "Grep")) == ["Read", "Grep"]
    assert loaded(user("q"), to="anthropic") == ["Read", "Fetch", "Grep", "Edit"]
    search = ServerToolResult(
        "tool_search_tool_result", "s", b'{"content":{"tool_references":[{"tool_name":"Edit"},{"tool_name":"Grep"}]}}'
    )
    assert loaded(user("q"), assistant(search, call("A")), found) == ["Read", "Fetch", "Grep", "Edit"]
    messages, _ = said(user("q"), assistant(call("A")), found, user(ToolReference("Edit")))
    assert messages[2][1] == (
        result("A", "[tool available: Fetch]", "x"),
        Text("[tool available: Edit]"),
    )
    assert loaded(user(ToolReference("Edit"))) == ["Read", "Edit"]


@pytest.mark.parametrize(
    ("to", "name", "offered"),
    [
        ("openai", "mcp__" + "long_" * 14, "mcp__long_long_long_long_long_long_long_long_long_long__8dc0b301"),
        ("openai-responses", "files.read", "files_read_601e4eb6"),
        ("gemini", "1password", "t_1password_d58fc8da"),
        ("openai", "1password", "1password"),
    ],
)
def test_a_tool_is_told_by_the_name_that_it_is_offered_under(to: str, name: str, offered: str) -> None:
    found = user(ToolResult("A", (ToolReference(name),)))
    messages, _ = said(user("q"), assistant(call("A")), found, user(ToolReference(name)), to=to)
    line = f"[tool available: {offered}]"
    assert messages[2][1] == (result("A", line), Text(line))


def test_deferred_tools_that_only_anthropics_search_could_find_are_offered_at_once() -> None:
    search = Tool("tool_search_tool_regex", type="tool_search_tool_regex_20251119")
    request = Request(model="m", max_tokens=1, messages=(user("q"),), tools=(search, *DEFERRED))
    repaired, notes = repair(request, PROFILES["openai"])
    assert repaired is request
    assert [note.rule for note in notes] == ["deferred-loaded"]


def test_an_empty_answer_among_others_is_left_out() -> None:
    for to in ("openai", "anthropic"):
        messages, rules = said(user("q"), assistant("a"), assistant(), user("b"), to=to)
        assert messages == [("user", (Text("q"),)), ("assistant", (Text("a"),)), ("user", (Text("b"),))]
        assert rules == ["empty-dropped"]


def test_system_messages_of_the_api_hold_no_empty_text_either() -> None:
    messages, rules = said(user("q"), system("", "s"), assistant("a"), system(""), user("b"), to="anthropic")
    assert [blocks for role, blocks in messages if role == "system"] == [(Text("s"),)]
    assert rules == ["empty-dropped", "empty-dropped"]


def test_what_only_users_can_show_becomes_text_in_an_answer() -> None:
    messages, rules = said(user("q"), assistant(PICTURE, result("A", PICTURE)), user("b"))
    left_out = Text("[left out: an answer cannot hold it]")
    assert messages[1][1] == (left_out, Text("[result of an earlier tool call A] (no output)"), left_out)
    assert rules == ["file-in-answer", "result-in-answer"]

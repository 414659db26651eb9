"""What the store knows, put into a request."""

import pytest

from translation.chain import chain
from translation.errors import InvalidRequest
from translation.state import Snapshot, Wanted, continues, hydrate, opaque, restore, unknown_results, wanted
from translation.values import Block, Link, Message, Origin, Request, Text, Thinking, ToolResult, ToolUse

GEMINI = Origin("gemini", "gemini-3", b'{"signature":"whole"}')


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def assistant(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def request(*messages: Message) -> Request:
    return Request(model="m", max_tokens=1, messages=messages)


def link(id_: str, turn: int = 1, ordinal: int = 0, state: bytes = b"", upstream: str = "gemini") -> Link:
    return Link(id_, "Read", "Read", f"up_{id_}", b'{"a":1}', Origin(upstream, "m", state), turn, ordinal)


def call(id_: str) -> ToolUse:
    return ToolUse(id_, "Read", b"{}")


CHAT = request(user(Text("q")), assistant(call("t1"), call("t2")), user(ToolResult("t2"), ToolResult("t1")))


def test_the_store_is_asked_for_every_tool_id_once_and_every_answer() -> None:
    hashes = chain(CHAT.messages)
    asked = wanted(CHAT, hashes)
    assert asked.tool_use_ids == ("t1", "t2")
    assert asked.hashes == (hashes[1],)


def test_of_a_history_of_words_the_store_is_asked_for_the_answers() -> None:
    chat = request(user(Text("q")), assistant(Text("a")), user(Text("more")))
    hashes = chain(chat.messages)
    assert wanted(chat, hashes) == Wanted((), (hashes[1],))


def test_calls_get_their_links_and_answers_their_origin() -> None:
    snapshot = Snapshot({"t1": link("t1")}, origins={1: GEMINI})
    answer = hydrate(CHAT, chain(CHAT.messages), snapshot).messages[1]
    assert answer.origin == GEMINI
    assert [block.link for block in answer.blocks if isinstance(block, ToolUse)] == [link("t1"), None]


def test_an_answer_without_calls_is_known_by_its_place_in_the_history() -> None:
    said = Message("assistant", (Thinking("hm"), Text("a")), raw=b"{}")
    chat = request(user(Text("q")), said, user(Text("more")))
    hashes = chain(chat.messages)
    hydrated = hydrate(chat, hashes, Snapshot(turns={hashes[1]: 7}, origins={7: GEMINI}))
    assert hydrated.messages[1].origin == GEMINI
    assert hydrated.messages[1].raw == b"{}"
    assert hydrated.messages[0] is chat.messages[0]


def test_tool_ids_come_before_the_place_in_the_history() -> None:
    hashes = chain(CHAT.messages)
    other = Origin("openai", "gpt-5")
    snapshot = Snapshot({"t2": link("t2", turn=3)}, {hashes[1]: 4}, {3: GEMINI, 4: other})
    assert hydrate(CHAT, hashes, snapshot).messages[1].origin == GEMINI


def test_a_request_that_the_store_does_not_know_is_the_same_object() -> None:
    assert hydrate(CHAT, chain(CHAT.messages), Snapshot()) is CHAT
    assert restore(CHAT, Snapshot(), ()) == (CHAT, ())
    elsewhere = Snapshot({"t9": link("t9")}, origins={1: GEMINI})
    assert hydrate(CHAT, chain(CHAT.messages), elsewhere) is CHAT


def test_state_goes_back_to_the_upstream_that_made_it_only() -> None:
    message = Message("assistant", (Text("a"), call("t0")), origin=GEMINI)
    assert opaque(message, "gemini") == GEMINI.state
    assert opaque(message, "openai") == b""


def test_without_message_state_the_first_call_with_state_of_that_upstream_has_it() -> None:
    blocks = (
        call("t0"),
        ToolUse("t1", "Read", b"{}", link("t1", state=b"foreign", upstream="openai")),
        ToolUse("t2", "Read", b"{}", link("t2")),
        ToolUse("t3", "Read", b"{}", link("t3", state=b"mine")),
    )
    assert opaque(Message("assistant", blocks), "gemini") == b"mine"
    assert opaque(Message("assistant", blocks, origin=Origin("gemini", "m")), "gemini") == b"mine"


def test_a_result_unknown_everywhere_in_the_newest_turn_is_refused_as_the_api_does() -> None:
    chat = request(user(Text("q")), assistant(Text("a")), user(Text("b")), user(Text("c"), ToolResult("t9")))
    with pytest.raises(InvalidRequest) as caught:
        unknown_results(chat, Snapshot())
    assert caught.value.message == (
        "messages.3.content.1: unexpected `tool_use_id` found in `tool_result` blocks: t9. "
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
    )
    assert caught.value.status == 400


def test_results_known_to_the_request_or_the_store_and_older_ones_are_not_refused() -> None:
    unknown_results(CHAT, Snapshot())
    unknown_results(request(user(ToolResult("t9"))), Snapshot({"t9": link("t9")}))
    unknown_results(request(user(ToolResult("t9")), assistant(Text("a")), user(Text("b"))), Snapshot())


def test_a_lone_result_gets_the_stored_history_before_it() -> None:
    history = CHAT.messages[:2]
    lone = request(Message("system", (Text("s"),)), user(ToolResult("t1"), ToolResult("t2")))
    snapshot = Snapshot({"t1": link("t1"), "t2": link("t2", ordinal=1)})
    assert continues(lone, snapshot) == link("t2", ordinal=1)
    restored, notes = restore(lone, snapshot, history)
    assert restored.messages == history + lone.messages
    assert [(note.rule, note.message) for note in notes] == [("history-restored", 0)]


def test_without_stored_text_the_call_is_rebuilt_from_its_link() -> None:
    lone = request(user(ToolResult("t2"), ToolResult("t1")))
    snapshot = Snapshot({"t1": link("t1"), "t2": link("t2", ordinal=1)}, origins={1: GEMINI})
    restored, notes = restore(lone, snapshot, ())
    answer = restored.messages[0]
    assert [block.id for block in answer.blocks if isinstance(block, ToolUse)] == ["t1", "t2"]
    assert answer.blocks[0] == ToolUse("t1", "Read", b'{"a":1}', link("t1"))
    assert answer.origin == GEMINI
    assert [(note.rule, note.message) for note in notes] == [("call-rebuilt", 0)]


def test_a_call_that_was_never_completed_is_rebuilt_with_empty_arguments() -> None:
    torn = Link("t1", "Read", "Read", "", b"", Origin("gemini", "m"))
    restored, _ = restore(request(user(ToolResult("t1"))), Snapshot({"t1": torn}), ())
    assert restored.messages[0].blocks == (ToolUse("t1", "Read", b"{}", torn),)


def test_calls_of_two_turns_rebuilt_in_one_answer_have_no_common_origin() -> None:
    snapshot = Snapshot({"t1": link("t1"), "t2": link("t2", turn=2)}, origins={1: GEMINI, 2: GEMINI})
    restored, _ = restore(request(user(ToolResult("t1"), ToolResult("t2"))), snapshot, ())
    assert restored.messages[0].origin is None


def test_a_call_cut_out_of_the_middle_is_put_back_at_its_place() -> None:
    chat = request(user(Text("q")), user(ToolResult("t1")), assistant(Text("a")), user(Text("b")))
    restored, notes = restore(chat, Snapshot({"t1": link("t1")}), ())
    assert [message.role for message in restored.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [(note.rule, note.message) for note in notes] == [("call-rebuilt", 1)]


def test_a_whole_history_is_left_as_it_is() -> None:
    snapshot = Snapshot({"t1": link("t1"), "t2": link("t2")})
    assert continues(CHAT, snapshot) is None
    assert restore(CHAT, snapshot, ()) == (CHAT, ())
    assert restore(CHAT, snapshot, CHAT.messages) == (CHAT, ())
    assert continues(request(), snapshot) is None
    assert continues(CHAT, Snapshot()) is None

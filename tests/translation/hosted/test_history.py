"""A history with calls that a server ran, as an upstream is told it."""

from typing import Any

import msgspec
import pytest

from tests.validators.canonical import validate
from translation.chain import chain
from translation.client.parse import parse
from translation.history import repair
from translation.hosted_history import Stored, halved, told, unanswered, waiting, whole_of
from translation.providers.profiles import PROFILES
from translation.state import Snapshot, hydrate, wanted
from translation.values import Link, Message, Origin, Request, Text, ToolResult, ToolUse

Json = dict[str, Any]


def use(id_: str, name: str = "route", server: str = "maps") -> Json:
    return {"type": "mcp_tool_use", "id": id_, "name": name, "server_name": server, "input": {"to": "Rome"}}


def found(id_: str, text: str = "left") -> Json:
    content = [{"type": "text", "text": text}]
    return {"type": "mcp_tool_result", "tool_use_id": id_, "is_error": False, "content": content}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(id_: str) -> Json:
    return {"type": "tool_use", "id": id_, "name": "own", "input": {}}


def result(id_: str) -> Json:
    return {"type": "tool_result", "tool_use_id": id_, "content": "done"}


def request(*messages: list[Json] | str) -> Request:
    """Strings are the user's; lists are the assistant's, or the user's if they hold results of its tools."""
    said = []
    for message in messages:
        mine = isinstance(message, str) or any(block["type"] == "tool_result" for block in message)
        said.append({"role": "user" if mine else "assistant", "content": message})
    return parse(msgspec.json.encode({"model": "m", "max_tokens": 9, "messages": said}), "2023-06-01", ())


def shape(told_request: Request) -> list[tuple[str, list[str]]]:
    return [(message.role, [_word(block) for block in message.blocks]) for message in told_request.messages]


def _word(block: object) -> str:
    match block:
        case ToolUse(id=id_):
            return f"call {id_}"
        case ToolResult(tool_use_id=id_):
            return f"result {id_}"
        case Text(text=words):
            return words
        case _:
            return type(block).__name__


def test_history_without_hosted_calls_is_the_same_object() -> None:
    asked = request("hi", [text("hello")], "bye")
    assert told(asked) is asked


def test_call_and_result_take_their_ordinary_places() -> None:
    asked = request("hi", [text("let me see"), use("a"), found("a"), text("left it is")], "thanks")
    assert shape(told(asked)) == [
        ("user", ["hi"]),
        ("assistant", ["let me see", "call a"]),
        ("user", ["result a"]),
        ("assistant", ["left it is"]),
        ("user", ["thanks"]),
    ]
    call_ = told(asked).messages[1].blocks[1]
    assert isinstance(call_, ToolUse)
    assert call_.name == "maps__route"


def test_parallel_calls_are_one_round_and_sequential_ones_are_two() -> None:
    parallel = request("hi", [use("a"), use("b"), found("b"), found("a")])
    assert shape(told(parallel))[1:] == [("assistant", ["call a", "call b"]), ("user", ["result a", "result b"])]
    sequential = request("hi", [use("a"), found("a"), use("b"), found("b")])
    assert shape(told(sequential))[1:] == [
        ("assistant", ["call a"]),
        ("user", ["result a"]),
        ("assistant", ["call b"]),
        ("user", ["result b"]),
    ]


def test_results_of_a_mixed_turn_stand_before_the_clients() -> None:
    asked = request("hi", [use("a"), call("t"), found("a")], [result("t")])
    assert shape(told(asked))[1:] == [("assistant", ["call a", "call t"]), ("user", ["result a", "result t"])]


def test_paused_answer_goes_on_in_the_next_message() -> None:
    asked = request("hi", [use("a")], [found("a"), text("done")], "thanks")
    assert shape(told(asked))[1:] == [
        ("assistant", ["call a"]),
        ("user", ["result a"]),
        ("assistant", ["done"]),
        ("user", ["thanks"]),
    ]


def test_result_that_the_client_never_saw_comes_from_the_store() -> None:
    asked = request("hi", [use("a")], "and now?")
    stored = Stored({"a": ToolResult("a", (Text("left"),))})
    assert unanswered(asked) == ("a",)
    assert shape(told(asked, stored))[1:] == [("assistant", ["call a"]), ("user", ["result a", "and now?"])]
    assert shape(told(asked))[1:] == [("assistant", ["call a"]), ("user", ["and now?"])]


def test_only_the_last_answer_waits() -> None:
    assert waiting(request("hi", [use("a")], "go", [use("b"), use("c"), found("c")])) == ("b",)
    assert waiting(request("hi", [use("a")], "go")) == ()
    assert waiting(msgspec.structs.replace(request("hi"), messages=())) == ()


def test_interrupted_run_before_another_answer_is_repaired_in_place() -> None:
    asked = request("hi", [use("a")], [text("never mind")], "ok")
    assert shape(told(asked))[1:] == [("assistant", ["call a", "never mind"]), ("user", ["ok"])]


def test_input_that_is_no_object_is_an_empty_one() -> None:
    told_request = told(request("hi", [use("m1") | {"input": []}, found("m1")], "go on"))
    (call_,) = told_request.messages[1].blocks
    assert isinstance(call_, ToolUse)
    assert call_.input == b"{}"


def test_result_whose_call_is_gone_stays_as_it_is() -> None:
    asked = request("hi", [found("z"), use("a"), found("a")])
    assert shape(told(asked))[1:] == [("assistant", ["ServerToolResult", "call a"]), ("user", ["result a"])]


def test_answer_without_the_calls_of_a_server_is_known_by_its_own() -> None:
    link = Link("toolu_1", "own", "own", "c", b"{}", Origin("u", "m"), turn_id=7)
    snapshot = Snapshot({"toolu_1": link})
    own = ToolUse("toolu_1", "own", b"{}")
    half = Message("assistant", (Text("Both. "), own))
    assert halved(half, snapshot) == 7
    whole = request("hi", [text("Both."), use("a"), found("a")]).messages[1]
    whole = msgspec.structs.replace(whole, blocks=(*whole.blocks, own))
    assert whole_of(half, whole) is whole
    assert whole_of(Message("assistant", (Text("Other"), own)), whole) is None
    assert [halved(message, snapshot) for message in (whole, Message("user", ()), Message("assistant", ()))] == [
        0,
        0,
        0,
    ]
    assert halved(half, Snapshot()) == 0


def test_listing_is_for_servers_only() -> None:
    listing = {"type": "mcp_tool_listing", "mcp_server_name": "maps", "tools": []}
    assert shape(told(request("hi", [listing, text("hello")])))[1:] == [("assistant", ["hello"])]
    asked = request("hi", [listing, text("hello")])
    served = msgspec.structs.replace(asked, mcp_servers=b"[{}]")
    assert told(served, own_only=True) is served
    assert shape(told(asked, own_only=True))[1:] == [("assistant", ["hello"])]
    assert shape(told(request("hi", [listing])))[1:] == []


def test_system_messages_between_stay_where_they_are() -> None:
    asked = request("hi", [use("a"), found("a")])
    asked = msgspec.structs.replace(asked, messages=(*asked.messages, Message("system", (Text("note"),))))
    assert shape(told(asked))[1:] == [
        ("assistant", ["call a"]),
        ("system", ["note"]),
        ("user", ["result a"]),
    ]


def hydrated(asked: Request) -> Request:
    origin = Origin("openai", "m")
    link = Link("a", "weather", "weather", "call_1", b'{"to": "Rome"}', origin, turn_id=7)
    snapshot = Snapshot({"a": link}, {}, {7: Origin("openai", "m", b"last")})
    hashes = chain(asked.messages)
    assert wanted(asked, hashes).hosted == ("a", "b")
    return hydrate(asked, hashes, snapshot)


def test_the_store_is_asked_for_no_call_that_it_cannot_be_asked_for() -> None:
    """A NUL in what PostgreSQL is asked is an error of its own: the client would try again for ever."""
    asked = request("Hi", [use("a\0b"), use("c"), found("a\0b"), text("So.")], "On.")
    known = wanted(asked, chain(asked.messages))
    assert (known.tool_use_ids, known.hosted) == (("c",), ("c",))
    assert unanswered(request("Hi", [use("a\0b"), use("c")])) == ("c",)


def test_call_that_the_bridge_ran_bears_the_names_and_arguments_of_its_link() -> None:
    asked = hydrated(request("hi", [use("a"), found("a"), use("b"), found("b"), text("so")]))
    plain = told(asked, Stored(origins={"a": Origin("openai", "m", b"first")}))
    first, second, last = (message for message in plain.messages if message.role == "assistant")
    ours = first.blocks[0]
    assert isinstance(ours, ToolUse)
    assert (ours.name, ours.input, ours.link is not None) == ("weather", b'{"to": "Rome"}', True)
    assert [message.origin and message.origin.state for message in (first, second, last)] == [b"first", None, b"last"]


def test_anthropic_keeps_what_it_ran_itself() -> None:
    asked = hydrated(request("hi", [use("a"), found("a"), use("b"), found("b"), text("so")]))
    assert shape(told(asked, own_only=True))[1:] == [
        ("assistant", ["call a"]),
        ("user", ["result a"]),
        ("assistant", ["ServerToolUse", "ServerToolResult", "so"]),
    ]


@pytest.mark.parametrize("provider", ["openai", "gemini", "minimax", "openai-responses"])
def test_what_is_told_is_legal_after_repair(provider: str) -> None:
    asked = request("hi", [use("a"), call("t"), found("a")], [result("t")], [use("b")], "next", [use("c"), found("c")])
    legal, _ = repair(told(asked), PROFILES[provider])
    assert validate(legal.messages) == []


def test_answers_without_hosted_calls_stay_the_same_objects() -> None:
    asked = request("hi", [text("hello")], "go", [use("a"), found("a")])
    assert told(asked).messages[:3] == asked.messages[:3]
    assert told(asked).messages[1] is asked.messages[1]


def test_second_result_of_a_call_ends_a_round_that_has_none() -> None:
    asked = request("hi", [use("a"), found("a"), text("hm"), found("a", "right"), text("so")])
    plain = told(asked)
    assert shape(plain)[1:] == [
        ("assistant", ["call a"]),
        ("user", ["result a"]),
        ("assistant", ["hm"]),
        ("assistant", ["so"]),
    ]

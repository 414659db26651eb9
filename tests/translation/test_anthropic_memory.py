"""What Anthropic gets back that a client left out or another provider made, before the strict validator."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.translation.captures import CAPTURES
from tests.translation.frames import sse
from tests.validators import anthropic as validator
from translation.adapter import Target, UpstreamRequest
from translation.client.parse import parse
from translation.events import Event, Finished, ToolEnded
from translation.history import repair
from translation.providers.anthropic import Anthropic
from translation.providers.anthropic_state import Kept, State
from translation.providers.profiles import PROFILES
from translation.values import Link, Origin, Request, ToolUse

Json = dict[str, Any]
PROFILE = PROFILES["anthropic"]
TARGET = Target("anthropic", "claude-sonnet-4-5", PROFILE)
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "Eq=="}
HIDDEN = {"type": "redacted_thinking", "data": "b64"}
TOOL = {"name": "Bash", "input_schema": {"type": "object", "properties": {}}}
TEXT = {"type": "text", "text": "Look:"}


def call(id_: str) -> Json:
    return {"type": "tool_use", "id": id_, "name": "Bash", "input": {"n": 1.0}}


def result(id_: str) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": "ok"}]}


def turn(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def request(*messages: Json, thinking: str = "enabled") -> Request:
    config = {"type": thinking} | ({"budget_tokens": 2000} if thinking == "enabled" else {})
    turns = [{"role": "user", "content": "hi"}, *messages]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9000, "thinking": config, "tools": [TOOL], "messages": turns}
    return repair(parse(msgspec.json.encode(body), "", ()), PROFILE)[0]


def kept(*thinking: tuple[int, Json], blocks: int) -> bytes:
    pieces = tuple(Kept(at, msgspec.Raw(msgspec.json.encode(block))) for at, block in thinking)
    return msgspec.json.encode(State(pieces, blocks))


def made(asked: Request, index: int, state: bytes = b"", upstream: str = "anthropic", *, link: bool = False) -> Request:
    """As hydration leaves it when `upstream` made this answer."""
    answer, origin = asked.messages[index], Origin(upstream, "m", state)
    if link:
        known = Link("", "Bash", "Bash", "", b"{}", origin)
        blocks = tuple(replace(block, link=known) if isinstance(block, ToolUse) else block for block in answer.blocks)
        answer = replace(answer, blocks=blocks)
    else:
        answer = replace(answer, origin=origin)
    return replace(asked, messages=(*asked.messages[:index], answer, *asked.messages[index + 1 :]))


def build(asked: Request) -> UpstreamRequest:
    sent = Anthropic().build(asked, TARGET)
    assert validator.validate(sent.body) == []
    return sent


def content(sent: UpstreamRequest, index: int) -> Any:
    return msgspec.json.decode(sent.body)["messages"][index]["content"]


def rules(sent: UpstreamRequest) -> list[str]:
    return [note.rule for note in sent.notes]


# ---------------------------------------------------------------- thinking that the client dropped


@pytest.mark.parametrize("link", [False, True])
def test_thinking_that_a_client_dropped_in_a_tool_turn_is_put_back(link: bool) -> None:
    asked = request(turn(TEXT, call("toolu_1")), result("toolu_1"))
    sent = build(made(asked, 1, kept((0, THOUGHT), (1, HIDDEN), blocks=4), link=link))
    assert content(sent, 1) == [THOUGHT, HIDDEN, TEXT, call("toolu_1")]
    assert b'"input":{"n":1.0}' in sent.body, "the rest is the client's own bytes"
    assert rules(sent) == ["thinking-restored"]
    assert msgspec.json.decode(sent.body)["thinking"]["type"] == "enabled"


def test_thinking_between_the_blocks_goes_back_to_its_place() -> None:
    asked = request(turn(TEXT, call("toolu_1")), result("toolu_1"))
    sent = build(made(asked, 1, kept((0, THOUGHT), (2, HIDDEN), blocks=4)))
    assert content(sent, 1) == [THOUGHT, TEXT, HIDDEN, call("toolu_1")]


def test_of_an_answer_that_was_changed_only_the_beginning_is_known() -> None:
    asked = request(turn(call("toolu_1")), result("toolu_1"))
    sent = build(made(asked, 1, kept((0, THOUGHT), (2, HIDDEN), blocks=4)))
    assert content(sent, 1) == [THOUGHT, call("toolu_1")]
    sent = build(made(asked, 1, kept((1, THOUGHT), blocks=9)))
    assert rules(sent) == ["thinking-disabled"]


def test_every_answer_of_the_tool_turn_gets_its_own_and_older_ones_none() -> None:
    asked = request(
        turn(call("toolu_0")), result("toolu_0"), turn(TEXT), {"role": "user", "content": "more"},
        turn(call("toolu_1")), result("toolu_1"), turn(call("toolu_2")), result("toolu_2"),
    )  # fmt: skip
    for index in (1, 5, 7):
        asked = made(asked, index, kept((0, THOUGHT), blocks=2))
    sent = build(asked)
    assert [note.message for note in sent.notes] == [7, 5]
    assert content(sent, 1) == [call("toolu_0")]


def test_without_memory_or_under_adaptive_thinking_nothing_is_put_back() -> None:
    turns = (turn(call("toolu_1")), result("toolu_1"))
    assert rules(build(request(*turns))) == ["thinking-disabled"]
    assert rules(build(made(request(*turns), 1, upstream="gemini"))) == ["thinking-disabled"]
    adaptive = made(request(*turns, thinking="adaptive"), 1, kept((0, THOUGHT), blocks=2))
    assert rules(build(adaptive)) == []


def test_thinking_that_the_client_kept_is_left_alone() -> None:
    asked = request(turn(HIDDEN, call("toolu_1")), result("toolu_1"))
    sent = build(made(asked, 1, kept((0, THOUGHT), blocks=2)))
    assert (sent.notes, content(sent, 1)[0]) == ((), HIDDEN)


@pytest.mark.parametrize("written", [{"signature": ""}, {}])
def test_thinking_goes_back_without_a_signature_to_who_wrote_it_so(written: Json) -> None:
    """DeepSeek's server for Anthropic's clients signs nothing, and refuses a tool turn without its thinking."""
    bare = {"type": "thinking", "thinking": "hm", "signature": ""}
    turns = (turn(bare, call("toolu_1")), result("toolu_1"))
    state = kept((0, {"type": "thinking", "thinking": "hm", **written}), blocks=2)
    sent = Anthropic().build(made(request(*turns, thinking="adaptive"), 1, state), TARGET)
    assert content(sent, 1) == [bare, call("toolu_1")]
    assert sent.notes == ()


def test_thinking_that_broke_off_before_its_signature_does_not_go_back() -> None:
    broken = {"type": "thinking", "thinking": "hm, l", "signature": ""}
    asked = request(turn(broken, call("toolu_1")), result("toolu_1"), thinking="adaptive")
    none = request(turn(broken | {"thinking": ""}, call("toolu_1")), result("toolu_1"), thinking="adaptive")
    assert rules(build(made(none, 1, kept((0, HIDDEN), blocks=2)))) == ["thinking-dropped"]
    for state in (b"", kept((0, THOUGHT), blocks=2)):
        sent = build(made(asked, 1, state))
        assert content(sent, 1) == [call("toolu_1")]
        assert rules(sent) == ["thinking-dropped"]
    whole = THOUGHT | {"signature": ""}
    sent = Anthropic().build(made(asked, 1, kept((0, whole), blocks=2)), TARGET)
    assert content(sent, 1) == [whole, call("toolu_1")]
    assert rules(sent) == ["thinking-dropped", "thinking-restored"]


@pytest.mark.parametrize("thinking", ["adaptive", "enabled", "disabled"])
def test_thinking_that_is_not_signed_is_put_back_into_every_tool_turn(thinking: str) -> None:
    bare = THOUGHT | {"signature": ""}
    asked = request(
        turn(call("toolu_0")), result("toolu_0"), turn(TEXT), {"role": "user", "content": "more"},
        turn(call("toolu_1")), result("toolu_1"), thinking=thinking,
    )  # fmt: skip
    for index in (1, 5):
        asked = made(asked, index, kept((0, bare), blocks=2))
    sent = Anthropic().build(asked, TARGET)
    expected = [] if thinking == "disabled" else [bare]
    assert [content(sent, index) for index in (1, 3, 5)] == [
        [*expected, call("toolu_0")],
        [TEXT],
        [*expected, call("toolu_1")],
    ]


def test_a_server_that_misses_thinking_which_nobody_has_goes_on_without_any() -> None:
    asked = request(turn(call("toolu_1")), result("toolu_1"), thinking="adaptive")
    sent = build(asked)
    words = "The `content[].thinking` in the thinking mode must be passed back to the API."
    body = msgspec.json.encode({"error": {"message": words, "type": "invalid_request_error"}})
    assert Anthropic().failure(TARGET, 400, {}, body).code == "opaque_state_rejected"
    again = Anthropic().without_state(sent)
    assert msgspec.json.decode(again.body)["thinking"] == {"type": "disabled"}
    assert rules(again) == ["opaque-state-dropped"]
    assert Anthropic().without_state(again) is again
    some = made(
        request(turn(call("t0")), result("t0"), turn(call("t1")), result("t1"), thinking="adaptive"),
        3,
        kept((0, THOUGHT | {"signature": ""}), blocks=2),
    )
    again = Anthropic().without_state(Anthropic().build(some, TARGET))
    assert msgspec.json.decode(again.body)["thinking"] == {"type": "disabled"}
    assert b"hm" not in again.body
    asked = request(turn(TEXT), {"role": "user", "content": "more"}, thinking="adaptive")
    spoken = build(asked)
    assert Anthropic().without_state(spoken) is spoken


def test_the_retry_after_a_refused_signature_leaves_redacted_thinking_out_too() -> None:
    sent = build(request(turn(THOUGHT, HIDDEN, call("toolu_1")), result("toolu_1")))
    again = Anthropic().without_state(sent)
    assert validator.validate(again.body) == []
    assert content(again, 1) == [call("toolu_1")]


def events(case: str, *, stream: bool) -> list[Event]:
    found = next((CAPTURES / "anthropic" / case).glob("upstream.*"))
    kind = "text/event-stream" if stream else "application/json"
    decoder = Anthropic().decoder(request(turn(TEXT)), TARGET, build(request(result("x"))), kind)
    return [*decoder.feed(found.read_bytes()), *decoder.close()]


def test_the_first_call_and_the_answer_carry_the_thinking_that_came_before() -> None:
    found = events("thinking_and_parallel_calls", stream=True)
    states = [event.state for event in found if isinstance(event, ToolEnded | Finished)]
    first, second, whole = (msgspec.json.decode(state, type=State) if state else None for state in states)
    assert first is not None
    assert whole is not None
    assert second is None
    assert (first.thinking, first.blocks, whole.blocks) == (whole.thinking, 0, 4)
    assert msgspec.json.decode(whole.thinking[0].block)["thinking"] == "Let me see."


def test_the_same_of_an_answer_that_came_whole_or_was_redacted() -> None:
    blocks = [HIDDEN, THOUGHT, call("toolu_1")]
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": blocks, "usage": usage}
    body = msgspec.json.encode({**message, "stop_reason": "tool_use"})
    decoder = Anthropic().decoder(request(turn(TEXT)), TARGET, build(request(result("x"))), "application/json")
    finished = [*decoder.feed(body), *decoder.close()][-1]
    assert isinstance(finished, Finished)
    state = msgspec.json.decode(finished.state, type=State)
    assert [(piece.at, msgspec.json.decode(piece.block)) for piece in state.thinking] == [(0, HIDDEN), (1, THOUGHT)]
    started: list[Json] = [
        {"type": "message_start", "message": {**message, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": HIDDEN},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {**call("toolu_1"), "input": {}}},
        {"type": "content_block_stop", "index": 1},
    ]
    stream = Anthropic().decoder(request(turn(TEXT)), TARGET, build(request(result("x"))), "text/event-stream")
    fed = stream.feed(sse(*started))
    (ended,) = [event for event in fed if isinstance(event, ToolEnded)]
    assert msgspec.json.decode(msgspec.json.decode(ended.state, type=State).thinking[0].block) == HIDDEN


# ---------------------------------------------------------------- searches

USE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}


def page(encrypted: str) -> Json:
    found = {"type": "web_search_result", "url": "https://a.org", "title": "A", "encrypted_content": encrypted}
    return {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]}


FAILED = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
}
CITED = {**TEXT, "citations": [{"type": "web_search_result_location", "encrypted_index": "e"}]}
GO_ON = {"role": "user", "content": "go on"}


@pytest.mark.parametrize("answer", [page("Eo8B"), FAILED])
def test_claudes_own_search_goes_back_as_it_was(answer: Json) -> None:
    asked = made(request(turn(USE, answer, CITED), GO_ON, thinking="disabled"), 1)
    sent = build(asked)
    assert (sent.body, sent.notes) == (asked.body, ())


@pytest.mark.parametrize(
    ("blocks", "upstream"),
    [
        ((USE, page("x"), CITED), "gemini"),
        ((USE, page("")), ""),
        ((USE, FAILED), "openai"),
        ((USE, TEXT), ""),
        ((page("x"), TEXT), ""),
    ],
    ids=["another's", "another's and unknown", "another's error", "no result", "no call"],
)
def test_a_search_that_would_be_refused_is_told_in_words(blocks: tuple[Json, ...], upstream: str) -> None:
    asked = request(turn(*blocks), GO_ON, thinking="disabled")
    sent = build(made(asked, 1, upstream=upstream) if upstream else asked)
    assert rules(sent) == ["search-worded"]
    assert {block["type"] for block in content(sent, 1)} == {"text"}
    assert not any("citations" in block for block in content(sent, 1))


def test_citations_that_the_bridge_wrote_for_another_provider_do_not_go_to_anthropic() -> None:
    written = {**TEXT, "citations": [{"type": "web_search_result_location", "encrypted_index": ""}]}
    asked = request(turn(USE, page("Eo8B"), CITED), GO_ON, turn(written), GO_ON, thinking="disabled")
    sent = build(asked)
    assert content(sent, 1) == [USE, page("Eo8B"), CITED]
    assert content(sent, 3) == [TEXT]
    assert [note.message for note in sent.notes] == [3]


def served(name: str, kind: str, content: object = None, **more: Json) -> tuple[Json, Json]:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": {}} | more.get("call", {})
    found = {} if content is None else {"content": content}
    return call, {"type": kind, "tool_use_id": "srvtoolu_1"} | found | more.get("result", {})


MCP = {"type": "mcp_tool_use", "server_name": "s"}


@pytest.mark.parametrize(
    "pair",
    [
        served("web_search", "web_search_tool_result", []),
        served("web_fetch", "web_fetch_tool_result", {"type": "web_fetch_result"}),
        served("tool_search_tool_bm25", "tool_search_tool_result", {"tool_references": []}),
        served("divine", "divine_tool_result", 7),
        served("anything", "mcp_tool_result", "text", call=MCP),
    ],
)
def test_what_claude_ran_goes_back_as_it_was(pair: tuple[Json, Json]) -> None:
    asked = made(request(turn(*pair, TEXT, {"type": "hologram", "x": 1}), GO_ON, thinking="disabled"), 1)
    sent = Anthropic().build(asked, TARGET)
    assert (sent.body, sent.notes) == (asked.body, ())


@pytest.mark.parametrize(
    "blocks",
    [
        served("web_searchx", "web_search_tool_result", []),
        served("", "web_search_tool_result", []),
        served("web_search", "web_seardh_tool_result", []),
        served("web_search", "mcp_tool_result", []),
        served("web_search", "web_search_tool_result", [], call=MCP),
        served("web_search", "web_search_tool_result", [], call={"id": ""}, result={"tool_use_id": ""}),
        served("web_search", "web_search_tool_result", [], call={"id": "ä"}, result={"tool_use_id": "ä"}),
        served("web_search", "web_search_tool_result", [], call={"id": 1}, result={"tool_use_id": 1}),
        served("web_search", "web_search_tool_result"),
        served("web_search", "web_search_tool_result", "text"),
        served("web_search", "web_search_tool_result", ["text"]),
        served("web_search", "web_search_tool_result", [None]),
        served("web_search", "web_search_tool_result", [{"encrypted_content": 1}]),
        served("web_fetch", "web_fetch_tool_result", False),
        served("web_search", "web_search_tool_result", [])[::-1],
    ],
)
def test_what_only_looks_like_a_call_and_its_result_is_told_in_words(blocks: tuple[Json, ...]) -> None:
    sent = build(made(request(turn(*blocks, CITED), GO_ON, thinking="disabled"), 1))
    assert rules(sent) == ["search-worded"]
    assert {block["type"] for block in content(sent, 1)} == {"text"}
    assert not any("citations" in block for block in content(sent, 1))
    assert validator.validate(sent.body) == []


def test_half_a_search_beside_a_whole_one_does_not_cost_its_citations() -> None:
    half = {**USE, "id": "srvtoolu_2"}
    sent = build(request(turn(USE, page("x"), CITED, half), GO_ON, thinking="disabled"))
    assert [block["type"] for block in content(sent, 1)][-1] == "text"
    assert content(sent, 1)[2] == CITED


def test_an_answer_that_was_paused_in_a_search_goes_on() -> None:
    asked = request(turn(TEXT, USE), thinking="disabled")
    assert build(asked).body == asked.body


def test_code_that_waits_for_a_clients_tool_has_its_result_in_a_later_answer() -> None:
    code = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "code_execution", "input": {}}
    asked = request(turn(code, call("toolu_1")), result("toolu_1"), thinking="disabled")
    assert build(asked).body == asked.body

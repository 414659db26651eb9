"""What a client may write, and the values that it becomes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translation.client.parse import parse
from translation.errors import InvalidRequest
from translation.values import (
    Block,
    Document,
    Image,
    Message,
    Other,
    RedactedThinking,
    Request,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ThinkingConfig,
    Thread,
    Tool,
    ToolChoice,
    ToolReference,
    ToolResult,
    ToolUse,
)


def read(*, betas: tuple[str, ...] = (), version: str = "2023-06-01", **fields: Any) -> Request:
    request = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]} | fields
    return parse(json.dumps(request).encode(), version, betas)


def content(value: Any, role: str = "user") -> tuple[Block, ...]:
    return read(messages=[{"role": role, "content": value}]).messages[0].blocks


def test_smallest_request() -> None:
    body = b'{"model": "m", "max_tokens": 5, "messages": [ {"role": "user", "content": "hi"} ]}'
    assert parse(body, "", ()) == Request(
        model="m",
        max_tokens=5,
        messages=(Message("user", (Text("hi"),), b'{"role": "user", "content": "hi"}'),),
        version="2023-06-01",
        body=body,
        size=82,
    )


SHAPES = [
    ("hi", (Text("hi"),)),
    ("", ()),
    ({"text": "hi"}, (Text("hi"),)),
    ({"content": "hi"}, (Text("hi"),)),
    ({"content": [{"type": "text", "text": "hi"}]}, (Text("hi"),)),
    ({"type": "text", "text": "hi"}, (Text("hi"),)),
    ({"content": {"a": 1}, "text": "hi"}, (Text("hi"),)),
    ([{"type": "text", "text": "a"}, {"text": "b", "type": "text"}], (Text("a"), Text("b"))),
    ([], ()),
]


@pytest.mark.parametrize(("value", "blocks"), SHAPES)
def test_content_of_any_shape_becomes_blocks(value: Any, blocks: tuple[Block, ...]) -> None:
    """R1."""
    assert content(value) == blocks


def source(**fields: Any) -> dict[str, Any]:
    return {"source": fields}


BASE64 = {"type": "base64", "media_type": "image/png", "data": "AA=="}
CITATION = {"type": "char_location", "cited_text": "x"}
KNOWN: list[tuple[dict[str, Any], Block]] = [
    ({"type": "text", "text": "a\0b", "cache_control": {"type": "ephemeral"}, "novel": 1}, Text("a\0b")),
    ({"type": "text", "text": "a", "citations": None}, Text("a")),
    ({"type": "text", "text": "a", "citations": []}, Text("a")),
    ({"type": "text", "text": "a", "citations": [CITATION]}, Text("a", json.dumps([CITATION]).encode())),
    ({"type": "image", "source": BASE64}, Image("base64", "AA==", "image/png")),
    ({"type": "image", **source(type="url", url="http://x")}, Image("url", "http://x")),
    ({"type": "image", **source(type="file", file_id="f"), "transformations": None}, Image("file", "f")),
    (
        {"type": "image", "source": BASE64, "transformations": {"oversized_image": "error"}},
        Image("base64", "AA==", "image/png", b'{"transformations":{"oversized_image": "error"}}'),
    ),
    (
        {"type": "document", "source": BASE64 | {"media_type": "application/pdf"}, "title": "t", "context": "c"},
        Document("base64", "AA==", "application/pdf", (), "t", "c"),
    ),
    (
        {"type": "document", **source(type="text", media_type="text/plain", data="d"), "title": None},
        Document("text", "d", "text/plain"),
    ),
    ({"type": "document", **source(type="content", content="d")}, Document("content", "", "", (Text("d"),))),
    (
        {"type": "document", **source(type="content", content=[{"type": "image", "source": BASE64}])},
        Document("content", "", "", (Image("base64", "AA==", "image/png"),)),
    ),
    ({"type": "document", **source(type="url", url="u")}, Document("url", "u")),
    ({"type": "document", **source(type="file", file_id="f")}, Document("file", "f")),
    (
        {"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "x"}]},
        SearchResult("t", "s", (Text("x"),)),
    ),
    ({"type": "thinking", "thinking": "t", "signature": "s"}, Thinking("t", "s")),
    ({"type": "thinking", "thinking": "t", "signature": None}, Thinking("t")),
    ({"type": "thinking", "thinking": ""}, Thinking("")),
    ({"type": "redacted_thinking", "data": "d"}, RedactedThinking("d")),
    (
        {"type": "tool_use", "id": "Bash:0", "name": "n", "input": {"a": 1}, "caller": None},
        ToolUse("Bash:0", "n", b'{"a": 1}'),
    ),
    (
        {"type": "tool_use", "id": "t", "name": "n", "input": {}, "toolset_name": "b", "caller": {"type": "direct"}},
        ToolUse("t", "n", b"{}", None, b'{"caller":{"type": "direct"},"toolset_name":"b"}'),
    ),
    (
        {"type": "tool_result", "tool_use_id": "a", "toolset_name": "b"},
        ToolResult("a", more=b'{"toolset_name":"b"}'),
    ),
    ({"type": "tool_reference", "tool_name": "WebFetch"}, ToolReference("WebFetch")),
    ({"type": "tool_result", "tool_use_id": "a"}, ToolResult("a")),
    ({"type": "tool_result", "tool_use_id": "a", "content": None, "is_error": None}, ToolResult("a")),
    ({"type": "tool_result", "tool_use_id": "a", "content": ""}, ToolResult("a")),
    ({"type": "tool_result", "tool_use_id": "a", "content": []}, ToolResult("a")),
    (
        {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True},
        ToolResult("a", (Text("x"),), True),
    ),
    (
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "tool_reference", "tool_name": "w"}]},
        ToolResult("a", (ToolReference("w"),)),
    ),
]


@pytest.mark.parametrize(("block", "value"), KNOWN)
def test_known_block_becomes_its_value(block: dict[str, Any], value: Block) -> None:
    assert content([block]) == (value,)


@pytest.mark.parametrize(("block", "value"), KNOWN)
def test_known_block_is_the_same_beside_an_unknown_one(block: dict[str, Any], value: Block) -> None:
    novel = {"type": "novel", "text": 5, "id": []}
    assert content([novel, block]) == (Other("novel", json.dumps(novel).encode()), value)


UNKNOWN = [
    {"type": "compaction", "content": "summary", "encrypted_content": "x"},
    {"type": "container_upload", "file_id": "f"},
    {"type": "tool_addition", "tools": [{"name": "x"}]},
    {"type": "fallback", "from": "a", "to": "b"},
    {"type": "server_tool_use", "id": 5},
    {"type": "odd_tool_result", "content": {}},
    {"type": "", "source": 5},
]


@pytest.mark.parametrize("block", UNKNOWN)
def test_unknown_block_is_carried_as_it_was_written(block: dict[str, Any]) -> None:
    assert content([block]) == (Other(block["type"], json.dumps(block).encode()),)
    assert content(block) == (Other(block["type"], json.dumps(block).encode()),)


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_call_that_the_api_ran_keeps_its_bytes(kind: str) -> None:
    block = {"type": kind, "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}, "server_name": "s"}
    raw = json.dumps(block).encode()
    assert content([block], "assistant") == (ServerToolUse("srvtoolu_1", "web_search", b'{"q": "x"}', kind, raw),)


@pytest.mark.parametrize("kind", ["web_search_tool_result", "mcp_tool_result", "advisor_tool_result"])
def test_answer_that_the_api_got_keeps_its_bytes(kind: str) -> None:
    block = {"type": kind, "tool_use_id": "srvtoolu_1", "content": {"type": "error"}}
    assert content([block], "assistant") == (ServerToolResult(kind, "srvtoolu_1", json.dumps(block).encode()),)


@pytest.mark.parametrize("kind", ["tool_result", "tool_use", "thinking", "browser_state"])
def test_block_that_does_not_belong_into_a_result_is_carried(kind: str) -> None:
    inner = {"type": kind, "tool_use_id": "b"}
    outer = {"type": "tool_result", "tool_use_id": "a", "content": [inner]}
    (result,) = content([outer])
    assert isinstance(result, ToolResult)
    assert result.blocks[0].__class__ in (Other, ServerToolResult)


def test_results_inside_results_do_not_recurse() -> None:
    block: dict[str, Any] = {"type": "text", "text": "x"}
    for _ in range(30):
        block = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    (result,) = content([block])
    assert isinstance(result, ToolResult)
    assert isinstance(result.blocks[0], Other)


def test_every_role_is_read_in_order_with_its_bytes() -> None:
    messages = [{"role": role, "content": "x", "clear_at": "never"} for role in ("user", "assistant", "system")]
    request = read(messages=messages)
    assert [message.role for message in request.messages] == ["user", "assistant", "system"]
    assert [json.loads(message.raw) for message in request.messages] == messages


@pytest.mark.parametrize(
    ("fields", "options", "effort"),
    [
        ({"clear_at": "never", "output_config": None}, (), ""),
        ({"clear_at": "next_user_message"}, ("clear_at",), ""),
        ({"output_config": {}}, (), ""),
        ({"output_config": {"effort": None}}, (), ""),
        ({"output_config": {"effort": "low"}}, (), "low"),
        (
            {"clear_at": "next_user_message", "output_config": {"effort": "max", "odd": 1}},
            ("clear_at", "output_config"),
            "max",
        ),
    ],
)
def test_what_a_system_message_sets_is_read(fields: Any, options: tuple[str, ...], effort: str) -> None:
    (message,) = read(messages=[{"role": "system", "content": [], **fields}]).messages
    assert (message.blocks, message.options, message.effort) == ((), options, effort)


def test_system_is_a_string_or_text_blocks() -> None:
    assert read(system="be kind").system == (Text("be kind"),)
    assert read(system="").system == ()
    blocks = read(
        system=[{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]
    )
    assert blocks.system == (Text("a"), Text("b"))
    assert json.loads(blocks.raw_system)[0]["cache_control"] == {"type": "ephemeral"}


def test_raw_slices_are_the_bytes_of_the_body() -> None:
    body = (
        b'{ "tools" : [ {"name":"t" , "input_schema": {"type" :"object"}} ],\n'
        b' "system":  [ {"type":"text","text":"\\u00e9"} ],'
        b'"messages":[ {"role":"user","content" : "h\xc3\xa9"} ], "model":"m","max_tokens":0 }'
    )
    request = parse(body, "2023-06-01", ())
    assert request.raw_tools == b'[ {"name":"t" , "input_schema": {"type" :"object"}} ]'
    assert request.tools[0].raw == b'{"name":"t" , "input_schema": {"type" :"object"}}'
    assert request.tools[0].schema == b'{"type" :"object"}'
    assert request.raw_system == b'[ {"type":"text","text":"\\u00e9"} ]'
    assert request.messages[0].raw == b'{"role":"user","content" : "h\xc3\xa9"}'
    assert request.messages[0].blocks == (Text("hé"),)
    assert request.body is body
    assert request.max_tokens == 0


def test_the_last_of_two_equal_keys_counts() -> None:
    body = b'{"model":"a","model":"b","max_tokens":1,"messages":[{"role":"user","content":"x"}]}'
    assert parse(body, "", ()).model == "b"


def test_field_that_is_not_carried_is_listed_and_never_an_error() -> None:
    request = read(novel={"a": [1]}, service_tier="auto", container=None, context_management={"edits": []})
    assert request.unknown == ("novel", "service_tier", "context_management")
    assert read(raw_tools="x", version="2023-06-01", user_id="x").unknown == ("raw_tools", "user_id")


def test_all_fields_that_are_carried() -> None:
    request = read(
        stream=True,
        temperature=1,
        top_p=0.5,
        top_k=40,
        stop_sequences=["a", "b"],
        metadata={"user_id": "u", "other": 1},
        mcp_servers=[{"type": "url", "name": "n", "url": "u"}],
        betas=("x", "y"),
    )
    assert (request.stream, request.temperature, request.top_p, request.top_k) == (True, 1.0, 0.5, 40)
    assert request.stop_sequences == ("a", "b")
    assert request.user_id == "u"
    assert json.loads(request.mcp_servers)[0]["name"] == "n"
    assert request.betas == ("x", "y")
    assert request.unknown == ()


def test_null_is_as_good_as_nothing() -> None:
    names = ("system", "tools", "tool_choice", "stream", "temperature", "top_p", "top_k", "stop_sequences", "thinking")
    more = ("output_config", "output_format", "metadata", "thread", "mcp_servers")
    nulls: dict[str, Any] = dict.fromkeys(names + more)
    nothing = read(**nulls)
    assert nothing.unknown == ()
    assert nothing.raw_system == nothing.raw_tools == b""
    assert (nothing.thinking, nothing.tool_choice, nothing.thread) == (None, None, None)
    assert read(metadata={}, mcp_servers=[], output_config={}).mcp_servers == b""
    assert read(metadata={"user_id": None}).user_id == ""


THINKING = [
    ({"type": "enabled", "budget_tokens": 1024}, ThinkingConfig("enabled", 1024)),
    ({"type": "adaptive", "display": "omitted", "block_binding": {}}, ThinkingConfig("adaptive", None, "omitted")),
    ({"type": "between_tools"}, ThinkingConfig("between_tools")),
    ({"type": "disabled"}, ThinkingConfig("disabled")),
]


@pytest.mark.parametrize(("value", "config"), THINKING)
def test_thinking_in_all_forms(value: dict[str, Any], config: ThinkingConfig) -> None:
    assert read(thinking=value).thinking == config


def test_output_config_and_its_older_form() -> None:
    schema = {"type": "object"}
    wanted = {"type": "json_schema", "schema": schema}
    new = read(output_config={"effort": "xhigh", "format": wanted, "task_budget": {}})
    assert (new.effort, json.loads(new.output_schema)) == ("xhigh", schema)
    assert json.loads(read(output_format=wanted).output_schema) == schema
    assert (
        read(output_format=wanted, output_config={"format": {"type": "json_schema", "schema": {}}}).output_schema
        == b"{}"
    )
    assert read(output_config={"effort": None, "format": None}).effort == ""


def test_thread_may_continue_without_messages() -> None:
    assert read(thread={"type": "create"}).thread == Thread("create")
    request = read(thread={"type": "continue", "previous_message_id": "msg_1"}, messages=[])
    assert request.thread == Thread("continue", "msg_1")
    assert request.messages == ()


def test_counting_needs_no_max_tokens() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
    assert parse(body, "", (), counting=True).max_tokens == 0
    assert parse(body[:-1] + b',"max_tokens":7}', "", (), counting=True).max_tokens == 7


def test_tool_with_all_fields() -> None:
    wire = {
        "name": "t",
        "type": "custom",
        "description": "d",
        "input_schema": {"type": "object", "properties": {}},
        "strict": True,
        "defer_loading": True,
        "eager_input_streaming": True,
        "input_examples": [{}],
        "allowed_callers": ["direct"],
        "cache_control": {"type": "ephemeral"},
    }
    schema = json.dumps(wire["input_schema"]).encode()
    tool = Tool("t", "d", schema, "custom", True, True, True, b"[{}]", ("direct",), json.dumps(wire).encode())
    assert read(tools=[wire]).tools == (tool,)


def test_a_byte_order_mark_is_no_part_of_a_body() -> None:
    body = json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "a"}]}).encode()
    request = parse(b"\xef\xbb\xbf" + body, "", ())
    assert request == parse(body, "", ())
    assert request.body == body
    with pytest.raises(InvalidRequest):
        parse(b"\xef\xbb\xbf\xef\xbb\xbf" + body, "", ())


def test_tool_without_a_schema_or_with_nulls_is_accepted() -> None:
    wire = {"name": "t", "type": None, "description": None, "input_schema": None, "strict": None}
    assert read(tools=[wire]).tools == (Tool("t", raw=json.dumps(wire).encode()),)
    assert read(tools=[{"name": "t"}]).tools[0].schema == b""


def test_typed_tools_keep_their_fields_in_their_bytes() -> None:
    bash = {"type": "bash_20250124", "name": "bash"}
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    servers = [{"type": "mcp_toolset", "mcp_server_name": name} for name in ("a", "b")]
    tools = read(tools=[bash, search, *servers, {"type": "browser_toolset_20260801"}]).tools
    assert [(tool.type, tool.name) for tool in tools] == [
        ("bash_20250124", "bash"),
        ("web_search_20250305", "web_search"),
        ("mcp_toolset", "a"),
        ("mcp_toolset", "b"),
        ("browser_toolset_20260801", "browser_toolset_20260801"),
    ]
    assert json.loads(tools[1].raw) == search


def test_fine_grained_beta_makes_every_tool_eager() -> None:
    tools = [{"name": "a"}, {"name": "b", "eager_input_streaming": False}]
    assert [tool.eager for tool in read(tools=tools).tools] == [False, False]
    eager = read(tools=tools, betas=("other", "fine-grained-tool-streaming-2025-05-14"))
    assert [tool.eager for tool in eager.tools] == [True, True]


CHOICES = [
    ({"type": "auto"}, ToolChoice("auto")),
    ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("any", "", False)),
    ({"type": "tool", "name": "t", "disable_parallel_tool_use": False}, ToolChoice("tool", "t")),
    ({"type": "none"}, ToolChoice("none")),
]


@pytest.mark.parametrize(("value", "choice"), CHOICES)
@pytest.mark.parametrize("tools", [[{"name": "t"}], [], None])
def test_tool_choice_with_and_without_tools(value: dict[str, Any], choice: ToolChoice, tools: Any) -> None:
    assert read(tool_choice=value, tools=tools).tool_choice == choice


def test_toolset_may_hold_the_tool_that_is_chosen() -> None:
    tools = [{"name": "t"}, {"type": "mcp_toolset", "mcp_server_name": "s"}]
    assert read(tool_choice={"type": "tool", "name": "far"}, tools=tools).tool_choice == ToolChoice("tool", "far")


@given(st.binary(max_size=40))
def test_random_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse(body, "", ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "source", "id", "name", "input"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
FIELD = st.sampled_from(["model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "thread"])


def refusal(**fields: Any) -> str | None:
    try:
        read(**fields)
    except InvalidRequest as error:
        return error.message
    return None


@given(FIELD, JSON)
def test_any_json_in_any_field_is_read_or_refused(name: str, value: Any) -> None:
    message = refusal(**{name: value})
    assert message is None or message.startswith(name)


@given(JSON)
def test_any_json_as_a_block_is_read_or_refused_with_its_path(value: object) -> None:
    message = refusal(messages=[{"role": "user", "content": [{"type": "text", "text": "x"}, value]}])
    assert message is None or message.startswith("messages.0.content.1")

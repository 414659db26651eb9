"""The form in which the store keeps content."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.translation.client import strategies
from translation.client.parse import parse_written
from translation.client.stored import (
    HELD,
    dump_all,
    dump_blocks,
    dump_content,
    dump_message,
    fingerprint,
    is_content,
    parse_answer,
    parse_blocks,
    parse_message,
    parse_told,
)
from translation.errors import UpstreamProtocolError
from translation.values import Block, Message, Other, ServerToolUse, Text, Thinking, ToolResult, ToolUse


@given(strategies.blocks)
def test_what_is_stored_reads_back_the_same(blocks: tuple[Block, ...]) -> None:
    assert parse_blocks(dump_blocks(blocks)) == blocks


@given(strategies.blocks)
def test_storing_again_gives_the_same_bytes(blocks: tuple[Block, ...]) -> None:
    once = dump_blocks(blocks)
    assert dump_blocks(parse_blocks(once)) == once


@given(strategies.blocks)
def test_many_messages_are_stored_as_each_of_them(blocks: tuple[Block, ...]) -> None:
    messages = [Message("user", blocks), *(Message("user", (block,)) for block in blocks)]
    alone = [dump_content(message) for message in messages]
    assert dump_all(messages) == alone
    assert dump_all(messages) == alone  # also the next time


def test_what_is_kept_of_many_messages_is_short() -> None:
    options = parse_written(b'{"role":"system","content":"Hurry.","clear_at":"next_user_message"}')
    long = "x" * HELD
    messages = [
        Message("user", (Text(long),)),
        Message("user", (ToolResult("t", (Text(long, b"[]"),)),)),
        Message("assistant", (Text("a"), ToolUse("t", "Write", msgspec.json.encode({"text": long})))),
        options,
    ]
    for _ in range(2):
        assert dump_all(messages) == [*map(dump_content, messages)]
        assert dump_all(messages[:1]) == [dump_content(messages[0])]


@pytest.mark.parametrize("content", [[], "Hurry.", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]])
def test_what_a_message_sets_beside_its_content_reads_back(content: object) -> None:
    """For a process that does not know of it, it is an empty text, which nobody is told."""
    written = {
        "role": "system",
        "content": content,
        "clear_at": "next_user_message",
        "output_config": {"effort": "low"},
    }
    message = parse_written(json.dumps(written).encode())
    stored = dump_content(message)
    told = parse_told("system", stored)
    assert (told.blocks, told.options, told.effort) == (message.blocks, ("clear_at",), "low")
    assert json.loads(told.raw) | {"content": content} == written
    assert parse_blocks(stored) == (Text(""), *message.blocks)
    assert dump_content(Message("system", message.blocks, effort="low")) == dump_blocks(message.blocks)


def test_message_reads_back_the_same() -> None:
    message = Message("assistant", (Text("a\0b"), ToolUse("t", "n", b'{"a":1}')), b"raw")
    dumped = msgspec.json.decode(dump_message(message), type=dict[str, msgspec.Raw])
    assert bytes(dumped["role"]) == b'"assistant"'
    assert parse_message("assistant", bytes(dumped["content"])) == Message("assistant", message.blocks)


SAME: list[tuple[Any, Any]] = [
    ("hi", [{"type": "text", "text": "hi"}]),
    ("hi", {"text": "hi"}),
    ([{"type": "text", "text": "hi"}], [{"text": "hi", "cache_control": {"type": "ephemeral"}, "type": "text"}]),
    ([{"type": "text", "text": "hi"}], [{"type": "text", "text": "hi", "citations": None}]),
    (
        [{"type": "tool_result", "tool_use_id": "a", "content": "x"}],
        [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}], "is_error": False}],
    ),
    ([{"type": "novel", "a": 1}], [{"type": "novel", "a": 1, "cache_control": {"type": "ephemeral"}}]),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_spellings_of_the_same_content_are_stored_alike(one: Any, other: Any) -> None:
    spaced = json.dumps(other, indent=2).encode()
    assert dump_blocks(parse_blocks(json.dumps(one).encode())) == dump_blocks(parse_blocks(spaced))


def test_an_answer_is_told_as_a_client_would_send_it_back() -> None:
    """It is stored as the model spelled it, for who asks for it again."""
    content = b'[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"f","input":{"a": 1}}]'
    text, call = parse_told("assistant", content).blocks
    assert (text, call) == (Text("a"), ToolUse("t", "f", b'{"a":1}'))
    said = b'[{"type":"text","text":"a"}]'
    assert parse_told("user", said) == parse_message("user", said)


def test_arguments_have_one_spelling_and_keep_a_field_called_cache_control() -> None:
    written = ToolUse("a", "n", b'{ "b" : "\\u00e9", "a": 1.50, "cache_control": {} }')
    assert dump_blocks((written,)) == (
        '[{"type":"tool_use","id":"a","name":"n","input":{"b":"é","a":1.5,"cache_control":{}}}]'.encode()
    )


def test_server_call_that_the_bridge_made_is_written_from_its_fields() -> None:
    call = ServerToolUse("s", "web_search", b'{"q":"x"}')
    assert dump_blocks((call,)) == b'[{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":"x"}}]'


def test_broken_unicode_of_an_upstream_is_stored_as_replacement() -> None:
    content = (
        Text("a\ud800b"),
        Thinking("\ud83d\ude00", "s"),
        ToolResult("x", (Text("\udc00"),), True),
        Other("o", b'{"type":"o"}'),
    )
    assert json.loads(dump_blocks(content)) == [
        {"type": "text", "text": "a\ufffdb"},
        {"type": "thinking", "thinking": "😀", "signature": "s"},
        {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "\ufffd"}], "is_error": True},
        {"type": "o"},
    ]


def test_sizes_are_no_content() -> None:
    assert is_content(b'[{"type":"text","text":"hi"}]')
    assert is_content(b'[{"type":"text","text":"\\"size\\""},{"type":"tool_use","size":2,"id":"x"}]')
    assert not is_content(b'[{"type":"text","size":2}]')


def test_an_answer_that_no_client_could_send_back_is_the_upstreams_fault() -> None:
    assert parse_answer(b'[{"type":"text","text":"a"}]') == Message("assistant", (Text("a"),))
    with pytest.raises(UpstreamProtocolError, match=r"cannot be kept: content\.0\.name"):
        parse_answer(b'[{"type":"tool_use","id":"t","name":"","input":{}}]')


SYSTEM = b'[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}]'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SYSTEM, b'"S"'),
        (SYSTEM, b'[ {"text": "\\u0053", "type": "text"} ]'),
        (SYSTEM, b'{"type":"text","text":"S"}'),
        (SYSTEM, b'[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"S"}]'),
        (b'[{"name":"f","input_schema":{},"cache_control":{}}]', b'[{"input_schema":{},"name":"f"}]'),
        (b"", b"[]"),
        (b"", b'""'),
    ],
)
def test_a_system_or_tools_in_another_spelling_are_the_same(one: bytes, other: bytes) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize("other", [b"", b'"T"', b'[{"type":"text","text":"S"},{"type":"text","text":"S"}]'])
def test_another_system_is_another(other: bytes) -> None:
    assert fingerprint(SYSTEM) != fingerprint(other)

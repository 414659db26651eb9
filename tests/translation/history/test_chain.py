"""What two histories must and must not share."""

import pytest

from translation.chain import SIZE, TOGETHER, chain, link
from translation.values import (
    Block,
    Document,
    Image,
    Message,
    Other,
    RedactedThinking,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def assistant(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def test_each_message_has_a_hash_that_holds_its_parents() -> None:
    history = (user(Text("a")), assistant(Text("b")), user(Text("c")))
    hashes = chain(history)
    assert [len(each) for each in hashes] == [SIZE] * 3
    assert chain(history[:2]) == hashes[:2]
    assert link(hashes[1], history[2]) == hashes[2]
    assert chain(history[2:], parent=hashes[1]) == hashes[2:]
    assert chain((user(Text("x")), *history[1:]))[2] != hashes[2]


def test_a_long_history_has_the_hashes_of_its_messages_one_by_one() -> None:
    history = [user(Text(f"message {number}")) for number in range(2 * TOGETHER + 1)]
    hashes, parent = [], b"root"
    for message in history:
        parent = link(parent, message)
        hashes.append(parent)
    for length in (TOGETHER - 1, TOGETHER, TOGETHER + 1, len(history)):
        assert chain(history[:length], b"root") == tuple(hashes[:length])
    assert chain(history)[-1] != hashes[-1]


EQUAL: list[tuple[str, Message, Message]] = [
    ("thinking", assistant(Thinking("hm", "sig"), RedactedThinking("x"), Text("b")), assistant(Text("b"))),
    ("thinking of a user", user(Thinking("hm"), Text("b")), user(Text("b"))),
    ("texts of an answer", assistant(Text("a"), Thinking("hm"), Text("b"), Text("c")), assistant(Text("abc"))),
    ("inputs", assistant(ToolUse("t1", "Read", b'{"a": 1}')), assistant(ToolUse("t1", "Read", b'{"a":1}'))),
    ("empty text", user(Text(""), Text("b")), user(Text("b"))),
    ("citations", assistant(Text("b", b"[{}]")), assistant(Text("b"))),
    (
        "key order and cache_control",
        user(Other("new", b'{"type":"new","b":1,"a":2,"cache_control":{"type":"ephemeral"}}')),
        user(Other("new", b'{"a":2, "b":1, "type":"new"}')),
    ),
    (
        "lone surrogates",
        user(Text("a\ud800"), Other("new", b'{"a":1}')),
        user(Text("a\N{REPLACEMENT CHARACTER}"), Other("new", b'{"a":1}')),
    ),
    ("raw", Message("user", (Text("b"),), raw=b'{"role":"user","content":"b"}'), user(Text("b"))),
]


@pytest.mark.parametrize(("what", "one", "other"), EQUAL, ids=[case[0] for case in EQUAL])
def test_what_clients_change_on_the_way_does_not_count(what: str, one: Message, other: Message) -> None:
    assert link(b"", one) == link(b"", other)


def test_every_other_difference_counts() -> None:
    messages = [
        user(Text("a")),
        Message("system", (Text("a"),)),
        assistant(Text("a")),
        user(Text("a"), Text("a")),
        user(Text("aa")),
        user(Text("text"), Text("a")),
        user(ToolResult("t1", (Text("a"),))),
        user(ToolResult("t1", (Text("a"),), is_error=True)),
        user(ToolResult("t1"), Text("a")),
        user(ToolResult("t2", (Text("a"),))),
        assistant(ToolUse("t1", "Read", b"{}")),
        assistant(Text("a"), ToolUse("t1", "Read", b"{}"), Text("b")),
        assistant(Text("ab"), ToolUse("t1", "Read", b"{}")),
        assistant(ToolUse("t2", "Read", b"{}")),
        assistant(ToolUse("t1", "Write", b"{}")),
        user(Image("base64", "QQ==", "image/png")),
        user(Image("base64", "QQ==", "image/gif")),
        user(Image("url", "QQ==")),
        user(Document("text", "a", "text/plain")),
        user(Document("content", "", blocks=(Text("a"),))),
        user(Document("content", ""), Text("a")),
        user(SearchResult("a", "b", (Text("c"),))),
        user(ToolResult("t1", (ToolReference("Fetch"),))),
        assistant(ServerToolUse("s1", "web_search", b"{}")),
        assistant(ServerToolResult("web_search_tool_result", "s1", b'{"tool_use_id":"s1"}')),
        user(Other("new", b'{"a":1}')),
        user(Other("new", b'{"a":2}')),
    ]
    assert len({link(b"", message) for message in messages}) == len(messages)

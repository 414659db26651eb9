"""Cache breakpoints of messages that the store puts before a client's own, toward Anthropic."""

from typing import Any

import msgspec
from msgspec.structs import replace

from translation.adapter import Target
from translation.adapters import adapter
from translation.client.marks import dump_written
from translation.client.parse import parse, parse_written
from translation.client.stored import dump_content, parse_told
from translation.history import repair
from translation.providers.profiles import PROFILES
from translation.values import Message, Text

PROFILE = PROFILES["anthropic"]
TARGET = Target("anthropic", "claude-sonnet-4-5", PROFILE)
MARKED: Any = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BRIEF: Any = {"cache_control": {"type": "ephemeral"}}


def continued(*stored: Any, own: Any = "new", **fields: Any) -> list[Any]:
    """The breakpoints of the messages that are sent when the store puts these before the client's own."""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": own}], **fields}
    request = parse(msgspec.json.encode(body), "2023-06-01", ())
    written = [parse_written(msgspec.json.encode({"role": "user", "content": content})) for content in stored]
    answer = Message("assistant", (Text("ok"),))
    history = [each for one in written for each in (parse_told("user", dump_written(one)), answer)]
    given, notes = repair(replace(request, messages=(*history, *request.messages)), PROFILE)
    sent = msgspec.json.decode(adapter(PROFILE).build(given, TARGET).body)["messages"]
    assert not notes
    assert len(sent) == 2 * len(stored) + 1
    blocks = [message["content"][-1] for message in sent[::2]]
    return [block.get("cache_control") if isinstance(block, dict) else None for block in blocks]


def said(words: str, **more: Any) -> list[Any]:
    return [{"type": "text", "text": words, **more}]


def test_stored_messages_keep_their_cache_breakpoints() -> None:
    brief, hour = BRIEF["cache_control"], MARKED["cache_control"]
    assert continued(said("a", **MARKED), said("b", **BRIEF), "c") == [hour, brief, None, None]
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, **BRIEF}
    assert continued([*said("read"), document], said("b"), own=said("d", **BRIEF)) == [brief, None, brief]


def test_the_newest_breakpoints_count_and_no_more_than_the_api_takes() -> None:
    brief = BRIEF["cache_control"]
    five = [said(words, **BRIEF) for words in "abcde"]
    assert continued(*five) == [None, *[brief] * 4, None]
    assert continued(*five, own=said("f", **BRIEF)) == [None, None, *[brief] * 4]
    assert continued(*five, system=said("s", **BRIEF), **BRIEF) == [*[None] * 3, brief, brief, None]


def test_breakpoints_that_last_longer_come_first_or_not_at_all() -> None:
    brief, hour = BRIEF["cache_control"], MARKED["cache_control"]
    assert continued(said("a", **BRIEF), own=said("b", **MARKED)) == [None, hour]
    assert continued(said("a", **BRIEF), said("b", **MARKED)) == [None, hour, None]
    assert continued(said("a", **MARKED), own=said("b", **BRIEF)) == [hour, brief]
    assert continued(said("a", **MARKED), system=said("s", **BRIEF)) == [None, None]
    assert continued(said("a", **BRIEF), **MARKED) == [None, None]


def test_a_message_with_options_is_stored_as_ever() -> None:
    raw = {"role": "system", "content": said("s", **BRIEF), "clear_at": "next_user_message"}
    message = parse_written(msgspec.json.encode(raw))
    assert dump_written(message) == dump_content(message)
    assert parse_told("system", dump_written(message)).options == ("clear_at",)

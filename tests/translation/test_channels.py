"""gpt-oss's own format, where a server leaves it in the text."""

from typing import Any

import pytest

from tests.translation.answers import answer, calls, chunk
from tests.translation.frames import sse
from translation.channels import HEAD

Json = dict[str, Any]
THOUGHT = "<|channel|>analysis<|message|>hm<|end|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>Use <b>.<|return|>"
CALL = '<|start|>assistant<|channel|>commentary to=functions.Read <|constrain|>json<|message|>{"path":"a"}'
READ_A = ("Read", {"path": "a"})


def told(text: str, size: int, finish: str = "stop", provider: str = "vllm") -> tuple[list[str], str]:
    pieces = [chunk({"content": text[start : start + size]}) for start in range(0, len(text), size)]
    content, end, _ = answer(provider, sse(*pieces, chunk(finish=finish), b"[DONE]"))
    return [block.get("text") or block.get("thinking") or str(block["input"]) for block in content], end


@pytest.mark.parametrize("size", [1, 5, 4000])
@pytest.mark.parametrize(
    ("text", "shown", "end"),
    [
        (THOUGHT + FINAL, ["hm", "Use <b>."], "end_turn"),
        (f"\n{THOUGHT}{FINAL}\n", ["hm", "Use <b>."], "end_turn"),
        (THOUGHT.removesuffix("<|end|>") + FINAL.removesuffix("<|return|>"), ["hm", "Use <b>."], "end_turn"),
        (FINAL, ["Use <b>."], "end_turn"),
        (THOUGHT, ["hm"], "end_turn"),
        (THOUGHT + THOUGHT + FINAL, ["hm\n\nhm", "Use <b>."], "end_turn"),
        (f"<|channel|>commentary<|message|>Wait.<|end|>{FINAL}", ["Wait.\n\nUse <b>."], "end_turn"),
        (f"{THOUGHT}{CALL}<|call|>", ["hm", "{'path': 'a'}"], "tool_use"),
        (THOUGHT + CALL + CALL, ["hm", *["{'path': 'a'}"] * 2], "tool_use"),
        (
            '<|start|>assistant to=functions.Read<|channel|>commentary json<|message|>{"path":"a"}<|call|>',
            ["{'path': 'a'}"],
            "tool_use",
        ),
    ],
    ids=[
        "reasoning and answer", "white space around it", "no ends", "answer only", "reasoning only",
        "reasoning in two messages", "a preamble", "a call", "two calls, no ends", "the recipient first",
    ],
)  # fmt: skip
def test_messages_in_channels_are_told_apart(text: str, shown: list[str], end: str, size: int) -> None:
    assert told(text, size) == (shown, end)


@pytest.mark.parametrize("size", [1, 4000])
@pytest.mark.parametrize(
    "text",
    [
        "<|channel|> is a token.",
        "<|start|>" + "x" * HEAD,
        "<|channel|>",
        "<|start|><|message|>x",
        "Say <|channel|>final",
    ],
)
def test_what_only_begins_like_that_is_text(text: str, size: int) -> None:
    assert told(text, size) == ([text], "end_turn")


@pytest.mark.parametrize("size", [1, 4000])
def test_a_message_may_speak_of_the_format(size: int) -> None:
    assert told("<|channel|>final<|message|>After <|end|> or <|e", size) == (["After <|end|> or <|e"], "end_turn")


@pytest.mark.parametrize("size", [1, 4000])
@pytest.mark.parametrize("cut", ["<|start|>assistant<|channel|>fin", CALL[:-3], CALL[:-20]])
def test_what_the_token_limit_cut_off_is_left_out(cut: str, size: int) -> None:
    assert told(THOUGHT + cut, size, "length") == (["hm"], "max_tokens")


def test_calls_in_channels_are_told_apart_from_those_beside_the_text() -> None:
    beside = [{"index": 0, "id": "c", "function": {"name": "Bash", "arguments": '{"path":"b"}'}}]
    events = chunk({"content": f"{CALL}<|call|>"}), chunk({"tool_calls": beside}), chunk(finish="tool_calls")
    assert calls(answer("vllm", sse(*events))[0]) == [READ_A, ("Bash", {"path": "b"})]


def test_at_providers_whose_servers_know_the_format_it_is_text() -> None:
    assert told(FINAL, 4000, provider="openai") == ([FINAL], "end_turn")

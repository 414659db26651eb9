"""Calls that a server leaves in the text, as Hermes, Qwen and GLM write them. Streams of them are captures."""

from typing import Any

import msgspec
import pytest

from tests.translation.answers import REQUEST, TOOLS, answer, calls, chunk, decoder
from tests.translation.frames import sse
from translation.adapter import Target
from translation.adapters import adapter
from translation.client.parse import parse
from translation.events import ToolEnded
from translation.offered import OfferedTools
from translation.providers.profiles import PROFILES
from translation.text_calls import ENDS, TextCalls
from translation.written_calls import Written, read

Json = dict[str, Any]
LONG = "x" * 3000

HERMES = '<tool_call>\n{"name": "Read", "arguments": {"path": "a"}}\n</tool_call>'
CODER = "<tool_call>\n<function=Read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>"
GLM = "<tool_call>Read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>"
WAYS = [HERMES, CODER, GLM]
READ_A = ("Read", {"path": "a"})

INVOKED = """<｜DSML｜invoke name="Read">
<｜DSML｜parameter name="path" string="true">a</｜DSML｜parameter>
</｜DSML｜invoke>"""
V4 = f"<｜DSML｜tool_calls>\n{INVOKED}\n%s</｜DSML｜tool_calls>"
V32 = f"<｜DSML｜function_calls>\n{INVOKED}\n%s</｜DSML｜function_calls>"
SEPARATED = '<｜tool▁call▁begin｜>Read<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>'
V31 = f"<｜tool▁calls▁begin｜>{SEPARATED}%s<｜tool▁calls▁end｜>"
FENCED = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>Read\n```json\n{"path": "a"}\n```<｜tool▁call▁end｜>'
V3 = f"<｜tool▁calls▁begin｜>{FENCED}%s<｜tool▁calls▁end｜>"
BEGUN = '<|tool_call_begin|>functions.Read:0<|tool_call_argument_begin|>{"path": "a"}<|tool_call_end|>'
KIMI = f"<|tool_calls_section_begin|>{BEGUN}%s<|tool_calls_section_end|>"
PLAIN = '<invoke name="Read">\n<parameter name="path">a</parameter>\n</invoke>'
MINIMAX = f"<minimax:tool_call>\n{PLAIN}\n%s</minimax:tool_call>"
BARED = f"<function_calls>\n{INVOKED.replace('｜DSML｜', '')}\n%s</function_calls>"
SECTIONS = [(V4, INVOKED), (V32, INVOKED), (V31, SEPARATED), (V3, f"\n{FENCED}"), (KIMI, BEGUN)]
SECTIONS += [(MINIMAX, PLAIN), (BARED, PLAIN)]
MODELS = ["v4", "v3.2", "v3.1", "v3", "kimi", "minimax", "v3.2 without its token"]


@pytest.mark.parametrize("size", [1, 7, 4000])
@pytest.mark.parametrize(("section", "another"), SECTIONS, ids=MODELS)
def test_calls_between_tokens_are_calls(section: str, another: str, size: int) -> None:
    content, end, _ = answer("vllm", say(f"Let me see.\n\n{section % another}\n", size=size))
    assert (calls(content), end) == ([READ_A, READ_A], "tool_use")
    assert texts(content) == "Let me see.\n\n"
    unended = (section % "").rpartition("<")[0]
    assert calls(answer("vllm", say(unended, size=size))[0]) == [READ_A]
    content, end, _ = answer("vllm", say(unended[:-3], "length", size=size))
    assert (content, end) == ([], "max_tokens")


NS = "]<]minimax[>["
M3_CALL = f'{NS}<invoke name="Read">{NS}<path>a{NS}</path>{NS}</invoke>\n'
M3 = f"{NS}<tool_call>\n{M3_CALL}%s{NS}</tool_call>"


@pytest.mark.parametrize("size", [1, 7, 4000])
def test_calls_in_the_tags_of_minimax_m3_are_calls(size: int) -> None:
    content, end, _ = answer("openrouter", say(f"Let me see, a[0]<1.{M3 % M3_CALL}\n", size=size))
    assert (calls(content), texts(content), end) == ([READ_A, READ_A], "Let me see, a[0]<1.", "tool_use")
    assert calls(answer("vllm", say(f"{NS}<tool_call>{M3_CALL}", size=size))[0]) == [READ_A]
    assert answer("vllm", say(f"{NS}<tool_call>{M3_CALL[:-30]}", "length", size=size))[:2] == ([], "max_tokens")
    for text in ((M3 % "").replace("Read", "Nope"), f"{NS} is a token", f"`{M3 % ''}`", "a]", "a]<"):
        content, end, _ = answer("vllm", say(text, size=size))
        assert (texts(content), calls(content), end) == (text, [], "end_turn")


@pytest.mark.parametrize("size", [1, 4000])
@pytest.mark.parametrize(("section", "another"), SECTIONS, ids=MODELS)
def test_what_is_no_call_between_tokens_stays_text(section: str, another: str, size: int) -> None:
    opening = section[: section.index(">") + 1]
    broken = [section % another.replace("Read", "Nope"), section % "?", f"{opening} is a token", opening]
    for text in (*broken, (section % "").replace("path", "").replace('"', "")):
        content, end, _ = answer("vllm", say(text, size=size))
        assert (texts(content), calls(content), end) == (text, [], "end_turn")


@pytest.mark.parametrize(("section", "_"), SECTIONS, ids=MODELS)
def test_a_value_between_tokens_may_talk_about_them(section: str, _: str) -> None:
    for token in ("</｜DSML｜parameter>", "</｜DSML｜tool_calls>", "<｜tool▁call▁end｜>", "<|tool_calls_section_end|>"):
        said = (section % "").replace('"a"', f'"{token}"').replace(">a<", f">{token}<")
        assert calls(answer("vllm", say(said))[0]) == [("Read", {"path": token})]


def say(text: str, finish: str = "stop", size: int = 4, beside: tuple[Json, ...] = ()) -> bytes:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return sse(*[chunk({"content": piece}) for piece in pieces], *beside, chunk(finish=finish), b"[DONE]")


def texts(content: list[Json]) -> str:
    return "".join(block["text"] for block in content if block["type"] == "text")


@pytest.mark.parametrize("size", [1, 7, 4000])
@pytest.mark.parametrize("written", WAYS, ids=["hermes", "coder", "glm"])
def test_a_call_in_the_text_is_a_call(written: str, size: int) -> None:
    content, end, _ = answer("vllm", say(f"Let me see.\n\n{written}\n{written}\n", size=size))
    assert (calls(content), end) == ([READ_A, READ_A], "tool_use")
    assert texts(content) == "Let me see.\n\n"


JSON_A = '{"name": "Read", "arguments": {"path": "a"}}'


@pytest.mark.parametrize("size", [1, 7, 4000])
@pytest.mark.parametrize("closing", ["", "</tool_call>"])
@pytest.mark.parametrize("several", [f"[{JSON_A}, {JSON_A}]", f"\n{JSON_A}\n{JSON_A}\n"], ids=["list", "lines"])
def test_one_tag_may_hold_several_calls(several: str, closing: str, size: int) -> None:
    """Granite writes a list, without a closing tag; Hermes' models one call after the other."""
    content, end, _ = answer("vllm", say(f"So:\n<tool_call>{several}{closing}", size=size))
    assert (calls(content), texts(content), end) == ([READ_A, READ_A], "So:\n", "tool_use")


def thought(text: str, *more: Json, finish: str = "stop", size: int = 4) -> bytes:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return sse(*[chunk({"reasoning_content": piece}) for piece in pieces], *more, chunk(finish=finish), b"[DONE]")


@pytest.mark.parametrize("written", [*WAYS, V4 % "", KIMI % ""], ids=["hermes", "coder", "glm", "dsml", "kimi"])
def test_calls_that_the_reasoning_ends_with_are_calls_where_nothing_follows(written: str) -> None:
    """vLLM's issue 39056: the model began to call before it closed its reasoning."""
    draft = f"Perhaps {written.replace('Read', 'Bash')}? No: "
    content, end, _ = answer("vllm", thought(f"{draft}\n{written}\n{written}\n", chunk({"content": "\n"})))
    assert (calls(content), end, content[0]["type"], texts(content)) == ([READ_A, READ_A], "tool_use", "thinking", "")
    assert calls(answer("vllm", say(f"<think>hm\n{written}"))[0]) == [READ_A]


@pytest.mark.parametrize(
    ("said", "more", "finish"),
    [
        (f"{HERMES} or not.", (), "stop"),
        (HERMES, (chunk({"content": "No."}),), "stop"),
        (HERMES, (), "length"),
        (HERMES.replace("Read", "Nope"), (), "stop"),
        ("</tool_call>", (), "stop"),
        (f"`{HERMES}`", (), "stop"),
    ],
    ids=["words behind it", "a text behind it", "cut off", "another tool", "no call", "quoted"],
)
def test_reasoning_that_only_speaks_of_a_call_does_not_call(said: str, more: tuple[Json, ...], finish: str) -> None:
    assert calls(answer("vllm", thought(said, *more, finish=finish))[0]) == []


def test_a_call_beside_reasoning_that_drafts_it_comes_once() -> None:
    beside = [{"index": 0, "id": "c", "function": {"name": "Read", "arguments": '{"path":"b"}'}}]
    content, _, _ = answer("vllm", thought(HERMES, chunk({"tool_calls": beside}), finish="tool_calls"))
    assert calls(content) == [("Read", {"path": "b"})]


BARE = "<function=Read>\n<parameter=path>\na\n</parameter>\n</function>"


@pytest.mark.parametrize("size", [1, 7, 4000])
@pytest.mark.parametrize("wrap", ["", "\n</tool_call>", "\n</tool_call>\n", "\n"])
def test_a_call_that_lacks_the_tag_around_it_is_a_call(wrap: str, size: int) -> None:
    """Qwen3-Coder leaves it out now and then, or only its opening half (Ollama's issue 16686)."""
    content, end, _ = answer("vllm", say(f"Let me see.\n\n{BARE}{wrap}{BARE}{wrap}", size=size))
    assert (calls(content), texts(content), end) == ([READ_A, READ_A], "Let me see.\n\n", "tool_use")
    content, end, _ = answer("vllm", say(f"{BARE}{wrap}{CODER}\n", size=size))
    assert (calls(content), texts(content), end) == ([READ_A, READ_A], "", "tool_use")
    assert calls(answer("vllm", say(BARE.removesuffix("</function>"), size=size))[0]) == [READ_A]
    assert answer("vllm", say(f"{BARE[:-30]}", "length", size=size))[:2] == ([], "max_tokens")


@pytest.mark.parametrize("size", [1, 7, 4000])
@pytest.mark.parametrize(
    "text",
    [
        f"It calls like\n{BARE}\n</tool_call>\nand waits.",
        f"It calls like\n{BARE}\n\n{BARE}\nand so on.",
        f"After `<tool_call>` comes\n{BARE}",
        f"As `{BARE}`",
        f"```\n{BARE}\n```",
        BARE.replace("Read", "Nope"),
        BARE.replace("=path", ""),
        "<function= of x> and <function=Reader>",
        "</tool_call>",
    ],
)
def test_a_bare_call_that_is_talked_about_stays_text(text: str, size: int) -> None:
    content, end, _ = answer("vllm", say(text, size=size))
    assert (texts(content), calls(content), end) == (text, [], "end_turn")


@pytest.mark.parametrize("provider", ["vllm", "ollama", "openrouter", "zai", "deepseek", "moonshot"])
def test_whoever_may_leave_them_there(provider: str) -> None:
    assert PROFILES[provider].calls_in_text


def test_at_other_providers_the_text_is_text() -> None:
    content, end, _ = answer("openai", say(HERMES))
    assert (texts(content), end) == (HERMES, "end_turn")


def test_white_space_around_calls_is_no_text() -> None:
    content, _, _ = answer("vllm", say(f"\n\n{HERMES}\n"))
    assert [block["type"] for block in content] == ["tool_use"]
    assert answer("vllm", say(" \n"))[0] == [{"type": "text", "text": " \n"}]
    assert texts(answer("vllm", say(f"{HERMES}\n done", size=1))[0]) == "\n done"


@pytest.mark.parametrize(
    "text",
    [
        'a <tool_call>{"name": "Nope", "arguments": {}}</tool_call> b',
        "a <tool_call>Nope</tool_call> b",
        "a <tool_call>Reading</tool_call> b",
        "a <tool_call>Read it</tool_call> b",
        "a <tool_call>Read <arg_key>path</arg_key></tool_call> b",
        "a <tool_call><function=Read></tool_call> b",
        "a <tool_call><function=Nope></function></tool_call> b",
        'a <tool_call>{"name": "Read", "arguments": "ls"}</tool_call> b',
        "a <tool_call>{broken}</tool_call> b",
        "a <tool_call>[]</tool_call> b",
        "a <tool_call>[1] and so on</tool_call> b",
        f"a <tool_call>{JSON_A} and {JSON_A}</tool_call> b",
        "a <tool_call> b </tool_call>",
        "a <tool_call>" + LONG,
        "a <tool_call>{" + LONG,
        "a <tool",
        "a <tool_call>",
        "a <b",
    ],
)
@pytest.mark.parametrize("size", [3, 400, 4000])
def test_what_is_no_call_of_an_offered_tool_stays_text(text: str, size: int) -> None:
    content, end, _ = answer("vllm", say(text, size=size))
    assert (texts(content), calls(content), end) == (text, [], "end_turn")


QUOTES = ["Call `%s` to read.", "```%s```", "`a` and ``%s``", "``a `%s", "x" * 200 + "`%s`"]


@pytest.mark.parametrize("size", [1, 4000])
@pytest.mark.parametrize("quote", QUOTES)
def test_who_explains_how_a_model_calls_does_not_call(quote: str, size: int) -> None:
    for written in (*WAYS, V4 % "", V3 % "", KIMI % "", MINIMAX % ""):
        text = quote % written
        content, end, _ = answer("vllm", say(text, size=size))
        assert (texts(content), calls(content), end) == (text, [], "end_turn")


BEFORE = ["```\nls\n```\n", "Run `ls` or `cd`: ", "I read `main.py`", "So ``a`b``", "It's `a\n", "```ls``` it.\n"]
BEFORE += ["So: ```\nls\n```\n", "```xml\n", "~~~\n"]  # also inside of a fence, or after one that has no end


@pytest.mark.parametrize("size", [1, 4000])
@pytest.mark.parametrize("before", BEFORE)
def test_a_call_after_a_quotation_is_one(before: str, size: int) -> None:
    content, end, _ = answer("vllm", say(before + HERMES, size=size))
    assert (texts(content), calls(content), end) == (before, [READ_A], "tool_use")


def test_a_call_after_what_is_none_is_still_one() -> None:
    other = '<tool_call>{"name": "Nope", "arguments": {}}</tool_call>'
    content, _, _ = answer("vllm", say(f"<tool_call>no, <tool_call>{other} {HERMES}"))
    assert (calls(content), texts(content)) == ([READ_A], f"<tool_call>no, <tool_call>{other} ")


@pytest.mark.parametrize("size", [2, 4000])
@pytest.mark.parametrize(
    ("written", "value"), [(HERMES, '"a"'), (CODER, "\na\n"), (GLM, ">a<")], ids=["hermes", "coder", "glm"]
)
def test_arguments_may_talk_about_the_tags(written: str, value: str, size: int) -> None:
    path = f"<tool_call> </tool_call> </parameter> </arg_value> {LONG}"
    content, _, _ = answer("vllm", say(written.replace(value, value.replace("a", path)), size=size))
    assert (calls(content), texts(content)) == ([("Read", {"path": path})], "")


def test_too_many_ends_are_no_call() -> None:
    text = '<tool_call>{"name": "Read", ' + "</tool_call>" * ENDS
    assert texts(answer("vllm", say(text + HERMES))[0]) == text
    assert calls(answer("vllm", say(text + HERMES))[0]) == [READ_A]


def test_a_call_without_its_closing_tag_is_one_if_it_is_whole() -> None:
    bare = HERMES.removesuffix("</tool_call>")
    assert calls(answer("vllm", say(bare))[0]) == [READ_A]
    cut, end, _ = answer("vllm", say(f"x{bare[:-9]}", "length"))
    assert (cut, end) == ([{"type": "text", "text": "x"}], "max_tokens")


def test_a_call_that_also_comes_beside_the_text_comes_once() -> None:
    beside = [{"index": 0, "id": "c", "function": {"name": "Read", "arguments": '{"path":"a"}'}}]
    content, end, _ = answer("vllm", say(HERMES, "tool_calls", beside=(chunk({"tool_calls": beside}),)))
    assert (calls(content), end) == ([READ_A], "tool_use")
    other = HERMES.replace('"a"', '"b"')
    content, _, _ = answer("vllm", say(other, "tool_calls", beside=(chunk({"tool_calls": beside}),)))
    assert calls(content) == [READ_A, ("Read", {"path": "b"})]


@pytest.mark.parametrize("opening", ["<tool_call>", "<tool_call>\n", "<function", "<|tool_calls_section_begin|>"])
@pytest.mark.parametrize("closing", ["", "\n", "\n</tool_call>", "</function>\n</tool_call>\n"])
def test_tags_that_a_server_leaves_around_calls_that_it_has_read_are_no_text(opening: str, closing: str) -> None:
    """Rapid-MLX' issue 448."""
    call = [{"index": 0, "id": "c", "function": {"name": "Read", "arguments": '{"path":"a"}'}}]
    events = (chunk({"tool_calls": call}), *[chunk({"content": piece}) for piece in closing])
    content, end, _ = answer("vllm", say(f"So:\n{opening}", "tool_calls", 3, beside=events))
    assert (texts(content), calls(content), end) == ("So:\n", [READ_A], "tool_use")
    more = chunk({"content": "done, a < b"})
    assert texts(answer("vllm", say("a <", beside=(*events, more)))[0]).replace("\n", "") == "a <done, a < b"


@pytest.mark.parametrize("provider", ["vllm", "minimax"])
@pytest.mark.parametrize("nested", ['{"a":%s}', '{"a":[%s]}'])
def test_calls_of_any_depth_are_compared(provider: str, nested: str) -> None:
    deep = "1"
    for _ in range(400):
        deep = nested % deep
    beside = [{"index": at, "id": f"c{at}", "function": {"name": "Read", "arguments": deep}} for at in (0, 1)]
    content, end, _ = answer(provider, sse(chunk({"tool_calls": beside}), chunk(finish="tool_calls")))
    assert (len(calls(content)), end) == (2, "tool_use")


def test_the_first_call_carries_the_reasoning() -> None:
    reading, _, _ = decoder("vllm")
    thought = sse(chunk({"reasoning_content": "hm"}))
    ended = [event for event in reading.feed(thought + say(HERMES * 2)) if isinstance(event, ToolEnded)]
    assert [event.state for event in ended] == [b'{"reasoning_content":"hm"}', b""]


def test_text_that_waits_comes_before_what_follows_it() -> None:
    content, _, _ = answer(
        "vllm",
        sse(
            chunk({"content": "a <tool"}),
            chunk({"reasoning_content": "hm"}),
            chunk({"content": "_call>"}),
            chunk(finish="stop"),
        ),
    )
    assert [block.get("text") or block.get("thinking") for block in content] == ["a <tool", "hm", "_call>"]


def test_what_was_held_back_is_not_shown_when_the_answer_breaks_off() -> None:
    content, end, _ = answer("vllm", sse(chunk({"content": '<tool_call>{"name": "Read"'})))
    assert (content, end) == ([], "the upstream closed before a finish_reason")


def test_a_request_that_forbids_calls_gets_none() -> None:
    profile = PROFILES["vllm"]
    target = Target("vllm", "qwen3", profile)
    for more, reads in (({}, True), ({"tool_choice": {"type": "none"}}, False), ({"tools": []}, False)):
        request = parse(msgspec.json.encode(REQUEST | more), "", ())
        sent = adapter(profile).build(request, target)
        assert isinstance(adapter(profile).decoder(request, target, sent, ""), TextCalls) is reads


def test_values_get_the_types_of_the_tools_schema() -> None:
    tool = {
        "name": "Go",
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}},
    }
    request = parse(msgspec.json.encode(REQUEST | {"tools": [*TOOLS, tool]}), "", ())
    target = Target("vllm", "qwen3", PROFILES["vllm"])
    tools = OfferedTools(request, adapter(target.profile).build(request, target))
    text = "<function=Go>\n<parameter=n>\n5\n</parameter>\n<parameter=s>\n5\n</parameter>\n</function>"
    assert read("<tool_call>", text, tools) == [Written("Go", '{"n":5,"s":"5"}')]
    json = '{"name": "Go", "arguments": "{\\"n\\": 5}"}'
    assert read("<tool_call>", json, tools) == [Written("Go", '{"n": 5}')]
    assert read("<tool_call>", '{"name": "Go", "parameters": {"n": 5}}', tools) == [Written("Go", '{"n": 5}')]
    assert read("<tool_call>", '{"name": "Go"}', tools) == [Written("Go", "{}")]
    values = ('n" string="false">5', 's" string="true">5')
    dsml = "".join(f'<｜DSML｜parameter name="{value}</｜DSML｜parameter>' for value in values)
    invoked = f'<｜DSML｜invoke name="Go">{dsml}</｜DSML｜invoke>'
    assert read("<｜DSML｜tool_calls>", invoked, tools) == [Written("Go", '{"n":5,"s":"5"}')]


def test_deepseek_tells_what_is_a_string() -> None:
    schema = b'{"properties":{"n":{"type":"integer"},"s":{"type":["string","null"]},"any":{}}}'
    request = parse(
        msgspec.json.encode(REQUEST | {"tools": [{"name": "Go", "input_schema": msgspec.Raw(schema)}]}), "", ()
    )
    target = Target("vllm", "deepseek-v4", PROFILES["vllm"])
    tools = OfferedTools(request, adapter(target.profile).build(request, target))

    def typed(**values: str) -> str:
        told = "".join(f'<｜DSML｜parameter name="{name}" {said}</｜DSML｜parameter>' for name, said in values.items())
        (call,) = read("<｜DSML｜tool_calls>", f'<｜DSML｜invoke name="Go">{told}</｜DSML｜invoke>', tools)
        return call.arguments

    assert typed(any='string="true">{"a": 1}', s='string="true">null') == '{"any":"{\\"a\\": 1}","s":"null"}'
    assert typed(any='string="false">{"a": 1}', s='string="false">null') == '{"any":{"a": 1},"s":null}'
    assert typed(n='string="true">5') == '{"n":5}'  # the schema takes no string


def test_a_call_beside_the_text_keeps_its_number() -> None:
    """Of one that the limit cut off before its name nothing is told, but it has been counted."""
    nameless = {"index": 0, "id": "a", "function": {"arguments": '{"path": '}}
    named = {"index": 1, "id": "b", "function": {"name": "Read", "arguments": '{"path": "b"}'}}
    beside = (chunk({"tool_calls": [nameless]}), chunk({"tool_calls": [named]}))
    content, end, _ = answer("vllm", say(HERMES, "length", beside=beside))
    assert (calls(content), end) == ([("Read", {"path": "b"}), READ_A], "max_tokens")

"""Thought signatures: what an answer of Gemini's came with goes back on exactly the same parts, and nowhere else."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.translation.captures import Case, cases, decode
from tests.validators.gemini import validate
from translation.adapter import Target
from translation.events import Event, Finished, TextDelta, ThinkingDelta, ToolEnded, ToolStarted, WholeBlock
from translation.providers.gemini import Gemini
from translation.providers.gemini_contents import SENTINEL
from translation.providers.gemini_models import abilities
from translation.providers.profiles import PROFILES
from translation.values import (
    Block,
    Link,
    Message,
    Origin,
    Request,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

ADAPTER = Gemini()
GEMINI = Target("gemini", "gemini-3-pro-preview", PROFILES["gemini"])
CASES = {case.name: case for case in cases("gemini")}
HELLO = Message("user", (Text("hi"),))


def answer(case: Case, target: Target = GEMINI) -> Message:
    """A captured answer as the bridge delivers it, stores it, and finds it again."""
    return delivered(decode(ADAPTER, case, [case.upstream]), target)


def delivered(events: list[Event], target: Target = GEMINI) -> Message:
    blocks: list[Block] = []
    started = ToolStarted(0, "")
    for event in events:
        match event, blocks[-1] if blocks else None:
            case TextDelta(text=text), Text(text=before):
                blocks[-1] = Text(before + text)
            case TextDelta(text=text), _:
                blocks.append(Text(text))
            case ThinkingDelta(text=text), _:
                blocks.append(Thinking(text, "ours"))
            case ToolStarted(), _:
                started = event
            case ToolEnded(), _:
                arguments = event.arguments.encode()
                id_ = f"toolu_{event.call}"
                origin = Origin(target.upstream, target.model, event.state)
                link = Link(
                    id_, started.name, started.upstream_name, started.upstream_id, arguments, origin, 1, event.call
                )
                blocks.append(ToolUse(id_, started.name, arguments, link))
            case WholeBlock(), _:
                blocks.append(ServerToolUse("srvtoolu_1", "web_search", b"{}"))
            case _:
                pass
    finished = events[-1]
    assert isinstance(finished, Finished)
    return Message("assistant", tuple(blocks), origin=Origin(target.upstream, target.model, finished.state))


def answered(message: Message) -> Message:
    results = tuple(ToolResult(block.id, (Text("ok"),)) for block in message.blocks if isinstance(block, ToolUse))
    return Message("user", results or (Text("go on"),))


def history(*answers: Message) -> tuple[Message, ...]:
    return (HELLO, *(message for given in answers for message in (given, answered(given))))


def parts(*messages: Message, target: Target = GEMINI) -> tuple[list[Any], list[str]]:
    """The parts of every answer as they are sent, and the rules that fired."""
    sent = ADAPTER.build(Request(model="m", messages=messages, max_tokens=10), target)
    assert validate(sent.body, signatures=abilities(target.model).signatures) == []
    contents = msgspec.json.decode(sent.body)["contents"]
    return [content["parts"] for content in contents if content["role"] == "model"], [note.rule for note in sent.notes]


def came(case: Case) -> list[Any]:
    """The parts of a captured answer: adjacent plain text joined, plain thoughts and empty text left out."""
    out: list[Any] = []
    for line in case.upstream.splitlines():
        for part in (
            msgspec.json.decode(line[5:])["candidates"][0]["content"]["parts"] if line.startswith(b"data:") else ()
        ):
            plain = set(part) == {"text"}
            if plain and out and set(out[-1]) == {"text"}:
                out[-1] = {"text": out[-1]["text"] + part["text"]}
            elif (not plain or part["text"]) and ("thoughtSignature" in part or "thought" not in part):
                out.append(part)
    return out


SIGNED = (
    "text_signature",
    "late_signature",
    "signed_thought",
    "empty_signed_thought",
    "one_call",
    "parallel_calls",
    "no_arguments",
)


@pytest.mark.parametrize("name", SIGNED)
def test_signatures_go_back_on_the_parts_they_came_with(name: str) -> None:
    expected = came(CASES[name])
    for part in expected:
        if "functionCall" in part:
            part["functionCall"].setdefault("args", {})
    assert parts(*history(answer(CASES[name]))) == ([expected], [])


def test_parts_of_googles_own_tools_go_back_too() -> None:
    expected = [part for part in came(CASES["carried_parts"]) if "unknownPart" not in part]
    assert parts(*history(answer(CASES["carried_parts"]))) == ([expected], [])


def test_what_google_searched_is_not_told_back_as_text() -> None:
    searched = answer(CASES["search"])
    state = msgspec.json.encode({"pieces": [{"kind": "text", "length": 12, "signature": "cw=="}]})
    signed = replace(searched, origin=Origin("gemini", GEMINI.model, state))
    assert parts(*history(signed))[0] == [[{"text": "It is sunny.", "thoughtSignature": "cw=="}]]


def test_only_the_first_of_parallel_calls_is_signed_and_each_step_has_its_own() -> None:
    found, rules = parts(*history(answer(CASES["parallel_calls"]), answer(CASES["one_call"])))
    signatures = [[part.get("thoughtSignature", "")[:4] for part in step if "functionCall" in part] for step in found]
    assert signatures == [["EuIB", ""], ["EuIB"]]
    assert rules == []


def test_ids_of_the_upstream_go_back_with_call_and_result() -> None:
    sent = ADAPTER.build(Request(model="m", messages=history(answer(CASES["one_call"])), max_tokens=10), GEMINI)
    contents = msgspec.json.decode(sent.body)["contents"]
    assert contents[1]["parts"][1]["functionCall"]["id"] == "fc_1"
    assert contents[2]["parts"][0]["functionResponse"]["id"] == "fc_1"


def test_thinking_that_the_client_left_out_is_not_missed() -> None:
    whole = answer(CASES["signed_thought"])
    without = replace(whole, blocks=tuple(block for block in whole.blocks if not isinstance(block, Thinking)))
    assert parts(*history(without)) == parts(*history(whole))


def test_changed_text_loses_its_signature_but_late_parts_keep_theirs() -> None:
    changed = replace(answer(CASES["text_signature"]), blocks=(Text("Hello"),))
    assert parts(*history(changed)) == ([[{"text": "Hello"}]], ["signature-dropped"])
    trimmed = replace(answer(CASES["late_signature"]), blocks=(Text("Hello"),))
    late = {"text": "", "thoughtSignature": "CiQBcsjafB/late+sig="}
    assert parts(*history(trimmed)) == ([[{"text": "Hello"}, late]], [])
    gone = replace(answer(CASES["late_signature"]), blocks=())
    assert parts(*history(gone)) == ([[late]], [])


def test_added_text_is_sent_behind_what_came() -> None:
    call = answer(CASES["no_arguments"])
    added = replace(call, blocks=(*call.blocks, Text("added")))
    found, _ = parts(HELLO, added, answered(call))
    assert [sorted(part) for part in found[0]] == [["functionCall", "thoughtSignature"], ["text"]]


def test_a_call_keeps_its_signature_when_the_message_has_lost_its_state() -> None:
    """The server died after the call and before the end of the answer: what is known is the call's own."""
    whole = answer(CASES["parallel_calls"])
    found, rules = parts(*history(replace(whole, origin=None)))
    assert [part.get("thoughtSignature", "")[:4] for part in found[0]] == ["EuIB", ""]
    assert rules == []


def test_other_calls_than_in_the_answer_keep_only_their_own_signatures() -> None:
    whole = answer(CASES["parallel_calls"])
    second = replace(whole, blocks=whole.blocks[-1:])
    found, rules = parts(*history(second))
    assert found[0][0]["thoughtSignature"] == SENTINEL
    assert rules == ["signature-dropped", "signature-substituted"]


@pytest.mark.parametrize("name", ["one_call", "parallel_calls"])
def test_state_of_another_upstream_is_never_sent_and_the_sentinel_stands_in(name: str) -> None:
    foreign = answer(CASES[name], replace(GEMINI, upstream="other"))
    found, rules = parts(*history(foreign))
    signatures = [part.get("thoughtSignature") for part in found[0] if "functionCall" in part]
    assert signatures == [SENTINEL, *[None] * (len(signatures) - 1)]
    assert rules == ["signature-substituted"]
    assert not any("id" in part["functionCall"] for part in found[0] if "functionCall" in part)


def test_the_sentinel_is_for_steps_with_calls_and_models_that_ask_for_it_only() -> None:
    foreign = answer(CASES["one_call"], replace(GEMINI, upstream="other"))
    said = Message("assistant", (Text("hello"),), origin=Origin("other", "m", b"{}"))
    found, rules = parts(*history(said, foreign, foreign), target=replace(GEMINI, model="gemini-2.5-pro"))
    assert not any("thoughtSignature" in part for step in found for part in step)
    assert rules == []
    found, rules = parts(*history(said, foreign, foreign))
    assert [any("thoughtSignature" in part for part in step) for step in found] == [False, True, True]
    assert rules == ["signature-substituted"] * 2


def test_signatures_of_another_kind_of_model_are_not_sent() -> None:
    older = answer(CASES["one_call"], replace(GEMINI, model="gemini-2.5-pro"))
    assert parts(*history(older))[0][0][1]["thoughtSignature"] == SENTINEL
    newer = answer(CASES["one_call"])
    found, _ = parts(*history(newer), target=replace(GEMINI, model="gemini-2.5-pro"))
    assert not any("thoughtSignature" in part for part in found[0])


def test_a_switch_to_another_provider_and_back_restores_everything() -> None:
    first, last = answer(CASES["parallel_calls"]), answer(CASES["text_signature"])
    between = answer(CASES["one_call"], replace(GEMINI, upstream="other"))
    found, rules = parts(*history(first, between, last))
    assert (found[0], found[2]) == (came(CASES["parallel_calls"]), came(CASES["text_signature"]))
    assert found[1][1]["thoughtSignature"] == SENTINEL
    assert rules == ["signature-substituted"]


def test_state_that_cannot_be_read_is_no_state() -> None:
    broken = replace(answer(CASES["text"]), origin=Origin("gemini", GEMINI.model, b'{"pieces":3}'))
    assert parts(*history(broken))[0] == [[{"text": "Grüße aus 東京 🗼."}]]


def test_signatures_that_are_refused_give_way_to_the_sentinel_once() -> None:
    names = ("parallel_calls", "signed_thought", "late_signature", "empty_signed_thought", "carried_parts")
    request = Request(model="m", messages=history(*(answer(CASES[name]) for name in names)), max_tokens=10)
    sent = ADAPTER.build(request, GEMINI)
    bare = ADAPTER.without_state(sent)
    assert validate(bare.body) == []
    assert [note.rule for note in bare.notes] == [*(note.rule for note in sent.notes), "opaque-state-dropped"]
    whole, without = msgspec.json.decode(sent.body), msgspec.json.decode(bare.body)
    assert list(without) == list(whole)
    signed = [part for content in without["contents"] for part in content["parts"] if "thoughtSignature" in part]
    assert {part["thoughtSignature"] for part in signed} == {SENTINEL}
    assert all("functionCall" in part for part in signed)
    assert not any("thought" in part for content in without["contents"] for part in content["parts"])
    assert ADAPTER.without_state(bare) is bare


def test_an_answer_that_was_only_a_signature_stays_an_answer() -> None:
    gone = replace(answer(CASES["late_signature"]), blocks=())
    sent = ADAPTER.build(Request(model="m", messages=history(gone), max_tokens=10), GEMINI)
    contents = msgspec.json.decode(ADAPTER.without_state(sent).body)["contents"]
    assert contents[1] == {"role": "model", "parts": [{"text": "(no visible content)"}]}

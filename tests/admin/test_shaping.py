"""The pure functions behind the pages: hostile text made harmless, diffs bounded, secrets and content taken out."""

import datetime as dt
import json
import shlex

import msgspec
import pytest

from conversations import wording
from conversations.admin import context, diffs, hops, redaction, toolchain
from conversations.admin.content import SHOWN, TAIL, pretty, shown
from conversations.admin.parts import parts
from conversations.admin.replayed import replayed
from conversations.models import ToolMapping, Turn

HASHES = {name: name.encode().ljust(16) for name in "abcdef"}


def test_what_cannot_be_seen_is_shown_by_its_name() -> None:
    assert wording.harmless("a\x1b[31mb\u202ec\u200bd\x00\n\t\x7f") == "a␛[31mb⟨U+202E⟩c⟨U+200B⟩d␀\n\t␡"


def test_joiners_are_named_only_where_they_join_nothing() -> None:
    persian, family, devanagari = (
        "می\u200cخواهم",
        "\U0001f468\U0001f3fd\u200d\U0001f469\ufe0f\u200d\U0001f467",
        "क्\u200dष",
    )
    assert wording.harmless(f"{persian} {family} {devanagari}") == f"{persian} {family} {devanagari}"
    assert wording.harmless("pass\u200dword\u200c \u200dم") == "pass⟨U+200D⟩word⟨U+200C⟩ ⟨U+200D⟩م"


def test_a_lone_surrogate_and_broken_bytes_do_no_harm() -> None:
    assert shown("a\ud800b").text == "a⟨U+D800⟩b"
    assert shown(b"a\xffb").text == "a\\xffb"


def test_a_line_of_five_megabytes_is_cut() -> None:
    value = shown("A" * 5_000_000)
    assert (len(value.text), value.cut, len(value.tail), value.size) == (
        SHOWN,
        5_000_000 - SHOWN - TAIL,
        TAIL,
        5_000_000,
    )
    assert value.folded
    raw = shown("é".encode() * 2_500_000)
    assert (raw.text, raw.size, raw.tail[-1]) == ("é" * (SHOWN // 2), 5_000_000, "é")


def test_what_is_folded_says_how_it_begins() -> None:
    assert shown(pretty(b'{"path":"/tmp/a","limit":3}')).first_line == '{ "path": "/tmp/a", "limit": 3 }'
    assert shown("\n\nthe second").first_line == "the second"
    assert shown("one\ntwo").first_line == "one"


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "–"),
        (-1, "–"),
        (0.4, "<1 ms"),
        (12.4, "12 ms"),
        (1_234, "1.2 s"),
        (125_000, "2 min 5 s"),
        (7_260_000, "2 h 1 min"),
    ],
)
def test_times_are_worded_by_their_size(milliseconds: float, words: str) -> None:
    assert wording.milliseconds(milliseconds) == words


def test_a_moment_is_worded_as_an_operator_says_it() -> None:
    now = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    assert wording.ago(now - dt.timedelta(hours=3, minutes=5), now) == "3 h ago"
    assert wording.ago(now, now) == "now"


def test_blocks_below_full_storage_are_their_kind_and_size() -> None:
    (part,) = parts(b'[{"type":"text","size":1200}]', readable=True)
    assert (part.kind, part.size, part.text) == ("text", 1_200, None)


def test_without_the_permission_no_text_leaves_the_store() -> None:
    content = [
        {"type": "text", "text": "secret plan"},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "secret plan"}},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "secret plan"}]},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "secretplan"}},
    ]
    found = parts(json.dumps(content).encode(), readable=False)
    assert "secret" not in str(found)
    assert [part.kind for part in found] == ["text", "tool_use", "tool_result text", "image"]


def test_only_harmless_pictures_are_drawn() -> None:
    def picture(media_type: str, kind: str = "base64") -> str:
        source = {"type": kind, "media_type": media_type, "data": "AAAA"}
        return parts(json.dumps([{"type": "image", "source": source}]).encode(), readable=True)[0].picture

    assert picture("image/png") == "data:image/png;base64,AAAA"
    assert picture("image/svg+xml") == ""
    assert picture("image/png", "url") == ""


def test_content_that_is_not_what_it_should_be_is_still_shown() -> None:
    assert parts(b"\xff", readable=True)[0].kind == "unreadable"
    assert parts(b'{"a":1}', readable=True) == ()
    assert parts(b'[{"type":"image","source":7},5]', readable=True)[0].kind == "image"


def test_a_turn_that_goes_on_from_an_older_answer_is_a_branch() -> None:
    h = HASHES
    # user a -> answer b (turn 1) -> user c -> answer d (turn 2); then user e after b again (turn 3).
    nodes = [(h["a"], b"", 1, False), (h["b"], h["a"], 1, True), (h["c"], h["b"], 2, False), (h["d"], h["c"], 2, True),
             (h["e"], h["b"], 3, False)]  # fmt: skip
    index = toolchain.index([(1, h["a"]), (2, h["c"]), (3, h["e"])], nodes)
    assert index.follows == {2: 1, 3: 1}
    assert index.numbers == {1: 1, 2: 2, 3: 3}


def mapping(pk: int, arguments: bytes, size: int = 5, name: str = "Bash") -> ToolMapping:
    now = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    return ToolMapping(pk=pk, turn_id=pk, tool_name=name, arguments=arguments, result_size=size, answered_at=now)


def test_repetitions_count_the_same_call_with_the_same_result() -> None:
    rows = [
        mapping(1, b"{}"),
        mapping(2, b"{}"),
        mapping(3, b"{}", name="Read"),
        mapping(4, b"{}"),
        mapping(5, b"{}", 6),
    ]
    assert toolchain.repetitions(rows, {}) == {1: 1, 2: 2, 3: 1, 4: 3, 5: 1}


def test_calls_without_a_result_are_no_loop() -> None:
    rows = [mapping(number, b"{}", 0) for number in range(1, 5)]
    for row in rows:
        row.answered_at = None
    assert set(toolchain.repetitions(rows, {}).values()) == {1}


def test_a_loop_is_the_same_result_and_not_only_its_size() -> None:
    rows = [mapping(1, b'{"a":1,"b":2}'), mapping(2, b'{"b":2, "a":1}'), mapping(3, b'{"a":1,"b":2}'), mapping(4, b"x")]
    for number, row in enumerate(rows):
        row.tool_use_id = f"toolu_{number}"
    assert toolchain.alike(rows) == rows
    same, other = (
        [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": text}] for n, text in ((0, "a"), (1, "b"))
    )
    third = [{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "toolu_2", "content": "b"}]
    said = [json.dumps(blocks).encode() for blocks in (same, other, third)]
    found = toolchain.digests([*said, b"not JSON"], [row.tool_use_id for row in rows])
    assert toolchain.repetitions(rows, found) == {1: 1, 2: 1, 3: 2, 4: 1}


def test_reminders_do_not_make_results_different() -> None:
    reminder = "<system-reminder>\n{} tokens left\n</system-reminder>"
    said = [
        json.dumps([{"type": "tool_result", "tool_use_id": str(n), "content": content}]).encode()
        for n, content in enumerate([f"hi\n\n{reminder.format(1)}", f"hi\n\n{reminder.format(2)}", "hello"])
    ]
    found = toolchain.digests(said, ["0", "1", "2"])
    assert (found["0"] == found["1"], found["0"] == found["2"]) == (True, False)


def test_a_call_is_not_waited_for_once_the_conversation_has_gone_on() -> None:
    index = toolchain.Index({1: 1, 2: 2, 3: 3, 4: 4}, {2: 1})
    rows = [mapping(pk, b"{}") for pk in (1, 2, 3, 4)]
    for row in rows:
        row.status = "answered" if row.pk == 3 else "pending"
    assert toolchain.states(rows, index) == {1: "repaired", 2: "orphaned", 3: "answered", 4: "pending"}


def test_what_fills_the_context_adds_up() -> None:
    messages = [("user", b'[{"type":"text","text":"hi"}]'), ("assistant", b'[{"type":"tool_use","id":"t","name":"n"}]'),
                ("user", b'[{"type":"tool_result","size":5000}]'), ("user", b"garbage")]  # fmt: skip
    found = {fill.kind: fill.size for fill in context.fills(100, 200, messages)}
    assert found == {"system": 100, "tools": 200, "results": 5_000, "calls": 39, "user": 27 + 7}


def test_a_diff_shows_what_changed_and_little_around_it() -> None:
    before = "\n".join(str(n) for n in range(100)).encode()
    after = before.replace(b"\n50\n", b"\nfifty\n")
    found = diffs.diff(before, after)
    assert (found.added, found.removed, found.cut) == (1, 1, False)
    assert [row.text for row in found.rows] == ["47 lines the same", "47", "48", "49", "50", "fifty", "51", "52", "53"]
    assert diffs.diff(before, before).same


def test_a_diff_of_large_texts_is_bounded() -> None:
    one, other = (b"\n".join(b"%d %s" % (n, word) for n in range(20_000)) for word in (b"a", b"b"))
    found = diffs.diff(one, other)
    assert found.cut
    assert len(found.rows) <= diffs.SHOWN


def test_redaction_keeps_structure_and_takes_content() -> None:
    body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "my password is hunter2"}],
            "tools": [{"type": "function", "function": {"name": "Bash", "description": "runs things"}}]}  # fmt: skip
    found = json.loads(redaction.json(json.dumps(body).encode()))
    assert found["messages"][0] == {"role": "user", "content": "[22 characters]"}
    assert found["tools"][0]["function"]["name"] == "Bash"
    assert "hunter2" not in json.dumps(found)


def test_redaction_of_a_stream_keeps_its_events() -> None:
    raw = b'event: x\ndata: {"id":"1","delta":{"content":"hello"}}\n\ndata: [DONE]\n\nsome html sk-abcdefghijkl\n'
    found = redaction.json(raw)
    assert found == (
        b'event: x\ndata: {"id":"1","delta":{"content":"[5 characters]"}}\n\ndata: [DONE]\n\n[25 characters]\n'
    )


def test_secrets_in_kept_fields_are_taken_out_too() -> None:
    assert redaction.json(b'{"name":"sk-ant-0123456789abcdef"}') == b'{\n  "name": "[secret]"\n}'


def test_curl_lines_survive_any_body() -> None:
    body = b"""{"text": "it's $HOME `id` \\n"}"""
    line = hops.curl("http://x/v1/messages", (("x-api-key", "$KEY"), ("content-type", "application/json")), body)
    words = shlex.split(line)
    assert words[-1].encode() == body
    assert '-H "x-api-key: $KEY"' in line


def test_the_waterfall_stays_inside_its_frame() -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    turn = Turn(started_at=now, state_ms=2, first_byte_ms=50, first_token_ms=60, duration_ms=100)
    late = ToolMapping(tool_name="Bash", created_at=now + dt.timedelta(seconds=9))
    for segment in hops.waterfall(turn, [late]):
        assert 0 <= segment.start <= 99.5
        assert segment.start + segment.width <= 100


@pytest.mark.parametrize(
    ("status", "words"), [("error", "No answer"), ("aborted", "No answer"), ("complete", "Answer")]
)
def test_a_turn_that_nobody_answered_has_no_time_of_an_answer(status: str, words: str) -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    bridge, rest = hops.waterfall(Turn(started_at=now, state_ms=20, duration_ms=100, status=status), [])
    assert (bridge.name, rest.name) == ("In the bridge", words)
    assert rest.start == (0 if status == "complete" else 20)


def test_a_request_is_rebuilt_from_its_parts() -> None:
    params = {"max_tokens": 5, "version": "2023-06-01", "tool_choice": {"kind": "tool", "name": "n", "parallel": False},
              "thinking": {"kind": "enabled", "budget_tokens": 9, "display": ""}, "effort": "low"}  # fmt: skip
    turn = Turn(requested_model="claude", params=msgspec.json.encode(params), stream=True)
    found = hops.received(turn, hops.Context([("user", b'[{"type":"text","text":"hi"}]')], b'"be kind"', b"[]"))
    assert msgspec.json.decode(found) == {
        "model": "claude", "max_tokens": 5, "stream": True, "thinking": {"type": "enabled", "budget_tokens": 9},
        "tool_choice": {"type": "tool", "name": "n", "disable_parallel_tool_use": True},
        "output_config": {"effort": "low"}, "system": "be kind", "tools": [],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }  # fmt: skip


CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
CALL = {"type": "tool_use", "id": "t", "name": "a", "input": {}}
FUNCTION = {"functionCall": {"name": "a", "args": {}}}
SKIP = "skip_thought_signature_validator"
SIGNED, LOST = ({"google": {"thought_signature": word}} for word in ("c2ln", SKIP))
SAID, ASKED, OUTPUT = {"role": "assistant", "content": []}, {"role": "user"}, {"type": "function_call_output"}
ITEM, REASONING = {"type": "function_call"}, {"type": "reasoning"}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}, ""),
        ({"messages": [{**CALLED, "reasoning_content": "hm"}, {**CALLED, "reasoning_content": " "}, CALLED]}, "1/3"),
        ({"messages": [{**CALLED, "content": "<think>hm</think>"}, {**CALLED, "reasoning_details": [{}]}]}, "2/2"),
        ({"messages": [{"role": "assistant", "content": [{"type": "thinking"}, CALL]}, {"content": [CALL]}]}, "1/2"),
        ({"messages": [{"tool_calls": [{"id": "c", "extra_content": google}]} for google in (SIGNED, LOST)]}, "1/2"),
        (
            {"contents": [{"parts": [{"text": "hi"}]}, {"parts": [{**FUNCTION, "thoughtSignature": "s"}, FUNCTION]}]},
            "1/1",
        ),
        ({"contents": [{"parts": [{**FUNCTION, "thoughtSignature": SKIP}]}]}, "0/1"),
        ({"input": [ASKED, REASONING, ITEM, ITEM, OUTPUT, ITEM, OUTPUT, REASONING, SAID, ITEM]}, "2/3"),
        ({"input": ["to embed"]}, ""),
        ([], ""),
    ],
)
def test_the_reasoning_that_went_back_is_counted(sent: object, words: str) -> None:
    assert replayed(json.dumps(sent).encode()) == words

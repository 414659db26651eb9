"""Tool arguments while they stream in."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translation.arguments import Arguments, is_object, mend, respelled
from translation.errors import UpstreamProtocolError


def collect(*fragments: str) -> tuple[str, str]:
    """What was shown live, and the whole."""
    arguments = Arguments()
    live = "".join(arguments.feed(fragment) for fragment in fragments)
    return live, arguments.close()[0]


STREAMS = [
    (['{"a":', "1}"], '{"a":1}', '{"a":1}'),
    (['{"a":1}'], '{"a":1}', '{"a":1}'),
    (["", "{", '"a"', ":1}"], '{"a":1}', '{"a":1}'),
    (["  \n", '{"a":1}', "\n"], '{"a":1}\n', '{"a":1}'),
    ([], "", "{}"),
    (["{}"], "", "{}"),
    (["null"], "", "{}"),
    (['""'], "", "{}"),
    (["{", "}"], "", "{}"),
    (["nu", "ll"], "", "{}"),
    (["{}", '{"a":1}'], '{"a":1}', '{"a":1}'),
    (["{", "}", "{", '"a":1}'], '{"a":1}', '{"a":1}'),
    (["null", ' {"a":', "1}"], '{"a":1}', '{"a":1}'),
    (['""', '{"a":1}'], '{"a":1}', '{"a":1}'),
    (["{}", "{}", '{"a":{}}'], '{"a":{}}', '{"a":{}}'),
    (["{ }"], "{ }", "{ }"),
    (['"{\\"a\\"', ':1}"'], "", '{"a":1}'),
]


@pytest.mark.parametrize(("fragments", "live", "whole"), STREAMS)
def test_placeholders_are_never_shown_and_objects_are(fragments: list[str], live: str, whole: str) -> None:
    assert collect(*fragments) == (live, whole)


@given(st.dictionaries(st.text('ab{}"\\é', max_size=3), st.text(max_size=5) | st.integers(), max_size=3), st.data())
def test_arguments_are_the_same_at_any_cut(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    points = [0, *cuts, len(text)]
    live, whole = collect(*[text[start:end] for start, end in itertools.pairwise(points)])
    assert json.loads(whole) == value
    assert whole.startswith(live)


def test_complete_says_whether_more_must_come() -> None:
    arguments = Arguments()
    assert arguments.complete
    states = []
    for fragment in ("{", "}", '{"a"', ":1", "}"):
        arguments.feed(fragment)
        states.append((arguments.complete, arguments.text))
    assert states == [(False, ""), (True, ""), (False, '{"a"'), (False, '{"a":1'), (True, '{"a":1}')]


MENDED = [
    ('"{\\"a\\":1}"', '{"a":1}', "encoded twice"),
    ('"  {\\"a\\":1} "', '{"a":1}', "encoded twice"),
    ('{"a":[1,{"b":2', '{"a":[1,{"b":2}]}', "cut short"),
    ('{"a":1', '{"a":1}', "cut short"),
    ('{"a":"]}\\""', '{"a":"]}\\""}', "cut short"),
    ('{"a":1}{"a":1}', '{"a":1}', "cut short"),
    ('{"a":"x\ny\tz"}', '{"a":"x\\ny\\tz"}', "does not allow"),
    ('{"a":"\\ud83d!"}', '{"a":"\ufffd!"}', "does not allow"),
    ('{"a":"\ud83d"}', '{"a":"\ufffd"}', "does not allow"),
    ('{"a":1}} ', '{"a":1}', "cut short"),
]


@pytest.mark.parametrize(("text", "whole", "how"), MENDED)
def test_what_can_be_mended_is_mended_and_said(text: str, whole: str, how: str) -> None:
    arguments = Arguments()
    arguments.feed(text)
    mended, note = arguments.close()
    assert json.loads(mended) == json.loads(whole)
    assert is_object(mended)
    assert how in note


GROWN = ["{", '{"a', '{"a":', "", '{"a":"b', '{"a":"b"}', "\n"]


@pytest.mark.parametrize("fragments", [GROWN, GROWN[2:], GROWN[:2] + GROWN[5:], [GROWN[5]] * 2])
def test_fragments_that_tell_the_whole_so_far_are_not_joined(fragments: list[str]) -> None:
    arguments = Arguments()
    for fragment in fragments:
        arguments.feed(fragment)
    assert arguments.complete
    assert arguments.close() == ('{"a":"b"}', "arguments came anew with each fragment")


def test_such_fragments_without_an_end_are_no_call() -> None:
    arguments = Arguments()
    for fragment in GROWN[:5]:
        arguments.feed(fragment)
    assert not arguments.complete
    with pytest.raises(UpstreamProtocolError, match="not a JSON object"):
        arguments.close()


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (
            '{"a":"x\ny","b":[1.10,1E5,12345678901234567890.123]}',
            '{"a":"x\\ny","b":[1.10,1E5,12345678901234567890.123]}',
        ),
        ('```json\n{"a":1.10,}\n```', '{"a":1.10}'),
        ('{"a":1.10,"b":{"c":1E5', '{"a":1.10,"b":{"c":1E5}}'),
        ('{"a":1.10} and so on', '{"a":1.10}'),
        ('{"a":{"b":1.10},"c":2', '{"a":{"b":1.10},"c":2}'),
    ],
)
def test_what_is_right_in_mended_arguments_stays_as_it_was_written(text: str, whole: str) -> None:
    assert mend(text)[0] == whole


@pytest.mark.parametrize(
    "text",
    [
        "[1]", "5", "nul", "oops", '{"a":NaN}', "{oops}", '"text"', '{"', "[" * 100_000, '{"a":' * 100_000, "}",
        '{"a":"' + '\\"x' * 100_000, '{"a":"' + '\\"' * 100_000 + "\\", "```" + " " * 100_000,
        '{"a":1,"path":"/et', '{"a":1,"pa', '{"a":1,"path":', '{"a":1,', '{"a":1,"force":fal',
        '{"cmd":"rm -r "/tmp/x""}', '{"a":1 "b":2}', '{"a":1,"b":0x10}', '{"a":1_000}', '{"a":1e400}',
        '{"a":"x\ny","b":1e400}',
    ],
)  # fmt: skip
def test_what_holds_no_object_is_an_error(text: str) -> None:
    arguments = Arguments()
    arguments.feed(text)
    with pytest.raises(UpstreamProtocolError, match="not a JSON object"):
        arguments.close()
    with pytest.raises(UpstreamProtocolError):
        mend(text)


@pytest.mark.parametrize("text", ["[]", "null", "{", "", '"{}"', "{'a':1}"])
def test_not_an_object(text: str) -> None:
    assert not is_object(text)


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        (rb'{"a": [1, 2.0], "b": "\u00fc"}', '{"a":[1,2.0],"b":"ü"}'),
        (b'{"a": 1e400}', '{"a": 1e400}'),
    ],
    ids=["blanks and escapes", "a number that no float holds stays as it is"],
)
def test_stored_arguments_are_told_as_clients_write_them(written: bytes, spelled: str) -> None:
    assert respelled(written).decode() == spelled

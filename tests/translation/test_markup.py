"""MiniMax's markup: thinking, text and calls told apart, wherever the text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translation.events import TextDelta, ThinkingDelta
from translation.invocations import DEPTH, Invocation, Parameter
from translation.markup import Found, Markup
from translation.markup_tags import M2, M3, NAMESPACE, Grammar

TOOLS = frozenset({"Bash", "Write", "get_weather"})
N = NAMESPACE
FRAGMENTS = (
    "<", ">", "</", "<inv", "<invoke", "</invoke>", "<parameter", "</parameter>", "<param", "</param", "<think>",
    "</think>", "<minimax:tool_call", "</minimax:tool_call>", "]~b]", "]~b", "[e~[", "]~!b[", "ai", "\n", " ", "é", "a",
    '<invoke name="Bash">', '<parameter name="p">', '"', "name=", "]", "[", "x<y", N, "]<]mini",
)  # fmt: skip


def read(
    text: str,
    *,
    size: int = 0,
    grammar: Grammar = M2,
    thinking: bool = False,
    verbatim: bool = False,
    cut: bool = False,
) -> list[Found]:
    markup = Markup(grammar, TOOLS, thinking=thinking, verbatim=verbatim)
    step = size or max(len(text), 1)
    found: list[Found] = []
    for start in range(0, len(text), step):
        found += markup.feed(text[start : start + step])
    return joined(found + markup.close(cut=cut))


def joined(found: list[Found]) -> list[Found]:
    out: list[Found] = []
    for item in found:
        last = out[-1] if out else None
        if isinstance(item, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(last.text + item.text)
        elif isinstance(item, ThinkingDelta) and isinstance(last, ThinkingDelta):
            out[-1] = ThinkingDelta(last.text + item.text)
        else:
            out.append(item)
    return out


def call(name: str, **parameters: str) -> Invocation:
    return Invocation(name, tuple(Parameter(key, value) for key, value in parameters.items()))


def wrapped(*invokes: str) -> str:
    return "<minimax:tool_call>\n" + "\n".join(invokes) + "\n</minimax:tool_call>"


def invoke(name: str, **parameters: str) -> str:
    body = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in parameters.items())
    return f'<invoke name="{name}">\n{body}</invoke>'


def m3(text: str) -> str:
    return text.replace("@", N)


M2_CASES: dict[str, tuple[str, list[Found]]] = {
    "plain text": ("Hello\n\n world. \n", [TextDelta("Hello\n\n world. \n")]),
    "a call in its wrapper": (
        "Let me see.\n\n" + wrapped(invoke("Bash", command="ls")),
        [TextDelta("Let me see."), call("Bash", command="ls")],
    ),
    "several invokes in one wrapper": (
        wrapped(invoke("Bash", command="a"), invoke("Bash", command="b")),
        [call("Bash", command="a"), call("Bash", command="b")],
    ),
    "several wrappers and text between": (
        wrapped(invoke("Bash", command="a")) + "\n\nand\n" + wrapped(invoke("Bash", command="b")) + "\n",
        [call("Bash", command="a"), TextDelta("and"), call("Bash", command="b")],
    ),
    "an invoke without a wrapper": ("ok " + invoke("Bash", command="a"), [TextDelta("ok"), call("Bash", command="a")]),
    "single quotes": ("<invoke name='Bash'><parameter name='c'>1</parameter></invoke>", [call("Bash", c="1")]),
    "no quotes": ("<invoke name=Bash><parameter name=c>1</parameter></invoke>", [call("Bash", c="1")]),
    "a quote that does not close": (
        '<invoke name="Bash><parameter name="c>1</parameter></invoke>',
        [call("Bash", c="1")],
    ),
    "more attributes": (
        '<invoke name="Bash"><parameter name="c" type="string">1</parameter></invoke>',
        [call("Bash", c="1")],
    ),
    "odd parameter names": (
        invoke("Bash", **{"-A": "1", "a b.c[0]": "2", "$ref/é": "3"}),
        [call("Bash", **{"-A": "1", "a b.c[0]": "2", "$ref/é": "3"})],
    ),
    "a name of blanks is not a tool": ("<invoke name= ></invoke>", [TextDelta("<invoke name= ></invoke>")]),
    "white space in a value is data": (invoke("Write", content="\n  a\n\n"), [call("Write", content="\n  a\n\n")]),
    "a literal closing tag in a value": (
        invoke("Write", content="a </parameter> b", path="p"),
        [call("Write", content="a </parameter> b", path="p")],
    ),
    "a literal end of a call in a value": (
        wrapped(invoke("Bash", command='grep "</invoke>" x </minimax:tool_call> y')),
        [call("Bash", command='grep "</invoke>" x </minimax:tool_call> y')],
    ),
    "a literal end of a call at the end of a value": (
        wrapped(invoke("Bash", command="x </invoke>")),
        [call("Bash", command="x </invoke>")],
    ),
    "other tags in a value": (
        invoke("Write", content="<think>]~b]ai<minimax:tool_call><invoke name=Bash>"),
        [call("Write", content="<think>]~b]ai<minimax:tool_call><invoke name=Bash>")],
    ),
    "a whole call in a value": (
        wrapped(invoke("Write", content="see\n" + wrapped(invoke("Bash", path="x")) + "\nand so on", path="p")),
        [call("Write", content="see\n" + wrapped(invoke("Bash", path="x")) + "\nand so on", path="p")],
    ),
    "a call at the end of a value": (
        wrapped(invoke("Write", content=invoke("Write", content="a")), invoke("Bash", command="ls")),
        [call("Write", content=invoke("Write", content="a")), call("Bash", command="ls")],
    ),
    "a call in a value of an answer that ends early": (
        '<invoke name="Write"><parameter name="content">' + invoke("Bash", a="1") + "</parameter>",
        [call("Write", content=invoke("Bash", a="1"))],
    ),
    "an end of a call, then a call, in a value": (
        wrapped(invoke("Write", content="a </invoke> b " + invoke("Bash", a="1") + "!")),
        [call("Write", content="a </invoke> b " + invoke("Bash", a="1") + "!")],
    ),
    "the beginning of a call in a value": (
        wrapped(invoke("Write", content='<invoke name="x">', path="p"), invoke("Bash", command="ls")) + "\nso",
        [call("Write", content='<invoke name="x">', path="p"), call("Bash", command="ls"), TextDelta("so")],
    ),
    "the beginning of a wrapper in each value": (
        wrapped(*(invoke("Write", content="<minimax:tool_call>", path="p") for _ in range(3))),
        [call("Write", content="<minimax:tool_call>", path="p")] * 3,
    ),
    "tags of different kinds in a value": (
        wrapped(invoke("Write", content="a <minimax:tool_call> b </invoke> c", path="p")),
        [call("Write", content="a <minimax:tool_call> b </invoke> c", path="p")],
    ),
    "a call in a value, and another value that is not closed": (
        wrapped(f'<invoke name="Write"><parameter name="content">{invoke("Bash", a="1")}</parameter>'
                '<parameter name="path">p</invoke>') + "\n",
        [call("Write", content=invoke("Bash", a="1"), path="p")],
    ),
    "no closing tag before the next parameter": (
        '<invoke name="Bash"><parameter name="a">1\n<parameter name="b">2</parameter></invoke>',
        [call("Bash", a="1", b="2")],
    ),
    "no closing tag before the end of the call": (
        wrapped('<invoke name="Bash"><parameter name="a">1\n</invoke>') + "\n",
        [call("Bash", a="1")],
    ),
    "no end of the call before the next one": (
        wrapped('<invoke name="Bash"><parameter name="a">1</parameter>', invoke("Bash", b="2")),
        [call("Bash", a="1"), call("Bash", b="2")],
    ),
    "no end of the call before the next wrapper": (
        '<minimax:tool_call><invoke name="Bash"><parameter name="a">1</parameter>' + wrapped(invoke("Bash", b="2")),
        [call("Bash", a="1"), call("Bash", b="2")],
    ),
    "no end of the call before the wrapper's": (
        '<minimax:tool_call><invoke name="Bash"><parameter name="a">1</parameter></minimax:tool_call> bye',
        [call("Bash", a="1"), TextDelta(" bye")],
    ),
    "an open value before the wrapper's end": (
        '<minimax:tool_call><invoke name="Bash"><parameter name="a">1</minimax:tool_call>',
        [call("Bash", a="1")],
    ),
    "an open value before another call": (
        '<invoke name="Bash"><parameter name="a">1</invoke>\n' + invoke("Bash", b="2"),
        [call("Bash", a="1"), call("Bash", b="2")],
    ),
    "no closing tag at all": (
        '<minimax:tool_call><invoke name="Bash"><parameter name="a">1\n<parameter name="b">2\n',
        [call("Bash", a="1", b="2")],
    ),
    "no closing tag but the value's": (
        '<minimax:tool_call><invoke name="Bash"><parameter name="a">1</parameter>\n',
        [call("Bash", a="1")],
    ),
    "an open value, the end of the call, then text": (
        "<invoke name=Bash><parameter name=a>1</invoke> and text <invoke name=Bash><parameter name=b>2</invoke> x",
        [call("Bash", a="1"), TextDelta(" and text"), call("Bash", b="2"), TextDelta(" x")],
    ),
    "an open value that ends after all": (
        '<minimax:tool_call><invoke name="Bash"><parameter name="a">1</invoke> and text',
        [call("Bash", a="1"), TextDelta(" and text")],
    ),
    "an open value in a wrapper that ends after all": (
        '<minimax:tool_call><invoke name="Bash"><parameter name="a">1</minimax:tool_call> and text',
        [call("Bash", a="1"), TextDelta(" and text")],
    ),
    "no parameters": (wrapped('<invoke name="Bash"></invoke>'), [call("Bash")]),
    "words where parameters belong": ('<invoke name="Bash">what </parameter>?</invoke>', [call("Bash")]),
    "one closing tag too many": (
        invoke("Bash", a="1") + "</parameter></invoke></minimax:tool_call>",
        [call("Bash", a="1")],
    ),
    "words inside a wrapper": (
        "<minimax:tool_call>" + invoke("Bash", a="1") + " so </minimax:tool_call>!",
        [call("Bash", a="1"), TextDelta(" so !")],
    ),
    "an unknown tool stays text": (
        "See " + wrapped(invoke("Nope", a="1")) + " ok",
        [TextDelta("See " + wrapped(invoke("Nope", a="1")) + " ok")],
    ),
    "an unknown tool beside a known one": (
        wrapped(invoke("Bash", a="1"), invoke("Nope", b="2")),
        [call("Bash", a="1"), TextDelta(invoke("Nope", b="2") + "\n")],
    ),
    "a known tool after an unknown one": (
        wrapped(invoke("Nope", b="2"), invoke("Bash", a="1")),
        [
            TextDelta("<minimax:tool_call>\n" + invoke("Nope", b="2")),
            call("Bash", a="1"),
            TextDelta("</minimax:tool_call>"),
        ],
    ),
    "a wrapper that is only mentioned": (
        "The `<minimax:tool_call>` tag and <minimax:tool_call><minimax:tool_call> x </minimax:tool_call>",
        [TextDelta("The `<minimax:tool_call>` tag and <minimax:tool_call><minimax:tool_call> x </minimax:tool_call>")],
    ),
    "a closing tag that is only mentioned": ("a </minimax:tool_call> b", [TextDelta("a </minimax:tool_call> b")]),
    "an empty wrapper": ("a <minimax:tool_call>\n</minimax:tool_call>", [TextDelta("a ")]),
    "a wrapper and nothing more": ("a <minimax:tool_call>\n", [TextDelta("a ")]),
    "template markers": ("]~!b[]~b]ai\nHi ]~b]airy ]~b]tool[e~[", [TextDelta("Hi airy ")]),
    "what only looks like a tag": (
        "a < b <invoked name=x> <p> [e~ ]~",
        [TextDelta("a < b <invoked name=x> <p> [e~ ]~")],
    ),
    "thinking with both tags": ("<think>\nhm\n\n</think>\n\nYes", [ThinkingDelta("hm"), TextDelta("Yes")]),
    "a thinking tag that is only mentioned": ("Use <think> here", [TextDelta("Use <think> here")]),
    "thinking twice": (
        "<think>a</think>\n<think>b</think>c</think>",
        [ThinkingDelta("ab"), TextDelta("c</think>")],
    ),
    "the end of a thinking that never began": ("a </think>b </think>", [TextDelta("a b </think>")]),
    "thinking after a call": (
        invoke("Bash", a="1") + "\n<think>b</think>c",
        [call("Bash", a="1"), ThinkingDelta("b"), TextDelta("c")],
    ),
    "nothing": ("", []),
}  # fmt: skip

INSIDE_CASES: dict[str, tuple[str, list[Found]]] = {
    "only the closing tag": ("hm\n</think>\n\nYes", [ThinkingDelta("hm"), TextDelta("Yes")]),
    "the opening tag all the same": ("<think>\nhm</think>Yes", [ThinkingDelta("hm"), TextDelta("Yes")]),
    "a call inside thinking": (
        "hm\n" + wrapped(invoke("Bash", a="1")) + "\n</think>\n",
        [ThinkingDelta("hm"), call("Bash", a="1")],
    ),
    "a thinking tag inside thinking": ("a <think> b</think>c", [ThinkingDelta("a <think> b"), TextDelta("c")]),
    "indentation after thinking": ("a</think>\n  b", [ThinkingDelta("a"), TextDelta("  b")]),
    "a wrapper mentioned in thinking": (
        "a <minimax:tool_call></think>b",
        [ThinkingDelta("a <minimax:tool_call>"), TextDelta("b")],
    ),
    "empty thinking": ("\n</think>\nb", [TextDelta("b")]),
}

VERBATIM_CASES: dict[str, tuple[str, list[Found]]] = {
    "the opening tag is added": ("hm\n</think>\n\nYes\n", [TextDelta("<think>\nhm\n</think>\n\nYes\n")]),
    "the opening tag is not added twice": ("\n<think>\nhm\n</think>Yes", [TextDelta("<think>\nhm\n</think>Yes")]),
    "white space before a call goes": (
        "hm\n</think>\n\n" + wrapped(invoke("Bash", a="1")),
        [TextDelta("<think>\nhm\n</think>"), call("Bash", a="1")],
    ),
    "a second closing tag is text": ("a</think>b</think>", [TextDelta("<think>\na</think>b</think>")]),
}

M3_CASES: dict[str, tuple[str, list[Found]]] = {
    "two calls": (
        m3('<mm:think>\nhm\n</mm:think>\nOk @<tool_call>\n@<invoke name="Bash">\n@<command>ls@</command>\n@</invoke>\n'
           '@<invoke name="Write">@<a-b>1@</a-b>@</invoke>@</tool_call>'),
        [ThinkingDelta("hm"), TextDelta("Ok"), call("Bash", command="ls"), call("Write", **{"a-b": "1"})],
    ),
    "nested values": (
        m3('@<invoke name="Write">@<o>\n@<x>1@</x>@<l>@<item>a@</item>@<item> b@</item>@</l>@</o>@</invoke>'),
        [
            Invocation(
                "Write",
                (
                    Parameter(
                        "o",
                        children=(
                            Parameter("x", "1"),
                            Parameter("l", children=(Parameter("item", "a"), Parameter("item", " b"))),
                        ),
                    ),
                ),
            )
        ],
    ),
    "tags without the token are data": (
        m3('@<invoke name="Bash">@<c></c></invoke><think>]~b]@</c>@</invoke>'),
        [call("Bash", c="</c></invoke><think>]~b]")],
    ),
    "closing tags without the token": (
        m3('<tool_call>@<invoke name="Bash">@<a>1</a>@<b>2</b>\n@<c>3</c>@</z>@</invoke>@</tool_call>'),
        [call("Bash", a="1", b="2", c="3")],
    ),
    "a closing tag without the token at the end": (m3('@<invoke name="Bash">@<a>1</a>'), [call("Bash", a="1")]),
    "a closing tag that is missing": (
        m3('@<invoke name="Bash">@<a>@<b>1@</a>@<c>2@</invoke>'),
        [Invocation("Bash", (Parameter("a", children=(Parameter("b", "1"),)), Parameter("c", "2")))],
    ),
    "white space after the token": (m3('@ \n<invoke name="Bash">@ <a>1@ </a>@ </invoke>'), [call("Bash", a="1")]),
    "an end that is missing": (
        m3('@<tool_call>@<invoke name="Bash">@<a>1@</a>@</tool_call>@<invoke name="Bash">@<b>2@</b>'),
        [call("Bash", a="1"), call("Bash", b="2")],
    ),
    "stray tokens": (
        m3('a @ b@<invoke name="Bash">@ @<a>1@2@</a>@</invoke>@'),
        [TextDelta("a  b"), call("Bash", a="12")],
    ),
    "an unknown tool stays text": (
        m3('@<tool_call>@<invoke name="Nope">@<a>1@</a>@</invoke>@</tool_call>'),
        [TextDelta(m3('@<tool_call>@<invoke name="Nope">@<a>1@</a>@</invoke>@</tool_call>'))],
    ),
    "a mention of a wrapper": ("the <tool_call> tag", [TextDelta("the <tool_call> tag")]),
    "the other thinking tag": ("<think>a</think>b", [ThinkingDelta("a"), TextDelta("b")]),
}  # fmt: skip


def check(text: str, expected: list[Found], **options: object) -> None:
    for size in (0, 1, 2, 3, 7):
        assert read(text, size=size, **options) == expected  # type: ignore[arg-type]  # keyword options of read


@pytest.mark.parametrize("name", M2_CASES)
def test_m2(name: str) -> None:
    check(*M2_CASES[name])


@pytest.mark.parametrize("name", INSIDE_CASES)
def test_an_answer_that_begins_inside_its_thinking(name: str) -> None:
    check(*INSIDE_CASES[name], thinking=True)


@pytest.mark.parametrize("name", VERBATIM_CASES)
def test_verbatim_thinking(name: str) -> None:
    check(*VERBATIM_CASES[name], thinking=True, verbatim=True)


@pytest.mark.parametrize("name", M3_CASES)
def test_m3(name: str) -> None:
    check(*M3_CASES[name], grammar=M3)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a <invoke name="Bash"><parameter name="c">rm -rf /tmp/x</invoke> y', "a"),
        ('a <invoke name="Bash"><parameter name="c">1</parameter>', "a"),
        ("a <minimax:tool_call>\n", "a"),
        ("a <minimax:to", "a"),
        ('a <invoke name="Ba', "a"),
    ],
)
def test_a_call_that_the_token_limit_cut_is_dropped(text: str, shown: str) -> None:
    for size in (0, 1):
        assert read(text, size=size, cut=True) == [TextDelta(shown)]
    markup = Markup(M2, TOOLS)
    markup.feed(text)
    markup.close(cut=True)
    assert markup.dropped


@pytest.mark.parametrize(
    ("text", "grammar"),
    [
        ('a <minimax:tool_call><invoke name="Bash"><parameter name="c">rm -rf /tmp/x', M2),
        ('a <invoke name="Bash"><parameter name="c">1</parameter><parameter name="d', M2),
        ('a <invoke name="Bash"><parameter name="c">1</parameter><parameter name="d">', M2),
        ('a <invoke name="Bash">', M2),
        ('a <invoke name="Bash"><para', M2),
        (m3('a @<invoke name="Bash">@<c>rm -rf /tmp/x'), M3),
        (m3('a @<invoke name="Bash">@<c>1@</c>@<d'), M3),
        (m3('a @<invoke name="Bash">'), M3),
    ],
)
def test_a_call_that_ends_inside_what_it_is_given_is_none(text: str, grammar: Grammar) -> None:
    for size in (1, len(text)):
        assert read(text, size=size, grammar=grammar) == [TextDelta("a")]
    markup = Markup(grammar, TOOLS)
    markup.feed(text)
    markup.close()
    assert markup.broken


@pytest.mark.parametrize("cut", [False, True])
def test_of_a_wrappers_end_that_was_cut_off_nothing_is_shown(cut: bool) -> None:
    begun, end = "<minimax:tool_call>" + invoke("Bash", a="1"), "\n</minimax:tool_call>"
    for length in range(len(end)):
        assert read(begun + end[:length], cut=cut) == [call("Bash", a="1")]
    begun, end = m3('@<tool_call>@<invoke name="Bash">@<a>1@</a>@</invoke>'), m3("@</tool_call>")
    for length in range(len(end)):
        assert read(begun + end[:length], grammar=M3, cut=cut) == [call("Bash", a="1")]


@pytest.mark.parametrize("rest", ['<invoke name="Ba', '<invoke name="Bash"><parameter name="b">2</parameter><para'])
def test_a_call_behind_another_that_does_not_end_is_none(rest: str) -> None:
    markup = Markup(M2, TOOLS)
    found = markup.feed("<minimax:tool_call>" + invoke("Bash", a="1") + rest)
    assert joined(found + markup.close()) == [call("Bash", a="1")]
    assert markup.broken


def test_text_that_the_token_limit_cut_is_kept() -> None:
    assert read("a <", cut=True) == [TextDelta("a <")]


def test_the_end_of_the_thinking_is_told() -> None:
    markup = Markup(M2, TOOLS, thinking=True)
    markup.feed("a")
    assert not markup.thought
    markup.feed("</think>")
    assert markup.thought


def test_tags_are_text_when_the_thinking_came_apart() -> None:
    assert Markup(M2, TOOLS, thought=True).feed("a </think> b") == [
        TextDelta("a"),
        TextDelta(" </think>"),
        TextDelta(" b"),
    ]


def test_white_space_around_a_call_that_came_apart_goes() -> None:
    markup = Markup(M2, TOOLS)
    assert markup.feed("a \n") == [TextDelta("a")]
    markup.interrupt()
    assert markup.feed("\n") + markup.close() == []


def test_text_goes_out_as_it_comes() -> None:
    markup = Markup(M2, TOOLS)
    assert markup.feed("one") == [TextDelta("one")]
    assert markup.feed(" two <") == [TextDelta(" two")]
    assert markup.feed("3") == [TextDelta(" <3")]


def test_parameters_nest_only_so_deep() -> None:
    text = m3('@<invoke name="Bash">') + m3("@<a>") * 500 + "x" + m3("@</a>") * 500 + m3("@</invoke>")
    found = read(text, grammar=M3)
    assert len(found) == 1
    depth = 0
    item = found[0]
    children = item.parameters if isinstance(item, Invocation) else ()
    while children:
        depth, children = depth + 1, children[0].children
    assert depth == DEPTH - 1


@given(
    st.lists(st.sampled_from(FRAGMENTS), max_size=25),
    st.booleans(),
    st.booleans(),
    st.sampled_from((M2, M3)),
    st.data(),
)
def test_a_cut_changes_nothing(
    parts: list[str], thinking: bool, verbatim: bool, grammar: Grammar, data: st.DataObject
) -> None:
    text = "".join(parts)
    cut = data.draw(st.booleans())
    whole = read(text, grammar=grammar, thinking=thinking, verbatim=verbatim, cut=cut)
    size = data.draw(st.integers(1, 9))
    assert read(text, size=size, grammar=grammar, thinking=thinking, verbatim=verbatim, cut=cut) == whole


@given(st.text(alphabet="<>/=\"' \nabinvoketparmx]~[&é", max_size=200))
def test_plain_text_loses_no_byte(text: str) -> None:
    expected = text.lstrip("\n")
    for marker in ("]~b]", "]~!b[", "[e~[", "<think>", "</think>"):
        if marker in text:
            return
    found = read(text, size=5)
    assert "".join(item.text for item in found if isinstance(item, TextDelta)) == (expected if text.strip() else "")


@given(st.dictionaries(st.text("abc-_.é", min_size=1, max_size=5), st.lists(st.sampled_from(FRAGMENTS)), max_size=3))
def test_values_come_back_as_they_were_written(parts: dict[str, list[str]]) -> None:
    """Wherever it is not ambiguous: no parameter tag in a value, and no end of a call where one could be meant."""
    values = {name: "".join(pieces) for name, pieces in parts.items()}
    for value in values.values():
        if '<parameter name="p">' in value or "</parameter>" in value:
            return
        if value.rstrip().endswith(("</invoke>", "</minimax:tool_call>")) or "<invoke" in value or "<minimax" in value:
            return
        if "</minimax:tool_call>" in value:
            return
    expected = [Invocation("Write", tuple(Parameter(name, value) for name, value in values.items()))]
    assert read(wrapped(invoke("Write", **values)), size=3) == expected


def test_a_parameter_that_the_tool_has_not_is_part_of_an_open_value() -> None:
    text = wrapped(invoke("Write", content='<xsl:param/><parameter name="x">1</parameter> and', path="p", odd="o"))
    for size in (1, 3, len(text)):
        markup = Markup(M2, TOOLS, parameters=lambda tool: frozenset({"content", "path"}))
        found = [item for start in range(0, len(text), size) for item in markup.feed(text[start : start + size])]
        expected = call("Write", content='<xsl:param/><parameter name="x">1</parameter> and', path="p", odd="o")
        assert found + markup.close() == [expected]


@given(
    st.lists(
        st.one_of(
            st.text("ab\n <>&", min_size=1, max_size=6),
            st.dictionaries(st.sampled_from("ab"), st.text("ab\n &", max_size=4), max_size=2).map(
                lambda values: wrapped(invoke("Bash", **values))
            ),
        ),
        max_size=6,
    ),
    st.integers(1, 9),
)
def test_calls_that_a_value_quotes_are_never_made(parts: list[str], size: int) -> None:
    value = "x" + "".join(parts)
    assert read(wrapped(invoke("Write", content=value, path="p")), size=size) == [
        call("Write", content=value, path="p")
    ]


def test_calls_that_only_begin_in_values_take_linear_time() -> None:
    one = invoke("Write", content='<invoke name="x">')
    assert read(wrapped(*[one] * 20_000), size=4096) == [call("Write", content='<invoke name="x">')] * 20_000


@pytest.mark.parametrize("piece", ["x" * 8, "</invoke> ", "<a href='x'>", "    \n", "</parameter>z", "<", "]~b]"])
def test_a_large_value_takes_linear_time(piece: str) -> None:
    text = invoke("Write", content=piece * (1_000_000 // len(piece)))
    found = read(text, size=64)  # a third of a second; quadratic would be minutes, and run into the suite's time limit
    assert [type(item) for item in found] == [Invocation]

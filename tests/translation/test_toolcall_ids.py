"""Ids of tool calls toward upstreams."""

from msgspec.structs import replace

from translation.adapter import Target
from translation.providers.profiles import PROFILES
from translation.toolcall_ids import CallIds
from translation.values import Link, Origin, ToolUse

OURS = "toolu_0123456789abcdefghijklmn"


def ids(provider: str) -> CallIds:
    return CallIds(Target(provider, "m", PROFILES[provider]))


def use(id_: str, upstream: str = "", upstream_id: str = "") -> ToolUse:
    link = Link(id_, "Read", "Read", upstream_id, b"{}", Origin(upstream, "m")) if upstream else None
    return ToolUse(id_, "Read", b"{}", link)


def test_the_upstream_gets_its_own_id_back() -> None:
    book = ids("openai")
    assert book.call(use(OURS, "openai", "call_a")) == "call_a"
    assert book.result(OURS) == "call_a"
    long = f"call_{'x' * 100}"
    assert ids("openai").call(use(OURS, "openai", long)) == long, "who wrote it can read it"


def test_a_server_that_wants_nine_letters_does_not_get_back_its_own_long_id() -> None:
    assert ids("mistral").call(use(OURS, "mistral", "abcDEF123")) == "abcDEF123"
    assert len(ids("mistral").call(use(OURS, "mistral", f"call_{'x' * 100}"))) == 9


def test_an_id_of_another_upstream_is_not_sent() -> None:
    assert ids("openai").call(use(OURS, "gemini", "call_a")) == OURS


def test_an_upstream_that_gave_no_id_gets_ours() -> None:
    assert ids("ollama").call(use(OURS, "ollama", "")) == OURS


def test_mistral_gets_nine_letters_and_digits_always_the_same() -> None:
    alias = ids("mistral").call(use(OURS))
    assert len(alias) == 9
    assert alias.isalnum()
    assert ids("mistral").call(use(OURS)) == alias
    assert ids("mistral").call(use("abcdefghi")) == "abcdefghi"
    assert ids("mistral").call(use("abcd-fghi")) != "abcd-fghi"


def test_how_long_an_id_is_or_may_be_is_the_profile_s() -> None:
    exact = replace(PROFILES["mistral"], id_length=5)
    assert CallIds(Target("mistral", "m", exact)).call(use("abc12")) == "abc12"
    assert len(CallIds(Target("mistral", "m", exact)).call(use("abc_1"))) == 5
    short = replace(PROFILES["openai"], id_limit=6)
    assert CallIds(Target("openai", "m", short)).call(use("call_1")) == "call_1"
    assert len(CallIds(Target("openai", "m", short)).call(use("call_12"))) == 6


def test_an_illegal_or_long_id_gets_an_alias() -> None:
    book = ids("openai")
    assert book.call(use("a.b:1")).isalnum()
    assert len(book.call(use("x" * 65))) == 24


def test_an_id_that_the_upstream_used_twice_is_two_ids() -> None:
    book = ids("moonshot")
    first = book.call(use("toolu_1", "moonshot", "Bash:0"))
    second = book.call(use("toolu_2", "moonshot", "Bash:0"))
    assert first == "Bash:0"
    assert second != first
    assert (book.result("toolu_1"), book.result("toolu_2")) == (first, second)


def test_a_client_id_that_comes_twice_is_two_ids_and_a_result_follows_the_newest() -> None:
    book = ids("openai")
    first, second, third = book.call(use("call_0")), book.call(use("call_0")), book.call(use("call_0"))
    assert len({first, second, third}) == 3
    assert book.result("call_0") == third


def test_a_result_without_a_call_has_an_id_nevertheless() -> None:
    assert ids("openai").result("toolu_9") == "toolu_9"

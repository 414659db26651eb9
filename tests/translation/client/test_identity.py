"""Whose turn a request is, by what it says of itself."""

import pytest

from translation.client.identity import Identity, identity
from translation.errors import InvalidRequest

UUID = "0189c1f2-aaaa-4bbb-8ccc-1234567890ab"


def test_nothing_said_is_nothing_known() -> None:
    assert identity({}, "") == Identity()
    assert identity({"x-api-key": "k"}, "user-42") == Identity()


@pytest.mark.parametrize("id_", ["a", "team/chat 7", "~!@#$%^&*()", "x" * 255])
def test_conversation_id_is_opaque(id_: str) -> None:
    assert identity({"x-conversation-id": id_}, "").conversation_id == id_


@pytest.mark.parametrize("id_", ["", "x" * 256, "a\tb", "a\nb", "é", "a\x7f", "a\0"])
def test_conversation_id_that_is_not_printable_ascii_is_refused(id_: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        identity({"x-conversation-id": id_}, "")
    assert caught.value.message == "x-conversation-id: Header should be 1 to 255 printable ASCII characters"


def test_append_needs_the_conversation() -> None:
    assert identity({"x-conversation-id": "c", "x-conversation-mode": "append"}, "").append
    assert not identity({"x-conversation-id": "c", "x-conversation-mode": "full"}, "").append
    with pytest.raises(InvalidRequest, match=r"^x-conversation-mode: append needs x-conversation-id$"):
        identity({"x-conversation-mode": "append"}, "")


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^x-conversation-mode: Input should be 'full' or 'append', not 'merge'$"):
        identity({"x-conversation-mode": "merge"}, "")


def test_claude_code_says_it_in_headers() -> None:
    headers = {
        "x-claude-code-session-id": UUID,
        "x-claude-code-agent-id": "a1",
        "x-claude-code-parent-agent-id": "a0",
        "x-stainless-retry-count": "2",
    }
    assert identity(headers, '{"session_id":"other"}') == Identity("", False, UUID, "a1", "a0", 2)


def test_claude_code_says_it_in_the_user_id() -> None:
    user_id = f'{{"device_id":"d","account_uuid":"","session_id":"{UUID}"}}'
    assert identity({"x-claude-code-agent-id": "a1"}, user_id) == Identity(session_id=UUID, agent_id="a1")


def test_older_claude_code_says_it_at_the_end_of_the_user_id() -> None:
    assert identity({}, f"user_abc_account_{UUID}_session_{UUID}").session_id == UUID
    assert identity({}, "user_abc_account__session_none").session_id == ""


@pytest.mark.parametrize("user_id", ["{", '{"session_id":5}', '{"a":' * 10_000, "{}", '{"session_id":"a\\u0000"}'])
def test_user_id_of_somebody_else_is_no_session(user_id: str) -> None:
    assert identity({}, user_id) == Identity()


def test_hint_that_cannot_be_an_id_is_ignored() -> None:
    assert identity({"x-claude-code-session-id": "x" * 256}, f'{{"session_id":"{UUID}"}}').session_id == UUID


@pytest.mark.parametrize("count", ["", "-1", "x", "²", "99999", "1.5"])
def test_retry_count_that_is_none_is_zero(count: str) -> None:
    assert identity({"x-stainless-retry-count": count}, "").retry_count == 0


@pytest.mark.parametrize(
    ("headers", "grouped"),
    [
        ({}, False),
        ({"x-claude-code-session-id": "s"}, True),
        ({"x-claude-code-session-id": "s", "x-conversation-id": "c"}, False),
    ],
)
def test_a_session_only_groups(headers: dict[str, str], grouped: bool) -> None:
    assert identity(headers, "").grouped is grouped

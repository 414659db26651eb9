"""What the headers and `metadata.user_id` say about whose turn this is. Names of headers are lower case."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from translation.client.paths import one_of, wrong
from translation.unreadable import UNREADABLE

MAX_ID = 255
CONVERSATION = "x-conversation-id"
MODE = "x-conversation-mode"
MODES = ("full", "append")
_LEGACY = re.compile(r"_session_([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$")


class Identity(Struct, frozen=True):
    """Every field is "" when the client did not say."""

    conversation_id: str = ""
    append: bool = False  # `messages` holds only what is new
    session_id: str = ""  # Claude Code: one session has several conversations, one per agent
    agent_id: str = ""  # absent on the main loop
    parent_agent_id: str = ""
    retry_count: int = 0

    @property
    def grouped(self) -> bool:
        """Whether only a session names the conversation: sessions are forked, and agents inherit histories."""
        return bool(self.session_id) and not self.conversation_id


class UserId(Struct):
    """Claude Code writes JSON into `metadata.user_id`."""

    session_id: str = ""
    agent_id: str = ""
    parent_agent_id: str = ""


_USER_ID = msgspec.json.Decoder(UserId)
_NOBODY = UserId()


def identity(headers: Mapping[str, str], user_id: str) -> Identity:
    conversation_id = headers.get(CONVERSATION, "")
    if CONVERSATION in headers and not _is_id(conversation_id):
        raise wrong(CONVERSATION, f"Header should be 1 to {MAX_ID} printable ASCII characters")
    said = _said(user_id) if user_id else _NOBODY
    session, agent = headers.get("x-claude-code-session-id", ""), headers.get("x-claude-code-agent-id", "")
    parent, retries = headers.get("x-claude-code-parent-agent-id", ""), headers.get("x-stainless-retry-count", "")
    return Identity(
        conversation_id=conversation_id,
        append=MODE in headers and _append(headers[MODE], conversation_id),
        session_id=_hint(session, said.session_id) if session or said.session_id else "",
        agent_id=_hint(agent, said.agent_id) if agent or said.agent_id else "",
        parent_agent_id=_hint(parent, said.parent_agent_id) if parent or said.parent_agent_id else "",
        retry_count=_count(retries) if retries else 0,
    )


def _is_id(text: str) -> bool:
    return 1 <= len(text) <= MAX_ID and text.isascii() and text.isprintable()


def _append(mode: str, conversation_id: str) -> bool:
    if mode not in MODES:
        raise one_of(MODE, MODES, mode)
    if mode == "append" and not conversation_id:
        raise wrong(MODE, f"append needs {CONVERSATION}")
    return mode == "append"


def _said(user_id: str) -> UserId:
    if user_id.startswith("{"):
        try:
            return _USER_ID.decode(user_id)
        except UNREADABLE:
            return _NOBODY  # somebody else's JSON
    legacy = _LEGACY.search(user_id)
    return UserId(legacy[1]) if legacy else _NOBODY


def _hint(header: str, said: str) -> str:
    """Grouping hints are not validated, only ignored when they cannot be ids."""
    if _is_id(header):
        return header
    return said if _is_id(said) else ""


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0

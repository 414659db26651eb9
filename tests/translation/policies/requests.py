"""Requests to try rules on, in a few words."""

from msgspec.structs import replace

from translation.policies import Policy, apply
from translation.providers.profiles import PROFILES
from translation.values import Block, Message, Note, Request, Text, Tool, ToolResult, ToolUse

CONSERVATIVE = Policy("conservative")
AGENTIC = Policy("agentic")
TOOLS = tuple(Tool(name, schema=b"{}") for name in ("Glob", "Read", "Edit", "Write", "Bash"))


def asked(*messages: Message, system: tuple[str, ...] = (), tools: tuple[Tool, ...] = TOOLS) -> Request:
    return Request(model="m", max_tokens=9, messages=messages, system=tuple(map(Text, system)), tools=tools)


def user(*content: str | Block) -> Message:
    return Message("user", tuple(Text(item) if isinstance(item, str) else item for item in content), raw=b"raw")


def answer(*content: str | Block) -> Message:
    return Message("assistant", tuple(Text(item) if isinstance(item, str) else item for item in content), raw=b"raw")


def call(number: int, arguments: bytes = b'{"path":"README"}', name: str = "Read") -> ToolUse:
    return ToolUse(f"toolu_{number}", name, arguments)


def result(number: int, text: str = "# readme") -> ToolResult:
    return ToolResult(f"toolu_{number}", (Text(text),))


def loop(count: int, text: str = "# readme") -> list[Message]:
    """The same call with the same result, this often."""
    return [message for number in range(count) for message in (answer(call(number)), user(result(number, text)))]


def under(policy: Policy, request: Request, provider: str = "openai") -> tuple[Request, tuple[Note, ...]]:
    return apply(request, PROFILES[provider], policy)


def fired(notes: tuple[Note, ...]) -> list[str]:
    return [note.rule for note in notes]


def switched(policy: Policy, **switches: bool) -> Policy:
    return replace(policy, switches=tuple(switches.items()))

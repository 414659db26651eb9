"""Rules about which tools a model may call now."""

import re
from functools import lru_cache

from msgspec.structs import replace

from translation.policies.policy import Policy
from translation.policies.texts import texts
from translation.values import Note, Request, ToolChoice, ToolResult


def answer_after_results(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R3: in a turn that brings tool results the model answers with text and calls nothing."""
    choice = request.tool_choice or ToolChoice()
    if not request.tools or choice.kind == "none" or not _brings_results(request):
        return request
    notes.append(Note("policy", "R3", f"tool_choice is none after tool results; the client asked for {choice.kind}"))
    return replace(request, tool_choice=ToolChoice("none"))


def narrow_to_reading(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """Read-only: a text that only asks to read, explain or summarise leaves the tools that change nothing."""
    asked = _newest_text(request)
    if not _mentions(policy.read_cues, asked) or _mentions(policy.write_cues, asked):
        return request
    allowed = {_plain(name) for name in policy.read_only_tools}
    if request.tool_choice is not None:
        allowed.add(_plain(request.tool_choice.name))
    kept = tuple(tool for tool in request.tools if _plain(tool.name) in allowed)
    if len(kept) == len(request.tools):
        return request
    left = ", ".join(tool.name for tool in request.tools if tool not in kept)
    notes.append(Note("policy", "Read-only", f"the newest text only asks to read, so these were not offered: {left}"))
    return replace(request, tools=kept, raw_tools=b"", tool_choice=request.tool_choice if kept else None)


def _brings_results(request: Request) -> bool:
    """Whether what follows the last answer holds a result."""
    for message in reversed(request.messages):
        if message.role == "assistant":
            return False
        if any(type(block) is ToolResult for block in message.blocks):
            return True
    return False


def _newest_text(request: Request) -> str:
    for message in reversed(request.messages):
        if message.role == "user" and (said := texts(message)):
            return "\n".join(said)
    return ""


def _mentions(cues: tuple[str, ...], text: str) -> bool:
    return bool(cues) and _pattern(cues).search(text) is not None


@lru_cache(maxsize=64)
def _pattern(cues: tuple[str, ...]) -> re.Pattern[str]:
    """English cues are words in any of their forms; Chinese has no spaces to go by."""
    return re.compile("|".join(_word(cue.lower()) if cue.isascii() else re.escape(cue) for cue in cues), re.IGNORECASE)


def _word(cue: str) -> str:
    stem, endings = (cue[:-1], "e|es|ed|ing") if cue.endswith("e") else (cue, "|s|es|ed|ing")
    return rf"(?<![a-z]){re.escape(stem)}(?:{endings})(?![a-z])"


def _plain(name: str) -> str:
    return name.lower().replace("_", "")

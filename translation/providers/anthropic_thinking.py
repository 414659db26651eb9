"""How hard Claude's models think: the efforts that each takes, and what becomes of thinking that shall be off."""

import msgspec
from msgspec.structs import replace

from translation.adapter import Target
from translation.effort import SCALE, scale
from translation.patterns import matches
from translation.providers.anthropic_json import Fields, items, split, to_array, to_object
from translation.providers.models import CLAUDE_ALWAYS_THINKS, CLAUDE_BETWEEN_TOOLS
from translation.unicode import json_string
from translation.values import Note, Request, ThinkingConfig

HIGHEST_UNTHOUGHT = "high"  # `effort 'xhigh' is not supported when thinking is disabled on this model`


def with_known_effort(fields: Fields, target: Target, notes: list[Note]) -> Fields:
    """`This model does not support effort level 'xhigh'`: the next lower level, as Claude Code takes it itself."""
    asked = _effort(fields)
    levels = scale(target.profile, target.model)
    if asked not in SCALE or asked in levels:
        return fields
    level = _at_most(asked, levels)
    became = f"{asked} became {level}" if level else f"{asked} was left out"
    known = ", ".join(levels) or "no effort"
    notes.append(Note("degradation", "effort-limited", f"{target.model} knows {known}; {became}"))
    return _with_effort(fields, level)


def unthinking(request: Request, target: Target, notes: list[Note]) -> Request:
    """A chat client's wish of no thinking, in the words of a model that takes no `disabled`."""
    if request.thinking is None or request.thinking.kind != "disabled":
        return request
    if matches(target.model, target.profile.always_thinks):
        notes.append(Note("degradation", "effort-limited", f"{target.model} always thinks; its effort became low"))
        return replace(request, thinking=None, effort="low")
    if matches(target.model, CLAUDE_BETWEEN_TOOLS):
        return replace(request, thinking=ThinkingConfig("between_tools"))
    return request


def thinking_off(fields: Fields) -> Fields:
    """Clearing thinking that is off is refused, too. What is no list of edits the API refuses in its own words.

    Models that cannot do without thinking do not insist on that of earlier turns either.
    """
    model = msgspec.json.decode(fields["model"], type=str)
    if matches(model, CLAUDE_ALWAYS_THINKS + CLAUDE_BETWEEN_TOOLS):
        return fields
    changed = fields | {"thinking": b'{"type":"disabled"}'}
    management = split(fields["context_management"]) if _begins(fields, "context_management", b"{") else {}
    if _begins(management, "edits", b"["):
        edits = [edit for edit in items(management["edits"]) if b'"clear_thinking_' not in edit]
        changed["context_management"] = to_object(management | {"edits": to_array(edits)})
    asked = _effort(fields)
    higher = asked in SCALE and SCALE.index(asked) > SCALE.index(HIGHEST_UNTHOUGHT)
    return _with_effort(changed, HIGHEST_UNTHOUGHT) if higher else changed


def _at_most(asked: str, levels: tuple[str, ...]) -> str:
    lower = [level for level in levels if SCALE.index(level) < SCALE.index(asked)]
    return (lower[-1:] or [*levels[:1], ""])[0]


def _effort(fields: Fields) -> str:
    output = split(fields["output_config"]) if _begins(fields, "output_config", b"{") else {}
    return msgspec.json.decode(output["effort"], type=str) if _begins(output, "effort", b'"') else ""


def _with_effort(fields: Fields, level: str) -> Fields:
    output = split(fields["output_config"])
    output |= {"effort": json_string(level)}
    if not level:
        del output["effort"]
    rest = {name: value for name, value in fields.items() if name != "output_config"}
    return fields | {"output_config": to_object(output)} if output else rest


def _begins(fields: Fields, name: str, bracket: bytes) -> bool:
    return fields.get(name, b"").startswith(bracket)

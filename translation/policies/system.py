"""Rules about the system prompt."""

import re
from collections.abc import Callable

from msgspec.structs import replace

from translation.policies.policy import Policy
from translation.values import Note, Request, Text

BILLING = re.compile(r"\s*x-anthropic-billing-header:[^\n]*\n*")
OPENING, CLOSING = "<system-reminder>", "</system-reminder>"


def strip_billing_header(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R2: Claude Code's billing header differs in every request, and would cost every prompt cache its prefix."""
    return _cut(request, _without_header, "the billing header was left out of the system prompt", notes)


def strip_system_reminders(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R2: `<system-reminder>` hints in the system prompt are Claude Code's own, and mean nothing to other models."""
    if not any(OPENING in block.text for block in request.system):
        return request
    return _cut(request, without_reminders, "reminders were left out of the system prompt", notes)


def add_guardrail(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R10: a sentence in the system prompt asks not to repeat calls whose results are there already."""
    return _added(request, policy.guardrail, "R10", "the guardrail sentence was added to the system prompt", notes)


def add_guidance(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """Guidance: the route's own text is added to the system prompt."""
    return _added(request, policy.guidance, "Guidance", "the route's guidance was added to the system prompt", notes)


def without_reminders(text: str) -> str:
    """The same string when there are none; what stood on both sides of one is on lines of its own."""
    if OPENING not in text:
        return text
    kept, begun, searched = [], 0, 0
    while (end := text.find(CLOSING, searched)) >= 0:
        start = _opening(text, searched, end)
        searched = end + len(CLOSING)
        if start >= 0:
            kept.append(text[begun:start].strip())
            begun = searched
    return "\n".join((*kept, text[begun:].strip())).strip() if kept else text


def _opening(text: str, after: int, end: int) -> int:
    """Where the reminder that ends there begins. Prose speaks of the tag, too (Claude Code's own system prompt does):
    one at the start of a line is it, else the last one."""
    found = last = text.find(OPENING, after, end)
    while found >= 0:
        if found == after or text[found - 1] == "\n":
            return found
        last, found = found, text.find(OPENING, found + 1, end)
    return last


def _cut(request: Request, without: Callable[[str], str], what: str, notes: list[Note]) -> Request:
    kept = []
    for block in request.system:
        text = without(block.text)
        if text == block.text:
            kept.append(block)
        elif text:
            kept.append(Text(text))
    if len(kept) == len(request.system) and all(map(_is, kept, request.system)):
        return request
    notes.append(Note("policy", "R2", what))
    return replace(request, system=tuple(kept), raw_system=b"")


def _without_header(text: str) -> str:
    """The billing header is only one at the beginning."""
    found = BILLING.match(text)
    return text[found.end() :] if found else text


def _added(request: Request, text: str, rule: str, what: str, notes: list[Note]) -> Request:
    if not text:
        return request
    notes.append(Note("policy", rule, what))
    return replace(request, system=(*request.system, Text(text)), raw_system=b"")


def _is(one: object, other: object) -> bool:
    return one is other

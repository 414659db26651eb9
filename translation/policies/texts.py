"""Rules about what the user's messages say. Each message is judged by what came before it: a history that only grows
is treated the same way again.
"""

import re
from collections.abc import Callable
from operator import is_

from msgspec.structs import replace

from translation.memo import remembered
from translation.policies.policy import Policy
from translation.policies.system import OPENING, without_reminders
from translation.values import KINDS, Block, Message, Note, Request, Text, ToolResult

REPEATED = Text("(the user says the same again)")  # in place of a message that held nothing else
MIXED = frozenset((Text, ToolResult))
IGNORED = re.compile(r"[\W_]+")


def strip_turn_reminders(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R2: `<system-reminder>` hints are left out of the user's messages and of tool results, too."""

    def reminderless(index: int, message: Message) -> Message:
        blocks = tuple(kept for block in message.blocks for kept in stripped(block))
        if blocks == message.blocks:
            return message
        notes.append(_note("R2", index, "reminders were left out"))
        return replace(message, blocks=blocks, raw=b"")

    return _each_user_message(request, reminderless)


def drop_echo(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R8: text beside a tool result that only echoes the user's last text is not a new instruction."""
    if not any(map(MIXED.issubset, map(KINDS, request.messages))):
        return request
    last: tuple[str, ...] = ()

    def heard(index: int, message: Message) -> Message:
        nonlocal last
        said = texts(message)
        if not said:
            return message
        if any(text in last for text in said) and _has_results(message):
            notes.append(_note("R8", index, "an echo of the last user text beside a tool result was dropped"))
            message = _without(message, lambda text: text in last)
            said = texts(message) or last
        last = said
        return message

    return _each_user_message(request, heard)


def drop_old_text(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R6: text beside tool results is forwarded only when the user has not said it before."""
    known: set[str] = set()

    def heard(index: int, message: Message) -> Message:
        said = texts(message)
        if said and _has_results(message) and any(loose(text) in known for text in said):
            notes.append(_note("R6", index, "text beside tool results that is not new was dropped"))
            message = _without(message, lambda text: loose(text) in known)
        known.update(map(loose, said))
        return message

    return _each_user_message(request, heard)


def drop_repeated_text(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R8: user text equal to the last one is dropped; case, whitespace and punctuation make no difference."""
    last: tuple[str, ...] = ()

    def heard(index: int, message: Message) -> Message:
        nonlocal last
        said = texts(message)
        if not said:
            return message
        if any(loose(text) in last for text in said):
            notes.append(_note("R8", index, "a repetition of the last user text was dropped"))
            message = _without(message, lambda text: loose(text) in last)
            if not message.blocks:
                goes_on = index > 0 and request.messages[index - 1].role == "user"  # the turn holds something else
                return message if goes_on else replace(message, blocks=(REPEATED,))
            said = texts(message)
        last = tuple(map(loose, said)) or last
        return message

    return _each_user_message(request, heard)


@remembered
def texts(message: Message) -> tuple[str, ...]:
    """What the user said; reminders are not the user's words."""
    return tuple([block.text for block in message.blocks if type(block) is Text and is_said(block)])


def is_said(text: Text) -> bool:
    return bool(without_reminders(text.text))


def loose(text: str) -> str:
    """Equal for texts that differ only in case, whitespace and punctuation."""
    return IGNORED.sub("", text.casefold()) or text.strip()


def stripped(block: Block) -> tuple[Block, ...]:
    """The block without its reminders; nothing where it was one."""
    if type(block) is Text and OPENING in block.text:
        text = without_reminders(block.text)
        return (Text(text),) if text else ()
    if type(block) is ToolResult:
        blocks = tuple(kept for inner in block.blocks for kept in stripped(inner))
        return (block if blocks == block.blocks else replace(block, blocks=blocks),)
    return (block,)


def _each_user_message(request: Request, change: Callable[[int, Message], Message]) -> Request:
    messages = [
        change(index, message) if message.role == "user" else message for index, message in enumerate(request.messages)
    ]
    if all(map(is_, messages, request.messages)):
        return request
    return replace(request, messages=tuple(messages))


def _without(message: Message, dropped: Callable[[str], bool]) -> Message:
    blocks = [block for block in message.blocks if not (type(block) is Text and is_said(block) and dropped(block.text))]
    return replace(message, blocks=tuple(blocks), raw=b"")


def _has_results(message: Message) -> bool:
    return ToolResult in message.kinds


def _note(rule: str, index: int, what: str) -> Note:
    return Note("policy", rule, f"messages.{index}: {what}", message=index)

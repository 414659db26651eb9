"""Loops: the same tool with the same arguments and the same result, again and again without a word from the user.

Where one is found depends only on the history up to there, so whatever is added for it stays in its place.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from translation.errors import RepeatedCall
from translation.events import Event, Failed, Finished, ToolEnded, ToolStarted
from translation.memo import remembered
from translation.outline import CALLS, outlines
from translation.policies.policy import Policy
from translation.policies.texts import stripped, texts
from translation.values import Block, Message, Note, Request, Text, ToolResult, ToolUse


class Loop(Struct, frozen=True):
    """`count` equal calls with equal results; `message` brought the last of these results."""

    name: str
    arguments: bytes
    count: int
    message: int


def flag_loop(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """Loop: the operator is told when the same call has had the same result several times."""
    notes += [_note("Loop", loop, "") for loop in loops(request, policy.flag_at) if loop.count == policy.flag_at]
    return request


def remind_of_loop(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """R10: after a loop the guardrail sentence follows the turn that closed it, and stays there."""
    found = [loop for loop in loops(request, policy.remind_at) if loop.count % policy.remind_at == 0]
    if not found or not policy.guardrail:
        return request
    messages = list(request.messages)
    for place in sorted({loop.message for loop in found}):
        messages[place] = _reminded(messages[place], policy)
    notes += [_note("R10", loop, "; the guardrail sentence was added") for loop in found]
    return replace(request, messages=tuple(messages))


def retry_repeated_call(request: Request, policy: Policy, notes: list[Note]) -> Request:
    """Loop: an answer that makes such a call once more is asked for again, once, with the reminder."""
    return request  # what is watched is the answer: `watch`


def watch(request: Request, policy: Policy) -> "Watch | None":
    """For a request that `retry_repeated_call` governs: something to put between its decoder and its writer."""
    found = loops(request, policy.flag_at)
    repeated = frozenset((loop.name, _canonical(loop.arguments)) for loop in found if _is_open(request, loop))
    return Watch(repeated) if repeated and policy.guardrail else None


def with_reminder(request: Request, policy: Policy) -> Request:
    """The guardrail sentence after the newest turn."""
    *before, newest = request.messages
    return replace(request, messages=(*before, _reminded(newest, policy)))


class Watch:
    """Holds an answer back until it is clear that it does not begin with a call that is a loop."""

    def __init__(self, repeated: frozenset[tuple[str, bytes]]) -> None:
        self._repeated = repeated
        self._held: list[Event] | None = []  # None once there is nothing more to find out
        self._names: dict[int, str] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        if self._held is None:
            return events
        self._held += events
        for event in events:
            if type(event) is ToolStarted:
                self._names[event.call] = event.name
            elif type(event) is ToolEnded:
                if (self._names[event.call], _canonical(event.arguments)) in self._repeated:
                    raise RepeatedCall(f"{self._names[event.call]} was called again with the same arguments")
                return self._release()
            elif isinstance(event, Finished | Failed):
                return self._release()
        return []

    def _release(self) -> list[Event]:
        held, self._held = self._held or [], None
        return held


def loops(request: Request, least: int) -> list[Loop]:
    """Every repetition from the `least`-th on, in order."""
    if ToolUse not in request.kinds:
        return []
    if _repetitions(request) < least - 1:
        return []  # no call is made so often
    asked = chain.from_iterable(map(CALLS, outlines(request)))
    often = {call for call, count in Counter(asked).items() if count >= least}
    return [loop for loop in _counted(request.messages, often) if loop.count >= least] if often else []


@remembered
def _repetitions(request: Request) -> int:
    """How many of its calls were made before, of all tools together."""
    asked = [*chain.from_iterable(map(CALLS, outlines(request)))]
    return len(asked) - len(set(asked))


def _counted(messages: tuple[Message, ...], often: set[tuple[str, bytes]]) -> Iterator[Loop]:
    """Each result of one of these calls, with how often it has come since the user last spoke."""
    calls: dict[str, tuple[str, bytes]] = {}
    seen: Counter[tuple[str, bytes, tuple[Block, ...]]] = Counter()
    for index, message in enumerate(messages):
        if message.role == "assistant":
            found = [block for block in message.blocks if type(block) is ToolUse]
            calls |= {block.id: (block.name, block.input) for block in found if (block.name, block.input) in often}
            continue
        for block in message.blocks:
            if type(block) is ToolResult and block.tool_use_id in calls:
                name, arguments = calls[block.tool_use_id]
                result = (name, arguments, _told(block))
                seen[result] += 1
                yield Loop(name, arguments, seen[result], index)
        if message.role == "user" and texts(message):
            seen.clear()


def _told(result: ToolResult) -> tuple[Block, ...]:
    """What the tool said: Claude Code adds a reminder with the tokens that are left, different in every result."""
    return stripped(replace(result, tool_use_id=""))


def _is_open(request: Request, loop: Loop) -> bool:
    """Whether the user has said nothing since."""
    return not any(message.role == "user" and texts(message) for message in request.messages[loop.message :])


def _canonical(arguments: str | bytes) -> bytes:
    """Clients write anew what they got."""
    return msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic")


def _reminded(message: Message, policy: Policy) -> Message:
    reminder = Text(f"<system-reminder>\n{policy.guardrail}\n</system-reminder>")
    return replace(message, blocks=(*message.blocks, reminder), raw=b"")


def _note(rule: str, loop: Loop, what: str) -> Note:
    said = f"messages.{loop.message}: {loop.name} had the same result for the same arguments {loop.count} times{what}"
    return Note("policy", rule, said, message=loop.message)

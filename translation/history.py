"""Makes any history legal: the one form that every adapter may rely on.

- Roles alternate and start with `user`; system messages stay in place, as reminders unless the target takes them.
- Every call of an answer is answered in the next user message, once, in call order, before anything else.
- No message and no text is empty; a tool id names one call.

Toward Anthropic, whatever the API itself takes is left alone, byte for byte. A message's repaired form depends on what
came before it, and an answer's also on the turn after it: a history that only grows is repaired the same way again.
"""

from collections.abc import Iterator, Sequence
from itertools import chain as chained
from operator import is_

from msgspec.structs import replace

from translation import plain, toolsets
from translation.deferred import available, spoken
from translation.effort import changed
from translation.legal import is_acceptable
from translation.outline import ANSWERED, ASKED, Outline, outline, outlines
from translation.providers.profile import Profile
from translation.results import Call, answered, demoted, is_blank
from translation.tool_changes import told
from translation.tool_limit import within
from translation.values import (
    Block,
    Document,
    Image,
    Message,
    Note,
    Origin,
    Other,
    RedactedThinking,
    Request,
    SearchResult,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

OPENER = Message("user", (Text("(earlier messages are not available)"),))
NO_CONTENT = Text("(no content)")


def repair(request: Request, profile: Profile) -> tuple[Request, tuple[Note, ...]]:
    """The request in legal form and what had to be done for it; the same object when that was nothing."""
    if not request.tools and len(request.messages) == 1 and _is_plain(request.messages[0]):
        return request, ()
    notes: list[Note] = []
    native = profile.dialect == "anthropic"
    given: Sequence[Message] = request.messages
    first, efforts = 0, False
    tools = request.tools
    if not native:
        tools = within(toolsets.offered(available(request, notes)), profile.tool_limit, request, notes)
    if not native and ("system" in request.roles or Other in request.kinds):
        given, first, efforts = _spoken_to_all(request.messages, profile, notes)
    if first:
        what = f"messages.{first}: a summary stands for the {first} messages before it, which were left out"
        notes.append(Note("repair", "compacted", what, message=first))
    if tools is not request.tools and any(tool.toolset for tool in tools):
        given = [toolsets.called(message) for message in given]
    messages = tuple(_Repair(request, notes, profile).run(given, first))
    if efforts:
        request = replace(request, effort=changed(request.messages, request.effort))
    if tools is not request.tools:
        choice = toolsets.chosen(request.tool_choice, tools)
        request = replace(request, tools=tools, tool_choice=choice, raw_tools=b"")
    if len(messages) == len(request.messages) and all(map(is_, messages, request.messages)):
        return request, tuple(notes)
    return replace(request, messages=messages), tuple(notes)


def _is_plain(message: Message) -> bool:
    """Whether it is a user's, and legal in itself everywhere."""
    return message.role == "user" and outline(message).answered == () and Other not in message.kinds


def _spoken_to_all(
    messages: tuple[Message, ...], profile: Profile, notes: list[Note]
) -> tuple[list[Message], int, bool]:
    """The messages with system messages as the target takes them, where a summary lets them begin, and whether one
    of them sets the effort."""
    given, first, efforts = list(messages), 0, False
    for index, message in enumerate(messages):
        if message.role == "system":
            given[index] = (
                told(message, profile) if profile.mid_system else reminder(told(message, profile), index, notes)
            )
            efforts = efforts or bool(message.effort)
        elif message.blocks and type(message.blocks[0]) is Other and message.blocks[0].type == "compaction":
            if plain.compacted(message.blocks[0]):
                first = index
            else:
                what = f"messages.{index}: a compaction that failed, which says nothing, was left out"
                notes.append(Note("repair", "empty-dropped", what, message=index))
                given[index] = replace(message, blocks=message.blocks[1:], raw=b"")
    return given, first, efforts


class _Repair:
    """Walks over the runs of equal roles. What an answer called is open until the user turn after it."""

    def __init__(self, asked: Request, notes: list[Note], profile: Profile) -> None:
        self._asked = asked
        self._notes = notes
        self._profile = profile
        self._native = profile.dialect == "anthropic"
        self._used: set[str] = set()  # tool ids of all calls so far
        self._open: tuple[Call, ...] = ()
        self._held: list[Message] = []  # system messages that stood between a call and its result
        self._outlines: list[Outline] = []  # of all messages, once they are asked for

    def run(self, messages: Sequence[Message], start: int) -> list[Message]:
        out: list[Message] = []
        spoke = False  # whether anything but system messages has come
        while start < len(messages):
            if spoke and (end := self._legal(messages, start)) > start:
                out += messages[start:end]
                start = end
                continue
            role, end = messages[start].role, _end(messages, start)
            if role == "user" and self._open:
                end = self._answered_at(messages, end)
            group = messages[start:end]
            if role == "system":
                out += self._system(start, group)
            elif role == "user":
                out += self._user(start, group)
            else:
                out += self._interrupted(start)
                if not spoke and not (self._native and _is_summary(group[0])):
                    self._note("opener", start, "an answer came first: a user message was put before it")
                    out.append(OPENER)
                out += self._assistant(start, group, last=end == len(messages))
            spoke = spoke or role != "system"
            start = end
        out += self._interrupted(len(messages))
        if not spoke:
            self._note("opener", 0, "nobody spoke: a user message was added")
            out.append(OPENER)
        return out

    def _legal(self, messages: Sequence[Message], start: int) -> int:
        """Where the answers end that can stay as they are, each with the one user message after it: most of them."""
        last, end = len(messages) - 1, start
        if self._open or start >= last:
            return start
        if not self._outlines:
            self._outlines = outlines(self._asked) if messages is self._asked.messages else outline.all(messages)
            end = self._all_legal(start)
        used, known = self._used, self._outlines
        while end < last:
            ids = known[end].asked
            if ids is None or ids != known[end + 1].answered or not used.isdisjoint(ids):
                break
            used.update(ids)
            end += 2
        if start < end <= last and messages[end].role == "user":  # which becomes one with the user message before it
            end -= 2
            used.difference_update(known[end].asked or ())
        return end

    def _all_legal(self, start: int) -> int:
        """The same where they go on to the end, as nearly always: without a step for each."""
        left = self._outlines[start:]
        replies = [*map(ANSWERED, left[1::2])]
        asks = [*map(ASKED, left[: 2 * len(replies) : 2])]
        ids = [*chained.from_iterable(filter(None, asks))]
        if None in asks or asks != replies or len(set(ids)) < len(ids) or not self._used.isdisjoint(ids):
            return start
        self._used.update(ids)
        return start + 2 * len(replies)

    def _system(self, start: int, group: Sequence[Message]) -> list[Message]:
        """What can stay where it is: while a call waits for its result, nothing can."""
        messages = [heard for index, message in enumerate(group, start) for heard in self._heard(index, message)]
        if not self._open or not messages:
            return messages
        self._held += messages
        self._note("system-moved", start, "a system message stood between a call and its result")
        return []

    def _heard(self, index: int, message: Message) -> Iterator[Message]:
        """A system message without empty texts; none when nothing else is in it.

        One that changes the effort from there on says nothing, and is Anthropic's to read.
        """
        blocks = tuple(block for block in message.blocks if type(block) is not Text or not is_blank(block))
        if (blocks and len(blocks) == len(message.blocks)) or (self._native and (message.options or message.effort)):
            yield message
            return
        self._note("empty-dropped", index, "an empty text of a system message was left out")
        if blocks:
            yield replace(message, blocks=blocks, raw=b"")

    def _answered_at(self, messages: Sequence[Message], end: int) -> int:
        """Where the user turn ends that begins here: system messages may stand between the results of a batch."""
        waiting = {call.id for call in self._open}
        for index in range(end, len(messages)):
            if messages[index].role == "assistant":
                break
            if not waiting.isdisjoint(outline(messages[index]).named):
                end = index + 1
        return end

    def _user(self, start: int, group: Sequence[Message]) -> Iterator[Message]:
        if told := [message for message in group if message.role == "system"]:
            self._system(start, told)
            group = [message for message in group if message.role == "user"]
        if self._native and is_acceptable(group, self._open):
            yield from group
        elif not self._open and len(group) == 1 and outline(group[0]).answered == ():
            yield group[0]
        else:
            yield self._rewritten(start, group)
        self._open = ()
        yield from self._release()

    def _rewritten(self, index: int, messages: Sequence[Message]) -> Message:
        alone = len(messages) == 1
        blocks = messages[0].blocks if alone else tuple([block for each in messages for block in each.blocks])
        legal = answered(blocks, self._open, index, self._notes)
        legal = tuple([self._spoken(block, index) for block in legal])
        if not legal:
            self._note("placeholder", index, "the message was empty")
            legal = (NO_CONTENT,)
        if alone:
            return messages[0] if _unchanged(legal, blocks) else replace(messages[0], blocks=legal, raw=b"")
        self._note("merged", index, f"{len(messages)} user messages in a row became one")
        return Message("user", legal)

    def _interrupted(self, index: int) -> Iterator[Message]:
        """Answers the open calls where no user message did."""
        if self._open:
            yield Message("user", answered((), self._open, index, self._notes))
            self._open = ()
            yield from self._release()

    def _release(self) -> Iterator[Message]:
        held, self._held = self._held, []
        yield from held

    def _assistant(self, start: int, group: Sequence[Message], *, last: bool) -> Iterator[Message]:
        calls: list[Call] = []
        messages = [self._cleaned(index, message, calls) for index, message in enumerate(group, start)]
        messages = [message for message in messages if message.blocks]
        self._open = tuple(calls)
        if not any(_is_visible(block) for message in messages for block in message.blocks):
            if last:
                self._note("empty-dropped", start, "the last answer was empty")
                return
            self._note("placeholder", start, "the answer was empty")
            messages.append(Message("assistant", (NO_CONTENT,), origin=group[-1].origin))
            yield joined(messages, self._notes, start)
        elif self._native or len(messages) == 1:
            yield from messages
        else:
            self._note("merged", start, f"{len(messages)} answers in a row became one")
            yield joined(messages, self._notes, start)

    def _cleaned(self, index: int, message: Message, calls: list[Call]) -> Message:
        blocks: list[Block] = []
        repeated = False
        for block in message.blocks:
            if type(block) is ToolUse:
                call = self._unique(block, index)
                calls.append(Call(block.id, call.id))
                blocks.append(call)
                repeated = repeated or call is not block
            elif type(block) is ToolResult:
                self._note("result-in-answer", index, f"the result of {block.tool_use_id} became text")
                blocks += map(_worded, demoted(block))
            elif type(block) is Text and is_blank(block):
                self._note("empty-dropped", index, "an empty text was left out")
            elif isinstance(block, Image | Document | SearchResult):
                self._note("file-in-answer", index, f"a {type(block).__name__} in an answer became text")
                blocks.append(_worded(block))
            else:
                blocks.append(self._spoken(block, index))
        if not message.blocks:
            self._note("empty-dropped", index, "the answer was empty")
        legal = tuple(blocks)
        if _unchanged(legal, message.blocks):
            return message
        return replace(
            message, blocks=legal, raw=b"", origin=_stateless(message.origin) if repeated else message.origin
        )

    def _spoken(self, block: Block, index: int) -> Block:
        said = block if self._native and type(block) is ToolResult else spoken(block, self._profile)
        if said is not block:
            self._note("reference-worded", index, "a tool reference became text")
        return said

    def _unique(self, call: ToolUse, index: int) -> ToolUse:
        """An id that an earlier call bears gets a number behind it. Its state goes back with the earlier one only."""
        id_, count = call.id, 1
        while id_ in self._used:
            count += 1
            id_ = f"{call.id}_{count}"
        self._used.add(id_)
        if id_ == call.id:
            return call
        self._note("id-repeated", index, f"{call.id} names an earlier call, too: {id_} here")
        return replace(call, id=id_, link=None)

    def _note(self, rule: str, index: int, what: str) -> None:
        self._notes.append(Note("repair", rule, f"messages.{index}: {what}", message=index))


def joined(messages: list[Message], notes: list[Note], index: int) -> Message:
    """One answer made of several. Thinking stays only if one upstream made them all; their message state cannot."""
    if len(messages) == 1:
        return messages[0]
    blocks = tuple(block for message in messages for block in message.blocks)
    first = messages[0].origin
    origins = {message.origin for message in messages}
    if len(origins) == 1:
        return Message("assistant", blocks, origin=first)
    if first is not None and len({origin.upstream if origin else "" for origin in origins}) == 1:
        return Message("assistant", blocks, origin=_stateless(first))
    spoken_blocks = tuple(block for block in blocks if not isinstance(block, Thinking | RedactedThinking))
    if len(spoken_blocks) < len(blocks):
        what = f"messages.{index}: thinking of answers by different models, now one message, was left out"
        notes.append(Note("repair", "thinking-dropped", what, message=index))
    return Message("assistant", spoken_blocks)


def reminder(message: Message, index: int, notes: list[Note]) -> Message:
    """A system message for who takes none there."""
    notes.append(
        Note("repair", "system-in-place", f"messages.{index}: a system message became a reminder", message=index)
    )
    blocks = tuple(
        Text(f"<system-reminder>\n{block.text}\n</system-reminder>") if type(block) is Text else block
        for block in message.blocks
        if type(block) is not Text or not is_blank(block)
    )
    return Message("user", blocks)


def _stateless(origin: Origin | None) -> Origin | None:
    return replace(origin, state=b"") if origin is not None else None


def _worded(block: Block) -> Block:
    """What only a user message can hold, as text."""
    if isinstance(block, Text):
        return block
    return Text(plain.join((block,)) or "[left out: an answer cannot hold it]")


def _end(messages: Sequence[Message], start: int) -> int:
    """Where the run of messages of one role that begins at `start` ends."""
    end = start + 1
    while end < len(messages) and messages[end].role == messages[start].role:
        end += 1
    return end


def _is_summary(message: Message) -> bool:
    """Whether it begins with what the API made of the messages before it, which it wants back as the first."""
    return any(type(block) is Other and block.type == "compaction" for block in message.blocks[:1])


def _is_visible(block: Block) -> bool:
    return not isinstance(block, Thinking | RedactedThinking)


def _unchanged(one: tuple[Block, ...], other: tuple[Block, ...]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))

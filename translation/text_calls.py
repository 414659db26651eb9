"""Tool calls that a server leaves in the text of an answer, between tags, because nobody told it how its model calls,
or because its model did not keep to that.

Text is held back only where it may be a tag or a call. What is between the tags and is no call of an offered tool stays
text, and so does what is quoted: who explains how models call does not call, nor does who goes on to speak behind a
call that lacks the tag around it. The calls come at the answer's end: by then it is known whether the server has told
them beside the text as well. Where it has nothing else, they may be what its reasoning ends with: models begin to call
before they have closed it, and servers look for calls behind it only (vLLM's issue 39056, SGLang's 11764).
"""

import re

from msgspec.structs import replace

from translation.adapter import Around, Decoder, UpstreamRequest
from translation.events import Event, Failed, Finished, TextDelta, ThinkingDelta, ToolEnded, ToolStarted
from translation.offered import OfferedTools
from translation.quoting import Quoting
from translation.twins import Twins
from translation.values import Request
from translation.written_calls import FUNCTION, TAGS, WRAP, WRAPPED, Written, may_begin, read

OPENING = re.compile("|".join(map(re.escape, TAGS)))
CLOSING = re.compile("|".join(map(re.escape, TAGS.values())))
LAYOUT = re.compile(rf"\A(?:\s|{CLOSING.pattern})++")
ALL = (*TAGS, *TAGS.values())
LONGEST = max(map(len, ALL))
EDGE = re.compile("[<\\]]")  # how a tag begins
HEAD = 256  # characters that tell whether a call begins: more than any tool's name has
LEAST = 5  # characters of an opening tag that are no text, if the call itself comes beside them
ENDS = 8  # closing tags that a call may have: its arguments may talk about them
WHOLE = ("stop", "tool_use")  # reasons that cut nothing off
READ = "{}: a call that came in the text was read"
TWICE = "{}: a call that came both in the text and beside it was told once"
CUT = "a tool call in the text, which the token limit cut off, was left out"


def in_text(decoder: Decoder, request: Request, sent: UpstreamRequest) -> Decoder:
    """The decoder itself where the model has nothing to call."""
    forbidden = request.tool_choice is not None and request.tool_choice.kind == "none"
    tools = OfferedTools(request, sent)
    return TextCalls(decoder, tools) if tools.names and not forbidden else decoder


class TextCalls(Around):
    def __init__(self, decoder: Decoder, tools: OfferedTools) -> None:
        super().__init__(decoder)
        self._tools = tools
        self._held: list[str] = []  # may be an opening tag, or a call from its opening tag on
        self._size = 0
        self._tail = ""  # of what is held: a closing tag may come in pieces
        self._closing = ""  # the one that is waited for
        self._blank = ""  # white space around calls is layout
        self._said = False
        self._behind = False  # a call that came beside the text: its server may leave closing tags there
        self._quoting = Quoting()
        self._found: list[Written] = []
        self._bare = ""  # calls without a tag around them: words behind them tell that they are none
        self._sure = 0  # how many were found before those
        self._explains = False  # it has told of the tag, so that it knows it
        self._twins = Twins()
        self._thoughts: list[str] = []
        self._names: dict[int, str] = {}  # of calls: those that came beside the text, by the numbers that they have

    def _passed(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._text(text, out)
                case Finished():
                    self._finish(event, out)
                case Failed():
                    out.append(event)  # what is held back was not shown: the answer may be asked for again
                case _:
                    self._beside(event, out)
        return out

    def _beside(self, event: Event, out: list[Event]) -> None:
        held = self._released()
        self._say("" if isinstance(event, ToolStarted) and _is_tag(held.strip()) else held, out)
        if isinstance(event, ThinkingDelta):
            self._thoughts.append(event.text)
        elif isinstance(event, ToolStarted):
            self._names[event.call], self._behind = event.name, True
        elif isinstance(event, ToolEnded):
            self._twins.has("parsed", self._names[event.call], event.arguments)
        out.append(event)

    # ------------------------------------------------------------ text

    def _text(self, text: str, out: list[Event]) -> None:
        """Reads what is held anew only when that may tell: a long call comes in many pieces."""
        if not self._size and "<" not in text and "]" not in text:
            self._say(text, out)
            return
        seen = self._tail + text
        if self._size <= HEAD or self._closing in seen:
            self._read(self._released() + text, out)
        else:
            self._hold(text)

    def _read(self, text: str, out: list[Event]) -> None:
        said = place = 0  # up to where the text was said, and read
        while (opening := OPENING.search(text, place)) is not None:
            place = opening.end()
            if not may_begin(opening[0], text[place : place + HEAD], self._tools.names):
                continue
            self._say(text[said : opening.start()], out)
            said = opening.start()
            if self._quoting.quotes or (opening[0] == FUNCTION and self._explains):
                continue
            calls, place = self._ended(text, opening)
            if not place:
                self._closing = TAGS[opening[0]]
                self._hold(text[said:])
                return
            if calls:
                self._take(calls, opening[0], text[opening.start() : place])
                said = place
        kept = _begun(text[place:])
        self._say(text[said : len(text) - kept], out)
        self._hold(text[len(text) - kept :])

    def _ended(self, text: str, opening: re.Match[str]) -> tuple[list[Written], int]:
        """The calls that begin there, if they are some, and where to read on; 0 if their end has not come."""
        tag, end = TAGS[opening[0]], opening.end()
        for _ in range(ENDS):
            closing = text.find(tag, end)
            if closing < 0:
                return [], 0
            end = closing + len(tag)
            if calls := read(opening[0], text[opening.end() : closing], self._tools):
                return (calls if self._offers(calls) else []), end
        return [], end

    def _take(self, calls: list[Written], tag: str, written: str) -> None:
        self._found += calls
        if tag == FUNCTION:
            self._bare += self._blank + written
            self._blank = ""
        else:
            self._bare, self._sure = "", len(self._found)

    def _offers(self, calls: list[Written]) -> bool:
        return all(call.name in self._tools.names for call in calls)

    def _hold(self, text: str) -> None:
        self._held.append(text)
        self._size += len(text)
        self._tail = (self._tail + text)[1 - LONGEST :]

    def _released(self) -> str:
        held = "".join(self._held)
        self._held, self._size, self._tail = [], 0, ""
        return held

    def _say(self, text: str, out: list[Event]) -> None:
        self._quoting.heard(text)
        text, self._blank = self._blank + text, ""
        if self._behind:
            text = LAYOUT.sub(lambda layout: CLOSING.sub("", layout[0]), text)
        if self._bare and not text.replace(WRAP, "").strip():
            self._bare += text
        elif text.isspace() and (self._found or self._behind or not self._said):
            self._blank = text
        elif text:
            del self._found[self._sure :]
            text, self._bare = self._bare + text, ""
            self._said, self._explains, self._behind = True, self._explains or WRAPPED in text, False
            out.append(TextDelta(text))

    # ------------------------------------------------------------ the end

    def _finish(self, finished: Finished, out: list[Event]) -> None:
        notes: list[str] = []
        held = self._released()
        if (opening := OPENING.match(held)) is not None:
            calls = read(opening[0], held[opening.end() :], self._tools)  # some models leave the closing tag out
            if calls and self._offers(calls):
                self._take(calls, opening[0], held)
                held = ""
            elif finished.reason == "length":
                notes.append(CUT)
                held = ""
        self._say(held, out)
        if not (self._said or self._found or self._names) and finished.reason in WHOLE:
            self._found = self._thought("".join(self._thoughts))
        if self._blank and not self._found and not self._names:
            out.append(TextDelta(self._blank))
        state = b"" if self._names else finished.state  # as ever, the first call carries it
        for call in self._found:
            notes.append(self._write(call, state, out))
            state = b""
        out.append(replace(finished, notes=(*finished.notes, *notes)) if notes else finished)

    def _thought(self, text: str) -> list[Written]:
        """The calls that it ends with. What stands before other words is a draft."""
        found: list[Written] = []
        text = text.rstrip()
        while (tag := next((tag for tag, closing in TAGS.items() if text.endswith(closing)), None)) is not None:
            start = text.rfind(tag)
            calls = read(tag, text[start + len(tag) : -len(TAGS[tag])], self._tools) if start >= 0 else []
            if not calls or not self._offers(calls):
                break
            found, text = calls + found, text[:start].rstrip()
        return found

    def _write(self, call: Written, state: bytes, out: list[Event]) -> str:
        name = self._tools.client(call.name)
        if self._twins.has("written", name, call.arguments):
            return TWICE.format(name)
        number = max(self._names, default=-1) + 1
        self._names[number] = name
        out.append(ToolStarted(number, name, upstream_name=call.name))
        out.append(ToolEnded(number, call.arguments, state))
        return READ.format(name)


def _is_tag(text: str) -> bool:
    """Whether it is an opening tag, or a beginning of one, and nothing else."""
    return len(text) >= LEAST and any(tag.startswith(text) for tag in TAGS)


def _begun(text: str) -> int:
    """How much of the text's end is a beginning of a tag."""
    for edge in EDGE.finditer(text, max(0, len(text) - LONGEST)):
        rest = text[edge.start() :]
        if any(tag.startswith(rest) for tag in ALL):
            return len(rest)
    return 0

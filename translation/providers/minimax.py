"""MiniMax through TabbyAPI, vLLM or SGLang: chat completions on the wire, the model's own markup inside.

Requests are the chat dialect's, with switches in the profile for what the model's template wants. Answers are its
chunks, and the text in them is read once more: servers that do not parse it leave thinking and calls there.
"""

from typing import Literal

import msgspec
from msgspec.structs import replace

from translation.adapter import Around, Decoder, Target, UpstreamRequest
from translation.errors import UpstreamProtocolError
from translation.events import (
    Event,
    Failed,
    Finished,
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
)
from translation.fences import unfenced
from translation.invocations import Invocation
from translation.markup import Found, Markup
from translation.markup_tags import M2, M3
from translation.offered import OfferedTools
from translation.providers.openai_chat import OpenAIChat
from translation.twins import Twins
from translation.values import Request

UNCLOSED = "the answer had no end of its thinking and nothing after it: its text was repeated as the answer"
CLOSING = ("</think>", "</mm:think>")
CUT = "a tool call that the token limit cut off was left out"
BROKEN = "the upstream's answer ended inside a tool call"
TWICE = "{}: a call that came both in the text and beside it was told once"
MENTIONED = "a tool call that the reasoning began and did not end was left out"

Channel = Literal["", "content", "reasoning", "call"]  # where text comes in; "" before any


class MiniMax(OpenAIChat):
    """The chat dialect, its answers read once more."""

    def decoder(self, request: Request, target: Target, sent: UpstreamRequest, content_type: str) -> Decoder:
        decoder = MiniMaxDecoder(super().decoder(request, target, sent, content_type), request, target, sent)
        return unfenced(decoder, sent) if request.output_schema or request.extras else decoder


class MiniMaxDecoder(Around):
    """The chat decoder's events, with what the text in them says."""

    def __init__(self, chat: Decoder, request: Request, target: Target, sent: UpstreamRequest) -> None:
        super().__init__(chat)
        self._tools = OfferedTools(request, sent)
        self._profile = target.profile
        self._grammar = M3 if target.profile.markup == "m3" else M2
        self._verbatim = target.profile.thinking_style == "verbatim"
        self._whole: bool | None = None  # the answer is one JSON object; None until its first byte came
        self._channel: Channel = ""
        self._blank = ""  # white space before any content: reasoning may still come in a field of its own
        self._markup: Markup | None = None  # reads the channel
        self._guessed = False  # the content was taken for thinking, since the prompt opens it
        self._calls = 0
        self._numbers: dict[int, tuple[int, ToolStarted]] = {}  # the chat decoder's number of a call -> ours, and it
        self._twins = Twins()
        self._held: dict[int, ToolStarted] = {}  # calls beside the text that may be in it, too
        self._doubtful: list[tuple[Invocation, str]] = []  # the other way round, with their arguments
        self._thoughts: list[str] = []
        self._visible = False  # text or a call went out
        self._notes: list[str] = []
        self._broken = False  # a call in the content did not end
        self._stated = False  # the state went out with a call

    def feed(self, chunk: bytes) -> list[Event]:
        if self._whole is None and chunk.strip():
            self._whole = chunk.lstrip()[:1] in (b"{", b"[")
        return super().feed(chunk)

    def _passed(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if type(event) is TextDelta:
                self._content(event.text, out)
            elif type(event) is ThinkingDelta:
                self._text("reasoning", event.text, out)
            else:
                self._other(event, out)
        return out

    def _other(self, event: Event, out: list[Event]) -> None:
        match event:
            case ToolStarted():
                self._before_call(out)
                if self._twins.expects("parsed", event.name):
                    self._held[event.call] = event
                else:
                    self._start(event, out)
            case ToolArguments():
                pass  # their types may change, so they go out whole
            case ToolEnded():
                self._end(event, out)
            case ToolDropped():
                self._release(event.call, out)
                out.append(ToolDropped(self._numbers.pop(event.call)[0]))
            case Finished():
                self._finish(event, out)
            case _:
                out.append(event)

    # ------------------------------------------------------------ text

    def _content(self, text: str, out: list[Event]) -> None:
        if self._channel != "content":
            text, self._blank = self._blank + text, ""
            if text.isspace():
                self._blank = text
                return
        self._text("content", text, out)

    def _text(self, channel: Channel, text: str, out: list[Event]) -> None:
        if self._channel != channel or self._markup is None:
            thinking = channel == "reasoning" or self._begins_inside(text)
            self._leave(out, before_text=channel == "content")
            self._markup = Markup(
                self._grammar,
                self._tools.names,
                parameters=self._tools.parameters,
                thinking=thinking,
                thought=self._channel != "" and not thinking,
                verbatim=self._verbatim,
            )
            self._channel = channel
        self._found(self._markup.feed(text), out)

    def _begins_inside(self, text: str) -> bool:
        """Whether content is thinking at first. A whole answer tells: without an end of it there is none."""
        if self._channel or not self._profile.opens_think:
            return False
        self._guessed = not self._whole or any(tag in text for tag in CLOSING)
        return self._guessed

    def _leave(self, out: list[Event], *, cut: bool = False, before_text: bool = False) -> None:
        """Nothing more comes in this channel for now."""
        if self._markup is None:
            return
        self._found(self._markup.close(cut=cut), out)
        if self._markup.dropped:
            self._notes.append(CUT)
        if self._markup.broken and self._channel == "reasoning":
            self._notes.append(MENTIONED)
        elif self._markup.broken:
            self._broken = True
        if self._verbatim and self._channel == "reasoning":
            out.append(TextDelta("\n</think>\n\n" if before_text else "\n</think>"))

    def _found(self, found: list[Found], out: list[Event]) -> None:
        for item in found:
            if isinstance(item, ThinkingDelta):
                self._thoughts.append(item.text)
                out.append(item)
            elif isinstance(item, TextDelta):
                self._visible = True
                out.append(item)
            else:
                self._invoke(item, out)

    # ------------------------------------------------------------ calls and the end

    def _invoke(self, call: Invocation, out: list[Event]) -> None:
        self._visible = True
        arguments = self._tools.schema(call.name).typed(call.parameters)
        name = self._tools.client(call.name)
        if any(started.name == name for _, started in self._numbers.values()):
            self._doubtful.append((call, arguments))  # until the arguments of that one are known
        else:
            self._write(call, arguments, out)

    def _write(self, call: Invocation, arguments: str, out: list[Event]) -> None:
        name = self._tools.client(call.name)
        if self._twins.has("written", name, arguments):
            self._notes.append(TWICE.format(name))
            return
        out.append(ToolStarted(self._calls, name, upstream_name=call.name))
        out.append(ToolEnded(self._calls, arguments, self._state_once()))
        self._calls += 1

    def _start(self, event: ToolStarted, out: list[Event]) -> None:
        self._numbers[event.call] = self._calls, event
        out.append(replace(event, call=self._calls))
        self._calls += 1

    def _release(self, call: int, out: list[Event]) -> None:
        if (held := self._held.pop(call, None)) is not None:
            self._start(held, out)

    def _end(self, event: ToolEnded, out: list[Event]) -> None:
        started = self._held.get(event.call) or self._numbers[event.call][1]
        arguments = self._tools.schema(started.upstream_name).retyped(event.arguments)
        told = self._twins.has("parsed", started.name, arguments)
        if told and self._held.pop(event.call, None) is not None:
            self._notes.append(TWICE.format(started.name))
            return
        self._release(event.call, out)
        out.append(ToolEnded(self._numbers.pop(event.call)[0], arguments, self._state_once()))

    def _before_call(self, out: list[Event]) -> None:
        """A call that the server parsed: thinking is over, white space before it is layout."""
        self._visible = True
        if self._channel == "content" and self._markup is not None:
            self._markup.interrupt()
        else:
            self._leave(out)
            self._channel, self._markup = "call", None

    def _finish(self, finished: Finished, out: list[Event]) -> None:
        self._leave(out, cut=finished.reason not in ("stop", "tool_use"))
        if self._broken or (self._markup is not None and self._markup.broken):
            out.append(Failed(UpstreamProtocolError(BROKEN)))
            return
        for call, arguments in self._doubtful:
            self._write(call, arguments, out)
        unclosed = self._guessed and self._markup is not None and not self._markup.thought
        if unclosed and not self._visible and finished.reason != "length":
            out.append(TextDelta("".join(self._thoughts)))
            self._thoughts = []
            self._notes.append(UNCLOSED)
        out.append(replace(finished, state=self._state(), notes=(*finished.notes, *self._notes)))

    def _state(self) -> bytes:
        """As the chat dialect keeps it, which gives it back; in the verbatim style the client's text holds it."""
        if self._profile.replay_reasoning == "never" or not self._thoughts:
            return b""
        return msgspec.json.encode({"reasoning_content": "".join(self._thoughts)})

    def _state_once(self) -> bytes:
        stated, self._stated = self._stated, True
        return b"" if stated else self._state()

"""What the chunks of a chat answer mean, however they came.

Calls are told apart by index or, where servers leave that out or repeat it, by id and name. Their arguments are
complete when the upstream says that it is finished, not before.
"""

from msgspec import Raw, Struct, field

from translation.adapter import Ending
from translation.channels import Found, Fragment
from translation.errors import BridgeError, TruncatedStream, UpstreamProtocolError
from translation.events import Event, Failed, Finished, Reason, TextDelta, ThinkingDelta
from translation.providers.openai_chat_calls import Calls
from translation.providers.openai_chat_carried import Carried
from translation.providers.openai_chat_echo import NOTHING_SAID, Said, news, speaks, untold
from translation.providers.openai_chat_images import pictured
from translation.providers.openai_chat_search import citations
from translation.providers.openai_chat_state import EMPTY, State, write
from translation.providers.openai_chat_wire import (
    GAVE_UP,
    REASONS,
    Call,
    Choice,
    Chunk,
    Counts,
    Delta,
    Part,
    finish_word,
    first,
    heed,
    usage_of,
    words,
)
from translation.think_text import ThinkText, opened
from translation.unicode import Halves
from translation.values import Usage

IMAGES = ("image", "image_url", "output_image")


class ChatAnswer(Ending, Struct, eq=False):
    """One answer. `Finished` comes once the upstream has told its reason and its usage, or when its stream ends."""

    _calls: Calls
    _thinks: ThinkText | None
    _stops: tuple[str, ...]
    _replays: bool  # reasoning goes back
    _own_field: str  # of reasoning
    _halves: Halves = field(default_factory=Halves)
    _said: Said = field(default_factory=Said)
    _reasoning: list[str] = []
    _field: str = ""  # where it stood
    _carried: Carried = field(default_factory=Carried)
    _annotations: list[Raw] = []  # come before, in or after the text that they are about
    _shown: set[int] = set()  # of images
    _refusal: str = ""
    _reason: Reason | None = None
    _alone: bool = False  # it came in a chunk that said nothing else
    _sequence: str = ""
    _usage: Usage | None = None
    _model: str = ""
    _notes: tuple[str, ...] = ()
    _answered: bool = False  # a choice was seen
    _in_messages: bool = False  # what is said comes as `message`, not as `delta`
    _over: bool = False

    # ------------------------------------------------------------ chunks

    def _chunk(self, chunk: Chunk, out: list[Event]) -> None:
        counts = chunk.usage
        choice = chunk.choices[0] if chunk.choices else None
        if choice is not None and choice.index:
            choice = first(chunk.choices or [])  # others were not asked for
        if choice is not None:
            counts = counts or choice.usage
            self._choice(choice, out)
        if chunk.model:
            self._model = chunk.model
        if counts is not None:
            self._count(counts, out, alone=not chunk.choices)

    def _choice(self, choice: Choice, out: list[Event]) -> None:
        self._answered = True
        if choice.message is not None and not speaks(choice.delta):
            choice.delta = None  # an empty one beside it
        delta = choice.delta
        if (said := delta or choice.message) is not None and said.annotations:
            self._annotations.append(said.annotations)
        if self._reason is not None:
            delta = self._news(delta)
        elif delta is None:
            delta = self._whole(choice)
        if delta is not None:
            self._delta(delta, out, whole=choice.delta is None)
        if (choice.finish_reason or choice.error) and (self._reason is None or delta is not None):
            self._finish(choice)

    def _whole(self, choice: Choice) -> Delta | None:
        if choice.message is not None:
            return self._message(choice.message)
        return Delta(content=choice.text) if choice.text else None

    def _count(self, counts: Counts, out: list[Event], *, alone: bool) -> None:
        """Behind a choice more may follow, whatever its reason: only counts that come alone are the last word."""
        told = usage_of(counts)
        self._usage = told or self._usage
        self.ending = self._reason is not None
        if self.ending and told is not None and alone:
            self._end(out, done=True)

    @property
    def _spoken(self) -> bool:
        """Who tells a reason and counts with every chunk begins with one that only names the role."""
        return bool(self._said.anything or self._reasoning or self._calls.begun or self._refusal)

    def _news(self, delta: Delta | None) -> Delta | None:
        """A reason that came with words is told with every chunk; after one that came alone words may be an echo."""
        if self._alone:
            return news(delta, self._said, "".join(self._reasoning), self._carried, self._calls)
        return news(delta, NOTHING_SAID, "", self._carried, self._calls)

    def _message(self, message: Delta) -> Delta:
        """The whole of an answer; a delta, where a server calls them so from the first; after deltas what they left."""
        carried = self._carried.anything
        if self._in_messages or not (self._spoken or carried):
            self._in_messages = True
            return message
        thought = bool(self._reasoning or self._carried.details)
        return untold(message, self._said.anything, thought, bool(self._refusal), self._calls.begun, carried)

    def _delta(self, delta: Delta, out: list[Event], *, whole: bool) -> None:
        thought = delta.reasoning_content or delta.reasoning or delta.reasoning_text
        if thought:
            told = "reasoning_content" if delta.reasoning_content else "reasoning_text"
            self._field = "reasoning" if delta.reasoning else told  # who writes both reads that
            self._think(words(thought), out)
        signed = (
            delta.thinking_blocks or delta.reasoning_opaque or delta.extra_content or delta.provider_specific_fields
        )
        if signed or delta.reasoning_details:
            told = self._carried.feed(delta, whole=whole)
            if not thought and (delta.reasoning_details or not self._field):
                self._think(told, out)
        content = delta.content
        if content:
            if isinstance(content, str):
                self._say(opened(content) if whole and self._thinks is not None else content, out)
            else:
                self._parts(content, out)
        if delta.images:
            self._show(delta.images, out)
        if delta.refusal:
            self._refusal += delta.refusal
        if delta.tool_calls:
            self._called(delta.tool_calls, out, whole=whole)
        elif delta.function_call is not None:  # llama-cpp-python tells each call in both ways
            self._calls.feed(Call(index=0, function=delta.function_call), out, whole=False)

    def _show(self, images: list[Raw], out: list[Event]) -> None:
        """Each once: a stream may tell them again in its last message."""
        for image in images:
            if (known := hash(bytes(image))) not in self._shown:
                self._shown.add(known)
                self._say(f"\n{pictured(image)}" if self._said.anything else pictured(image), out)

    def _say(self, text: str, out: list[Event]) -> None:
        self._said.add(text)
        if self._thinks is None:
            out.append(TextDelta(text))
        else:
            self._read(self._thinks.feed(text), out)

    def _called(self, calls: list[Call], out: list[Event], *, whole: bool) -> None:
        if self._thinks is not None:
            self._read(self._thinks.close(), out)
        self._cite(out)
        for call in calls:
            self._calls.feed(call, out, whole=whole)

    def _cite(self, out: list[Event]) -> None:
        if self._annotations:
            out += citations(self._annotations)
            self._annotations = []

    def _read(self, found: list[Found], out: list[Event]) -> None:
        for piece in found:
            if isinstance(piece, ThinkingDelta):
                self._think(piece.text, out)
            elif isinstance(piece, Fragment):
                self._calls.write(piece.name, piece.text, out)
            else:
                out.append(piece)

    def _think(self, text: str, out: list[Event]) -> None:
        if text:
            self._reasoning.append(text)
            out.append(ThinkingDelta(text))

    def _parts(self, parts: list[Part], out: list[Event]) -> None:
        for part in parts:
            if thought := part.thinking or part.summary:
                self._think(words(thought), out)
            if part.text:
                self._say(part.text, out)
            elif part.image_url or part.type in IMAGES:
                self._show([Raw(b'{"image_url":%b}' % (bytes(part.image_url) or b"null"))], out)
            self._refusal += part.refusal or ""

    # ------------------------------------------------------------ the end

    def _finish(self, choice: Choice) -> None:
        told = choice.finish_reason or ""
        if told not in REASONS:
            told = finish_word(told)
        if told in ("", "null", "none"):
            heed(choice.error)
            return
        if told in GAVE_UP:
            heed(choice.error)
            raise GAVE_UP[told](f"the upstream gave up: finish_reason {told!r}")
        if told not in REASONS:
            raise UpstreamProtocolError(f"unknown finish_reason {choice.finish_reason!r}")
        self._reason, self._alone = REASONS[told], not speaks(choice.delta)
        self.ending = self._alone
        if self._stops:
            hits = (hit for hit in (choice.stop_reason, choice.matched_stop) if hit in self._stops)
            self._sequence = str(next(hits, ""))

    def _conclude(self, reason: Reason, out: list[Event]) -> Reason:
        if self._thinks is not None:
            self._read(self._thinks.close(), out)
        self._cite(out)
        if self._calls.begun:
            self._notes = self._calls.close(reason, self._state(), out)
        if self._refusal:
            return "refusal"
        return "stop_sequence" if reason == "stop" and self._sequence else reason

    def _end(self, out: list[Event], *, done: bool) -> None:
        if self._over:
            return
        if self._reason is None:
            if not done:
                what = "before a finish_reason" if self._answered else "without an answer"
                raise TruncatedStream(f"the upstream closed {what}")
            if not self._answered:
                raise UpstreamProtocolError("the upstream's answer holds no choices")
        if self._halves.open and self._calls.begun:
            raise UpstreamProtocolError("not a chat answer: a character of a tool call is not whole")
        told, self._reason = self._reason or "stop", None
        reason = self._conclude(told, out)
        self._over = True
        out.append(
            Finished(
                reason,
                self._usage,
                self._sequence if reason == "stop_sequence" else "",
                self._refusal,
                write(self._state()),
                self._model,
                self._notes,
            )
        )

    def _state(self) -> State:
        if not (self._carried.anything or (self._replays and self._reasoning)):
            return EMPTY
        thought = "".join(self._reasoning)
        fields = self._carried.fields(thought if self._field == "reasoning_text" else "")
        details = self._carried.merged_details
        if not self._replays:
            return State(reasoning_details=details, fields=fields)
        return State(thought, details, self._field if self._field != self._own_field else "", fields)

    def _fail(self, error: BridgeError, out: list[Event]) -> None:
        if self._reason is not None:
            try:
                self._end(out, done=True)  # the answer was complete; what came after it does not matter
            except BridgeError as worse:
                error = worse
            else:
                return
        self._over = True
        out.append(Failed(error))

"""MiniMax's answers as text: thinking, plain text, tool calls and template markers, told apart as they stream in.

A machine over text, cut anywhere: `feed` and `close`. Linear in its input. A tag never comes out as text, unless it is
part of a call to a tool that the request does not have, or stands where it means nothing: then it is what was written.
"""

from collections.abc import Callable
from typing import Literal

from translation.events import TextDelta, ThinkingDelta
from translation.invocations import Body, Ended, Invocation, Piece, PlainBody, QuotingBody, TreeBody
from translation.markup_tags import Grammar, Scanner, Tag

Found = TextDelta | ThinkingDelta | Invocation

CALL_STARTS = ("<minimax", "<invoke", "]<]mini")  # of a tag that the token limit cut


def any_parameter(tool: str) -> frozenset[str]:
    return frozenset()


class Markup:
    """`parameters` tells those that a tool has, none when it takes any.

    `thinking`: the answer begins inside its reasoning, for the prompt holds the opening tag.

    `thought`: it came apart from this text, so that its tags are text here.
    `verbatim` leaves the thinking in the text between its tags, and adds the opening tag where it is missing.
    Newlines around thinking and white space around calls are layout, and go with the tags.
    """

    def __init__(
        self,
        grammar: Grammar,
        tools: frozenset[str],
        *,
        parameters: Callable[[str], frozenset[str]] = any_parameter,
        thinking: bool = False,
        thought: bool = False,
        verbatim: bool = False,
    ) -> None:
        self._grammar = grammar
        self._scanner = Scanner(grammar)
        self._tools = tools
        self._parameters = parameters
        self._verbatim = verbatim
        self._thinking = thinking
        self._unopened = thinking and verbatim  # the opening tag is still to be written
        self._fresh = True  # nothing but white space since the start, a thinking tag or a call
        self._called = False  # nothing but white space since a call
        self._space: list[str] = []  # white space that goes if a call follows
        self._wrapper: Literal["", "held", "used", "shown"] = ""  # held: it is not clear yet whether it holds a call
        self._opening: list[str] = []  # the held wrapper's tag and the white space after it
        self._body: Body | None = None
        self._quotes = True  # values may quote calls
        self._strict = False
        self._out: list[Found] = []
        self.thought = thought  # the thinking is over
        self.dropped = False  # the token limit cut a call off
        self.broken = False  # the text ended inside a call that was meant to be whole

    def feed(self, text: str) -> list[Found]:
        for piece in self._scanner.feed(text):
            self._piece(piece)
        return self._taken()

    def close(self, *, cut: bool = False) -> list[Found]:
        """The answer is over; `cut`: the token limit ended it, so a call that is not complete must not be run."""
        pending = self._body is not None or self._wrapper == "held" or self._scanner.held.startswith(CALL_STARTS)
        if cut and pending:
            self.dropped = True
            return self._taken()
        if self._body is None and self._wrapper == "used" and self._called:
            self.broken = "<in" in self._scanner.held  # another call; else it is the wrapper's end that was cut
        else:
            for piece in self._scanner.close():
                self._piece(piece)
        while self._body is not None:
            self._strict = True
            ended = self._body.close()
            if ended is None:
                self._body, self.broken = None, True
            else:
                self._end(ended)
        if not self._fresh:
            self._emit("".join(self._space))
        return self._taken()

    def interrupt(self) -> None:
        """A call came beside the text: white space around it is layout."""
        self._space, self._fresh, self._called = [], True, True

    def _taken(self) -> list[Found]:
        out, self._out = self._out, []
        return out

    def _piece(self, piece: Piece) -> None:
        if self._body is not None:
            ended = self._body.feed(piece)
            if ended is not None:
                self._end(ended)
        elif isinstance(piece, str):
            self._say(piece)
        else:
            self._tag(piece)

    def _tag(self, tag: Tag) -> None:
        match tag.kind:
            case "think":
                self._think(tag)
            case "unthink":
                self._unthink(tag)
            case "wrap":
                self._show_wrapper()
                self._wrapper, self._opening = "held", [tag.raw]
            case "unwrap":
                self._unwrap(tag)
            case "invoke" if tag.name in self._tools:
                self._begin(tag)
            case "marker":
                pass
            case "uninvoke" | "unparam" if self._called:
                pass  # one closing tag too many
            case _:
                self._say(tag.raw)

    # ------------------------------------------------------------ calls

    def _begin(self, tag: Tag) -> None:
        self._space = []
        if self._wrapper == "held":
            self._wrapper, self._opening = "used", []
        if self._grammar.namespaced:
            self._body = TreeBody(tag.name)
        elif self._quotes and not self._strict:
            self._body = QuotingBody(tag.name, self._parameters(tag.name))
        else:
            self._body = PlainBody(tag.name, strict=self._strict)

    def _end(self, ended: Ended) -> None:
        if isinstance(self._body, QuotingBody) and self._body.misread:
            self._quotes = False  # what was read ahead is read but once more
        self._body = None
        self._out.append(ended.invocation)
        self._called = self._fresh = True
        for piece in ended.rest:
            self._piece(piece)

    def _unwrap(self, tag: Tag) -> None:
        if self._wrapper == "shown" or (self._wrapper == "" and not self._called):
            self._say(tag.raw)
        self._wrapper, self._opening = "", []

    def _show_wrapper(self) -> None:
        """The wrapper holds no call that can be run: it is text."""
        if self._wrapper == "held":
            opening, self._opening, self._wrapper = self._opening, [], "shown"
            self._say("".join(opening))

    # ------------------------------------------------------------ thinking and text

    def _think(self, tag: Tag) -> None:
        self._show_wrapper()
        if not self._fresh:
            self._say(tag.raw)
        elif self._verbatim:
            self._unopened, self._thinking = False, True
            self._say(tag.raw)
        else:
            self._space, self._thinking, self._called = [], True, False

    def _unthink(self, tag: Tag) -> None:
        self._show_wrapper()
        if self._verbatim or (self.thought and not self._thinking):
            self._say(tag.raw)
        elif self._thinking:
            if not self._fresh:
                self._emit("".join(self._space).rstrip("\n"))
            self._space, self._fresh, self._called = [], True, False
        self._thinking, self.thought = False, True

    def _say(self, text: str) -> None:
        visible = text.rstrip()
        if self._wrapper == "held":
            if not visible:
                self._opening.append(text)
                return
            self._show_wrapper()
        if not visible:
            self._space.append(text)
            return
        lead = "".join(self._space) if self._space else ""
        self._space = [text[len(visible) :]] if len(visible) < len(text) else []
        if self._fresh:
            visible = (lead + visible).lstrip("\n")
            lead = ""
            if self._unopened:
                self._unopened, visible = False, "<think>\n" + visible
            self._fresh = self._called = False
        self._emit(lead + visible)

    def _emit(self, text: str) -> None:
        if text:
            self._out.append(ThinkingDelta(text) if self._thinking and not self._verbatim else TextDelta(text))

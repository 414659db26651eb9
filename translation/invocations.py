"""One tool call while its markup streams in: which tag is a tag, and which is part of a value.

The cost is linear in the markup: pieces of values are kept as they come and joined once.
"""

from typing import Protocol

from msgspec import Struct

from translation.markup_tags import NAMESPACE, Tag

DEPTH = 64  # of nested parameters; what is deeper stays text

ENDS = {"uninvoke": "invoke", "unwrap": "wrap"}  # what a closing tag closes

Piece = str | Tag


class Parameter(Struct, frozen=True):
    name: str
    text: str = ""
    children: "tuple[Parameter, ...]" = ()  # M3: the `<item>`s of an array, or the fields of an object
    literal: bool = False  # DeepSeek: it was said to be a string


class Invocation(Struct, frozen=True):
    name: str
    parameters: tuple[Parameter, ...]


class Ended(Struct, frozen=True):
    """The call is over. `rest` is what was read beyond its end."""

    invocation: Invocation
    rest: tuple[Piece, ...] = ()


class Body(Protocol):
    def feed(self, piece: Piece) -> Ended | None: ...

    def close(self) -> Ended | None:
        """The answer ended inside the call. None where it may lack a part of what was meant: it must not be run."""
        ...


class PlainBody:
    """M2. A value ends at the last `</parameter>` before the next `<parameter ...>` or the end of the call.

    `</invoke>` ends the call where a value has just been closed. Inside an open value it may be what the value talks
    about: there it ends the call only when another call, the wrapper's end or the answer's end follows; or, when the
    answer ends without any such place, after all. `strict` ends it there at once.
    """

    def __init__(self, name: str, *, strict: bool = False) -> None:
        self._name = name
        self._strict = strict
        self._parameters: list[Parameter] = []
        self._open: str | None = None  # the parameter whose value is being read
        self._value: list[str] = []
        self._closed: int | None = None  # pieces of the value before its last `</parameter>`
        self._clean = True  # only white space since the last value was closed
        self._unclosed = False  # an earlier value had no closing tag: this model leaves them out
        self._read: list[Piece] = []
        self._doubted = False
        self._doubt: int | None = None  # pieces of the value before a doubtful end that only white space follows

    def feed(self, piece: Piece) -> Ended | None:
        if isinstance(piece, str):
            if not piece.isspace():
                self._clean, self._doubt = False, None
            self._keep(piece, piece)
            return None
        doubt, self._doubt = self._doubt, None
        if doubt is not None and piece.kind in ("wrap", "unwrap", "invoke"):
            return Ended(self._whole(doubt), (piece,))
        match piece.kind:
            case "param":
                self._begin(piece)
            case "unparam":
                self._closed, self._clean = len(self._value), True
                self._keep(piece, piece.raw)
            case "uninvoke" | "unwrap" | "invoke" | "wrap" if self._clean or self._open is None:
                return Ended(self._whole(len(self._value)), _beyond(piece))
            case "uninvoke" | "unwrap":
                return self._hesitate(piece)
            case _:
                self._clean = False
                self._keep(piece, piece.raw)
        return None

    @property
    def hesitates(self) -> bool:
        """What may be the end of the call has just come, inside an open value."""
        return self._doubt is not None

    @property
    def is_open(self) -> bool:
        """Whatever comes next belongs to a value."""
        return self._open is not None and not self._clean and self._doubt is None

    def close(self) -> Ended | None:
        if self._doubt is not None:
            return Ended(self._whole(self._doubt))
        if not self._doubted:
            whole = self._unclosed if self._closed is None else self._clean
            return Ended(self._whole(len(self._value))) if whole else None
        again = PlainBody(self._name, strict=True)
        for position, piece in enumerate(self._read):
            ended = again.feed(piece)
            if ended is not None:
                return Ended(ended.invocation, (*ended.rest, *self._read[position + 1 :]))
        raise AssertionError("a doubtful end is an end when read strictly")  # pragma: no cover

    def _hesitate(self, piece: Tag) -> Ended | None:
        if self._strict:
            return Ended(self._whole(len(self._value)), _beyond(piece))
        self._doubted, self._doubt = True, len(self._value)
        self._keep(piece, piece.raw)
        return None

    def _begin(self, tag: Tag) -> None:
        self._finish(len(self._value))
        self._unclosed = self._unclosed or (self._open is not None and self._closed is None)
        self._open, self._value, self._closed, self._clean = tag.name, [], None, False
        self._read.append(tag)

    def _keep(self, piece: Piece, text: str) -> None:
        self._read.append(piece)
        self._value.append(text)

    def _finish(self, end: int) -> None:
        if self._open is None:
            return
        text = "".join(self._value[: end if self._closed is None else self._closed])
        # White space between a value without its closing tag and the next tag is layout.
        self._parameters.append(Parameter(self._open, text.rstrip() if self._closed is None else text))

    def _whole(self, end: int) -> Invocation:
        self._finish(end)
        return Invocation(self._name, tuple(self._parameters))


def _beyond(tag: Tag) -> tuple[Piece, ...]:
    """`</invoke>` belongs to the call; any other tag that ends it is still to be read."""
    return () if tag.kind == "uninvoke" else (tag,)


class QuotingBody:
    """M2, where a value may quote: a whole call inside of an open value, and parameters that the tool has not.

    `known` are the tool's parameters, empty when it takes any. Where a quotation does not add up, since the value only
    mentions a tag or the model left one out, everything is read once more as if nothing were quoted.
    """

    def __init__(self, name: str, known: frozenset[str]) -> None:
        self._name = name
        self._known = known
        self._body = PlainBody(name)
        self._read: list[Piece] = []
        self._within: list[str] = []  # what a quotation has begun and not ended: `wrap`, `invoke`
        self._quoted = False  # the value that is being read quotes
        self.misread = False  # there was no quotation after all

    def feed(self, piece: Piece) -> Ended | None:
        if self.misread:
            return self._body.feed(piece)
        self._read.append(piece)
        if isinstance(piece, str):
            return self._body.feed(piece)
        if self._within and piece.kind in ENDS and self._within[-1] != ENDS[piece.kind]:
            return self._again()
        doubtful = self._quoted and self._body.hesitates
        ended = self._body.feed(piece.raw if self._quotes(piece) else piece)
        return self._again() if ended is not None and doubtful else ended

    def close(self) -> Ended | None:
        if not self.misread and self._quoted and (self._body.is_open or self._body.hesitates):
            ended = self._again()
            if ended is not None:
                return ended
        return self._body.close()

    def _quotes(self, tag: Tag) -> bool:
        """Whether the tag is a part of the open value."""
        if not self._within and not self._body.is_open:
            self._quoted = self._quoted and tag.kind != "param"  # what another value quotes was closed with it
            return False
        if tag.kind in ENDS.values():
            self._within.append(tag.kind)
        elif self._within and tag.kind in ENDS:
            self._within.pop()
        elif not self._within and (tag.kind != "param" or not self._known or tag.name in self._known):
            return False
        self._quoted = True
        return True

    def _again(self) -> Ended | None:
        self.misread = True
        self._body = PlainBody(self._name)
        for position, piece in enumerate(self._read):
            ended = self._body.feed(piece)
            if ended is not None:
                return Ended(ended.invocation, (*ended.rest, *self._read[position + 1 :]))
        return None


class _Node:
    __slots__ = ("children", "name", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.text: list[str] = []
        self.children: list[Parameter] = []

    def whole(self) -> Parameter:
        if self.children:
            return Parameter(self.name, children=tuple(self.children))
        return Parameter(self.name, "".join(self.text))


class TreeBody:
    """M3. Each tag follows a token that values cannot hold, so no tag is doubtful; parameters nest."""

    def __init__(self, name: str) -> None:
        self._stack = [_Node(name)]

    def feed(self, piece: Piece) -> Ended | None:
        if isinstance(piece, str):
            self._stack[-1].text.append(piece)
            return None
        match piece.kind:
            case "param" if len(self._stack) < DEPTH:
                self._close_unmarked()
                self._stack.append(_Node(piece.name))
            case "unparam":
                self._unwind(piece.name)
            case "uninvoke" | "unwrap" | "invoke" | "wrap":
                return Ended(self._whole(), _beyond(piece))
            case _ if piece.raw != NAMESPACE:
                self._stack[-1].text.append(piece.raw)
        return None

    def close(self) -> Ended | None:
        self._close_unmarked()
        root = self._stack[-1]
        whole = len(self._stack) == 1 and root.children and not "".join(root.text).strip()
        return Ended(self._whole()) if whole else None

    def _unwind(self, name: str) -> None:
        if name != self._stack[-1].name:
            self._close_unmarked()
        if any(node.name == name for node in self._stack[1:]):
            while self._pop() != name:
                pass

    def _close_unmarked(self) -> None:
        """`<city>Paris</city>` whose closing tag came without the token before it."""
        node = self._stack[-1]
        end = f"</{node.name}>"
        if len(self._stack) == 1 or node.children or not node.text:
            return
        text = "".join(node.text)
        if text.rstrip().endswith(end):
            node.text = [text.rstrip()[: -len(end)]]
            self._pop()

    def _pop(self) -> str:
        node = self._stack.pop()
        self._stack[-1].children.append(node.whole())
        return node.name

    def _whole(self) -> Invocation:
        self._close_unmarked()
        while len(self._stack) > 1:
            self._pop()
        root = self._stack[0]
        return Invocation(root.name, tuple(root.children))

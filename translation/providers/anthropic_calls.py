"""A tool call of an Anthropic stream: its arguments, of which what may be a placeholder waits for what follows it.

Servers that only speak like Anthropic begin with `{}` or `null`, and tell the arguments after it, or nothing.
"""

from translation.arguments import PLACEHOLDERS, after_placeholder, may_be_placeholder

Piece = tuple[str, bytes]  # of the arguments, and its frame as it came; b"" where it did not come like that


class Call:
    __slots__ = ("_decided", "_held", "fragments", "given", "live", "number")

    def __init__(self, number: int, *, live: bool) -> None:
        self.number = number
        self.live = live  # its client has asked for arguments as they come, whole or not
        self.given = ""  # arguments in the block's start
        self.fragments: list[str] = []  # that were passed on
        self._held: list[Piece] = []
        self._decided = False

    def add(self, text: str, raw: bytes) -> list[Piece]:
        """What can be passed on now. Anthropic begins with an empty piece, which says nothing and so need not wait."""
        if not (text or self._held):
            return [(text, raw)]
        self._held.append((text, raw))
        if not self._decided:
            if text.isspace():
                return []  # which decides nothing, however often it comes
            said = self._waiting.lstrip()
            rest = after_placeholder(said)
            if may_be_placeholder(rest):
                return []
            self._decided = True
            if rest != said:
                self._held = [(rest, b"")]
        return self._released()

    def end(self) -> list[Piece]:
        """What is left when the block ends."""
        came = self._waiting.strip()
        said = after_placeholder(came)
        if not self.fragments and said in PLACEHOLDERS:
            if self.given:
                self._held = [(self.given, b"")]
            elif said not in ("", "{}"):
                self._held = []
            elif said != came:
                self._held = [(said, b"")]
        return self._released()

    @property
    def arguments(self) -> str:
        text = ("".join(self.fragments) + after_placeholder(self._waiting) or self.given).strip()
        return "{}" if text in PLACEHOLDERS else text

    @property
    def _waiting(self) -> str:
        return "".join([text for text, _ in self._held])

    def _released(self) -> list[Piece]:
        held, self._held = self._held, []
        self.fragments += [text for text, _ in held if text]
        return held

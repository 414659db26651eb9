"""What a chat server says after a finish reason: some tell a reason with every chunk, others repeat what they said."""

from zlib import crc32

from msgspec import Struct

from translation.providers.openai_chat_calls import Calls
from translation.providers.openai_chat_carried import Carried, carries
from translation.providers.openai_chat_state import NOTHING
from translation.providers.openai_chat_wire import Call, Delta

MANY, LONG = 100, 1_000  # pieces that are summed up together; characters of one that is at once, and not held


class Said(Struct, eq=False):
    """A text that is kept elsewhere, by its length and checksum: enough to know it when it is said again."""

    _length: int = 0
    _sum: int = 0
    _new: list[str] = []  # not summed up yet

    def add(self, text: str) -> None:
        self._new.append(text)
        if len(self._new) > MANY or len(text) > LONG:
            self._sum_up()

    @property
    def anything(self) -> bool:
        return self._length > 0 or any(self._new)

    def is_all(self, text: object) -> bool:
        if not isinstance(text, str):
            return False
        again = Said()
        again.add(text)
        return again._summed == self._summed

    @property
    def _summed(self) -> tuple[int, int]:
        self._sum_up()
        return self._length, self._sum

    def _sum_up(self) -> None:
        data = "".join(self._new).encode("utf-8", "surrogatepass")
        self._length, self._sum = self._length + len(data), crc32(data, self._sum)
        self._new.clear()


NOTHING_SAID = Said()


def speaks(delta: Delta | None) -> bool:
    """Whether there is anything in it."""
    return delta is not None and bool(
        delta.content
        or delta.reasoning_content
        or delta.reasoning
        or delta.reasoning_text
        or delta.reasoning_details
        or delta.refusal
        or delta.images
        or delta.tool_calls
        or delta.function_call
    )


def untold(message: Delta, said: bool, thought: bool, refused: bool, called: bool, carried: bool) -> Delta:  # noqa: FBT001 - alike
    """What of a whole message, which some servers send after its deltas, did not come in these."""
    kept = Delta() if carried else message
    return Delta(
        content=None if said else message.content,
        reasoning_content=None if thought else message.reasoning_content,
        reasoning=None if thought else message.reasoning,
        reasoning_text=None if thought else message.reasoning_text,
        reasoning_details=None if thought else message.reasoning_details,
        refusal=None if refused else message.refusal,
        images=message.images,
        tool_calls=None if called else message.tool_calls,
        function_call=None if called else message.function_call,
        thinking_blocks=kept.thinking_blocks,
        reasoning_opaque=kept.reasoning_opaque,
        extra_content=kept.extra_content,
        provider_specific_fields=kept.provider_specific_fields,
    )


def news(delta: Delta | None, said: Said, thought: str, carried: Carried, calls: Calls) -> Delta | None:
    """The delta without what the answer holds already; None when nothing is left."""
    if delta is None or not (speaks(delta) or carries(delta)):
        return None
    known = {bytes(raw) for raw in carried.details}
    called = delta.tool_calls or ([Call(index=0, function=delta.function_call)] if delta.function_call else ())
    left = Delta(
        content=None if said.is_all(delta.content) else delta.content,
        reasoning_content=None if delta.reasoning_content == thought else delta.reasoning_content,
        reasoning=None if delta.reasoning == thought else delta.reasoning,
        reasoning_text=None if delta.reasoning_text == thought else delta.reasoning_text,
        reasoning_details=[raw for raw in delta.reasoning_details or () if bytes(raw) not in known],
        images=delta.images,
        tool_calls=[call for call in called if not calls.holds(call)],
        thinking_blocks=NOTHING if carried.anything else delta.thinking_blocks,
        reasoning_opaque=delta.reasoning_opaque,
        extra_content=delta.extra_content,
        provider_specific_fields=delta.provider_specific_fields,
    )
    return left if speaks(left) or carries(left) else None

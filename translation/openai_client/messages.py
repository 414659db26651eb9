"""Chat messages to canonical ones.

What stands before the first other message as `system` or `developer` is the system prompt; where there is no other, the
last of them is what the user says, for somebody has to, and OpenAI takes such requests. A `tool` message is a tool
result, which is the user's in the canonical form; what the user says right after it belongs to the same message.
"""

import re
from base64 import b64decode

import msgspec
from msgspec import Raw, Struct

from translation.arguments import PLACEHOLDERS
from translation.client.paths import carried_object, decode, named, one_of, wrong
from translation.memo import Memo
from translation.results import is_blank
from translation.unreadable import UNREADABLE
from translation.values import Block, Document, Image, Message, Text, Thinking, ToolResult, ToolUse

ROLES = ("system", "developer", "user", "assistant", "tool")
ABSENT = Raw(b"")
NOTHING = (b"", b"null")
NOBODY = (*NOTHING, b'""')
MAX_MESSAGES = 100_000
PARTS = ("text", "image_url", "file")
JPEG = "image/jpeg"

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[^,;]*)*?;base64,")


class FunctionWire(Struct):
    name: str
    arguments: str | None = None


class CallWire(Struct):
    id: str
    function: FunctionWire
    type: str | None = None  # clients that put a stream together may leave it out


class OldCallWire(Struct):
    name: str | None = None


class MessageWire(Struct):
    role: str
    content: Raw = ABSENT
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[CallWire] | None = None
    tool_call_id: str | None = None
    name: Raw = ABSENT  # of who speaks
    function_call: Raw = ABSENT


class ImageWire(Struct):
    url: str
    detail: str | None = None


class FileWire(Struct):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class PartWire(Struct):
    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageWire | str | None = None  # a string is Mistral's spelling
    file: FileWire | None = None


class Conversation(Struct, frozen=True):
    system: tuple[Text, ...]
    raw_system: bytes  # the same in the API's own form: how it is stored
    messages: tuple[Message, ...]
    given: tuple[Message, ...] = ()  # one by one, as the client counts them


_RAWS = msgspec.json.Decoder(list[Raw])
_STRING = msgspec.json.Decoder(str)
_MESSAGE = msgspec.json.Decoder(MessageWire)
_PART = msgspec.json.Decoder(PartWire)
_OLD_CALL = msgspec.json.Decoder(OldCallWire)
_SEEN: Memo[Message] = Memo(budget=11 * 1024 * 1024, largest=256 * 1024)  # texts are there as JSON, too


def conversation(raw: Raw) -> Conversation:
    raws = decode(_RAWS, raw, "messages")
    if len(raws) > MAX_MESSAGES:
        raise wrong("messages", f"List should have at most {MAX_MESSAGES} items")
    given = [_message(bytes(one), f"messages.{index}") for index, one in enumerate(raws)]
    if not given:
        raise wrong("messages", "at least one message is required")
    first = next((index for index, message in enumerate(given) if message.role != "system"), -1)
    if first < 0:
        given[-1] = Message("user", given[-1].blocks)
    prompt = [block for message in given[:first] for block in message.blocks]
    system = tuple(block for block in prompt if isinstance(block, Text) and not is_blank(block))
    told = msgspec.json.encode([{"type": "text", "text": block.text} for block in system]) if system else b""
    return Conversation(system, told, tuple(_grouped(given[first:])), tuple(given))


def _grouped(messages: list[Message]) -> list[Message]:
    """Results, and what the user says after them, are one message."""
    out: list[Message] = []
    for message in messages:
        if message.role == "user" and out and any(isinstance(block, ToolResult) for block in out[-1].blocks):
            options = tuple(dict.fromkeys(out[-1].options + message.options))
            out[-1] = Message("user", out[-1].blocks + message.blocks, options=options)
        else:
            out.append(message)
    return out


def _message(raw: bytes, path: str) -> Message:
    return _SEEN.get(raw, lambda: _parsed(raw, path))


def _parsed(raw: bytes, path: str) -> Message:
    wire = decode(_MESSAGE, raw, path)
    content = _content(wire.content, path + ".content")
    options = ("name",) if bytes(wire.name) not in NOBODY else ()
    match wire.role:
        case "user":
            return Message("user", content, options=options)
        case "assistant":
            return Message("assistant", _answer(wire, content, path), options=options)
        case "tool":
            if wire.tool_call_id is None:
                raise wrong(path + ".tool_call_id", "Field required")
            return Message("user", (ToolResult(named(wire.tool_call_id, path + ".tool_call_id"), content),))
        case "system" | "developer":
            return Message("system", _told(content, path))
        case other:
            raise one_of(path + ".role", ROLES, other)


def _told(content: tuple[Block, ...], path: str) -> tuple[Block, ...]:
    """A system prompt is text, as it is at OpenAI."""
    place = next((place for place, block in enumerate(content) if not isinstance(block, Text)), None)
    if place is not None:
        raise wrong(f"{path}.content.{place}.type", "Input should be 'text' in a message of this role")
    return content


def _answer(wire: MessageWire, content: tuple[Block, ...], path: str) -> tuple[Block, ...]:
    if not wire.tool_calls and _is_call(bytes(wire.function_call), path + ".function_call"):
        raise wrong(path + ".function_call", "function_call is the old form of tool_calls")
    thought = wire.reasoning_content or wire.reasoning
    calls = enumerate(wire.tool_calls or ())
    return (
        *((Thinking(thought),) if thought else ()),
        *content,
        *((Text(wire.refusal),) if wire.refusal else ()),
        *(_call(call, f"{path}.tool_calls.{index}") for index, call in calls),
    )


def _is_call(old: bytes, path: str) -> bool:
    """Servers say that there is none in many ways, and clients give back what they were told."""
    return old.startswith(b"{") and bool(decode(_OLD_CALL, old, path).name)


def _call(call: CallWire, path: str) -> ToolUse:
    if call.type not in (None, "function"):
        raise one_of(path + ".type", ("function",), call.type)
    given = (call.function.arguments or "").strip()
    given = "{}" if given in PLACEHOLDERS else given
    place = path + ".function.arguments"
    try:
        arguments = carried_object(given.encode(), place)
    except UNREADABLE:
        raise wrong(place, "Input should be a JSON object in a string") from None
    return ToolUse(named(call.id, path + ".id"), named(call.function.name, path + ".function.name"), arguments)


# ---------------------------------------------------------------- content


def _content(raw: Raw, path: str) -> tuple[Block, ...]:
    content = bytes(raw)
    if content in NOTHING:
        return ()
    if content.startswith(b'"'):
        text = _STRING.decode(content)
        return (Text(text),) if text else ()
    parts = decode(_RAWS, content, path)
    return tuple(_part(decode(_PART, part, f"{path}.{index}"), f"{path}.{index}") for index, part in enumerate(parts))


def _part(part: PartWire, path: str) -> Block:
    match part:
        case PartWire(type="text", text=str(text)) | PartWire(type="refusal", refusal=str(text)):
            return Text(text)
        case PartWire(type="image_url", image_url=ImageWire() as image):
            return _image(image, path + ".image_url.url")
        case PartWire(type="image_url", image_url=str(url)):
            return _image(ImageWire(url), path + ".image_url")
        case PartWire(type="file", file=FileWire() as file):
            return _file(file, path + ".file")
        case PartWire(type="text" | "refusal" | "image_url" | "file" as kind):
            raise wrong(f"{path}.{kind}", "Field required")
        case _:
            raise one_of(path + ".type", PARTS, part.type)


def _image(image: ImageWire, path: str) -> Image:
    url, detail = image.url, image.detail or ""
    if data := _DATA_URL.match(url):
        kind = data[1].lower()
        return Image("base64", url[data.end() :], JPEG if kind == "image/jpg" else kind, detail=detail)
    if url.startswith(("https://", "http://")):
        return Image("url", url, detail=detail)
    raise wrong(path, "Input should be an http(s) URL or a base64 data URL")


def _file(file: FileWire, path: str) -> Document:
    if file.file_id is not None:
        return Document("file", named(file.file_id, path + ".file_id"), title=file.filename or "")
    if file.file_data is None:
        raise wrong(path + ".file_data", "Field required")
    data = _DATA_URL.match(file.file_data)
    if data is None:
        raise wrong(path + ".file_data", "Input should be a base64 data URL")
    content, kind, title = file.file_data[data.end() :], data[1].lower(), file.filename or ""
    text = _text(content) if kind.startswith("text/") or kind == "application/json" else ""
    return Document("text", text, "text/plain", title=title) if text else Document("base64", content, kind, title=title)


def _text(data: str) -> str:
    """Of a file that should hold some; "" where it does not."""
    try:
        text = b64decode(data).decode()
    except ValueError:
        return ""
    return "" if text.isspace() else text

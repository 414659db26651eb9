"""The conversation as Gemini's `contents`: results grouped by turn, media beside them, signatures where they were."""

import re
from typing import TypeAlias, cast

import msgspec
from msgspec import Raw, Struct

from translation import plain
from translation.adapter import Target
from translation.errors import InvalidRequest
from translation.names import ToolNames
from translation.providers.gemini_models import abilities
from translation.providers.gemini_state import Piece, State, read, restored, signatures, signed
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
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

Part: TypeAlias = dict[str, object]

# Google's documented way to say that a call's signature is not to be had. Means something to Gemini only.
SENTINEL = "skip_thought_signature_validator"
CALL_ID = "functionCall.id"  # which some servers of Gemini's give out and refuse to take back
INVOKED = re.compile(rb'\{"tool(?:Call|Response)"')
CONTINUE = "Continue."
NO_CONTENT = "(no visible content)"
SEARCHED = ("server_tool_use", "web_search_tool_result")  # how an answer shows Google's search
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
EXTENSIONS = {
    "png": "image/png",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
}


def contents(request: Request, target: Target, names: ToolNames, notes: list[Note]) -> tuple[list[Part], bool]:
    """And whether parts of Google's own tools are among them."""
    built = _Contents(request, target, names, notes)
    return built.build(), built.invoked


class _Contents:
    def __init__(self, request: Request, target: Target, names: ToolNames, notes: list[Note]) -> None:
        self._messages = request.messages
        self._target = target
        self._names = names
        self._notes = notes
        self._asked: dict[str, Part] = {}  # id and name of the calls that the next user turn answers
        self._takes_ids = CALL_ID not in target.profile.drop_params
        self.invoked = False  # a search beside functions goes back as it came
        self._place = -1  # of the message that is being told
        self._newest = max(
            (index for index, message in enumerate(self._messages) if message.role != "assistant"), default=0
        )

    def build(self) -> list[Part]:
        out: list[Part] = []
        for index, message in enumerate(self._messages):
            self._place = index
            if message.role == "assistant":
                out.append({"role": "model", "parts": self._model(index, message)})
            else:
                out.append({"role": "user", "parts": self._user(index, message)})
        if out and out[-1]["role"] == "model":
            out.append({"role": "user", "parts": [{"text": CONTINUE}]})
            what = "the last message is the assistant's; Gemini answers users only, so it is asked to continue"
            self._notes.append(Note("degradation", "prefill-continued", what))
        return out

    # ------------------------------------------------------------ the model's turns

    def _model(self, index: int, message: Message) -> list[object]:
        self._asked = {}
        pieces = self._state(message.origin).pieces
        restored_parts = self._restored(message, pieces)
        parts = restored_parts or self._plain(message)
        self.invoked = self.invoked or (restored_parts is not None and any(map(_is_invocation, restored_parts)))
        if signatures(pieces) > sum(isinstance(part, dict) and "thoughtSignature" in part for part in parts):
            what = f"messages.{index}: it is not the answer any more that a thought signature was made for"
            self._notes.append(Note("degradation", "signature-dropped", what, index))
        if not parts:
            return [{"text": NO_CONTENT}]
        if not abilities(self._target.model).signatures or (restored_parts and any(map(_is_signed, parts))):
            return parts
        first = next((n for n, part in enumerate(parts) if isinstance(part, dict) and "functionCall" in part), None)
        if first is not None and not _is_signed(parts[first]):
            parts[first] = signed(cast("Part", parts[first]), SENTINEL)
            what = f"messages.{index}: no thought signature of this upstream is known for its first call"
            self._notes.append(Note("substitution", "signature-substituted", what, index))
        return parts

    def _state(self, origin: Origin | None) -> State:
        return read(origin, self._target.upstream, self._target.model)

    def _restored(self, message: Message, pieces: tuple[Piece, ...]) -> list[object] | None:
        if not pieces:
            return None
        texts, calls = [""], []
        for block in message.blocks:
            if type(block) is ToolUse:
                calls.append(self._call(block))
                texts.append("")
            elif type(block) is Text:
                texts[-1] += block.text
        return restored(pieces, texts, calls)

    def _plain(self, message: Message) -> list[object]:
        parts: list[object] = []
        for block in message.blocks:
            if type(block) is ToolUse:
                origin = block.link.origin if block.link else None
                parts.append(signed(self._call(block), self._state(origin).signature))
            elif type(block) not in (Thinking, RedactedThinking):  # another's reasoning is never told as text
                parts += self._worded(block) if not self._is_own_search(message, block) else []
        return parts

    def _is_own_search(self, message: Message, block: Block) -> bool:
        """What Gemini itself searched is no part of what it said: it would take to writing such lines."""
        searched = isinstance(block, ServerToolUse | ServerToolResult) and block.type in SEARCHED
        return searched and message.origin is not None and message.origin.upstream == self._target.upstream

    def _call(self, block: ToolUse) -> Part:
        head: Part = {"name": self._names.upstream(block.name)}
        link = block.link
        if link is not None and link.upstream_id and link.origin.upstream == self._target.upstream and self._takes_ids:
            head = {"id": link.upstream_id, **head}
        self._asked[block.id] = head
        return {"functionCall": {**head, "args": Raw(block.input or b"{}")}}

    # ------------------------------------------------------------ the user's turns

    def _user(self, index: int, message: Message) -> list[object]:
        results: list[object] = []
        media: list[object] = []
        rest: list[object] = []
        for position, block in enumerate(message.blocks):
            path = f"messages.{index}.content.{position}"
            if type(block) is not ToolResult:
                for piece in self._pieces(block, path, index):
                    rest += self._part(piece, path, index, new=index >= self._newest)
                continue
            pieces = tuple(piece for inner in block.blocks for piece in self._pieces(inner, path, index))
            for piece in pieces:
                if type(piece) is not Text:
                    self._summarised(piece)
            lifted = [
                part
                for inner, item in enumerate(pieces)
                if plain.is_wordless(item)
                for part in self._part(item, f"{path}.content.{inner}", index, new=False)
            ]
            head = self._asked.get(block.tool_use_id)
            if head is None:  # the history repair leaves none; an orphan that gets here is still told
                rest += _text(f"[result of an earlier tool call {block.tool_use_id}] {plain.join(pieces)}")
            else:
                said = _response(pieces, is_error=block.is_error, attached=bool(lifted))
                results.append({"functionResponse": {**head, "response": said}})
            if lifted:
                media += [{"text": f"[attached to the result of {head['name'] if head else 'a tool call'}]"}, *lifted]
        return [*results, *rest, *media] or [{"text": NO_CONTENT}]  # R6

    def _pieces(self, block: Block, path: str, index: int) -> tuple[Block, ...]:
        if plain.is_cited(block):
            what = f"{path}: Gemini does not cite the documents that it is given"
            self._notes.append(Note("degradation", "citations-ignored", what, index))
        return plain.unpacked(block, lambda image: self._takes(image, path, index), names_files=False)

    def _takes(self, image: Image, path: str, index: int) -> bool:
        taken = _is_readable(image)
        if not taken:
            what = f"{path}: an image of a document, of kind {image.kind} {image.media_type}".rstrip()
            self._notes.append(Note("degradation", "media-left-out", what, index))
        return taken

    def _part(self, block: Block, path: str, index: int, *, new: bool) -> list[object]:
        match block:
            case Image(kind="base64") if _is_readable(block):
                return [{"inlineData": {"mimeType": block.media_type, "data": block.data}}]
            case Document(kind="base64"):
                return [{"inlineData": {"mimeType": block.media_type or "application/pdf", "data": block.data}}]
            case Image(kind="url") | Document(kind="url") if block.data.startswith("https://"):
                return [{"fileData": {"mimeType": _guessed(block), "fileUri": block.data}}]
            case Image() | Document(kind="url" | "file"):
                return self._refused(block, path, index, new=new)
            case _:
                return self._worded(block)

    def _worded(self, block: Block) -> list[object]:
        self._summarised(block)
        return _text(plain.words(block))

    def _summarised(self, block: Block) -> None:
        if isinstance(block, ServerToolUse | ServerToolResult | Other):
            what = f"a `{block.type}` block was summarised as text"
            note = Note("degradation", "block-summarised", what, self._place)
            if note not in self._notes:
                self._notes.append(note)

    def _refused(self, block: Image | Document, path: str, index: int, *, new: bool) -> list[object]:
        """What Gemini cannot read: the client's fault in the newest turn, a gap in a tool's result or an older turn."""
        what = f"{type(block).__name__.lower()} of kind {block.kind} {block.media_type}".rstrip()
        if new:
            raise InvalidRequest(
                f"{path}.source: Gemini takes base64 ({', '.join(IMAGES)}, PDF) and https URLs, not {what}"
            )
        self._notes.append(Note("degradation", "media-left-out", f"{path}: {what}", index))
        return [{"text": f"[{what}: left out]"}]


class _Content(Struct):
    role: str
    parts: list[dict[str, Raw]]


def unsigned(contents: Raw) -> tuple[Raw, int]:
    """Contents without thought signatures, the sentinel on the first call of each answer; how many of them changed."""
    turns = msgspec.json.decode(contents, type=list[_Content])
    changed = 0
    for turn in turns:
        parts = _forgotten(turn.parts) if turn.role == "model" else turn.parts
        changed += parts != turn.parts
        turn.parts = parts
    return Raw(msgspec.json.encode(turns)), changed


def _forgotten(given: list[dict[str, Raw]]) -> list[dict[str, Raw]]:
    """What was there for its signature only, a thought or an empty text, goes with it."""
    parts = [{name: value for name, value in part.items() if name != "thoughtSignature"} for part in given]
    parts = [part for part in parts if "thought" not in part and bytes(part.get("text", Raw(b" "))) != b'""']
    call = next((part for part in parts if "functionCall" in part), None)
    if call is not None:
        call["thoughtSignature"] = Raw(msgspec.json.encode(SENTINEL))
    return parts or [{"text": Raw(msgspec.json.encode(NO_CONTENT))}]


def _response(blocks: tuple[Block, ...], *, is_error: bool, attached: bool) -> Part:
    text = plain.join(blocks) or ("(attached below)" if attached else "(no output)")
    return {"error": text} if is_error else {"output": text}


def _is_readable(image: Image) -> bool:
    if image.kind == "base64":
        return image.media_type in IMAGES
    return image.kind == "url" and image.data.startswith("https://")


def _guessed(block: Image | Document) -> str:
    extension = block.data.partition("?")[0].rpartition(".")[2].lower()
    usual = "image/jpeg" if isinstance(block, Image) else "application/pdf"
    return block.media_type or EXTENSIONS.get(extension, usual)


def _is_invocation(part: object) -> bool:
    return isinstance(part, Raw) and INVOKED.match(part) is not None


def _is_signed(part: object) -> bool:
    return not isinstance(part, dict) or "thoughtSignature" in part  # a carried part holds its own


def _text(text: str) -> list[object]:
    return [{"text": text}] if text else []

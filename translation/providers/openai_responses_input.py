"""A history as the Responses API's input items. Expects what `history.repair` leaves: results first, in call order."""

from typing import assert_never

from msgspec import Raw

from translation import plain
from translation.adapter import Target
from translation.errors import InvalidRequest
from translation.names import ToolNames
from translation.providers.openai_responses_state import TextState, once, replayable, states
from translation.toolcall_ids import CallIds
from translation.values import (
    Block,
    Document,
    Image,
    Message,
    Note,
    Other,
    RedactedThinking,
    Request,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)

Part = dict[str, object]
Item = Part | Raw  # reasoning goes back as the bytes that came
ERROR_MARK = "Error: "
NO_CONTENT = "(no content)"
SEARCHED = ("server_tool_use", "web_search_tool_result")  # how an answer shows the provider's own search


class InputItems:
    """Builds the items of one request; `notes` says what could not be kept."""

    def __init__(self, target: Target, names: ToolNames) -> None:
        self._target = target
        self._profile = target.profile
        self._names = names
        self._ids = CallIds(target)
        self._taken: set[str] = set()  # ids of items: servers repeat them, and a request may hold each but once
        self._place = -1  # of the message that is being told
        self.notes: list[Note] = []

    def build(self, request: Request) -> list[Item]:
        items: list[Item] = []
        newest = _newest(request.messages)
        for index, message in enumerate(request.messages):
            self._place = index
            if message.role == "assistant":
                items += self._assistant(message, index)
            elif message.role == "user":
                items += self._user(message, f"messages.{index}", new=index >= newest)
            else:
                parts = [_text(text) for text in map(self._worded, message.blocks) if text] or [_text(NO_CONTENT)]
                items.append({"type": "message", "role": self._profile.system_role, "content": parts})
        if request.messages and request.messages[-1].role == "assistant":
            what = f"{self._profile.title} does not continue an assistant message; it answers after it"
            self.notes.append(Note("degradation", "prefill-unsupported", what))
        return items

    def instructed(self, words: str) -> Item:
        """`Response input messages must contain the word 'json' in some form`: a system prompt is none of them."""
        return {"type": "message", "role": self._profile.system_role, "content": [_text(words)]}

    # ------------------------------------------------------------ what the model said

    def _assistant(self, message: Message, index: int) -> list[Item]:
        """Items carry the upstream's ids only after their own reasoning: each is refused without the other."""
        items: list[Item] = []
        waiting = iter(states(message, self._target.upstream))
        state = next(waiting)
        texts = list(state.texts)
        replayed = False
        for block in message.blocks:
            match block:
                case Text():
                    for piece, known in _pieces(block.text, texts):
                        thought = self._thought(known.reasoning, index)
                        items += thought
                        replayed = replayed or bool(thought)
                        items.append(_said(piece, known, self._named(known.id) if replayed else ""))
                case ToolUse():
                    thought = self._thought(state.reasoning, index)
                    items += thought
                    replayed = replayed or bool(thought)
                    items.append(self._call(block, self._named(state.id) if replayed else ""))
                    state = next(waiting)
                    texts = list(state.texts)
                case Thinking() | RedactedThinking():
                    pass  # no model takes another's thinking as its own; this one's comes from the state
                case ServerToolUse() | ServerToolResult() if self._is_own_search(message, block):
                    pass  # as is this: told in words, it would take to writing such lines
                case ServerToolUse() | ServerToolResult() | Other():
                    items.append(_said(self._worded(block), TextState(0)))
                case Image() | Document() | SearchResult() | ToolReference() | ToolResult():
                    items.append(_said(plain.join((block,)), TextState(0)))
                case _:
                    assert_never(block)
        return items

    def _is_own_search(self, message: Message, block: ServerToolUse | ServerToolResult) -> bool:
        made = message.origin is not None and message.origin.upstream == self._target.upstream
        return made and block.type in SEARCHED

    def _thought(self, reasoning: tuple[Raw, ...], index: int) -> list[Raw]:
        """What was stored may be older than what is known about the shape that the API takes."""
        kept = [once(item, self._taken) for item in map(replayable, reasoning) if item is not None]
        if len(kept) < len(reasoning):
            what = f"messages.{index}: stored reasoning that the upstream would refuse was left out"
            self.notes.append(Note("substitution", "opaque-state-dropped", what, index))
        return kept

    def _named(self, item_id: str) -> str:
        if item_id in self._taken:
            return ""
        self._taken.add(item_id)
        return item_id

    def _call(self, block: ToolUse, item_id: str) -> Item:
        item: Part = {"type": "function_call"}
        if item_id:
            item["id"] = item_id
        item["call_id"] = self._ids.call(block)
        item["name"] = self._names.upstream(block.name)
        item["arguments"] = block.input.decode()
        return item

    # ------------------------------------------------------------ what the user said

    def _user(self, message: Message, path: str, *, new: bool) -> list[Item]:
        results: list[Item] = []
        parts: list[Part] = []
        media: list[Part] = []  # lifted out of results; R6: after what the user said
        for position, block in enumerate(message.blocks):
            where = f"{path}.content.{position}"
            if isinstance(block, ToolResult):
                output, lifted = self._output(block, where)
                call_id = self._ids.result(block.tool_use_id)
                results.append({"type": "function_call_output", "call_id": call_id, "output": output})
                if lifted:
                    media += [_text(f"[attached to the result of {call_id}]"), *lifted]
                continue
            for piece in self._pieces(block, where):
                parts += self._part(piece, where, strict=new)
        if parts or media:
            results.append({"type": "message", "role": "user", "content": parts + media})
        return results

    def _output(self, result: ToolResult, where: str) -> tuple[str | list[Part], list[Part]]:
        """A result's text, or its parts where the provider takes them; else images and files come after the results."""
        parts = [
            part
            for position, block in enumerate(result.blocks)
            for piece in self._pieces(block, f"{where}.content.{position}")
            for part in self._part(piece, f"{where}.content.{position}", strict=False)
        ]
        mark = ERROR_MARK if result.is_error else ""
        texts = [str(part["text"]) for part in parts if part["type"] == "input_text"]
        if len(texts) == len(parts):
            return mark + "\n".join(texts), []
        if self._profile.rich_results:
            return ([_text("Error:")] if mark else []) + parts, []
        self._degraded("result-media-lifted", f"{where}: images and files follow the results")
        text = "\n".join(texts) or "(attached below)"
        return mark + text, [part for part in parts if part["type"] != "input_text"]

    def _pieces(self, block: Block, where: str) -> tuple[Block, ...]:
        if plain.is_cited(block):
            what = f"{where}: {self._profile.title} does not cite the documents that it is given"
            self._degraded("citations-ignored", what)
        return plain.unpacked(block, lambda image: self._media(image, where, strict=False)["type"] == "input_image")

    def _part(self, block: Block, where: str, *, strict: bool) -> list[Part]:  # noqa: PLR0911 - one flat table of block types
        match block:
            case Text():
                return [_text(block.text)] if block.text else []
            case Document(kind="text" | "content"):
                return [_text(plain.document(block))]
            case Image() | Document():
                return [self._media(block, where, strict=strict)]
            case SearchResult():
                return [_text(plain.search_result(block))]
            case ToolReference():
                return [_text(plain.reference(block))]
            case ServerToolUse() | ServerToolResult() | Other():
                return [_text(self._worded(block))]
            case Thinking() | RedactedThinking() | ToolUse() | ToolResult():
                return []  # not the user's to say: repaired before
            case _:
                assert_never(block)

    def _worded(self, block: Block) -> str:
        if isinstance(block, ServerToolUse | ServerToolResult | Other):
            what = f"a `{block.type}` block was summarised as text"
            note = Note("degradation", "block-summarised", what, self._place)
            if note not in self.notes:
                self.notes.append(note)
        return plain.words(block)

    def _media(self, block: Image | Document, where: str, *, strict: bool) -> Part:
        """What the model does not take is the client's fault in the newest turn; results and older turns go on."""
        try:
            return self._image(block, where) if isinstance(block, Image) else self._file(block, where)
        except InvalidRequest as refused:
            if strict:
                raise
            self._degraded("content-left-out", refused.message)
            noun = "image" if isinstance(block, Image) else "document"
            return _text(f"[{noun} left out: this model does not take it]")

    def _degraded(self, rule: str, what: str) -> None:
        self.notes.append(Note("degradation", rule, what, self._place))

    def _image(self, block: Image, where: str) -> Part:
        if not self._profile.images:
            raise InvalidRequest(f"{where}: {self._profile.title} takes no images")
        if block.kind == "file":
            raise InvalidRequest(f"{where}.source: a file id is known to Anthropic only; send base64 or a URL")
        url = block.data if block.kind == "url" else f"data:{block.media_type};base64,{block.data}"
        part: Part = {"type": "input_image", "image_url": url}
        return part | {"detail": block.detail} if block.detail else part

    def _file(self, block: Document, where: str) -> Part:
        if block.kind == "file":
            raise InvalidRequest(f"{where}.source: a file id is known to Anthropic only; send base64 or a URL")
        if self._profile.documents != "native":
            raise InvalidRequest(f"{where}: {self._profile.title} takes no PDF documents")
        if block.kind == "url":
            return {"type": "input_file", "file_url": block.data}
        media_type = block.media_type or "application/pdf"
        data = f"data:{media_type};base64,{block.data}"
        return {"type": "input_file", "filename": plain.filename(block), "file_data": data}


def _newest(messages: tuple[Message, ...]) -> int:
    """Where the newest turn begins: it may be of several messages, of which the system's may be the last."""
    end = max((n for n, each in enumerate(messages) if each.role == "user"), default=0)
    return max((n for n, each in enumerate(messages[:end]) if each.role == "assistant"), default=-1) + 1


def _pieces(text: str, known: list[TextState]) -> list[tuple[str, TextState]]:
    """A text block as the items that it was made of."""
    pieces = []
    while text and known and known[0].length <= len(text):
        state = known.pop(0)
        pieces.append((text[: state.length], state))
        text = text[state.length :]
    if text:
        pieces.append((text, TextState(len(text))))
    return pieces


def _said(text: str, state: TextState, item_id: str = "") -> Part:
    item: Part = {"type": "message"}
    if item_id:
        item |= {"id": item_id, "status": "completed"}
    item["role"] = "assistant"
    if state.phase:
        item["phase"] = state.phase
    item["content"] = [{"type": "output_text", "text": text}]
    return item


def _text(text: str) -> Part:
    return {"type": "input_text", "text": text}

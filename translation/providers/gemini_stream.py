"""Google's Gemini API, the answer side: `alt=sse` streams, whole JSON, and JSON arrays of chunks.

Calls come whole. The finish reason may be followed by more (a late signature, the usage), so the answer is over
when its bytes are.
"""

import msgspec
from msgspec import Raw

from translation.arguments import PLACEHOLDERS, is_object, mend
from translation.errors import BridgeError, TruncatedStream, UpstreamGaveUp, UpstreamProtocolError
from translation.events import (
    Event,
    Failed,
    Finished,
    Reason,
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolEnded,
    ToolStarted,
    WholeBlock,
)
from translation.providers.gemini_calls import Pieces
from translation.providers.gemini_errors import heed, in_band
from translation.providers.gemini_search import citations, joined, search_blocks
from translation.providers.gemini_state import Piece, State, write
from translation.providers.gemini_wire import (
    Call,
    Candidate,
    Chunk,
    Feedback,
    Grounding,
    Part,
    Tokens,
    decode_answer,
    decode_chunk,
)
from translation.sse import MAX_EVENT, SSEDecoder, apart, is_idle
from translation.unicode import Halves
from translation.unreadable import UNREADABLE
from translation.values import Usage

REFUSALS = (
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
)  # fmt: skip
NUMBERED = "STOP", "MAX_TOKENS", "SAFETY", "RECITATION"  # from 1 on, at gateways that write enums as numbers
NAMES: dict[str, Reason] = {"STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(REFUSALS, "refusal")}
REASONS = NAMES | {str(number): NAMES[name] for number, name in enumerate(NUMBERED, 1)}
# Everything else is no answer: MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, OTHER, and what Google may add.
UNTOLD = "FINISH_REASON_UNSPECIFIED"  # how gateways that write every field write none
PREFIXES = ("default_api:", "default_api.")  # how the model sometimes writes a function's name


class GeminiDecoder:
    def __init__(self, names: dict[str, str], *, streams: bool = True) -> None:
        self._names = names
        self._sse = SSEDecoder() if streams else None
        self._halves = Halves()
        self._body: list[bytes] = []  # of an answer that is not SSE: read when it is whole
        self._size = 0
        self._pieces: list[Piece] = []
        self._run = 0  # characters of text since the last piece
        self._calls = 0
        self._in_pieces = Pieces()
        self._said = False  # something that a client sees, thinking aside
        self._empty: bool | None = None  # chunks came, and no candidate in them; None before any
        self._candidate = Candidate()  # the last word on why it finished
        self._grounding = Grounding()
        self._usage: Tokens | None = None
        self._feedback = Feedback()
        self._model = ""
        self._id = ""
        self._notes: list[str] = []
        self._done = False

    def feed(self, chunk: bytes) -> list[Event]:
        if self._done:
            return []
        out: list[Event] = []
        try:
            if self._sse is None:
                self._collect(chunk)
            else:
                self._events(self._sse.feed(chunk), out)
        except BridgeError as error:
            self._fail(error, out)
        except UNREADABLE as error:
            self._fail(UpstreamProtocolError(f"the upstream sent an event that is not Gemini's: {error}"), out)
        return out

    def close(self) -> list[Event]:
        if self._done:
            return []
        out: list[Event] = []
        try:
            self._rest(out)
            if not self._done:
                self._finish(out)
        except BridgeError as error:
            self._fail(error, out)
        except msgspec.ValidationError as error:
            self._fail(UpstreamProtocolError(f"the upstream sent an answer that is not Gemini's: {error}"), out)
        except UNREADABLE:
            self._fail(TruncatedStream("the upstream closed in the middle of its answer"), out)
        return out

    def _collect(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > 4 * MAX_EVENT:
            raise UpstreamProtocolError(f"the upstream sent an answer of more than {4 * MAX_EVENT} bytes")
        self._body.append(chunk)

    def _rest(self, out: list[Event]) -> None:
        if self._sse is not None:
            self._events(self._sse.close(), out)
            return
        body = b"".join(self._body)
        whole = decode_answer(body)
        chunks = whole if isinstance(whole, list) else [whole]
        for chunk in chunks:
            self._chunk(chunk, out, body if len(chunks) == 1 else b"")

    def _fail(self, error: BridgeError, out: list[Event]) -> None:
        self._done = True
        out.append(Failed(error))

    # ------------------------------------------------------------ chunks and parts

    def _events(self, events: list[tuple[str, bytes]], out: list[Event]) -> None:
        for name, data in events:
            if name == "error" and not self._done:
                raise in_band(data)
            if data.startswith(b"{") or not is_idle(name, data):
                self._event(data, out)

    def _event(self, data: bytes, out: list[Event]) -> None:
        if self._done:
            return
        if data.strip() == b"[DONE]":
            self._close(out)
            return
        try:
            chunk = decode_chunk(data, self._halves)
        except msgspec.DecodeError:
            if len(parts := apart(data)) < 2:
                raise
            for part in parts:
                self._event(part, out)
        else:
            self._chunk(chunk, out, data)

    def _close(self, out: list[Event]) -> None:
        """Some gateways end Gemini's streams as they end others, and may leave them open."""
        if self._said and not self._candidate.finish_reason:
            self._candidate = Candidate(finish_reason="STOP")
        self._finish(out)

    def _chunk(self, chunk: Chunk, out: list[Event], data: bytes) -> None:
        """`data` is what it was read from, where that holds nothing else."""
        if chunk.error is not None or not chunk.candidates:
            heed(chunk.error, data)
        self._empty = self._empty is not False and not chunk.candidates
        for candidate in chunk.candidates:
            if not candidate.index:
                self._heard(candidate, out)
                break  # the first only: others were not asked for
        if chunk.usage_metadata is not None and _tells(chunk.usage_metadata):
            self._usage = chunk.usage_metadata
        if chunk.prompt_feedback is not None:
            self._feedback = chunk.prompt_feedback
        self._model = chunk.model_version or self._model
        self._id = chunk.response_id or self._id

    def _heard(self, candidate: Candidate, out: list[Event]) -> None:
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                self._part(part, out)
        if candidate.finish_reason not in (None, "", "0") and not candidate.finish_reason.endswith(UNTOLD):
            self._candidate = candidate
        if candidate.grounding_metadata is not None:
            self._grounding = joined(self._grounding, candidate.grounding_metadata)

    def _part(self, part: Part, out: list[Event]) -> None:
        if part.function_call is not None:
            if part.text:  # a gateway's: Google writes two parts
                self._text(part.text, "", out)
            self._piece_of_call(part.function_call, part.thought_signature, out)
        elif part.text is not None:
            if part.thought:
                self._thought(part.text, part.thought_signature, out)
            else:
                self._text(part.text, part.thought_signature, out)
        elif part.inline_data is not None:
            blob = part.inline_data
            self._text(f"[{blob.mime_type}, {len(blob.data) * 3 // 4} bytes: cannot be shown here]", "", out)
        else:
            self._carry(part)

    def _text(self, text: str, signature: str, out: list[Event]) -> None:
        if text:
            self._said = True
            out.append(TextDelta(text))
        if signature:
            self._piece(Piece("text", length=len(text), signature=signature))
        else:
            self._run += len(text)

    def _thought(self, text: str, signature: str, out: list[Event]) -> None:
        if text:
            out.append(ThinkingDelta(text))
        if signature:
            self._piece(Piece("thought", signature=signature, text=text))

    def _piece_of_call(self, call: Call, signature: str, out: list[Event]) -> None:
        whole = self._in_pieces.feed(call, signature or call.thought_signature)
        if whole is not None:
            self._call(*whole, out)

    def _call(self, call: Call, signature: str, out: list[Event]) -> None:
        if not call.name:
            raise UpstreamProtocolError("the upstream sent a function call without a name")
        name = call.name
        for prefix in PREFIXES:
            name = name.removeprefix(prefix)
        arguments = self._arguments(call.args)
        out.append(ToolStarted(self._calls, self._names.get(name, name), call.id, name))
        out.append(ToolArguments(self._calls, arguments))
        out.append(ToolEnded(self._calls, arguments, write(State(signature=signature))))
        self._piece(Piece("call", signature=signature))
        self._calls += 1
        self._said = True

    def _arguments(self, raw: Raw) -> str:
        text = msgspec.json.format(bytes(raw) or b"{}", indent=-1).decode()
        if text in PLACEHOLDERS:
            return "{}"
        if is_object(text):
            return text
        mended, how = mend(text)
        self._notes.append(how)
        return mended

    def _carry(self, part: Part) -> None:
        """A part of Google's own tools: nothing for a client, but it has to go back as it came."""
        fields = {
            "toolCall": part.tool_call,
            "toolResponse": part.tool_response,
            "executableCode": part.executable_code,
            "codeExecutionResult": part.code_execution_result,
        }
        carried: dict[str, object] = {name: value for name, value in fields.items() if bytes(value)}
        if not carried:
            self._text("", part.thought_signature, [])  # a late signature may come by itself
            return
        if part.thought_signature:
            carried["thoughtSignature"] = part.thought_signature
        self._piece(Piece("part", signature=part.thought_signature, part=Raw(msgspec.json.encode(carried))))

    def _piece(self, piece: Piece) -> None:
        if self._run:
            self._pieces.append(Piece("text", length=self._run))
            self._run = 0
        self._pieces.append(piece)

    # ------------------------------------------------------------ the end

    def _finish(self, out: list[Event]) -> None:
        reason, explanation = self._reason()
        if self._in_pieces.begun.name and reason == "stop":
            raise UpstreamProtocolError("the upstream finished inside of a function call")
        searched = self._searched(out)
        if reason == "stop" and not self._said and not searched:
            raise UpstreamGaveUp("the upstream finished without any content")
        if self._run:
            self._pieces.append(Piece("text", length=self._run))
        self._done = True
        out.append(
            Finished(
                reason,
                _usage(self._usage, searched),
                explanation=explanation,
                state=write(State(tuple(self._pieces))),
                model=self._model,
                notes=tuple(self._notes),
            )
        )

    def _reason(self) -> tuple[Reason, str]:
        found, blocked = self._candidate.finish_reason, self._feedback
        said = f"{found}: {self._candidate.finish_message or ''}".rstrip(": ")
        if found and (word := found.rpartition(".")[2].upper()) in REASONS:  # `stop`, `FinishReason.STOP` at gateways
            reason = REASONS[word]
            return reason, said if reason == "refusal" else ""
        if found:
            raise UpstreamGaveUp(f"the upstream gave up on its answer with {said}")
        if blocked.block_reason:
            return "refusal", f"the prompt was blocked, {blocked.block_reason}: {blocked.block_reason_message}".rstrip(
                ": "
            )
        if self._sse is None or self._empty:
            raise UpstreamGaveUp("the upstream's answer holds no finished candidate")
        raise TruncatedStream("the upstream closed before a finishReason")

    def _searched(self, out: list[Event]) -> int:
        """Google's searches, which it tells about at the end, as the API's own blocks."""
        found = self._grounding
        if not found.web_search_queries:
            return 0
        out += citations(found)
        out += map(WholeBlock, search_blocks(found, self._id))
        return len(found.web_search_queries)


def _tells(told: Tokens) -> bool:
    """All zero is a gateway that does not count, or a chunk that tells something else (`trafficType`)."""
    return told.prompt_token_count > 0 or told.candidates_token_count > 0


def _usage(told: Tokens | None, searches: int) -> Usage | None:
    if told is None:
        return None
    prompt, thoughts = max(told.prompt_token_count, 0), max(told.thoughts_token_count, 0)
    cached = min(max(told.cached_content_token_count, 0), prompt)
    return Usage(
        input_tokens=prompt - cached + max(told.tool_use_prompt_token_count, 0),
        output_tokens=max(told.candidates_token_count, 0) + thoughts,
        cache_read=cached,
        thinking_tokens=thoughts,
        searches=searches,
    )

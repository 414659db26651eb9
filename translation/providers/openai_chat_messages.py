"""The history as chat messages: R4, R5 and R6.

One assistant message holds text and calls. Results are `tool` messages in call order; a failed one begins with
`Error: `. What else the user said follows as one `user` message: text, then what was lifted out of results, since a
`tool` message takes text only.
"""

from typing import assert_never

import msgspec

from translation import plain
from translation.adapter import Target
from translation.errors import InvalidRequest
from translation.names import ToolNames
from translation.patterns import matches
from translation.providers.openai_chat_alike import Alike, alike, arguments, text_of
from translation.providers.openai_chat_parts import Json, file_part, kind, text_part
from translation.providers.openai_chat_state import IN_A_CALL, IN_A_MESSAGE, THOUGHTS, State, read
from translation.state import OUR_SIGNATURE
from translation.toolcall_ids import CallIds
from translation.values import (
    Block,
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

NO_OUTPUT = "(no output)"
NO_CONTENT = "(no content)"  # a turn of which nothing may be sent: roles still alternate
NOTED = "(results noted)"  # stands between results and what else the user said


class History:
    """Builds the messages of one request. `notes` says what could not be told as it was."""

    def __init__(self, request: Request, target: Target, names: ToolNames) -> None:
        self._request = request
        self._target = target
        self._profile = target.profile
        self._names = names
        self._ids = CallIds(target)
        self._always = matches(target.model, target.profile.always_thinks)  # and keeps what it thought, in every turn
        self._replay = target.profile.replay_reasoning
        self._in_text = target.profile.tool_results == "user_text"
        # Whose messages, when they are one text, are that text and nothing more.
        thinks = self._replay == "always" or (self._replay == "tool_turns" and self._always)
        self._terse = ("user",) if thinks else ("user", "assistant")
        self._called: dict[str, str] = {}  # tool_use_id -> name, for captions
        self._lost = 0  # tool turns whose reasoning nobody has any more
        self._thought = self._replayed = 0  # turns that had reasoning to go back, and those whose reasoning does
        self._degraded: dict[str, Note] = {}  # by their rules: each about the newest message that it happened to
        self._place = -1  # of the message that is being told
        self._newest = len(request.messages) - 1  # of what is not the assistant's
        while self._newest > 0 and request.messages[self._newest].role == "assistant":
            self._newest -= 1

    def messages(self, system: str) -> list[Json]:
        out: list[Json] = [{"role": self._profile.system_role, "content": system}] if system else []
        self._tell(out)
        if out and out[-1]["role"] == "assistant":
            self._prefill(out[-1])
        return out

    def _tell(self, out: list[Json]) -> None:
        messages, terse, result = self._request.messages, self._terse, self._ids.result
        for index, (message, same) in enumerate(zip(messages, alike.all(messages), strict=True)):
            if type(same) is msgspec.Raw:
                if message.role in terse and (message.origin is None or not _signs(message.origin)):
                    out.append({"role": message.role, "content": same})
                    continue
            elif same is not None and same.results and not self._in_text:
                out += [{"role": "tool", "tool_call_id": result(id_), "content": told} for id_, told in same.results]
                continue
            elif same is not None and same.functions and (told := self._calling(message, same)) is not None:
                out.append(told)
                continue
            out += self._anew(message, index)

    def _anew(self, message: Message, index: int) -> list[Json]:
        self._place = index
        match message.role:
            case "assistant":
                return [self._assistant(message)]
            case "user":
                return self._user(message.blocks, index)
            case "system":
                return [self._system(message)]
            case _:
                assert_never(message.role)

    @property
    def notes(self) -> tuple[Note, ...]:
        notes = [*self._degraded.values()]
        if self._lost:
            what = f"the reasoning of {self._lost} tool turns is lost; a placeholder stands for it"
            notes.append(Note("substitution", "reasoning-substituted", what))
        if self._replayed < self._thought:
            what = f"thinking_replayed {self._replayed}/{self._thought}: the rest is not this upstream's"
            notes.append(Note("degradation", "thinking-replayed", what))
        return tuple(notes)

    def _prefill(self, last: Json) -> None:
        if self._profile.prefill_field:
            last[self._profile.prefill_field] = True
        elif not self._profile.prefill_params:
            self._place = -1
            self._degrade("prefill", "the last message is the assistant's; this upstream may begin anew after it")

    def _degrade(self, rule: str, what: str) -> None:
        self._degraded[rule] = Note("degradation", rule, what, self._place)

    def _system(self, message: Message) -> Json:
        text = plain.join(message.blocks) or NO_CONTENT
        if self._profile.mid_system:
            return {"role": self._profile.system_role, "content": text}
        return {"role": "user", "content": f"<system-reminder>\n{text}\n</system-reminder>"}

    # ------------------------------------------------------------ assistant

    def _assistant(self, message: Message) -> Json:
        texts: list[str] = []
        calls: list[Json] = []
        last: Block | None = None
        stated = message.origin is not None and message.origin.state
        for block in message.blocks:
            if type(block) is Text:
                if type(last) is Text and (last.citations or block.citations):
                    texts[-1] += block.text  # a sentence that is cut where its sources change
                else:
                    texts.append(block.text)
            elif type(block) is ToolUse:
                calls.append(self._call(block))
                stated = stated or (block.link is not None and block.link.origin.state)
            elif type(block) not in (Thinking, RedactedThinking):  # which go back by provenance only: `_reasoning`
                texts.append(self._worded(block))
            last = block
        content = _lines(texts)
        kept = stated or self._replay != "never"
        reasoning: Json = self._recalled(message, calls=bool(calls)) if kept else {}
        if reasoning and self._profile.think_tags:
            thought = reasoning.pop(self._profile.reasoning_field, "")
            content = _tagged(thought, self._profile.think_tags, content)
        out: Json = {"role": "assistant", "content": _known(content, message.blocks)}
        if not content:
            out["content"] = None if calls else NO_CONTENT
        if reasoning:
            out |= reasoning
        if calls:
            out["tool_calls"] = calls
        return out

    def _call(self, use: ToolUse, known: msgspec.Raw | None = None) -> Json:
        self._called[use.id] = use.name
        name = self._names.upstream(use.name)
        function = {"name": name, "arguments": arguments(use)} if known is None or name != use.name else known
        out: Json = {"id": self._ids.call(use), "type": "function", "function": function}
        if use.link is not None and IN_A_CALL in use.link.origin.state:
            origin = use.link.origin
            out |= read(origin, self._target.model).call if origin.upstream == self._target.upstream else {}
        return out

    def _calling(self, message: Message, same: Alike) -> Json | None:
        """An answer as every request tells it; None of one that whoever made it needs more of."""
        uses = same.uses
        if self._replay != "never" or (message.origin is not None and message.origin.state):
            return None
        if message.blocks is not same.blocks:  # there are links in them
            uses = tuple([block for block in message.blocks if type(block) is ToolUse])
            if any(use.link is not None and use.link.origin.state for use in uses):
                return None
        return {"role": "assistant", "content": same.content, "tool_calls": [*map(self._call, uses, same.functions)]}

    def _recalled(self, message: Message, *, calls: bool) -> Json:
        """What goes back of what this upstream told beside the answer: of a signature it alone knows what it is for."""
        thinks = self._replay == "always" or (self._replay == "tool_turns" and (calls or self._always))
        if not (thinks or calls or _signs(message.origin)):
            return {}
        state = self._state(message)
        if thinks:
            return self._reasoning(message, state, calls=calls) | state.fields
        details = {"reasoning_details": state.reasoning_details} if calls and state.reasoning_details else {}
        return details | state.fields

    def _reasoning(self, message: Message, state: State, *, calls: bool) -> Json:
        found: Json = {}
        told = bool(self._profile.reasoning_placeholder)  # its own field is asked for
        if state.reasoning_details and not told:
            found = {"reasoning_details": state.reasoning_details}
        elif not THOUGHTS.isdisjoint(state.fields) and not told:
            found = state.fields
        elif state.reasoning_content.strip():
            found = {self._field(state): state.reasoning_content}
        self._replayed += bool(found)
        self._thought += bool(found) or any(isinstance(each, Thinking | RedactedThinking) for each in message.blocks)
        if found:
            return found
        if not (calls and self._profile.reasoning_placeholder and self._thinks()):
            return {}
        self._lost += 1
        return {self._profile.reasoning_field: self._profile.reasoning_placeholder}

    def _field(self, state: State) -> str:
        """vLLM reads only `reasoning`, which it writes; SGLang and llama.cpp only `reasoning_content`."""
        asked = self._profile.reasoning_placeholder or self._profile.think_tags
        return self._profile.reasoning_field if asked or not state.field else state.field

    def _thinks(self) -> bool:
        return self._always or self._request.thinking is None or self._request.thinking.kind != "disabled"

    def _state(self, message: Message) -> State:
        """What this upstream left with the message or its calls, or its thinking as the client has it."""
        origins = [
            message.origin,
            *(use.link.origin for use in message.blocks if isinstance(use, ToolUse) and use.link),
        ]
        own = [origin for origin in origins if origin is not None and origin.upstream == self._target.upstream]
        for origin in own:
            if origin.state:
                return read(origin, self._target.model)
        if any(origins) and not own:
            return State()
        thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
        return State("".join(block.text for block in thoughts if own or not _is_signed_elsewhere(block)))

    # ------------------------------------------------------------ user

    def _user(self, blocks: tuple[Block, ...], place: int) -> list[Json]:
        out: list[Json] = []
        parts: list[Json] = []
        lifted: list[Json] = []
        for index, block in enumerate(blocks):
            if type(block) is ToolResult:
                out.append(self._result(block, lifted))
                continue
            if type(block) is Text:
                parts += [text_part(block.text)] if block.text else []
                continue
            for piece in self._pieces(block):
                parts += self._part(piece, f"messages.{place}.content.{index}", new=place >= self._newest)
        parts += lifted
        if not parts and out:
            return out
        if all(part["type"] == "text" for part in parts):
            text = "\n".join(part["text"] for part in parts)
            return self._after(out, text or NO_CONTENT)
        return self._after(out, parts)

    def _after(self, results: list[Json], content: str | list[Json]) -> list[Json]:
        """What the user said beside results, as a message of its own."""
        said = {"role": "user", "content": content}
        if (
            not results
            or results[-1]["role"] != "tool"
            or not matches(self._target.model, self._profile.answers_results)
        ):
            return [*results, said]
        self._degrade(
            "answer-inserted", f"{self._target.model} takes no user message after a result: one of ours between"
        )
        return [*results, {"role": "assistant", "content": NOTED}, said]

    def _result(self, result: ToolResult, lifted: list[Json]) -> Json:
        id_ = self._ids.result(result.tool_use_id)
        if not self._in_text and (only := text_of(result)) is not None:
            return {"role": "tool", "tool_call_id": id_, "content": only.json}
        texts: list[str] = []
        files: list[Json] = []
        for block in result.blocks:
            if type(block) is Text:
                texts.append(block.text)
                continue
            for piece in self._pieces(block):
                file = file_part(piece, self._profile)
                if file:
                    files.append(file)
                else:
                    texts.append(self._worded(piece))
        content = _lines(texts) or ("(see the file below)" if files else NO_OUTPUT)
        if files:
            name = self._called.get(result.tool_use_id, "a tool")
            lifted.append(text_part(f"[from the result of {name}, call {id_}]"))
            lifted += files
        content = f"Error: {content}" if result.is_error else content
        if self._in_text:
            return {"role": "user", "content": f"Tool Result ({self._called.get(result.tool_use_id, id_)}):\n{content}"}
        return {"role": "tool", "tool_call_id": id_, "content": _known(content, result.blocks)}

    def _pieces(self, block: Block) -> tuple[Block, ...]:
        if plain.is_cited(block):
            self._degrade("citations-ignored", f"{self._target.model} does not cite the documents that it is given")
        return plain.unpacked(block, self._takes)

    def _takes(self, image: Image) -> bool:
        taken = file_part(image, self._profile) is not None
        if not taken:
            self._degrade("content-left-out", f"{self._target.model} takes no {kind(image)} of a document")
        return taken

    def _part(self, block: Block, path: str, *, new: bool) -> list[Json]:
        """What the model does not take is the client's fault in the newest turn; older ones were for another model."""
        file = file_part(block, self._profile)
        if file:
            return [file]
        if new and plain.is_wordless(block):
            raise InvalidRequest(f"{path}: {self._target.model} at {self._target.upstream} takes no {kind(block)}")
        text = self._worded(block)
        return [text_part(text)] if text else []

    def _worded(self, block: Block) -> str:
        if plain.is_wordless(block):
            what = kind(block)
            self._degrade("content-left-out", f"{self._target.model} takes no {what}; a line of text stands for it")
            return f"[{what} left out: this model does not take it]"
        if isinstance(block, ServerToolUse | ServerToolResult | Other):
            self._degrade("block-summarised", f"a `{block.type}` block was summarised as text")
        return plain.words(block)


def _is_signed_elsewhere(thought: Thinking) -> bool:
    """Of an answer that the store does not know: Claude signs what it thinks; models that want theirs back do not."""
    return bool(thought.signature) and not thought.signature.startswith(OUR_SIGNATURE)


def _signs(origin: Origin | None) -> bool:
    """Whether whoever made a message left more of it than words."""
    return origin is not None and IN_A_MESSAGE in origin.state


def _lines(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else "\n".join([text for text in texts if text])


def _known(content: str, blocks: tuple[Block, ...]) -> str | msgspec.Raw:
    """As JSON already, where it is what the first block says, as it nearly always is."""
    first = blocks[0] if blocks else None
    return first.json if type(first) is Text and first.text is content else content


def _tagged(thought: str, tags: tuple[str, str], content: str) -> str:
    """Reasoning where the model's template looks for it; a client that has it in its text brought it along."""
    opening, closing = tags
    if not thought or content.startswith(opening):
        return content
    return f"{opening}\n{thought}\n{closing}" + (f"\n\n{content}" if content else "")

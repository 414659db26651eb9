"""The user turn after an answer: each of its calls gets exactly one result, in call order, before everything else."""

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from translation.values import Block, Note, RedactedThinking, Text, Thinking, ToolResult, ToolUse

INTERRUPTED = (Text("[no result: interrupted]"),)
NO_OUTPUT = (Text("(no output)"),)


class Call(Struct, frozen=True):
    """A call that waits for its result: the id as the client wrote it and as it is sent on."""

    id: str
    sent: str


def answered(blocks: tuple[Block, ...], calls: tuple[Call, ...], index: int, notes: list[Note]) -> tuple[Block, ...]:
    """The blocks of the user turn that follows `calls`, in legal order."""
    turn = _Turn(index, notes)
    if not calls:
        return tuple([kept for block in blocks for kept in turn.kept(block)])
    waiting = {call.id for call in calls}
    results: dict[str, list[ToolResult]] = {}
    rest: list[Block] = []
    for block in blocks:
        if type(block) is ToolResult and block.tool_use_id in waiting:
            if rest:
                turn.note("results-first", "a result came after other content")
            results.setdefault(block.tool_use_id, []).append(block)
        else:
            rest += turn.kept(block)
    if list(results) != list(dict.fromkeys(call.id for call in calls if call.id in results)):
        turn.note("results-ordered", "the results were put into the order of the calls")
    return (*_paired(calls, results, turn), *rest)


def demoted(result: ToolResult) -> list[Block]:
    """A result that answers no call of its turn, as plain content."""
    text = "\n".join(block.text for block in result.blocks if type(block) is Text)
    mark = "(error) " if result.is_error else ""
    said = f"[result of an earlier tool call {result.tool_use_id}] {mark}{text or NO_OUTPUT[0].text}"
    return [Text(said), *(block for block in result.blocks if type(block) is not Text)]


def is_blank(text: Text) -> bool:
    return not text.text or text.text.isspace()


class _Turn(Struct, frozen=True):
    index: int
    notes: list[Note]

    def note(self, rule: str, what: str) -> None:
        note = Note("repair", rule, f"messages.{self.index}: {what}", message=self.index)
        if note not in self.notes[-1:]:
            self.notes.append(note)

    def kept(self, block: Block) -> list[Block]:
        """What becomes of a block that is not a result of this turn's calls."""
        if type(block) is Text:
            if not is_blank(block):
                return [block]
            self.note("empty-dropped", "an empty text was left out")
            return []
        if type(block) is ToolResult:
            self.note("orphan-result-demoted", f"{block.tool_use_id} answers no call right before it: now text")
            return demoted(block)
        if type(block) is ToolUse:
            self.note("call-in-user-message", f"the call {block.id} became text")
            return [Text(f"[tool call {block.name}] {block.input.decode()}")]
        if isinstance(block, Thinking | RedactedThinking):
            self.note("thinking-in-user-message", "thinking was left out")
            return []
        return [block]


def _paired(calls: tuple[Call, ...], results: dict[str, list[ToolResult]], turn: _Turn) -> list[ToolResult]:
    """One result per call. Of too many the last count; calls that share an id take theirs in turn."""
    shares = Counter(call.id for call in calls)
    for id_, given in results.items():
        if len(given) > shares[id_]:
            turn.note("duplicate-result-dropped", f"{id_} was answered {len(given)} times: the last one counts")
            del given[: -shares[id_]]
    answers = []
    for call in calls:
        if results.get(call.id):
            answers.append(_filled(results[call.id].pop(0), call, turn))
        else:
            turn.note("result-missing", f"the call {call.id} had no result: marked as interrupted")
            answers.append(ToolResult(call.sent, INTERRUPTED, is_error=True))
    return answers


def _filled(result: ToolResult, call: Call, turn: _Turn) -> ToolResult:
    blocks = tuple(block for block in result.blocks if type(block) is not Text or not is_blank(block))
    if not blocks:
        turn.note("result-empty", f"the result of {call.id} was empty")
        blocks = NO_OUTPUT
    elif len(blocks) < len(result.blocks):
        turn.note("empty-dropped", f"an empty text in the result of {call.id} was left out")
    elif call.id == call.sent:
        return result
    return replace(result, tool_use_id=call.sent, blocks=blocks)

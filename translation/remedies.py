"""Self-healing: what to change about a request that an upstream refused for one parameter.

The shell asks `remedy` about a 400 or 422, retries with the profile that `remembered` gives, and keeps the remedy
for that upstream and model.
"""

import re

import msgspec

from translation.adapter import UpstreamRequest
from translation.overflow import answer_limit, answer_most
from translation.providers.profile import Profile
from translation.refusals import read
from translation.schema_levels import fewer


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    why: str  # the upstream's own words
    drop: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    tools_without_reasoning: bool = False  # tools only at effort `none`
    tool_limit: int = 0  # how many functions it takes
    description_limit: int = 0  # and characters of the description of one
    json_schemas: bool = False  # Gemini: schemas as JSON Schema, where an object may be open
    schema_levels: int = 0  # Gemini: how deep a schema is nested
    max_output: int = 0  # the model's longest answer
    max_tokens: int | None = None  # for this one request: what still fits


class _Tool(msgspec.Struct):
    type: str = ""


class _Tools(msgspec.Struct):
    tools: list[_Tool] = []


# Without these the answer is another one: never dropped.
KEPT = frozenset(
    ("model", "messages", "tools", "tool_choice", "stream", "response_format", "max_tokens", "max_completion_tokens")
)
RENAMED = re.compile(r"'(?P<old>\w+)' is not supported.*?\buse '(?P<new>\w+)' instead", re.IGNORECASE | re.DOTALL)
TOOLS_WITHOUT_REASONING = re.compile(r"function tools with reasoning_effort are not supported", re.IGNORECASE)
TOO_MANY_TOOLS = re.compile(r"'tools': array too long\. Expected an array with maximum length (?P<most>\d+)")
TOO_LONG = re.compile(  # Azure's
    r"'tools\[\d+\]\.(?:function\.)?description': string too long\. Expected a string with maximum length (?P<most>\d+)"
)
OPEN_OBJECT = re.compile(r"\.properties: should be non-empty for OBJECT type")
TOO_DEEP = re.compile(r"exceeds the maximum allowed nesting depth", re.IGNORECASE)
WORDED = (  # refusals that do not name the parameter, or one inside of it
    # Of an organisation that is not verified: summaries are left out, answers come whole.
    (re.compile(r"verified to generate reasoning summaries", re.IGNORECASE), ("reasoning.summary",)),
    (  # Anthropic's, of all strict tools of a request together
        re.compile(
            r"too many (?:strict tools|optional parameters|parameters with union types)|compiled grammar is too large",
            re.IGNORECASE,
        ),
        ("tools.strict",),
    ),
    (  # Claude's: of models up to 4.5, of a level, and as Copilot says it
        re.compile(r"does not support (?:the effort parameter|effort level)|\boutput_config\.effort\b", re.IGNORECASE),
        ("effort",),
    ),
    # Of servers that only speak like Anthropic: schemas go there as the client wrote them.
    (re.compile(r"is not a [\"']regex[\"']", re.IGNORECASE), ("tools.pattern",)),
    (re.compile(r"\btext\.verbosity\b"), ("text.verbosity",)),  # beside it stands the form of the answer
    (re.compile(r"verified to stream this model", re.IGNORECASE), ("stream", "stream_options")),
    (re.compile(r"encrypted content is not supported with this model", re.IGNORECASE), ("include",)),
    (re.compile(r"reasoning is mandatory for this endpoint", re.IGNORECASE), ("reasoning",)),  # OpenRouter
    (re.compile(r"cannot specify both 'thinking' and 'reasoning_effort'", re.IGNORECASE), ("thinking",)),  # Kimi
    (re.compile(r"always engages in thinking and cannot be disabled", re.IGNORECASE), ("thinking",)),  # GLM
    (re.compile(r"invalid reasoning value", re.IGNORECASE), ("reasoning_effort",)),  # Ollama
    # Google's, of what stands deeper in a request of Gemini's.
    (
        re.compile(
            r"thinking[ _](?:level|budget)\b.{0,30}(?:not supported|is invalid)|only works in thinking mode"
            r"|does not support setting thinking_budget",
            re.IGNORECASE,
        ),
        ("thinkingLevel", "thinkingBudget"),
    ),
    (re.compile(r"has a topK value of \d+ but the supported range"), ("topK",)),
    (re.compile(r'Unknown name \\?"id\\?" at .{0,40}function_(?:call|response)'), ("functionCall.id",)),
)
VALUE = re.compile(r"unsupported value: ", re.IGNORECASE)  # names the value, or the parameter
NO_THINKING = re.compile(r"does not support thinking|thinking is not supported", re.IGNORECASE)
REFUSED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"unsupported (?:parameter|value): '(?P<names>[\w.]+)'",
        r"'(?P<names>[\w.]+)' does not support .{1,40} with this model",
        r"unknown parameter: '(?P<names>[\w.]+)'",
        r"unrecognized request arguments? supplied: (?P<names>[\w., ]+)",
        r"argument not supported(?: on this model)?: (?P<names>\w+)",
        r"does not support (?:the )?parameter '?(?P<names>\w+)",
        r"invalid (?P<names>temperature|top_p): only",
        r"body\.(?P<names>\w+): extra inputs are not permitted",
        r"'(?P<names>[\w.]+)' is not supported with this model",
        r"\b(?P<names>temperature|top_?[pk])\b['`]?(?: parameter)? is (?:not supported|no longer|deprecated)",
    )
)


def remedy(error_body: bytes, sent: UpstreamRequest) -> Remedy | None:
    complaint = read(error_body)
    if complaint is None:
        return None
    words = complaint.message
    given = _given(sent.body)
    room, most = answer_limit(words), answer_most(words)
    if room is not None or most:
        return Remedy(words, max_tokens=room, max_output=most or 0)
    unreasoned, closed = bool(TOOLS_WITHOUT_REASONING.search(words)), bool(OPEN_OBJECT.search(words))
    levels = fewer(sent.body) if TOO_DEEP.search(words) else 0
    many, long = TOO_MANY_TOOLS.search(words), TOO_LONG.search(words)
    if unreasoned or closed or many or long or levels:
        limit = max(int(many["most"]) - _hosted(sent.body), 1) if many else 0
        short = int(long["most"]) if long else 0
        return Remedy(
            words,
            tools_without_reasoning=unreasoned,
            tool_limit=limit,
            description_limit=short,
            json_schemas=closed,
            schema_levels=levels,
        )
    renamed = RENAMED.search(words)
    if renamed and renamed["old"] in given:
        return Remedy(words, rename=((renamed["old"], renamed["new"]),))
    param = (complaint.param,) if VALUE.match(words) else ()
    names = [given[name] for name in (*_refused(words), *map(_top, param)) if name in given]
    if "max_completion_tokens" in names:
        return Remedy(words, rename=(("max_completion_tokens", "max_tokens"),))
    drop = _worded(f"{words} {complaint.param}") or tuple(dict.fromkeys(name for name in names if name not in KEPT))
    return Remedy(words, drop=drop) if drop else None


def remembered(profile: Profile, known: Remedy) -> Profile:
    """The profile of an upstream's model that has taught us this."""
    return msgspec.structs.replace(
        profile,
        drop_params=(*profile.drop_params, *known.drop),
        rename_params=(*profile.rename_params, *known.rename),
        tools_without_reasoning=("*",) if known.tools_without_reasoning else profile.tools_without_reasoning,
        tool_limit=known.tool_limit or profile.tool_limit,
        description_limit=known.description_limit or profile.description_limit,
        json_schemas=profile.json_schemas or known.json_schemas,
        schema_levels=min(filter(None, (known.schema_levels, profile.schema_levels)), default=0),
        max_output=known.max_output or profile.max_output,
    )


def _given(body: bytes) -> dict[str, str]:
    """What the request holds, by its name as we write it: `topK` is `top_k`."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    inner = msgspec.json.decode(fields.get("generationConfig", b"{}"), type=dict[str, msgspec.Raw])
    return {_top(name): name for name in (*fields, *inner)}


def _hosted(body: bytes) -> int:
    """How many tools of the request the upstream runs itself: it counts them, too."""
    return sum(tool.type != "function" for tool in msgspec.json.decode(body, type=_Tools).tools)


def _worded(words: str) -> tuple[str, ...]:
    return next((names for pattern, names in WORDED if pattern.search(words)), ())


def _refused(words: str) -> list[str]:
    """Names of top-level parameters, as we write them: `reasoningEffort` and `reasoning.effort` alike."""
    if NO_THINKING.search(words):
        return ["reasoning_effort", "reasoning", "thinking", "chat_template_kwargs", "thinking_config"]
    found = [name for pattern in REFUSED for match in pattern.finditer(words) for name in match["names"].split(",")]
    return list(dict.fromkeys(map(_top, found)))


def _top(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name.strip().split(".")[0]).lower()

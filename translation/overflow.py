"""Context overflow, in whatever words an upstream says it, as the one sentence that clients act on.

Clients compact their history when an error starts with `prompt is too long`, by as much as its numbers say.
"""

import re
from fnmatch import fnmatchcase

from translation.adapter import Target
from translation.errors import PromptTooLong, UpstreamRefused

CODES = ("context_length_exceeded", "model_max_prompt_tokens_exceeded", "exceed_context_size_error", "1261")

# What providers and servers write, with the tokens found (n) and allowed (m) where they tell them.
NUMBERED = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"prompt is too long: (?P<n>\d+) tokens > (?P<m>\d+) maximum",
        r"exceed context limit: (?P<a>\d+) \+ (?P<b>\d+) > (?P<m>\d+)",
        r"tokens.{0,40}is too large: (?P<b>\d+)\b.*?context length is (?P<m>\d+) .*? has (?P<a>\d+) input tokens",
        (
            r"maximum context length (?:is|of) (?P<m>\d+) tokens"
            r".*?(?:resulted in|request has|requested(?: about| a total of)?) (?P<n>\d+)"
        ),
        r"passed (?P<a>\d+) input tokens and requested (?P<b>\d+) output tokens.*?context length is only (?P<m>\d+)",
        r"maximum prompt length is (?P<m>\d+).*?contains (?P<n>\d+) tokens",
        r"configured limit of (?P<m>\d+) tokens.*?resulted in (?P<n>\d+) tokens",
        r"prompt \((?:total )?length (?P<n>\d+)\).*?(?:context length|maximum model length of) (?P<m>\d+)",
        r"input \((?P<n>\d+) tokens\) is longer than the model's context length(?: \((?P<m>\d+) tokens\))?",
        r"request \((?P<n>\d+) tokens\) exceeds the available context size \((?P<m>\d+) tokens\)",
        r"prompt contains (?P<n>\d+) tokens.*?too large for model with (?P<m>\d+) maximum context length",
        r"exceeded model token limit: (?P<m>\d+)(?: \(requested: (?P<n>\d+)\))?",
        r"input token count \(?(?P<n>\d+)\)? exceeds the maximum number of tokens allowed \(?(?P<m>\d+)\)?",
        r"prompt token count of (?P<n>\d+) exceeds the limit of (?P<m>\d+)",
        r"prompt length (?P<n>\d+) is greater than max_seq_len (?P<m>\d+)",
        r"input length should be \[1, (?P<m>\d+)\]",
    )
)
WORDED = re.compile(
    r"exceeds the (?:available )?context (?:window|size|length)|context window exceeds limit|prompt exceeds max length"
    r"|exceeded max context length|input is too long for requested model|input token length too long"
    r"|reduce the length of the (?:messages|prompt|input)|prompt is too long",
    re.IGNORECASE,
)
# The prompt (n, or all of t that is not c) fits; the answer that was asked for (c) does not fit beside it.
ANSWER = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        (
            r"max_(?:completion_)?tokens.{0,40}is too large.*?maximum context length is (?P<m>\d+) tokens"
            r" and your request has (?P<n>\d+) input tokens"
        ),
        (
            r"maximum context length (?:is|of) (?P<m>\d+) tokens.*?requested(?: about| a total of)? (?P<t>\d+) tokens"
            r".*?(?P<c>\d+) (?:tokens )?(?:in|for|of) the (?:completion|output)"
        ),
        r"exceed context limit: (?P<n>\d+) \+ \d+ > (?P<m>\d+)",
        r"passed (?P<n>\d+) input tokens and requested \d+ output tokens.*?context length is only (?P<m>\d+)",
    )
)
# The model never answers with as much as was asked for.
FIELD = r"max_(?:completion_|output_)?tokens"
MOST = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"supports at most (?P<most>\d+) completion tokens",
        rf"range of `?{FIELD}`? (?:is|should be) \[\d+, ?(?P<most>\d+)\]",
        rf"{FIELD}`? must be (?:less than or equal to|at most|<=) `?(?P<most>\d+)",
        rf"{FIELD}\b.{{0,80}}?expected a value <= (?P<most>\d+)",
        rf"{FIELD}: \d+ > (?P<most>\d+), which is the maximum allowed",  # Anthropic
        r"maxOutputTokens value of \d+ but the supported range is from 1 \(inclusive\) to (?P<beyond>\d+) \(excl",
    )
)


def overflow(message: str, code: str = "") -> PromptTooLong | UpstreamRefused | None:
    """The client's error, if that is what the upstream's error says; the upstream's where a shorter answer would do."""
    if answer_most(message) is not None:
        return None
    for pattern in NUMBERED:
        found = pattern.search(message)
        if found:
            too_long = PromptTooLong(*_numbers(found.groupdict()))
            return too_long if answer_limit(message) is None else UpstreamRefused(too_long.message)
    if code in CODES or WORDED.search(message):
        return PromptTooLong()
    return None


def counted(error: PromptTooLong, target: Target, estimate: int) -> PromptTooLong:
    """With both numbers: the upstream's own where it told them, else our estimate and the model's known window.

    The upstream has found more than the maximum, so the estimate is at least that. Where nobody knows the window, all
    that is known is that it is smaller than the prompt.
    """
    limit = error.limit or window(target)
    found = error.found or max(estimate, limit + 1, 2)
    return PromptTooLong(found, limit if 0 < limit < found else found - 1)


def window(target: Target) -> int:
    """The largest prompt that the model takes, 0 when that is not known."""
    name = target.model.lower().rpartition("/")[2]
    return next((tokens for pattern, tokens in target.profile.windows if fnmatchcase(name, pattern)), 0)


def answer_limit(message: str) -> int | None:
    """How many tokens of answer still fit, where the upstream says that `max_tokens` alone is too large."""
    for pattern in ANSWER:
        if found := pattern.search(message):
            told = {name: int(number) for name, number in found.groupdict().items()}
            room = told["m"] - (told["n"] if "n" in told else told["t"] - told["c"])
            return room if room > 0 else None
    return None


def answer_most(message: str) -> int | None:
    """The longest answer of the model, where the upstream says that `max_tokens` is more than that."""
    for pattern in MOST:
        found = pattern.search(message)
        if found:
            told = found.groupdict()
            return int(told["most"]) if "most" in told else int(told["beyond"]) - 1
    return None


def _numbers(told: dict[str, str | None]) -> tuple[int, int]:
    """How many tokens were found and how many are allowed; 0 where it does not say."""
    number = {name: int(text) for name, text in told.items() if text}
    return number.get("n", 0) or number.get("a", 0) + number.get("b", 0), number.get("m", 0)

"""Context overflow, in whatever words an upstream says it, as the one sentence that clients act on.

Clients compact their history when an error starts with `prompt is too long`.
"""

import re

from translation.errors import PromptTooLong

CODES = ("context_length_exceeded", "model_max_prompt_tokens_exceeded", "exceed_context_size_error", "1261")

# What providers and servers write, with the tokens found (n) and allowed (m) where they tell them.
NUMBERED = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"prompt is too long: (?P<n>\d+) tokens > (?P<m>\d+) maximum",
        r"exceed context limit: (?P<a>\d+) \+ (?P<b>\d+) > (?P<m>\d+)",
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
        r"exceeded model token limit: (?P<m>\d+) \(requested: (?P<n>\d+)\)",
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
# vLLM: the prompt fits, the answer that was asked for does not.
ANSWER = re.compile(
    r"max_(?:completion_)?tokens.{0,40}is too large.*?maximum context length is (?P<m>\d+) tokens"
    r" and your request has (?P<n>\d+) input tokens",
    re.DOTALL,
)


def overflow(message: str, code: str = "") -> PromptTooLong | None:
    """The client's error, if that is what the upstream's error says."""
    if answer_limit(message) is not None:
        return None
    for pattern in NUMBERED:
        found = pattern.search(message)
        if found:
            return PromptTooLong(_sentence(found.groupdict()))
    if code in CODES or WORDED.search(message):
        return PromptTooLong(f"prompt is too long: the upstream told no token counts, but: {message[:300]}")
    return None


def answer_limit(message: str) -> int | None:
    """How many tokens of answer still fit, where the upstream says that `max_tokens` alone is too large."""
    found = ANSWER.search(message)
    if not found:
        return None
    room = int(found["m"]) - int(found["n"])
    return room if room > 0 else None


def _sentence(numbers: dict[str, str | None]) -> str:
    limit = numbers["m"]
    found = numbers.get("n") or (str(int(numbers["a"] or 0) + int(numbers["b"] or 0)) if "a" in numbers else None)
    if found and limit:
        return f"prompt is too long: {found} tokens > {limit} maximum"
    if found:
        return f"prompt is too long: {found} tokens, more than the model's maximum"
    return f"prompt is too long: more tokens than the {limit} maximum"

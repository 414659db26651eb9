"""What the models of a provider take, by patterns of their names; the first that fits counts."""

from translation.providers.profile import Choice

# OpenAI refuses a level that a model does not know (`Unsupported value: 'minimal' is not supported with ...`).
OPENAI_EFFORTS = (
    ("gpt-6-astra*", ("low", "medium", "high", "xhigh")),
    ("gpt-[6-9]*", ("none", "low", "medium", "high", "xhigh")),
    ("gpt-5*-chat*", ("medium",)),
    ("gpt-5-pro*", ("high",)),
    ("gpt-5.[2-9]*-pro*", ("medium", "high", "xhigh")),
    ("gpt-5.[2-9]*", ("none", "low", "medium", "high", "xhigh")),
    ("gpt-5.1-codex-max*", ("none", "low", "medium", "high", "xhigh")),
    ("gpt-5.1*", ("none", "low", "medium", "high")),
    ("gpt-5-codex*", ("low", "medium", "high")),
    ("gpt-5*", ("minimal", "low", "medium", "high")),
)
# `max` is the Responses API's only.
RESPONSES_EFFORTS = (
    ("gpt-5*-chat*", ("medium",)),
    ("gpt-6-astra*", ("low", "medium", "high", "xhigh", "max")),
    ("gpt-[6-9]*", ("none", "low", "medium", "high", "xhigh", "max")),
    ("gpt-5.[6-9]*", ("none", "low", "medium", "high", "xhigh", "max")),
    *OPENAI_EFFORTS,
)
RESPONSES_EXTRAS = (
    "response_format", "verbosity", "service_tier", "metadata", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "prompt_cache_options",
)  # fmt: skip
OPENAI_MODELS = ("gpt-*", "chatgpt-*", "codex-*", "o[0-9]*", "ft:*")
OPENAI_REASONING = ("o[0-9]*", "gpt-[5-9]*")
# `Unsupported parameter: 'stop' is not supported with this model`
UNGUIDED = ("stop", "presence_penalty", "frequency_penalty", "logit_bias")
OPENAI_REFUSED = (
    ("o[0-9]*", (*UNGUIDED, "parallel_tool_calls")),
    ("gpt-5-chat*", ()),
    ("gpt-5", UNGUIDED),
    ("gpt-5-*", UNGUIDED),
    ("gpt-[6-9]*", UNGUIDED),
)
# `Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions`: only effort `none` is.
OPENAI_TOOLS_WITHOUT_REASONING = ("gpt-5.[4-9]*", "gpt-[6-9]*")
# Most Grok models reason without a dial and answer 400 to one.
XAI_EFFORTS = (
    ("grok-3-mini*", ("low", "high")),
    ("grok-4.20-multi-agent*", ("low", "medium", "high", "xhigh")),
    ("grok-4.20*", ()),
    ("grok-4.3*", ("none", "low", "medium", "high")),
    ("grok-4.[45]*", ("low", "medium", "high")),
    ("grok-4.[6-9]*", ("low", "medium", "high", "xhigh")),
    ("grok-*", ()),
)
# `Model grok-4.6 does not support parameter stop`, which Claude Code's auto mode sends with every request.
XAI_PENALTIES = ("presence_penalty", "frequency_penalty")
XAI_REFUSED = (
    ("*non-reasoning*", XAI_PENALTIES),
    ("grok-3-mini*", ("stop", *XAI_PENALTIES)),
    ("grok-4*", ("stop", *XAI_PENALTIES)),
    ("grok-code*", ("stop", *XAI_PENALTIES)),
)
# `Unexpected role 'user' after role 'tool'` (3230), whoever serves the model: it is in Mistral's own request validator.
# Its servers also say `top_p must be 1 when using greedy sampling`, where the client has said nothing of `top_p`, too.
MISTRAL_MODELS = ("*stral*", "*mixtral*", "*pixtral*")
MISTRAL_EFFORTS = (
    ("mistral-large-4*", ("low", "medium", "high")),
    ("mistral-medium-3[-.]5*", ("none", "high")),
    ("mistral-medium-2604*", ("none", "high")),
    ("mistral-small-4*", ("none", "high")),
    ("mistral-small-2603*", ("none", "high")),
    ("mistral-small-latest", ("none", "high")),
)
# What its API has no word for, or other values: it refuses such a request (422).
# fmt: off
MISTRAL_REFUSED = (
    "user", "logit_bias", "verbosity", "service_tier", "prompt_cache_retention", "prompt_cache_options",
    "safety_identifier", "store", "min_p",
)
# fmt: on
# The prompt's share of the window, where that is less: an answer of 128,000 tokens is set aside.
OPENAI_WINDOWS = (
    ("gpt-[6-9]*", 922_000),
    ("gpt-5*-chat*", 128_000),
    ("gpt-5.[4-9]*mini*", 272_000),
    ("gpt-5.[4-9]*nano*", 272_000),
    ("gpt-5.[4-9]*", 922_000),
    ("gpt-5*", 272_000),
    ("gpt-4.1*", 1_047_576),
    ("gpt-4o*", 128_000),
    ("o[134]*", 200_000),
)
# `temperature is deprecated for this model`: of those after Opus 4.6.
CLAUDE_REFUSED = tuple(
    (pattern, ("temperature", "top_p", "top_k"))
    for pattern in (
        "claude-opus-4-[7-9]*", "claude-opus-[5-9]*", "claude-sonnet-[5-9]*", "claude-haiku-[5-9]*", "claude-fable-*",
        "claude-mythos-*",
    )
)  # fmt: skip
# `This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.`
CLAUDE_EFFORTS = (
    ("claude-opus-4-5*", ("low", "medium", "high")),
    ("claude-opus-4-6*", ("low", "medium", "high", "max")),
    ("claude-sonnet-4-6*", ("low", "medium", "high", "max")),
    ("claude-mythos-preview*", ("low", "medium", "high", "max")),
    # `This model does not support the effort parameter.` A date may stand where the minor version does.
    ("claude-opus-4-[0-4]*", ()),
    ("claude-sonnet-4-[0-5]*", ()),
    ("claude-haiku-4*", ()),
    ("claude-3*", ()),
    ("*", ("low", "medium", "high", "xhigh", "max")),
)
# `"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive"`, or else `between_tools`.
CLAUDE_ALWAYS_THINKS = ("claude-fable-*", "claude-mythos-*", "claude-opus-5-[5-9]*")
CLAUDE_BETWEEN_TOOLS = ("claude-sonnet-5-[5-9]*",)
# `tool_choice: type "tool" and "any" are not supported for this model.`
CLAUDE_CHOICES: tuple[tuple[str, tuple[Choice, ...]], ...] = tuple(
    (pattern, ("auto", "none")) for pattern in (*CLAUDE_ALWAYS_THINKS, *CLAUDE_BETWEEN_TOOLS)
)

"""Refusals in the words of those who write them: each a line, however long."""

# ruff: noqa: E501

# Opaque state that its own maker does not take back.
BLOBS = {
    "openai-responses": "The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
    "xai-responses": "Could not decrypt the provided encrypted_content.",
    "anthropic": "messages.1.content.0: Invalid `signature` in `thinking` block",
    "gemini": "Corrupted thought signature.",
    "openrouter": "Corrupted thought signature.",
}

USE_OTHER = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
NO_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported."
)
REFUSED: dict[str, tuple[str, str, str, str, str]] = {
    # route, path, refusal, field that goes, field that comes
    "chat renames": ("azure/learns-1", "/azure/v1/chat/completions", USE_OTHER, "max_tokens", "max_completion_tokens"),
    "chat drops": ("vllm/learns-2", "/vllm/v1/chat/completions", NO_TEMPERATURE, "temperature", ""),
    "minimax drops": (
        "minimax/learns-3",
        "/minimax/v1/chat/completions",
        "Unrecognized request argument supplied: top_k",
        "top_k",
        "",
    ),
    "responses drops": (
        "openai-responses/learns-4",
        "/openai/v1/responses",
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "temperature",
        "",
    ),
}

PAIR = "prompt is too long: 215692 tokens > 131072 maximum"
OVERFLOWS = {
    "openai": "This model's maximum context length is 131072 tokens. However, your messages resulted in 215692 tokens. Please reduce the length of the messages.",
    "azure": "This model's maximum context length is 131072 tokens. However, your messages resulted in 215692 tokens (215000 in the messages, 692 in the functions). Please reduce the length of the messages or functions.",
    "gemini": "The input token count (215692) exceeds the maximum number of tokens allowed (131072).",
    "anthropic": PAIR,
    "minimax": "This model's maximum context length is 131072 tokens. However, you requested 215692 tokens (211596 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
    "xai": "This model's maximum prompt length is 131072 but the request contains 215692 tokens.",
    "xai-responses": "This model's maximum prompt length is 131072 but the request contains 215692 tokens.",
    "deepseek": "This model's maximum context length is 131072 tokens. However, you requested 215692 tokens (211596 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
    "moonshot": "Invalid request: Your request exceeded model token limit: 131072 (requested: 215692)",
    "mistral": "Prompt contains 215692 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
    "openrouter": "This endpoint's maximum context length is 131072 tokens. However, you requested about 215692 tokens (215000 of text input, 692 of tool input). Please reduce the length of either one.",
    "vllm": "This model's maximum context length is 131072 tokens. However, your request has 215692 input tokens. Please reduce the length of the input messages.",
    "ollama": "request (215692 tokens) exceeds the available context size (131072 tokens), try increasing it",
}
# These two do not count.
UNCOUNTED = {
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "zai": "Prompt exceeds max length",
}
# The estimate of this prompt is small, so the models' known windows tell.
UNCOUNTED_PAIRS = {
    "openai-responses": "prompt is too long: 922001 tokens > 922000 maximum",
    "zai": "prompt is too long: 204801 tokens > 204800 maximum",
}

"""Context overflow in every upstream's words."""

import pytest

from translation.adapter import Target
from translation.errors import PromptTooLong, UpstreamRefused
from translation.overflow import answer_limit, counted, overflow
from translation.providers.profiles import PROFILES

EXACT = "prompt is too long: 150000 tokens > 131072 maximum"


@pytest.mark.parametrize(
    "message",
    [
        EXACT,
        "input length and `max_tokens` exceed context limit: 130000 + 20000 > 131072",
        (
            "This model's maximum context length is 131072 tokens. "
            "However, your messages resulted in 150000 tokens (140000 in the messages, "
            "10000 in the functions). Please reduce the length of the messages or functions."
        ),
        (
            "This model's maximum context length is 131072 tokens. "
            "However, you requested 150000 tokens (1 in the messages, 2 in the completion)."
        ),
        (
            "This model's maximum context length is 131072 tokens. "
            "However, your request has 150000 input tokens. Please reduce the length of the input messages."
        ),
        (
            "You passed 140000 input tokens and requested 10000 output tokens. However, the model's context length is "
            "only 131072 tokens, resulting in a maximum input length of 121072 tokens."
        ),
        (
            "This endpoint's maximum context length is 131072 tokens. "
            "However, you requested about 150000 tokens (140000 of text input, 10000 in the output)."
        ),
        (
            "Requested token count exceeds the model's maximum context length of 131072 tokens. "
            "You requested a total of 150000 tokens: 140000 tokens from the input messages and 10000 more."
        ),
        "Input tokens exceed the configured limit of 131072 tokens. Your messages resulted in 150000 tokens.",
        "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
        "The prompt (total length 150000) is too long to fit into the model (context length 131072).",
        "The decoder prompt (length 150000) is longer than the maximum model length of 131072.",
        "The input (150000 tokens) is longer than the model's context length (131072 tokens).",
        "request (150000 tokens) exceeds the available context size (131072 tokens), try increasing it",
        "Prompt contains 150000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        "Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)",
        "The input token count (150000) exceeds the maximum number of tokens allowed (131072).",
        "prompt token count of 150000 exceeds the limit of 131072",
        "Prompt length 150000 is greater than max_seq_len 131072",
    ],
)
def test_numbers_are_told_in_the_words_that_clients_know(message: str) -> None:
    found = overflow(message)
    assert found is not None
    assert found.message == EXACT


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", ""),
        ("Please shorten it.", "context_length_exceeded"),
        ("Prompt 超长", "1261"),
        ("invalid params, context window exceeds limit (2013)", ""),
        ("Prompt exceeds max length", ""),
        ("Input is too long for requested model.", ""),
        ("prompt too long; exceeded max context length by 123 tokens", ""),
        ("Range of input length should be [1, 129024]", ""),
        ("The input (345516 tokens) is longer than the model's context length", ""),
    ],
)
def test_without_numbers_it_is_known_all_the_same(message: str, code: str) -> None:
    found = overflow(message, code)
    assert isinstance(found, PromptTooLong)
    assert 0 in (found.found, found.limit)


@pytest.mark.parametrize(
    ("told", "provider", "model", "estimate", "said"),
    [
        ((150000, 131072), "openai", "gpt-4o", 7, "150000 tokens > 131072 maximum"),
        ((0, 0), "openai-responses", "gpt-5.1", 300000, "300000 tokens > 272000 maximum"),
        ((0, 0), "openai-responses", "gpt-5.1", 260000, "272001 tokens > 272000 maximum"),
        ((0, 0), "zai", "GLM-4.6", 210000, "210000 tokens > 204800 maximum"),
        ((0, 0), "vllm", "qwen3", 40000, "40000 tokens > 39999 maximum"),
        ((0, 129024), "vllm", "qwen3", 150000, "150000 tokens > 129024 maximum"),
        ((345516, 0), "vllm", "qwen3", 9, "345516 tokens > 345515 maximum"),
        ((0, 0), "vllm", "qwen3", 0, "2 tokens > 1 maximum"),
    ],
)
def test_numbers_that_the_upstream_does_not_tell_are_estimated(
    told: tuple[int, int], provider: str, model: str, estimate: int, said: str
) -> None:
    target = Target(provider, model, PROFILES[provider])
    assert counted(PromptTooLong(*told), target, estimate).message == f"prompt is too long: {said}"


def test_a_limit_may_come_without_what_was_found() -> None:
    refused = overflow("Invalid request: Your request exceeded model token limit: 262144")
    assert isinstance(refused, PromptTooLong)
    assert (refused.found, refused.limit) == (0, 262144)


def test_another_error_is_not_an_overflow() -> None:
    assert overflow("Unsupported parameter: 'max_tokens'", "unsupported_parameter") is None
    assert answer_limit("Unsupported parameter: 'max_tokens'") is None


BESIDE = {
    "vllm": (
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 "
        "tokens and your request has {prompt} input tokens (32000 > 32768 - {prompt})."
    ),
    "older vllm": (
        "This model's maximum context length is 32768 tokens. However, you requested {total} tokens ({prompt} in the "
        "messages, 32000 in the completion). Please reduce the length of the messages or completion."
    ),
    "completions": (
        "This model's maximum context length is 32768 tokens, however you requested {total} tokens ({prompt} in your "
        "prompt; 32000 for the completion). Please reduce your prompt; or completion length."
    ),
    "openrouter": (
        "This endpoint's maximum context length is 32768 tokens. However, you requested about {total} tokens ({prompt} "
        "of text input, 32000 in the output). Please reduce the length of either one."
    ),
    "sglang": (
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of "
        "{total} tokens: {prompt} tokens from the input messages and 32000 tokens for the completion."
    ),
    "claude": "input length and `max_tokens` exceed context limit: {prompt} + 32000 > 32768, decrease input length",
    "newer vllm": (
        "You passed {prompt} input tokens and requested 32000 output tokens. However, the model's context length is "
        "only 32768 tokens."
    ),
}


@pytest.mark.parametrize("who", BESIDE)
def test_an_answer_that_does_not_fit_beside_its_prompt_may_be_shorter(who: str) -> None:
    fits = BESIDE[who].format(prompt=5000, total=37000)
    assert answer_limit(fits) == 27768
    refused = overflow(fits)
    assert isinstance(refused, UpstreamRefused), "it can be sent again"
    assert refused.message == "prompt is too long: 37000 tokens > 32768 maximum", "should that be refused, too"
    longer = BESIDE[who].format(prompt=40000, total=72000)
    assert answer_limit(longer) is None
    assert isinstance(overflow(longer), PromptTooLong)

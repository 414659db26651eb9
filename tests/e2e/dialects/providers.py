"""Every provider that the bridge knows: its model here, the variable that points the bridge at it, what it speaks."""

from typing import NamedTuple

from tests.e2e.dialects.anthropic import AnthropicModel
from tests.e2e.dialects.chat import ChatModel, MiniMaxModel
from tests.e2e.dialects.dialect import Dialect
from tests.e2e.dialects.gemini import GeminiModel
from tests.e2e.dialects.responses import ResponsesModel

M3 = "]<]minimax[>["


class Provider(NamedTuple):
    name: str  # the route's prefix
    model: str
    variable: str
    dialect: Dialect

    @property
    def route(self) -> str:
        return f"{self.name}/{self.model}"


ALL = (
    Provider("openai", "gpt-5.1", "OPENAI_BASE_URL", ChatModel(id_limit=40)),
    Provider("openai-responses", "gpt-5.5", "OPENAI_BASE_URL", ResponsesModel()),
    Provider("gemini", "gemini-3-pro", "GEMINI_BASE_URL", GeminiModel()),
    Provider("anthropic", "claude-opus-4-1", "ANTHROPIC_UPSTREAM_URL", AnthropicModel()),
    Provider("minimax", "minimax-m2", "MINIMAX_BASE_URL", MiniMaxModel("<think>", "</think>")),
    Provider("minimax-m3", "minimax-m3", "MINIMAX_BASE_URL", MiniMaxModel("<mm:think>", "</mm:think>", M3)),
    Provider("xai", "grok-4", "XAI_BASE_URL", ChatModel("reasoning_content")),
    Provider("xai-responses", "grok-4.3", "XAI_BASE_URL", ResponsesModel()),
    Provider(
        "deepseek", "deepseek-reasoner", "DEEPSEEK_BASE_URL", ChatModel("reasoning_content", "tool_turns", demands=True)
    ),
    Provider(
        "moonshot", "kimi-k2-thinking", "MOONSHOT_BASE_URL", ChatModel("reasoning_content", "tool_turns", demands=True)
    ),
    Provider("zai", "glm-4.6", "ZAI_BASE_URL", ChatModel("reasoning_content", "tool_turns")),
    Provider("mistral", "magistral-medium", "MISTRAL_BASE_URL", ChatModel(parts=True, id_length=9)),
    Provider("ollama", "qwen3", "OLLAMA_BASE_URL", ChatModel("reasoning", "tool_turns")),
    Provider(
        "openrouter", "x-ai/grok-4-fast", "OPENROUTER_BASE_URL", ChatModel("reasoning", "tool_turns", details=True)
    ),
    Provider("azure", "gpt-4.1", "AZURE_BASE_URL", ChatModel(id_limit=40)),
    Provider("vllm", "qwen3-vl", "VLLM_BASE_URL", ChatModel("reasoning_content", "tool_turns")),
)
BY_NAME = {provider.name: provider for provider in ALL}
BY_MODEL = {provider.model: provider for provider in ALL}
NAMES = tuple(BY_NAME)
# One per dialect, and the markup beside it: where a thing is about the dialect and not the provider.
DIALECTS = ("openai", "openai-responses", "gemini", "minimax", "anthropic")


def settings(url: str) -> dict[str, str]:
    """The environment of a bridge in front of all of them; each has a path of its own below `url`."""
    variables = dict.fromkeys(provider.variable for provider in ALL)
    bases = {variable: f"{url}/{variable.partition('_')[0].lower()}/v1" for variable in variables}
    return bases | {"BRIDGE_UPSTREAM_RETRIES": "0"}

"""What each provider can do, as data. Logic lives in the dialect files and asks a profile, never a provider's name."""

from typing import Literal

from msgspec import Struct

Dialect = Literal["openai_chat", "openai_responses", "gemini", "minimax", "anthropic"]

# OpenAI refuses a level that a model does not know (`Unsupported value: 'minimal' is not supported with ...`).
OPENAI_EFFORTS = (
    ("gpt-5*-chat*", ("medium",)),
    ("gpt-5-pro*", ("high",)),
    ("gpt-5.[2-9]*-pro*", ("medium", "high", "xhigh")),
    ("gpt-5.[2-9]*", ("none", "low", "medium", "high", "xhigh")),
    ("gpt-5.1-codex-max*", ("none", "low", "medium", "high", "xhigh")),
    ("gpt-5.1*", ("none", "low", "medium", "high")),
    ("gpt-5-codex*", ("low", "medium", "high")),
    ("gpt-5*", ("minimal", "low", "medium", "high")),
)
# Most Grok models reason without a dial and answer 400 to one.
XAI_EFFORTS = (
    ("grok-3-mini*", ("low", "high")),
    ("grok-4.20-multi-agent*", ("low", "medium", "high", "xhigh")),
    ("grok-4.20*", ()),
    ("grok-4.3*", ("none", "low", "medium", "high")),
    ("grok-4.[4-9]*", ("low", "medium", "high")),
    ("grok-*", ()),
)


class Profile(Struct, frozen=True, kw_only=True):
    provider: str  # the route prefix
    dialect: Dialect
    title: str
    base_url: str = ""  # default, with its version path; "" must be configured
    auth: Literal["bearer", "x-api-key", "x-goog-api-key", "api-key"] = "bearer"
    shares: str = ""  # the provider whose `<PROVIDER>_*` settings it uses as well
    families: tuple[str, ...] = ()  # bare model names that belong here, lower case, `*` allowed
    # chat and responses
    max_tokens_field: str = "max_tokens"
    reasoning_models: tuple[str, ...] = ()  # model name patterns that take an effort and `max_completion_tokens`
    efforts: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (model pattern, rising levels); first match wins
    effort_field: Literal["", "reasoning_effort", "reasoning.effort", "thinking.type", "chat_template"] = ""
    reasoning_field: str = ""  # where reasoning comes back and has to be replayed: `reasoning_content`
    replay_reasoning: Literal["never", "tool_turns", "always"] = "never"
    drop_params: tuple[str, ...] = ()  # request parameters that this provider refuses
    system_role: Literal["system", "developer"] = "system"
    mid_system: bool = False  # takes system messages in the middle of a conversation
    stream_usage: bool = True  # takes stream_options.include_usage
    # responses
    reasoning_summary: bool = False  # takes reasoning.summary
    user_field: str = "user"  # where metadata.user_id goes, at most 64 characters; "" nowhere
    # tools
    name_limit: int = 64
    id_length: int = 0  # exact length of tool call ids, 0 = any
    id_limit: int = 64
    rich_results: bool = False  # takes images and files inside tool results
    parallel_control: bool = True  # takes parallel_tool_calls
    strict_tools: bool = True
    # content
    images: bool = True
    documents: Literal["native", "text"] = "text"  # PDFs as files, or refused where there is no text in them
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    web_search: Literal["", "native"] = ""
    # minimax
    tool_results: Literal["tool", "user_text"] = "tool"
    thinking_style: Literal["blocks", "verbatim"] = "blocks"
    markup: Literal["", "m2", "m3"] = ""


PROFILES: dict[str, Profile] = {
    profile.provider: profile
    for profile in (
        Profile(
            provider="openai",
            dialect="openai_chat",
            title="OpenAI Chat Completions",
            base_url="https://api.openai.com/v1",
            families=("gpt-*", "o[0-9]*"),
            reasoning_models=("o[0-9]*", "gpt-5*"),
            efforts=OPENAI_EFFORTS,
            effort_field="reasoning_effort",
            documents="native",
        ),
        Profile(
            provider="openai-responses",
            dialect="openai_responses",
            title="OpenAI Responses",
            base_url="https://api.openai.com/v1",
            shares="openai",
            reasoning_models=("o[0-9]*", "gpt-5*"),
            efforts=OPENAI_EFFORTS,
            effort_field="reasoning.effort",
            reasoning_summary=True,
            user_field="safety_identifier",
            system_role="developer",
            mid_system=True,
            rich_results=True,
            documents="native",
            web_search="native",
        ),
        Profile(
            provider="gemini",
            dialect="gemini",
            title="Google Gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta",
            auth="x-goog-api-key",
            families=("gemini-*",),
            documents="native",
            web_search="native",
        ),
        Profile(
            provider="anthropic",
            dialect="anthropic",
            title="Anthropic",
            base_url="https://api.anthropic.com/v1",
            auth="x-api-key",
            name_limit=128,
            mid_system=True,
            documents="native",
            web_search="native",
        ),
        Profile(
            provider="minimax",
            dialect="minimax",
            title="MiniMax M2 (TabbyAPI, vLLM)",
            families=("minimax-*",),
            reasoning_field="reasoning_content",
            replay_reasoning="always",
            images=False,
            structured="none",
            markup="m2",
        ),
        Profile(
            provider="xai",
            dialect="openai_chat",
            title="xAI Grok",
            base_url="https://api.x.ai/v1",
            families=("grok-*",),
            reasoning_field="reasoning_content",
            effort_field="reasoning_effort",
            reasoning_models=("grok-3-mini*", "grok-4*", "grok-code*"),
            efforts=XAI_EFFORTS,
        ),
        Profile(
            provider="xai-responses",
            dialect="openai_responses",
            title="xAI Grok, Responses",
            base_url="https://api.x.ai/v1",
            shares="xai",
            reasoning_models=("grok-3-mini*", "grok-4*", "grok-code*"),
            efforts=XAI_EFFORTS,
            effort_field="reasoning.effort",
            mid_system=True,
            web_search="native",
        ),
        Profile(
            provider="deepseek",
            dialect="openai_chat",
            title="DeepSeek",
            base_url="https://api.deepseek.com/v1",
            families=("deepseek-*",),
            reasoning_field="reasoning_content",
            replay_reasoning="tool_turns",
            images=False,
            structured="json_object",
        ),
        Profile(
            provider="moonshot",
            dialect="openai_chat",
            title="Moonshot Kimi",
            base_url="https://api.moonshot.ai/v1",
            families=("kimi-*",),
            reasoning_field="reasoning_content",
            replay_reasoning="tool_turns",
        ),
        Profile(
            provider="zai",
            dialect="openai_chat",
            title="Z.ai GLM",
            base_url="https://api.z.ai/api/paas/v4",
            families=("glm-*",),
            reasoning_field="reasoning_content",
            replay_reasoning="tool_turns",
        ),
        Profile(
            provider="mistral",
            dialect="openai_chat",
            title="Mistral",
            base_url="https://api.mistral.ai/v1",
            id_length=9,
            stream_usage=False,
        ),
        Profile(
            provider="ollama",
            dialect="openai_chat",
            title="Ollama",
            base_url="http://127.0.0.1:11434/v1",
            reasoning_field="reasoning",
        ),
        Profile(
            provider="openrouter",
            dialect="openai_chat",
            title="OpenRouter",
            base_url="https://openrouter.ai/api/v1",
            reasoning_field="reasoning",
        ),
        Profile(
            provider="azure",
            dialect="openai_chat",
            title="Azure OpenAI",
            auth="api-key",
            reasoning_models=("o[0-9]*", "gpt-5*"),
            efforts=OPENAI_EFFORTS,
            effort_field="reasoning_effort",
        ),
        Profile(
            provider="vllm",
            dialect="openai_chat",
            title="vLLM and other OpenAI-compatible servers",
            reasoning_field="reasoning_content",
            replay_reasoning="tool_turns",
        ),
        Profile(
            provider="demo",
            dialect="openai_chat",
            title="Built-in demo model",
        ),
    )
}

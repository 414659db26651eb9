"""What each provider can do, as data. Logic lives in the dialect files and asks a profile, never a provider's name."""

from typing import Literal

from msgspec import Struct

from translation.providers.models import (
    MISTRAL_EFFORTS,
    MISTRAL_MODELS,
    MISTRAL_REFUSED,
    OPENAI_EFFORTS,
    OPENAI_REASONING,
    OPENAI_REFUSED,
    OPENAI_TOOLS_WITHOUT_REASONING,
    OPENAI_WINDOWS,
    RESPONSES_EFFORTS,
    RESPONSES_EXTRAS,
    XAI_EFFORTS,
    XAI_REFUSED,
)

Dialect = Literal["openai_chat", "openai_responses", "gemini", "minimax", "anthropic"]
Choice = Literal["auto", "none", "required", "tool"]
EffortField = Literal["", "reasoning_effort", "reasoning.effort", "thinking.type", "chat_template"]


class Profile(Struct, frozen=True, kw_only=True):
    provider: str  # the route prefix
    dialect: Dialect
    title: str
    base_url: str = ""  # default, with its version path; "" must be configured
    auth: Literal["bearer", "x-api-key", "x-goog-api-key", "api-key"] = "bearer"
    shares: str = ""  # the provider whose `<PROVIDER>_*` settings it uses as well
    families: tuple[str, ...] = ()  # bare model names that belong here, lower case, `*` allowed
    siblings: tuple[tuple[str, str], ...] = ()  # (model pattern, whose profile counts for it), whatever the prefix
    # chat and responses
    max_tokens_field: str = "max_tokens"
    reasoning_models: tuple[str, ...] = ()  # model name patterns that take an effort and `max_completion_tokens`
    efforts: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (model pattern, rising levels); first match wins
    effort_field: EffortField = ""
    effort_fields: tuple[tuple[str, EffortField], ...] = ()  # (model pattern, where it looks for its effort instead)
    reasoning_field: str = ""  # where reasoning comes back and has to be replayed: `reasoning_content`
    thinks_in_text: bool = False  # a server may leave reasoning in the text, between tags at its beginning
    calls_in_text: bool = False  # a server that was not told how its model calls tools leaves the calls in the text
    replay_reasoning: Literal["never", "tool_turns", "always"] = "never"
    reasoning_placeholder: str = ""  # stands for reasoning that is lost, where a tool turn without any is refused
    always_thinks: tuple[str, ...] = ()  # models that take no `thinking`: they cannot be told not to
    drop_params: tuple[str, ...] = ()  # request parameters that this provider refuses
    refused: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (model pattern, parameters that it refuses)
    rename_params: tuple[tuple[str, str], ...] = ()  # (our name, the name that this provider wants)
    fixed_sampling: tuple[str, ...] = ()  # models that refuse temperature and top_p
    top_k: bool = False  # takes top_k
    windows: tuple[tuple[str, int], ...] = ()  # (model, largest prompt), where an overflow's error does not tell
    max_output: int = 0  # the longest answer, 0 when it is not known: learned from refusals
    stop_limit: int = 4  # stop sequences, 0 = any number
    prefill_field: str = ""  # marks a last assistant message that the model shall continue
    prefill_params: tuple[tuple[str, bool], ...] = ()  # the same as parameters of the request
    answers_results: tuple[str, ...] = ()  # models after whose tool results only an answer may come, no user message
    cache_key: bool = False  # takes prompt_cache_key
    cache_models: tuple[str, ...] = ()  # models that cache only when `cache_control` of the request asks them to
    system_role: Literal["system", "developer"] = "system"
    mid_system: bool = False  # takes system messages in the middle of a conversation
    stream_usage: bool = True  # takes stream_options.include_usage
    service_tier: bool = False  # takes service_tier; its `default` is the client's `standard_only`
    # responses
    extras: tuple[str, ...] = ()  # parameters of chat clients that it has a word for; Gemini's, too
    reasoning_summary: bool = False  # takes reasoning.summary
    user_field: str = "user"  # where metadata.user_id goes, at most 64 characters; "" nowhere
    # tools
    name_limit: int = 64
    id_length: int = 0  # exact length of tool call ids, 0 = any
    id_limit: int = 64
    rich_results: bool = False  # takes images and files inside tool results
    parallel_control: bool = True  # takes parallel_tool_calls
    strict_tools: bool = True
    moonshot_schemas: bool = False  # takes Moonshot's own subset of JSON Schema only
    letter_first: bool = False  # tool names begin with a letter or underscore
    tool_choices: tuple[Choice, ...] = ("auto", "none", "required", "tool")
    model_choices: tuple[tuple[str, tuple[Choice, ...]], ...] = ()  # (model pattern, what it takes of them instead)
    forced_while_thinking: bool = True  # takes a forced tool choice while the model thinks
    tools_without_reasoning: tuple[str, ...] = ()  # models that take tools only at effort `none`
    # content
    images: bool = True
    image_urls: bool = True  # fetches images itself; False: base64 only
    documents: Literal["native", "text"] = "text"  # PDFs as files, or refused where there is no text in them
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    any_answers: bool = False  # takes a schema for the answer whose root is no object
    web_search: Literal["", "native"] = ""
    forced_search: bool = True  # takes a tool choice that names its own search
    search_options: tuple[str, ...] = ()  # of the client's web search that its own can be told
    blocked_domains: str = "blocked_domains"  # what it calls them
    embeddings: str = ""  # the path of an endpoint that speaks OpenAI's embeddings; "" has none
    embeddings_auth: Literal["", "bearer"] = ""  # where the key goes there, if elsewhere
    # gemini
    json_schemas: bool = False  # is sent JSON Schema, not its own subset of OpenAPI's
    # minimax
    tool_results: Literal["tool", "user_text"] = "tool"  # `user_text`: for templates that know no `tool` role
    thinking_style: Literal["blocks", "verbatim"] = "blocks"  # `verbatim`: stays in the text, between its tags
    markup: Literal["", "m2", "m3"] = ""
    opens_think: bool = False  # the prompt ends with the opening tag, so answers begin inside their reasoning
    think_tags: tuple[str, str] | None = None  # reasoning is replayed in the content between these, not in its field


PROFILES: dict[str, Profile] = {
    profile.provider: profile
    for profile in (
        Profile(
            provider="openai",
            embeddings="/embeddings",
            id_limit=40,
            dialect="openai_chat",
            title="OpenAI Chat Completions",
            base_url="https://api.openai.com/v1",
            families=("gpt-*", "o[0-9]*"),
            siblings=(("gpt-6-astra*", "openai-responses"),),  # in chat it takes no tools, whatever the effort
            reasoning_models=OPENAI_REASONING,
            refused=OPENAI_REFUSED,
            fixed_sampling=OPENAI_REASONING,
            tools_without_reasoning=OPENAI_TOOLS_WITHOUT_REASONING,
            efforts=OPENAI_EFFORTS,
            windows=OPENAI_WINDOWS,
            effort_field="reasoning_effort",
            cache_key=True,
            service_tier=True,
            documents="native",
        ),
        Profile(
            provider="openai-responses",
            embeddings="/embeddings",
            dialect="openai_responses",
            title="OpenAI Responses",
            base_url="https://api.openai.com/v1",
            shares="openai",
            reasoning_models=OPENAI_REASONING,
            efforts=RESPONSES_EFFORTS,
            windows=OPENAI_WINDOWS,
            effort_field="reasoning.effort",
            cache_key=True,
            service_tier=True,
            reasoning_summary=True,
            extras=RESPONSES_EXTRAS,
            user_field="safety_identifier",
            system_role="developer",
            mid_system=True,
            rich_results=True,
            documents="native",
            web_search="native",
            search_options=("max_uses", "allowed_domains", "blocked_domains", "user_location"),
        ),
        Profile(
            provider="gemini",
            embeddings="/openai/embeddings",
            embeddings_auth="bearer",
            dialect="gemini",
            title="Google Gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta",
            auth="x-goog-api-key",
            families=("gemini-*",),
            letter_first=True,
            extras=("response_format", "seed"),
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
        Profile(  # before `minimax`, whose family holds its models too
            provider="minimax-m3",
            embeddings="/embeddings",
            dialect="minimax",
            title="MiniMax M3 (vLLM, SGLang)",
            shares="minimax",
            families=("minimax-m3*",),
            siblings=(("*minimax-m2*", "minimax"), ("*minimax-m1*", "minimax")),
            reasoning_field="reasoning_content",
            replay_reasoning="always",
            top_k=True,
            stop_limit=0,
            strict_tools=False,
            structured="none",
            markup="m3",
            think_tags=("<mm:think>", "</mm:think>"),
        ),
        Profile(
            provider="minimax",
            embeddings="/embeddings",
            dialect="minimax",
            title="MiniMax M2 (TabbyAPI, vLLM)",
            families=("minimax-*",),
            siblings=(("*minimax-m3*", "minimax-m3"),),
            windows=(("minimax-m2*", 204_800),),
            reasoning_field="reasoning_content",
            replay_reasoning="always",
            top_k=True,
            stop_limit=0,
            strict_tools=False,
            images=False,
            structured="none",
            markup="m2",
            opens_think=True,
            think_tags=("<think>", "</think>"),
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
            refused=XAI_REFUSED,
        ),
        Profile(
            provider="xai-responses",
            dialect="openai_responses",
            title="xAI Grok, Responses",
            extras=("response_format",),
            base_url="https://api.x.ai/v1",
            shares="xai",
            reasoning_models=("grok-3-mini*", "grok-4*", "grok-code*"),
            efforts=XAI_EFFORTS,
            effort_field="reasoning.effort",
            mid_system=True,
            web_search="native",
            forced_search=False,  # `data did not match any variant of untagged enum ModelToolChoice`
            search_options=("allowed_domains", "blocked_domains"),
            blocked_domains="excluded_domains",
        ),
        Profile(
            provider="deepseek",
            dialect="openai_chat",
            title="DeepSeek",
            base_url="https://api.deepseek.com/v1",
            families=("deepseek-*",),
            reasoning_field="reasoning_content",
            replay_reasoning="tool_turns",
            reasoning_placeholder=" ",
            effort_field="thinking.type",
            efforts=(("*", ("low", "high", "max")),),
            forced_while_thinking=False,
            strict_tools=False,
            parallel_control=False,
            stop_limit=16,
            images=False,
            structured="json_object",
        ),
        Profile(
            provider="moonshot",
            dialect="openai_chat",
            title="Moonshot Kimi",
            base_url="https://api.moonshot.ai/v1",
            families=("kimi-*",),
            max_tokens_field="max_completion_tokens",
            fixed_sampling=("kimi-*",),
            reasoning_field="reasoning_content",
            replay_reasoning="tool_turns",
            reasoning_placeholder=" ",
            effort_field="thinking.type",
            efforts=(("kimi-k[3-9]*", ("low", "high", "max")), ("*", ())),
            always_thinks=("kimi-k[3-9]*", "kimi-k2.7*"),
            # `tool_choice 'specified' is incompatible with thinking enabled`
            model_choices=(("kimi-k[3-9]*", ("auto", "none", "required")), ("kimi-k2.7*", ("auto", "none"))),
            forced_while_thinking=False,
            strict_tools=False,
            letter_first=True,
            moonshot_schemas=True,
            parallel_control=False,
            stop_limit=5,
            prefill_field="partial",
            image_urls=False,
            structured="json_object",
        ),
        Profile(
            provider="zai",
            embeddings="/embeddings",
            dialect="openai_chat",
            title="Z.ai GLM",
            base_url="https://api.z.ai/api/paas/v4",
            families=("glm-*",),
            calls_in_text=True,
            windows=(("glm-4.5*", 131_072), ("glm-4.[67]*", 204_800), ("glm-5.[2-9]*", 1_048_576), ("glm-5*", 204_800)),
            reasoning_field="reasoning_content",
            replay_reasoning="tool_turns",
            effort_field="thinking.type",
            efforts=(("glm-5.2*", ("high", "max")), ("glm-5.[3-9]*", ("low", "high", "max")), ("*", ())),
            always_thinks=("glm-5.[3-9]*",),
            drop_params=("user",),  # `user_id` there, with a length of its own
            tool_choices=("auto",),
            strict_tools=False,
            parallel_control=False,
            stop_limit=1,
            stream_usage=False,  # the last chunk tells it unasked
            structured="json_object",
        ),
        Profile(
            provider="mistral",
            embeddings="/embeddings",
            dialect="openai_chat",
            title="Mistral",
            base_url="https://api.mistral.ai/v1",
            drop_params=MISTRAL_REFUSED,
            rename_params=(("seed", "random_seed"),),
            effort_field="reasoning_effort",  # refused by models that have none
            efforts=MISTRAL_EFFORTS,
            id_length=9,
            stop_limit=0,
            answers_results=("*",),
            prefill_field="prefix",
            stream_usage=False,  # the last chunk tells it unasked
        ),
        Profile(
            provider="ollama",
            embeddings="/embeddings",
            dialect="openai_chat",
            title="Ollama",
            base_url="http://127.0.0.1:11434/v1",
            reasoning_field="reasoning",
            thinks_in_text=True,
            calls_in_text=True,
            replay_reasoning="tool_turns",
            effort_field="reasoning_effort",
            efforts=(("*", ("none", "low", "medium", "high")),),
            tool_choices=("auto",),
            parallel_control=False,
            stop_limit=0,
            image_urls=False,
            any_answers=True,
        ),
        Profile(
            provider="openrouter",
            embeddings="/embeddings",
            dialect="openai_chat",
            answers_results=MISTRAL_MODELS,
            title="OpenRouter",
            base_url="https://openrouter.ai/api/v1",
            reasoning_field="reasoning",
            thinks_in_text=True,
            calls_in_text=True,
            replay_reasoning="tool_turns",
            effort_field="reasoning.effort",
            efforts=(("*", ("minimal", "low", "medium", "high", "xhigh", "max")),),
            top_k=True,
            cache_models=("anthropic/*",),
            documents="native",
        ),
        Profile(
            provider="azure",
            embeddings="/embeddings",
            id_limit=40,
            dialect="openai_chat",
            answers_results=MISTRAL_MODELS,
            title="Azure OpenAI",
            auth="api-key",
            reasoning_models=OPENAI_REASONING,
            refused=OPENAI_REFUSED,
            fixed_sampling=OPENAI_REASONING,
            tools_without_reasoning=OPENAI_TOOLS_WITHOUT_REASONING,
            efforts=OPENAI_EFFORTS,
            windows=OPENAI_WINDOWS,
            effort_field="reasoning_effort",
        ),
        Profile(
            provider="vllm",
            embeddings="/embeddings",
            dialect="openai_chat",
            answers_results=MISTRAL_MODELS,
            title="vLLM and other OpenAI-compatible servers",
            reasoning_field="reasoning_content",
            thinks_in_text=True,
            calls_in_text=True,
            replay_reasoning="tool_turns",
            effort_field="chat_template",
            effort_fields=(("*gpt-oss*", "reasoning_effort"),),  # it has no switch
            efforts=(("*gpt-oss*", ("low", "medium", "high")),),
            top_k=True,
            stop_limit=0,
            prefill_params=(("add_generation_prompt", False), ("continue_final_message", True)),
            any_answers=True,
        ),
        Profile(
            provider="demo",
            embeddings="/embeddings",
            dialect="openai_chat",
            title="Built-in demo model",
        ),
    )
}

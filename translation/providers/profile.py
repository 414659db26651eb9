"""What may differ between providers, as data: logic lives in the dialect files, and asks this, never for a name."""

from typing import Literal

from msgspec import Struct

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
    # chat, responses
    max_tokens_field: str = "max_tokens"
    reasoning_models: tuple[str, ...] = ()  # model name patterns that take an effort and `max_completion_tokens`
    efforts: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (model pattern, rising levels); first match wins
    effort_field: EffortField = ""
    effort_fields: tuple[tuple[str, EffortField], ...] = ()  # (model pattern, where it looks for its effort instead)
    reasoning_field: str = ""  # where reasoning comes back and has to be replayed: `reasoning_content`
    thinks_in_text: bool = False  # a server may leave reasoning in the text, between tags at its beginning
    calls_in_text: bool = False  # a server that was not told how its model calls tools leaves the calls in the text
    calls_beside: tuple[str, ...] = ()  # models of its own that never do
    replay_reasoning: Literal["never", "tool_turns", "always"] = "never"
    reasoning_placeholder: str = ""  # stands for reasoning that is lost, where a tool turn without any is refused
    always_thinks: tuple[str, ...] = ()  # models that take no `thinking`: they cannot be told not to
    drop_params: tuple[str, ...] = ()  # request parameters that this provider refuses
    refused: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (model pattern, parameters that it refuses)
    rename_params: tuple[tuple[str, str], ...] = ()  # (our name, the name that this provider wants)
    fixed_sampling: tuple[str, ...] = ()  # models that refuse temperature and top_p
    greedy: tuple[str, ...] = ()  # models that take a temperature of 0 beside a top_p of 1 only, which they want told
    hottest: float = 0  # the highest temperature that it takes, 0 = all that clients may ask for
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
    extras: tuple[str, ...] = ()  # parameters of chat clients that it has a word for; Gemini's, too
    reasoning_summary: bool = False  # takes reasoning.summary
    user_field: str = "user"  # where metadata.user_id goes, at most 64 characters; "" nowhere
    # tools
    name_limit: int = 64
    tool_limit: int = 0  # how many functions it takes, 0 = any number
    description_limit: int = 0  # characters of a tool's description that it takes, 0 = any number
    id_length: int = 0  # exact length of tool call ids, 0 = any
    id_limit: int = 64
    rich_results: bool = False  # takes images and files inside tool results
    parallel_control: bool = True  # takes parallel_tool_calls
    strict_tools: bool = True
    moonshot_schemas: tuple[str, ...] = ()  # models that take Moonshot's own subset of JSON Schema only
    letter_first: bool = False  # tool names begin with a letter or underscore
    tool_choices: tuple[Choice, ...] = ("auto", "none", "required", "tool")
    model_choices: tuple[tuple[str, tuple[Choice, ...]], ...] = ()  # (model pattern, what it takes of them instead)
    forced_while_thinking: bool = True  # takes a forced tool choice while the model thinks
    tools_without_reasoning: tuple[str, ...] = ()  # models that take tools only at effort `none`
    # content
    images: bool = True
    image_urls: bool = True  # fetches images itself; False: base64 only
    documents: Literal["native", "fetched", "text"] = "text"  # PDFs as files, and by URL; refused where only text goes
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
    schema_levels: int = 0  # of objects and lists in a schema, 0 = any number
    # minimax
    tool_results: Literal["tool", "user_text"] = "tool"  # `user_text`: for templates that know no `tool` role
    thinking_style: Literal["blocks", "verbatim"] = "blocks"  # `verbatim`: stays in the text, between its tags
    markup: Literal["", "m2", "m3"] = ""
    opens_think: bool = False  # the prompt ends with the opening tag, so answers begin inside their reasoning
    think_tags: tuple[str, str] | None = None  # reasoning is replayed in the content between these, not in its field

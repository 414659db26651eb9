"""Which upstream answers for a model name. Built from the environment; never asks the database on the hot path."""

from fnmatch import fnmatchcase

from msgspec import Struct

from conversations.conf import Conf
from conversations.upstream import Upstream
from translation.adapter import Target
from translation.errors import NotFound
from translation.policies import Policy
from translation.providers.profiles import PROFILES, Profile

VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY or ANTHROPIC_UPSTREAM_URL",
    "openai-responses": "OPENAI_API_KEY or OPENAI_BASE_URL",
    "minimax-m3": "MINIMAX_API_KEY or MINIMAX_BASE_URL",
    "xai-responses": "XAI_API_KEY or XAI_BASE_URL",
}
CLAUDE_FAMILIES = ("opus", "sonnet", "haiku")


class Route(Struct, frozen=True):
    """Where a request goes."""

    upstream: Upstream
    target: Target
    policy: Policy


class Offer(Struct, frozen=True):
    """A model name that clients may use, and where it leads."""

    id: str
    upstream: str
    model: str


class Router:
    def __init__(self, conf: Conf, demo_url: str) -> None:
        self._upstreams = {
            item.provider: Upstream(
                item.provider, PROFILES[item.provider], item.base_url or PROFILES[item.provider].base_url, item.api_keys
            )
            for item in conf.upstreams
        }
        self._only_demo = not self._upstreams
        self._upstreams["demo"] = Upstream("demo", PROFILES["demo"], demo_url)
        self._policy = Policy(conf.policy)
        self._learned: dict[tuple[str, str], Profile] = {}
        self._map = {family: getattr(conf.model_map, family) for family in (*CLAUDE_FAMILIES, "default")}

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        return tuple(self._upstreams.values())

    def offers(self) -> tuple[Offer, ...]:
        """The names that the configuration itself knows; what else an upstream has, only the upstream can tell."""
        names = [f"claude-{family}" for family in CLAUDE_FAMILIES if self._map[family]]
        names += dict.fromkeys(target for target in self._map.values() if target)
        return tuple(offer for name in (*names, "demo/demo") if (offer := self.offer(name)) is not None)

    def offer(self, model: str) -> Offer | None:
        try:
            target = self.resolve(model).target
        except NotFound:
            return None
        return Offer(model, target.upstream, target.model)

    def resolve(self, model: str) -> Route:
        provider, slash, name = model.partition("/")
        if slash and provider in PROFILES:
            return self._route(provider, name)
        if self._only_demo:
            return self._route("demo", model)
        lowered = model.lower()
        for upstream in self._upstreams.values():
            if any(fnmatchcase(lowered, pattern) for pattern in upstream.profile.families):
                return self._route(upstream.name, model)
        if lowered.startswith("claude"):
            mapped = next(
                (self._map[family] for family in CLAUDE_FAMILIES if family in lowered and self._map[family]), None
            )
            if mapped is None and "anthropic" in self._upstreams:
                return self._route("anthropic", model)
            if mapped is not None:
                return self._mapped(mapped)
        if self._map["default"]:
            return self._mapped(self._map["default"])
        raise NotFound(f"model: {model} (no route; set MODEL_MAP_DEFAULT or name it provider/model)")

    def _mapped(self, target: str) -> Route:
        provider, slash, name = target.partition("/")
        if not slash or provider not in PROFILES:
            raise NotFound(f"model: the model map names {target}, which is not provider/model")
        return self._route(provider, name)

    def _route(self, provider: str, model: str) -> Route:
        upstream = self._upstreams.get(provider)
        if upstream is None:
            stem = provider.upper().replace("-", "_")
            variable = VARIABLES.get(provider, f"{stem}_API_KEY or {stem}_BASE_URL")
            raise NotFound(f"model: {provider} is not configured; set {variable}")
        if not model:
            raise NotFound(f"model: {provider}/ names no model")
        if not upstream.base_url:
            stem = provider.upper().replace("-", "_")
            raise NotFound(f"model: {provider} has no address; set {stem}_BASE_URL")
        target = Target(upstream.name, model, self._learned.get((provider, model), upstream.profile))
        return Route(upstream, target, self._policy)

    def learn(self, target: Target, profile: Profile) -> None:
        """What an upstream's refusal taught about one of its models counts from the next request on."""
        self._learned[target.upstream, target.model] = profile

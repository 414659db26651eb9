"""Which upstream answers for a model name: the operators' rows first, then what the environment says.

Holds everything in memory; a change of the rows replaces it whole (`load`), so that no request asks the database.
"""

from fnmatch import fnmatchcase
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from conversations.conf import Conf
from conversations.configured import Rule, lessons, rules, upstreams
from conversations.store.routes import Configuration
from conversations.upstream import Upstream
from translation.adapter import Target
from translation.errors import NotFound
from translation.policies import Policy
from translation.providers.profile import Profile
from translation.providers.profiles import PROFILES
from translation.remedies import Remedy, remembered

VARIABLES = {"anthropic": "ANTHROPIC_API_KEY or ANTHROPIC_UPSTREAM_URL"}
STEMS = {"openai-responses": "OPENAI", "minimax-m3": "MINIMAX", "xai-responses": "XAI"}  # of variables that are shared
CLAUDE_FAMILIES = ("opus", "sonnet", "haiku")
WILD = frozenset("*?[")
NAMES = 1_000  # that are remembered: clients may ask for any


class Route(Struct, frozen=True):
    """Where a request goes, and where instead when that fails."""

    upstream: Upstream
    target: Target
    policy: Policy
    streams: bool = True  # False: the upstream is called whole
    fallbacks: "tuple[Route, ...]" = ()

    @property
    def name(self) -> str:
        return f"{self.target.upstream}/{self.target.model}"

    def following(self) -> "tuple[Route, ...]":
        """Each fallback, with those after it as its own."""
        return tuple(replace(route, fallbacks=self.fallbacks[n + 1 :]) for n, route in enumerate(self.fallbacks))


class Offer(Struct, frozen=True):
    """A model name that clients may use, and where it leads."""

    id: str
    upstream: str
    model: str


class Router:
    def __init__(self, conf: Conf, demo_url: str) -> None:
        self._conf = conf
        self._demo = Upstream("demo", PROFILES["demo"], demo_url)
        self._policy = Policy(conf.policy)
        self._map = {family: getattr(conf.model_map, family) for family in (*CLAUDE_FAMILIES, "default")}
        self._unread: list[tuple[Target, Remedy]] = []  # lessons that were learned here and not among the rows yet
        self.load(Configuration())

    def load(self, rows: Configuration) -> None:
        self._resolved: dict[str, Route] = {}  # what each name led to, since the last change
        found = upstreams(self._conf, rows.upstreams)
        self._rules = rules(self._conf, rows.routes)
        self._lessons = lessons(rows.learned)
        unread, self._unread = self._unread, []
        for target, remedy in unread:
            self.learn(target, remedy)
        self._only_demo = not found
        self._upstreams = {"demo": self._demo} | found
        # A provider's own name comes before other names for it.
        self._families = sorted(found.values(), key=lambda item: item.name != item.profile.provider)

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        return tuple(self._upstreams.values())

    def offers(self) -> tuple[Offer, ...]:
        """The names that the configuration itself knows; what else an upstream has, only the upstream can tell."""
        names = [rule.pattern for rule in self._rules if WILD.isdisjoint(rule.pattern)]
        names += [f"claude-{family}" for family in CLAUDE_FAMILIES if self._map[family]]
        names += dict.fromkeys(target for target in self._map.values() if target)
        return tuple(offer for name in (*names, "demo/demo") if (offer := self.offer(name)) is not None)

    def offer(self, model: str) -> Offer | None:
        try:
            target = self.resolve(model).target
        except NotFound:
            return None
        return Offer(model, target.upstream, target.model)

    def resolve(self, model: str) -> Route:
        known = self._resolved.get(model)
        if known is None:
            known = self._resolve(model)
            if len(self._resolved) >= NAMES:
                self._resolved.clear()
            self._resolved[model] = known
        return known

    def _resolve(self, model: str) -> Route:
        lowered = model.lower()
        for rule in self._rules:
            if fnmatchcase(lowered, rule.pattern):
                return self._ruled(rule, model)
        provider, slash, name = model.partition("/")
        if slash and (known := self._known(provider)):
            return self._route(known, name)
        if self._only_demo:
            return self._route("demo", model)
        for upstream in self._families:
            if any(fnmatchcase(lowered, pattern) for pattern in upstream.profile.families):
                return self._route(upstream.name, model)
        return self._mapped(model, lowered)

    def exactly(self, upstream: str, model: str) -> Route:
        """This model of this upstream, whatever the rules say about its name."""
        return self._route(upstream, model)

    def learn(self, target: Target, remedy: Remedy) -> None:
        """What an upstream's refusal taught about one of its models counts from the next request on.

        Rows that are just being read may not have it yet; once some did, they decide: operators delete lessons.
        """
        known = self._lessons.get((target.upstream, target.model), ())
        if remedy not in known:
            self._lessons[target.upstream, target.model] = (*known, remedy)
            self._unread.append((target, remedy))
            self._resolved.clear()

    def _ruled(self, rule: Rule, model: str) -> Route:
        """A rule's first target that is there; an unknown one is the operator's to see."""
        asked = model[model.find("/") + 1 :] if "/" in rule.pattern else model
        routes, missing = [], None
        for target in rule.targets:
            provider, _, name = target.partition("/")
            try:
                routes.append(
                    replace(self._route(provider, name.replace("*", asked), rule.policy), streams=rule.streams)
                )
            except NotFound as error:
                missing = missing or error
        if not routes:
            raise missing or NotFound(f"model: {model} (its route has no target)")
        return replace(routes[0], fallbacks=tuple(routes[1:]))

    def _mapped(self, model: str, lowered: str) -> Route:
        target = self._map["default"]
        if lowered.startswith("claude"):
            families = (self._map[family] for family in CLAUDE_FAMILIES if family in lowered)
            mapped = next((found for found in families if found), None)
            if mapped is None and "anthropic" in self._upstreams:
                return self._route("anthropic", model)
            target = mapped or target
        if not target:
            raise NotFound(f"model: {model} (no route; set MODEL_MAP_DEFAULT or name it provider/model)")
        provider, slash, name = target.partition("/")
        known = self._known(provider) if slash else ""
        if not known:
            raise NotFound(f"model: the model map names {target}, which is not provider/model")
        return self._route(known, name)

    def _known(self, prefix: str) -> str:
        """The upstream or provider that is meant, in any letter case; "" for none."""
        names = (prefix, prefix.lower())
        return next((name for name in names if name in self._upstreams or name in PROFILES), "")

    def _route(self, name: str, model: str, policy: Policy | None = None) -> Route:
        upstream = self._upstreams.get(name)
        if upstream is None:
            raise NotFound(f"model: {name} is not configured; {_hint(name)}")
        if not model:
            raise NotFound(f"model: {name}/ names no model")
        if not upstream.base_url:
            raise NotFound(f"model: {name} has no address; set {_stem(name)}_BASE_URL")
        profile = reduce(remembered, self._lessons.get((name, model), ()), _profile(upstream, model))
        return Route(upstream, Target(name, model, profile), policy or self._policy)


def _profile(upstream: Upstream, model: str) -> Profile:
    """A server has one address for models that do not speak alike: the model's name tells."""
    siblings = (PROFILES[name] for pattern, name in upstream.profile.siblings if fnmatchcase(model.lower(), pattern))
    return next(siblings, upstream.profile)


def _hint(name: str) -> str:
    if name not in PROFILES:
        return "no upstream of that name is switched on"
    variable = VARIABLES.get(name, f"{_stem(name)}_API_KEY or {_stem(name)}_BASE_URL")
    return f"set {variable}"


def _stem(name: str) -> str:
    return STEMS.get(name) or name.upper().replace("-", "_")

"""What a turn does about a failed attempt while nothing is shown: another key, another try, another target."""

from msgspec import Struct
from msgspec.structs import replace

from conversations.health import Health
from conversations.routing import Route
from translation.errors import (
    UpstreamFault,
    UpstreamGaveUp,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamMoved,
    UpstreamOverloaded,
    UpstreamQuotaSpent,
    UpstreamRateLimited,
    UpstreamUnreachable,
)

RETRY_BASE, RETRY_CAP = 0.5, 10.0
OTHERS_MAY = (UpstreamModelMissing, UpstreamMoved, UpstreamGaveUp)  # another target may well answer


class Step(Struct, frozen=True):
    route: Route
    pause: float = 0.0


class Course:
    """Of one turn. `error` is what the client is told when nothing helps: what its own target said last."""

    def __init__(self, retries: int, health: Health) -> None:
        self.error: UpstreamFault | None = None
        self._retries = retries
        self._health = health
        self._waited = 0
        self._switched = 0

    def after(self, route: Route, error: UpstreamFault) -> Step | None:
        if self._has_other_key(route, error):
            self._switched += 1
            return Step(route)
        if self._may_wait(error):
            pause = RETRY_BASE * 2**self._waited if error.retry_after is None else error.retry_after
            self._waited += 1
            return Step(route, min(pause, RETRY_CAP))
        self.error = self.error or error
        if isinstance(error, UpstreamUnreachable | UpstreamOverloaded):
            self._health.unreachable(route.upstream.name, error.message)
        return self._elsewhere(route) if error.transient or isinstance(error, OTHERS_MAY) else None

    def _has_other_key(self, route: Route, error: UpstreamFault) -> bool:
        """A key that was refused or limited says nothing about the next one."""
        keys = route.upstream.keys
        return (
            isinstance(error, UpstreamKeyRefused | UpstreamRateLimited)
            and self._switched < len(keys) - 1
            and self._health.has_key(route.upstream.name, keys)
        )

    def _may_wait(self, error: UpstreamFault) -> bool:
        """An upstream that wants to be left alone for longer than we wait is left alone."""
        return (
            error.transient
            and not isinstance(error, UpstreamKeyRefused | UpstreamQuotaSpent)
            and self._waited < self._retries
            and (error.retry_after is None or error.retry_after <= RETRY_CAP)
        )

    def _elsewhere(self, route: Route) -> Step | None:
        if not route.fallbacks:
            return None
        self._waited = self._switched = 0
        first, *others = route.fallbacks
        return Step(awake(replace(first, fallbacks=tuple(others)), self._health))


def awake(route: Route, health: Health) -> Route:
    """The first of a route's targets that does not rest; those that do are its last resort."""
    chain = (replace(route, fallbacks=()), *route.fallbacks)
    resting = tuple(target for target in chain if health.is_resting(target.upstream.name))
    if not resting or len(resting) == len(chain):
        return route
    first, *others = (target for target in chain if target not in resting)
    return replace(first, fallbacks=(*others, *resting))

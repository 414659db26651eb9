"""Typed readers of environment variables. A value that does not fit raises, naming the variable; empty means unset."""

import os
from difflib import get_close_matches
from typing import TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

Choice = TypeVar("Choice", bound=str)
_asked: set[str] = set()
BROKERS = ("redis", "rediss", "sentinel", "amqp", "amqps", "filesystem", "memory")  # of which all is installed
MOST = 1e9  # of any number: what is beyond is no time that a clock could tell


def optional(name: str) -> str | None:
    _asked.add(name)
    return os.environ.get(name, "").strip() or None


def text(name: str, default: str) -> str:
    return optional(name) or default


def words(name: str) -> tuple[str, ...]:
    """A comma-separated list; blanks around and between commas do not count."""
    _asked.add(name)
    found = tuple(word.strip() for word in os.environ.get(name, "").split(",") if word.strip())
    if not all(map(str.isprintable, found)):  # told without them: most are keys
        raise ImproperlyConfigured(
            f"{name} holds a line break, or what cannot be printed: its values stand between commas"
        )
    return found


def keys(name: str) -> tuple[str, ...]:
    """The same of keys, which travel in headers."""
    found = words(name)
    if not all(map(str.isascii, found)):
        raise ImproperlyConfigured(f"{name} holds a key that no header can hold: it has to be ASCII")
    return found


def choice(name: str, allowed: tuple[Choice, ...], default: Choice) -> Choice:
    value = text(name, default)
    for candidate in allowed:
        if candidate == value:
            return candidate
    raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")


def integer(name: str, default: int, *, least: int = 0, most: int = 2**31 - 1) -> int:
    value = optional(name)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be a whole number from {least} to {most}")
    return int(value)


def number(name: str, default: float, *, above: float = 0.0) -> float:
    value = optional(name)
    if value is None:
        return default
    try:
        parsed = float(value)
    except ValueError:
        parsed = float("nan")
    # Written so that NaN, which compares false with everything, is refused too.
    if not above < parsed <= MOST:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be a number above {above:g}, at most {MOST:.0f}")
    return parsed


def flag(name: str) -> bool:
    return choice(name, ("0", "1"), "0") == "1"


def http_url(name: str) -> str | None:
    """An http(s) base URL without a trailing slash."""
    value = optional(name)
    if value is None:
        return None
    scheme, separator, rest = value.partition("://")
    if scheme not in {"http", "https"} or not separator or not rest.strip("/"):
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be an http:// or https:// URL")
    return value.rstrip("/")


def service_url(name: str, *schemes: str) -> str | None:
    """A URL of one of these schemes, or of any; `redis://` alone is one, of the usual place. It may hold a password:
    what is wrong with it is told without it."""
    value = optional(name)
    if value is None:
        return None
    scheme, separator, _ = value.partition("://")
    if not separator or not scheme or (schemes and scheme not in schemes):
        raise ImproperlyConfigured(
            f"{name} must be a URL: {', '.join(f'{each}://...' for each in schemes or ('scheme',))}"
        )
    if schemes:
        split(name, value)
    return value


def broker_url(name: str) -> str | None:
    """A URL of any broker that Celery can use: those that need nothing more, or one whose package is installed."""
    url = service_url(name)
    if url is not None and not _is_broker(url.partition("://")[0].partition("+")[0]):
        known = ", ".join(f"{each}://..." for each in BROKERS)
        raise ImproperlyConfigured(f"{name} names no broker that can be used here; known are {known}")
    return url


def _is_broker(scheme: str) -> bool:
    if scheme in BROKERS:
        return True
    # Loaded only where it is asked: it costs a process some megabytes.
    from kombu.transport import get_transport_cls  # noqa: PLC0415

    try:
        get_transport_cls(scheme)
    except (KeyError, ImportError, NameError):  # the last is how kombu's Kafka tells that its package is missing
        return False
    return True


def redis_broker(url: str | None) -> str | None:
    """The same Redis in Celery's words, which has another name for a socket, and for the number of a database."""
    if url is None or not url.startswith("unix://"):
        return url
    return "redis+socket" + url.removeprefix("unix").replace("?db=", "?virtual_host=").replace("&db=", "&virtual_host=")


def split(name: str, url: str) -> SplitResult:
    """The parts of a URL that may hold a password: what cannot be read may be a piece of that, and is not told."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - read when it is asked for
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} cannot be read: its port is a number, and / ? # [ ] in its password have to be percent-encoded"
        ) from None
    return parts


def password(url: str | None) -> str | None:
    """The secret part of a URL."""
    try:
        return unquote(urlsplit(url or "").password or "") or None
    except ValueError:
        return None


def unknown(*prefixes: str) -> tuple[tuple[str, str], ...]:
    """Variables that are called like settings and are none; beside each the one that is meant, perhaps."""
    names = sorted(name for name in os.environ if name.startswith(prefixes) and name not in _asked)
    return tuple((name, next(iter(get_close_matches(name, sorted(_asked), 1, 0.8)), "")) for name in names)

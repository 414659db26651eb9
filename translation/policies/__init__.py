"""What the bridge changes on purpose before a request goes to a model that is not Claude."""

from translation.providers.profiles import Profile
from translation.values import Note, Request


def apply(request: Request, profile: Profile, name: str) -> tuple[Request, tuple[Note, ...]]:
    return request, ()

"""What a chat client said that has no canonical form, for dialects that are not its own."""

import msgspec
from msgspec import Raw

from translation.providers.profile import Profile
from translation.values import Request


def extras(request: Request, profile: Profile) -> dict[str, Raw]:
    """What of it the provider has a word for; of the rest `adapters.left_out` tells."""
    return {name: value for name, value in given(request).items() if name in profile.extras}


def given(request: Request) -> dict[str, Raw]:
    """All of it."""
    return msgspec.json.decode(request.extras, type=dict[str, Raw]) if request.extras else {}

"""The secret key that a development machine generates for itself once and keeps in BRIDGE_HOME."""

import base64
import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

PRIVATE = 0o700  # BRIDGE_HOME's: the embedded database in it is all that was said


def stored_key(home: Path) -> str:
    path = home / "secret_key"
    try:
        if not path.exists():
            _create(path)
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"BRIDGE_HOME {home} cannot be used: {error.strerror}: {error.filename}") from error


def _create(path: Path) -> None:
    path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        # What secrets.token_urlsafe does, without loading OpenSSL into the supervisor.
        file.write(base64.urlsafe_b64encode(os.urandom(48)).decode())
        os.fsync(file.fileno())
    try:
        # link, not rename: of two processes that start at once the second must take the first one's key.
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()

"""A migrated, empty SQLite database, made once and copied: migrating is more than half of what a fresh bridge costs."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def provide(environment: Mapping[str, str]) -> None:
    """Put one where a bridge of this environment would make its own; what is there already stays."""
    url = environment.get("DATABASE_URL", f"sqlite:///{environment['BRIDGE_HOME']}/bridge.sqlite3")
    place = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:////") and not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copyfile(_template(), place)


@cache
def _template() -> Path:
    """Shared by all workers and runs with the same migrations."""
    migrations = sorted((PROJECT / "conversations" / "migrations").glob("*.py"))
    known = b"".join(path.read_bytes() for path in (*migrations, PROJECT / "requirements.txt"))
    made = Path(tempfile.gettempdir()) / f"toolbridge-migrated-{os.getuid()}-{sha256(known).hexdigest()[:16]}.sqlite3"
    if made.exists():
        return made
    with tempfile.TemporaryDirectory(prefix="toolbridge-migrating-") as folder:
        fresh = Path(folder) / "fresh.sqlite3"
        given = {"PATH": os.environ["PATH"], "BRIDGE_HOME": folder, "DATABASE_URL": f"sqlite:///{fresh}"}
        command = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
        subprocess.run(command, cwd=PROJECT, env=given, check=True)
        whole = made.with_suffix(f".{os.getpid()}")
        shutil.copyfile(fresh, whole)
        whole.rename(made)
    return made

"""Which Python `make` installs into."""

import subprocess
from pathlib import Path

import pytest

from tests.servers.bridge import PROJECT

SYSTEM = Path("/usr/bin/python3")


def named(folder: Path, *, plain: bool) -> str:
    """What the script says where `python3` is a build with or without optimisations."""
    python = folder / "python3"
    python.write_text(f"#!/bin/sh\nexit {0 if plain else 1}\n", encoding="utf-8")
    python.chmod(0o755)
    script = ["/bin/sh", str(PROJECT / "scripts" / "python.sh")]
    return subprocess.run(script, env={"PATH": f"{folder}:/bin"}, capture_output=True, text=True, check=True).stdout


def test_a_python_with_optimisations_is_taken(tmp_path: Path) -> None:
    assert named(tmp_path, plain=False) == "python3\n"


@pytest.mark.skipif(not SYSTEM.exists(), reason="this system has no Python of its own")
def test_the_systems_own_is_taken_if_environments_can_be_made_of_it(tmp_path: Path) -> None:
    fit = ["-c", "import ensurepip, sys; assert sys.version_info >= (3, 11)"]
    is_fit = subprocess.run([SYSTEM, *fit], capture_output=True, check=False).returncode == 0
    assert named(tmp_path, plain=True) == (f"{SYSTEM}\n" if is_fit else "python3\n")

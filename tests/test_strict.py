"""Under .ci/run a skipped test is a failed one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.bridge import PROJECT

SKIPPED = {
    "in the test": "import pytest\ndef test_it(): pytest.skip('no browser')",
    "by mark": "import pytest\n@pytest.mark.skipif(True, reason='no browser')\ndef test_it(): pass",
    "in a fixture": "import pytest\n@pytest.fixture\ndef x(): pytest.skip('no browser')\ndef test_it(x): pass",
    "the module": "import pytest\npytest.skip('no browser', allow_module_level=True)",
}


@pytest.mark.parametrize("way", SKIPPED)
@pytest.mark.parametrize("strict", ["0", "1"])
def test_a_skip_passes_here_and_fails_there(tmp_path: Path, way: str, strict: str) -> None:
    (tmp_path / "test_skipping.py").write_text(SKIPPED[way])
    options = [
        "-c",
        f"{PROJECT}/pyproject.toml",
        f"--rootdir={tmp_path}",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path / "test_skipping.py")],
        cwd=PROJECT,
        env={**os.environ, "BRIDGE_TEST_STRICT": strict},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no browser" in done.stdout
    # pytest's 5 is "no tests ran", which a module skipped as a whole gives.
    assert done.returncode in ((1, 2) if strict == "1" else (0, 5)), done.stdout


def test_ci_runs_the_same_command_strictly() -> None:
    script = (PROJECT / ".ci" / "run").read_text()
    assert "set -euo pipefail" in script
    assert "export BRIDGE_TEST_STRICT=1" in script
    assert script.rstrip().endswith("make test")

"""The README is true: its tables are the code's, its links lead somewhere, and its examples work when pasted."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bridge_project import environment, settings
from scripts.upstreams import written
from tests.conftest import StartBridge
from tests.servers.bridge import PROJECT, Bridge
from translation.providers.profiles import PROFILES

README = (PROJECT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [path for folder in (".", "docs", "docs/adr", "deploy") for path in sorted((PROJECT / folder).glob("*.md"))]
# Beside the variables of a provider's key and address.
PROVIDER = ("<PROVIDER>_API_KEY", "<PROVIDER>_API_KEYS", "<PROVIDER>_BASE_URL")


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].partition("\n## ")[0]


def first_cells(table: str) -> set[str]:
    """The names in the first column of a table."""
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    return {name for cell in rows for name in re.findall(r"`([^`]+)`", cell)}


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


class Recorder(dict[str, str]):
    """An environment that remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(BRIDGE_HOME=os.environ["BRIDGE_HOME"])
        self.asked: set[str] = set()

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]  # only ever asked like this
        self.asked.add(name)
        return super().get(name, default)


def test_the_table_of_upstreams_is_written_from_the_profiles() -> None:
    assert written(README) == README, "run `make upstreams`"


def test_every_profile_can_be_configured() -> None:
    assert set(settings.BRIDGE_UPSTREAMS) == set(PROFILES) - {"demo"}


def test_the_table_of_settings_has_exactly_the_variables_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = Recorder()
    monkeypatch.setattr(environment, "os", SimpleNamespace(environ=environ))
    runpy.run_path(str(PROJECT / "bridge_project" / "settings.py"))
    stems = set(re.findall(r"`([A-Z]+)_\*`", section("Upstreams")))
    written_down = first_cells(section("Settings"))
    assert written_down >= set(PROVIDER)
    expanded = {name.replace("<PROVIDER>", stem) for name in PROVIDER for stem in stems} - {"ANTHROPIC_BASE_URL"}
    assert (written_down - set(PROVIDER)) | expanded == environ.asked


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", README)) <= targets


def test_make_tells_of_every_target() -> None:
    told = subprocess.run(["make", "help"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony is not None
    assert set(re.findall(r"^make ([a-z-]+) +\S", told, re.MULTILINE)) == set(phony[1].split())


def test_a_python_without_django_is_told_in_one_line() -> None:
    command = [sys.executable, "-S", "manage.py", "up"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "toolbridge: this Python has no Django: use .venv/bin/python, which `make venv` makes\n"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def pasted(command: list[str], bridge: Bridge, folder: Path) -> str:
    """What a block prints in a shell where only the two variables of the README are set."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    given = {"ANTHROPIC_BASE_URL": bridge.url, "ANTHROPIC_API_KEY": bridge.api_key, "HOME": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=kept | given, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_curl_examples_work_when_pasted(start_bridge: StartBridge, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    shell = [block for block in blocks("bash") if "claude -p" not in block]
    printed = pasted(["bash", "-euc", "\n".join(shell)], start_bridge(), tmp_path)
    assert '"type":"error"' not in printed
    for said in (
        "You said: Hello",
        "get_weather returned: sunny",
        "You said: And tomorrow?",
        "You said: Go on.",
        '"upstream_call_id": "call_0"',
        '"status": "terminated", "deleted": {"messages": 6, "turns": 3, "tool_mappings": 1}',
    ):
        assert said in printed


@pytest.mark.parametrize(
    ("package", "said"), [("anthropic", "get_weather returned: It is sunny in demo."), ("openai", "You said: Hello")]
)
def test_the_python_examples_work_when_pasted(
    start_bridge: StartBridge, tmp_path: Path, package: str, said: str
) -> None:
    (example,) = [block for block in blocks("python") if f"import {package}\n" in block]
    assert said in pasted([sys.executable, "-c", example], start_bridge(), tmp_path)


def test_the_claude_code_example_works_when_pasted(start_bridge: StartBridge, tmp_path: Path, claude_code: str) -> None:
    (example,) = [block for block in blocks("bash") if "claude -p" in block]
    printed = pasted(["bash", "-euc", example.replace("claude", claude_code, 1)], start_bridge(), tmp_path)
    assert "This is the demo model of Toolbridge." in printed


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_and_tests_that_are_named_exist(name: str) -> None:
    text = (PROJECT / name).read_text(encoding="utf-8")
    for path, test in re.findall(
        r"`((?:tests|conversations|translation|bridge_project|scripts|docs)/[\w/.-]+)(?:::(\w+))?`", text
    ):
        assert (PROJECT / path).exists(), path
        if test:
            assert f"def {test}(" in (PROJECT / path).read_text(encoding="utf-8"), test

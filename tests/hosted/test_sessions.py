"""The seed's success criteria: a session over HTTP that registers a tool, sends messages, and reads what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.api.conftest import Serve
from tests.servers.script import json_answer
from tests.servers.upstream import ScriptedUpstream

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def test_script_of_the_readme_works_when_pasted(serve: Serve, tool_server: ScriptedUpstream, tmp_path: Path) -> None:
    tool_server.reset()
    tool_server.always("/files", json_answer({"files": ["file1.txt", "file2.txt"]}))
    served = serve(BRIDGE_TOOL_HOSTS="127.0.0.1", MODEL_MAP_SONNET="demo/demo")
    (script,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "hosted-tools" in block]
    given = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ANTHROPIC_BASE_URL": served.bridge.url,
        "ANTHROPIC_API_KEY": served.records.issue(hosted_tools=True),
        "TOOL_URL": f"{tool_server.url}/files",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=given, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "tool start: list_files" in lines
    assert 'tool result: {"files": ["file1.txt", "file2.txt"]}' in lines
    assert any(line.startswith("content:") for line in lines)
    assert not any(line.startswith("error:") for line in lines)
    assert len(script.splitlines()) <= 36

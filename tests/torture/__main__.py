"""`make torture`: runs the properties in full size, prints the table and keeps it in docs/reliability.md.

SCALE=0.1 runs a tenth of the trials; ONLY="kill purge" these properties; JOBS=4 four at a time (figures of time are
then worth less). A property that was not run keeps its older line.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.servers.bridge import PROJECT
from tests.torture import report
from tests.torture.properties import PROPERTIES


def main() -> int:
    scale = os.environ.get("SCALE") or "1"
    only = os.environ.get("ONLY", "").replace(",", " ").split()
    unknown = set(only) - set(PROPERTIES)
    if unknown:
        sys.exit(f"no such property: {', '.join(sorted(unknown))}; there are {', '.join(PROPERTIES)}")
    with tempfile.TemporaryDirectory(prefix="toolbridge-torture-") as folder:
        ledger = Path(folder) / "ledger.jsonl"
        ledger.touch()
        given = {"SCALE": scale, "TORTURE_ONLY": " ".join(only), "TORTURE_LEDGER": str(ledger)}
        # Whoever has nothing left takes what another one has not begun: the tests are of very different lengths.
        jobs = ["-n", os.environ.get("JOBS") or "0", "--dist", "worksteal"]
        command = [sys.executable, "-m", "pytest", "-m", "proves", *jobs, "tests"]
        ended = subprocess.run([*command, *sys.argv[1:]], cwd=PROJECT, env=os.environ | given, check=False)
        lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    runs = report.summed(lines, scale)
    report.keep(runs)
    sys.stdout.write("\n" + report.table(runs) + report.told(lines))
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())

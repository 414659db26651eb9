"""`make licences`: what each runtime dependency says it is licensed under; an unknown licence is a failure.

Looked at: all of these allow use in a service and redistribution beside our own code. What is weakly copyleft (LGPL,
MPL) is used unchanged, as a library.
"""

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

REQUIREMENTS = Path(__file__).parent.parent / "requirements.txt"
KNOWN = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla Public|LGPL|Lesser General Public|Zope|ZPL"
    r"|Unlicense|CC0|Historical Permission)",
    re.IGNORECASE,
)


def licence(package: Distribution) -> str:
    """An SPDX expression where there is one, else the classifiers, else the first line of the old field."""
    metadata = package.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    said = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier", []) if line.startswith("License ::")]
    stated = metadata["License"].strip().partition("\n")[0] if "License" in metadata else ""
    return ", ".join(said) or stated


def licences(requirements: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in re.findall(r"^([A-Za-z0-9._-]+)==", requirements.replace("[", "=="), re.MULTILINE):
        try:
            found[name] = licence(distribution(name))
        except PackageNotFoundError:
            continue  # for another system or version of Python
    return found


def unknown(found: dict[str, str]) -> list[str]:
    return [name for name, stated in found.items() if not KNOWN.search(stated)]


def main() -> int:
    found = licences(REQUIREMENTS.read_text(encoding="utf-8"))
    for name, stated in found.items():
        sys.stdout.write(f"{name:32} {stated}\n")
    wrong = unknown(found)
    if wrong:
        sys.stderr.write(f"not known to be allowed: {', '.join(wrong)}\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

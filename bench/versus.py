"""Two trees of the bridge in turns: `python -m bench.versus ../other`. Is this one cheaper than that one?

Both serve at once, and are asked for half a second each, again and again: what the machine's neighbours do meets both.
The ratios of such pairs scatter far less than two runs do.
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

from msgspec.structs import replace

from bench import machine, scenarios, targets
from bench.targets import HOME, PROJECT, Running


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.versus", description=__doc__)
    parser.add_argument("other", type=Path, help="the tree that this one is compared with; or this one, with --env")
    parser.add_argument("--scenario", default="small, 32 clients", choices=[item.name for item in scenarios.SCENARIOS])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for this tree only")
    options = parser.parse_args(arguments)
    chosen = next(item for item in scenarios.SCENARIOS if item.name == options.scenario)
    chosen = chosen if chosen.requests else replace(chosen, seconds=0.4)
    HOME.mkdir(parents=True, exist_ok=True)
    machine.raise_descriptors()
    machine.pin(machine.LOAD)
    with ExitStack() as running:
        upstream = running.enter_context(targets.fake_upstream())
        more = dict(item.split("=", 1) for item in options.env)
        ours = running.enter_context(targets.bridge_of(PROJECT, upstream.port, "ours", more))
        theirs = running.enter_context(targets.bridge_of(options.other.resolve(), upstream.port, "theirs", {}))
        for target in (ours, theirs):
            scenarios.warm(target)
        for target in (ours, theirs):
            scenarios.settle(target)
        pairs = [_pair(ours, theirs, chosen, upstream.port, flip=number % 2) for number in range(options.rounds)]
    ratios = [mine / other for mine, other in pairs]
    low, _, high = quantiles(ratios, n=4)
    each = " against ".join(f"{median(values):.0f} us" for values in zip(*pairs, strict=True))
    sys.stdout.write(
        f"{chosen.name}: {PROJECT} / {options.other}: {median(ratios):.3f}"
        f" (half of the pairs {low:.3f} to {high:.3f}), "
        f"{each}; best {min(pairs)[0]:.0f} and {min(theirs for _, theirs in pairs):.0f}\n"
    )


def _pair(
    ours: Running, theirs: Running, chosen: scenarios.Scenario, upstream: int, *, flip: int
) -> tuple[float, float]:
    """CPU per request of both, one after the other; the next time in the other order."""
    order = (theirs, ours) if flip else (ours, theirs)
    figures = [scenarios.measure(target, chosen, upstream, 1.0)["cpu_us_per_request"] for target in order]
    return (figures[1], figures[0]) if flip else (figures[0], figures[1])


if __name__ == "__main__":
    main(sys.argv[1:])

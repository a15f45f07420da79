"""Times of Toolcage beside what it is compared with. Run by scripts/bench; reads nothing but the clock.

All candidates are measured once in every round, so that noise of the machine hits all alike; medians are compared.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench import candidates
from tests.bench.candidates import Absent, Candidate

_WIDTH = 52
_REST_SECONDS = 0.03  # after each: a server that stages its next worker must not disturb the next candidate


def main() -> int:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="tc-bench-") as name, ExitStack() as stack:
        place = Path(name).resolve()
        place.chmod(0o755)  # as root, the caged tools have another uid and must be able to enter
        (place / "root").mkdir()
        rows = measure(
            [(candidate, options.rounds) for candidate in candidates.calls(place, stack)]
            + [(candidate, options.starts) for candidate in candidates.starts(place)]
        )
    host = {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "user": "root" if os.geteuid() == 0 else "ordinary",
    }
    if options.json:
        print(json.dumps({"host": host, "rows": rows}, indent=2))
    else:
        print(" · ".join(f"{key} {value}" for key, value in host.items()))
        print("\n".join(table(rows)))
    return 0


def measure(plan: list[tuple[Candidate, int]]) -> list[dict[str, Any]]:
    """One row for each candidate, which is measured that many times, after one time that does not count."""
    times: dict[int, list[float]] = {index: [] for index in range(len(plan))}
    absent: dict[int, str] = {}
    for number in range(max(count for _, count in plan) + 1):
        for index, (candidate, count) in enumerate(plan):
            if number > count or index in absent:
                continue
            try:
                spent = candidate.once()
            except Absent as problem:
                absent[index] = str(problem)
                continue
            time.sleep(_REST_SECONDS)
            if number > 0:
                times[index].append(spent * 1000)
    return [
        {"group": candidate.group, "name": candidate.name}
        | ({"absent": absent[index]} if index in absent else _summary(times[index]))
        for index, (candidate, _) in enumerate(plan)
    ]


def _summary(milliseconds: list[float]) -> dict[str, Any]:
    ordered = sorted(milliseconds)
    return {
        "median_ms": round(statistics.median(ordered), 3),
        "least_ms": round(ordered[0], 3),
        "p90_ms": round(ordered[math.ceil(0.9 * len(ordered)) - 1], 3),
        "runs": len(ordered),
    }


def table(rows: list[dict[str, Any]]) -> Iterable[str]:
    """Lines for people: times in milliseconds; the ratio is to the first row of the group, and to bwrap where it is."""
    for group in dict.fromkeys(row["group"] for row in rows):
        members = [row for row in rows if row["group"] == group]
        against = [row for row in members if row is members[0] or row["name"] == "bwrap"]
        named = "".join(f"{'x bwrap' if row['name'] == 'bwrap' else 'x first':>10}" for row in against)
        yield ""
        yield f"{group:<{_WIDTH}}{'median':>10}{'least':>10}{'p90':>10}{'runs':>6}{named}"
        yield from (_line(row, against) for row in members)


def _line(row: dict[str, Any], against: list[dict[str, Any]]) -> str:
    start = f"  {row['name']:<{_WIDTH - 2}}"
    if "absent" in row:
        return f"{start}  {row['absent']}"
    times = "".join(f"{row[key]:>10.2f}" for key in ("median_ms", "least_ms", "p90_ms"))
    return f"{start}{times}{row['runs']:>6}" + "".join(_ratio(row, other) for other in against)


def _ratio(row: dict[str, Any], other: dict[str, Any]) -> str:
    return f"{row['median_ms'] / other['median_ms']:>10.2f}" if "median_ms" in other else f"{'-':>10}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--rounds", type=_between(1, 500), default=30, help="measurements of each call (30)")
    parser.add_argument("--starts", type=_between(1, 500), default=7, help="measurements of each start (7)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    return parser.parse_args()


def _between(low: int, high: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"give a number from {low} to {high}")
        return int(text)

    return number


if __name__ == "__main__":
    sys.exit(main())

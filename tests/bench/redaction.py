"""Speed of redaction: ordinary texts, a small result, the first use, and texts made to be slow. Reads only the clock.

python -m tests.bench.redaction          all of it, about five minutes
python -m tests.bench.redaction --quick  without the slow texts
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable

import orjson

from runner.redaction.engine import WITHHELD, Redactor
from tests.runner.redaction.adversarial import seeds

SIZE, SMALL = 262_144, 4096
_WORDS = [
    "compile",
    "link",
    "test",
    "worker",
    "finished",
    "started",
    "cached",
    "module",
    "package",
    "warning",
    "note",
    "error",
    "path",
    "target",
    "build",
    "step",
    "token",
    "key",
]
_FIRST = """
import re, dataclasses, orjson, html, urllib.parse, fnmatch, sandbox.errors, time
begun = time.process_time()
from runner.redaction.engine import Redactor
loaded = time.process_time()
Redactor(()).text("x")
print((loaded - begun) * 1000, (time.process_time() - loaded) * 1000)
"""


def log(size: int, source: random.Random) -> str:
    """A build log: compiler calls, test names, hashes, addresses."""
    lines: list[str] = []
    length = 0
    while length < size:
        a, b, n = source.choice(_WORDS), source.choice(_WORDS), source.randrange(1000)
        lines.append(
            source.choice(
                (
                    f"2026-01-02T03:04:05Z INFO worker-{n} finished job {n} in {n} ms path=/srv/app/{a}/{n}.json status=ok\n",
                    f"gcc -O2 -g -Wall -Iinclude -c -o obj/{a}.o src/{b}/{a}.c\n",
                    f"tests/test_{a}.py::test_{b}_{n} PASSED [{n % 100}%]\n",
                    f"Collecting {a}=={n}.1 (from -r requirements.txt) --hash=sha256:{source.randbytes(32).hex()}\n",
                    f"npm http fetch GET 200 https://packages.example.org/{a}/-/{b}-{n}.tgz {n}ms (cache hit)\n",
                )
            )
        )
        length += len(lines[-1])
    return "".join(lines)[:size]


def document(size: int, source: random.Random) -> list[object]:
    """Findings of a linter."""
    return [
        {"id": number, "path": f"src/{number % 97}/file_{number}.py", "line": source.randrange(999), "code": "E501",
         "message": f"Line too long ({source.randrange(90, 200)} > 88 characters)", "fix": None, "tags": ["a", f"b{number % 9}"],
         "url": "https://docs.example.org/rules/line-too-long", "sha": source.randbytes(20).hex()}
        for number in range(size // 210)
    ]  # fmt: skip


def best(work: Callable[[], object], tries: int) -> float:
    """Fewest seconds of processor time of some tries."""
    fewest = 1e9
    for _ in range(tries):
        begun = time.process_time()
        work()
        fewest = min(fewest, time.process_time() - begun)
    return fewest


def ordinary(redactor: Redactor) -> None:
    source = random.Random(7)
    text, findings = log(SIZE, source), document(SIZE, source)
    json_text = orjson.dumps(findings).decode()
    for name, size, work in (
        ("build log", len(text), lambda: redactor.text(text)),
        ("JSON as text", len(json_text), lambda: redactor.text(json_text)),
        ("JSON, parsed", len(json_text), lambda: redactor.value(findings)),
    ):
        seconds = best(work, 15)
        print(f"{name:14s} {size / seconds / 1e6:7.1f} MB/s  {seconds * 1000:6.2f} ms")
    small = text[:SMALL]
    print(f"{'4 KiB of it':14s} {best(lambda: redactor.text(small), 50) * 1000:20.3f} ms")


def slow(redactor: Redactor) -> None:
    rows: list[tuple[float, bool, str]] = []
    for seed in seeds():
        text = (seed * (SIZE // len(seed) + 1))[:SIZE]
        begun = time.process_time()
        withheld = WITHHELD in redactor.text(text)[1]
        rows.append((SIZE / (time.process_time() - begun) / 1e6, withheld, seed))
    rows.sort()
    print(f"{len(rows)} texts made to be slow, {sum(row[1] for row in rows)} of them withheld; the slowest:")
    for speed, withheld, seed in rows[:5]:
        print(f"  {speed:5.2f} MB/s {seed!r}{' withheld' if withheld else ''}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    redactor = Redactor(())
    redactor.text("warm")
    ordinary(redactor)
    done = [
        subprocess.run([sys.executable, "-c", _FIRST], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    load, use = min(tuple(map(float, run.stdout.split())) for run in done)
    print(f"{'first use':14s} {use:20.2f} ms, loading it before {load:.1f} ms")
    if not options.quick:
        slow(redactor)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Tools for policies of the tests: small programs of the system's Python."""

from __future__ import annotations

from tests.end_to_end.policy_file import python

TEXT = {"text": {"type": "string", "required": True, "max_length": 20000}}
PATH = {"path": {"type": "path", "required": True}}
SECONDS = {"seconds": {"type": "number", "required": True, "min": 0, "max": 100}}

# A keeper, the tool and a child that left its session: three processes below the launcher.
HANG = "import os, time\nif os.fork() == 0: os.setsid()\ntime.sleep(60)"
HANGING = 3

ECHO = python("import sys; print(sys.argv[2])", "{text}", params=TEXT)
READ = python("import sys; print(open(sys.argv[2]).read(), end='')", "{path}", params=PATH)
SLEEP = python(
    "import sys, time; time.sleep(float(sys.argv[2])); print('slept')", "{seconds}", params=SECONDS
)
HANGS = python(HANG, processes="any")
FACTS = python('import json; print(json.dumps({"answer": 42, "list": [1, "two"]}))', output="json")
FAILS = python("import sys; print('no such thing', file=sys.stderr); sys.exit(2)")
LONG = python("for n in range(4000): print('line', n, 'of a long output')")
BOMB = python(
    "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
    processes="any",
    limits={"processes": 16, "wall_seconds": 5},
)
LONG_LINES = 4000

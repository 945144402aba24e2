"""Run every suite, continue after a failure, and print one final line: `N passed, N failed`.

    python setup/suites.py            all of them
    python setup/suites.py ruff unit  some
    python setup/suites.py quick      those that need no browser and little time

A linter counts as one test. The counts of test runners come from their JUnit reports. A runner that ran no test, or
wrote no report, counts as failed.
"""

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".make" / "reports"
BIN = Path(sys.executable).parent
PY = [sys.executable, "-m"]
AT_ONCE = ["--numprocesses=2", "--dist=worksteal"]  # the longest tests are not all at the end of one worker
KERNELS_AT_ONCE = ["--numprocesses=3", "--dist=worksteal"]  # half of the time of each is waiting for its kernel
PAGES_AT_ONCE = ["--numprocesses=4", "--dist=worksteal"]  # half of the time of each is waiting until a picture rests
# Tests that start interpreters, kernels and environments of their own, grow a graph until a thread's stack is full, or
# run a loop thousands of times.
SLOW = [
    "tests/programs",
    "tests/trials/test_programs.py",
    "tests/trials/test_supervised.py",
    "tests/trials/test_effects.py",
    "tests/notebook/test_kernel.py",
    "tests/notebooks/test_lectures_run.py",
    "tests/capture/graph/test_deep.py",
    "tests/capture/test_ranks.py",
    "tests/capture/test_long_runs.py",
    "tests/capture/calls/test_who_freed.py",
    "tests/torch_internals/test_private_names.py",
    "tests/test_package.py",
]
# Browser tests of pages without a kernel.
PAGES = ["tests/e2e/pages"]
APART = ["tests/e2e", "tests/scenarios", "tests/fuzz"]
VITEST = ["npx", "vitest", "run", "--reporter=default", "--reporter=junit"]


@dataclass(frozen=True)
class Suite:
    name: str
    command: list[str]
    folder: Path = ROOT
    counts: bool = False  # writes a JUnit report


def pytest(name: str, *args: str) -> Suite:
    return Suite(name, [*PY, "pytest", "-q", f"--junitxml={REPORTS / name}.xml", *args], counts=True)


SUITES = [
    Suite("ruff", [*PY, "ruff", "check", "."]),
    Suite("format", [*PY, "ruff", "format", "--check", "."]),
    Suite("mypy", [*PY, "mypy"]),
    Suite("js-check", ["npm", "run", "--silent", "check"], ROOT / "js"),
    Suite("bundle", [sys.executable, "setup/check_bundle.py"]),
    Suite("js", [*VITEST, f"--outputFile.junit={REPORTS / 'js'}.xml"], ROOT / "js", counts=True),
    pytest("unit", *AT_ONCE, *(f"--ignore={path}" for path in [*APART, *SLOW])),
    pytest("slow", *AT_ONCE, *SLOW),
    pytest("fuzz", *AT_ONCE, "tests/fuzz"),
    pytest("scenarios", *AT_ONCE, "tests/scenarios"),
    pytest("pages", *PAGES_AT_ONCE, *PAGES),
    pytest("e2e", *KERNELS_AT_ONCE, "tests/e2e", *(f"--ignore={path}" for path in PAGES)),
]


QUICK = ["ruff", "format", "mypy", "js-check", "js", "unit"]


def count(suite: Suite, status: int) -> tuple[int, int]:
    """Return the numbers of passed and failed tests of a finished suite."""
    if not suite.counts:
        return (1, 0) if status == 0 else (0, 1)
    report = REPORTS / f"{suite.name}.xml"
    if not report.exists():
        return 0, 1
    total = bad = skipped = 0
    for node in ET.parse(report).iter("testsuite"):
        total += int(node.get("tests", 0))
        bad += int(node.get("failures", 0)) + int(node.get("errors", 0))
        skipped += int(node.get("skipped", 0))
    if status != 0 and bad == 0:
        bad = 1  # the runner died or ran nothing, which its report alone does not show
    return max(total - bad - skipped, 0), bad


def run(suite: Suite, env: dict[str, str]) -> tuple[int, int]:
    print(f"\n== {suite.name}: {' '.join(suite.command)}", flush=True)
    report = REPORTS / f"{suite.name}.xml"
    report.unlink(missing_ok=True)
    start = time.monotonic()
    status = subprocess.run(suite.command, cwd=suite.folder, env=env, stdin=subprocess.DEVNULL).returncode
    passed, failed = count(suite, status)
    print(f"== {suite.name}: {passed} passed, {failed} failed in {time.monotonic() - start:.0f} s", flush=True)
    return passed, failed


def compile_package() -> None:
    """Compile the package once: where Python writes no compiled code, each of a thousand processes would do it."""
    subprocess.run([*PY, "compileall", "-q", "graphwidget"], cwd=ROOT, stdin=subprocess.DEVNULL)


def main(names: list[str]) -> int:
    names = [name for given in names for name in (QUICK if given == "quick" else [given])]
    unknown = set(names) - {s.name for s in SUITES}
    if unknown:
        print(f"no suite named {', '.join(sorted(unknown))}; there are: {', '.join(s.name for s in SUITES)}")
        return 2
    REPORTS.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "2"}
    compile_package()
    results = [run(s, env) for s in SUITES if not names or s.name in names]
    passed, failed = (sum(column) for column in zip(*results))
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

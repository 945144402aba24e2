"""What a program does to the world around it, as far as it can be seen."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import prepared
import pytest

from graphwidget.trials import effects

BEGIN = "import os, sys, torch\nfrom graphwidget.trials import effects\nseen = effects.watch(os.getcwd())\n"
SEEN = {
    "nothing": ("x = torch.ones(2); print(x); import json; open(os.devnull, 'w').write('x')", ""),
    "reads": ("open('here.txt').read(); open('here.txt', 'rb').read()", ""),
    "temporary": (
        "import tempfile; tempfile.TemporaryFile()\n"
        "with tempfile.TemporaryDirectory() as folder: open(f'{folder}/x', 'w')",  # is removed by paths relative to it
        "",
    ),
    "a shell's first start": (
        "made = os.path.expanduser('~/.ipython/one')\nos.makedirs(made); open(f'{made}/x', 'w')",
        "",
    ),
    "writes": ("open('out.txt', 'w').write('x')", "the program writes files (out.txt)"),
    "appends": ("open('here.txt', 'a').write('x')", "the program writes files (here.txt)"),
    "removes": ("os.remove('here.txt')", "the program writes files (here.txt)"),
    "many": ("for n in range(5): open(f'{n}.txt', 'w')", "the program writes files (0.txt, 1.txt and 3 more)"),
    "torch's compiled writer": ("torch.save(torch.ones(2), 'w.pt')", "the program writes files (w.pt)"),
    "compiled code": (
        "import ctypes; ctypes.CDLL(None).creat(b'w.bin', 0o600)",
        "files changed while the program ran (w.bin)",
    ),
    "compiled code beside others": (
        "import ctypes; ctypes.CDLL(None).creat(b'w.bin', 0o600); open('a.txt', 'w')",
        "the program writes files (a.txt, w.bin)",
    ),
    "makes a folder": ("os.mkdir('new')", "the program writes files (new)"),
    "makes a folder that is there": (
        "os.makedirs('../work', exist_ok=True); os.makedirs('.', exist_ok=True)\n"
        "from pathlib import Path; Path('../../' + Path('..').resolve().name + '/work').mkdir(exist_ok=True)",
        "",
    ),
    "removes what is not there": (
        "from contextlib import suppress\n"
        "for act in (os.remove, os.rmdir, lambda name: os.rename(name, 'b'), lambda name: os.truncate(name, 0)):\n"
        "    with suppress(OSError): act('a')",
        "",
    ),
    "opens in a folder that is not there": (
        "from contextlib import suppress\nwith suppress(OSError): open('no/a', 'w')",
        "",
    ),
    "renames": ("os.rename('here.txt', 'there.txt')", "the program writes files (here.txt, there.txt)"),
    "a pipe": (
        "os.mkfifo('pipe'); os.close(os.open('pipe', os.O_RDWR))",
        "the program writes to a device or a pipe (pipe)",
    ),
    "a database": (
        "import sqlite3; sqlite3.connect(':memory:'); sqlite3.connect('runs.db')",
        "the program opens a database (runs.db)",
    ),
    "another program": (
        "import subprocess; os.system('true -v'); subprocess.run([sys.executable, '-c', ''])",
        f"the program starts other programs (true, {Path(sys.executable).name})",
    ),
    "another machine": (
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))",
        "the program talks to other machines",
    ),
    "this machine": ("import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', 9))", ""),
}


@pytest.mark.parametrize("what", SEEN)
def test_what_would_happen_again_is_seen(tmp_path, what):
    code, expected = SEEN[what]
    work = tmp_path / "work"
    work.mkdir()
    (work / "here.txt").write_text("x")
    program = f"{BEGIN}import time; time.sleep(0.05)\n{code}\nprint(f'seen: {{seen.end().said}}', flush=True)\n"
    # In another folder than that for temporary files, of which a test's own folder is a part.
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path / "home"), "IPYTHONDIR": ""}
    (tmp_path / "tmp").mkdir()
    (tmp_path / "home").mkdir()
    done = prepared.run("-c", program, cwd=work, env=environment)
    assert done.stdout.splitlines()[-1:] == [f"seen: {expected}"], done.stderr


@pytest.mark.parametrize("folder", ["tmp", "."])
def test_files_of_others_in_a_folder_for_temporary_files_are_not_the_programs(tmp_path, monkeypatch, folder):
    """The program was started there, or above it: what changes may be anybody's."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    seen = effects.Effects(str(tmp_path / folder))
    seen._since = 0
    (tmp_path / "tmp" / "others.txt").write_text("x")
    assert seen.end().said == ""
    inside = effects.Effects(str(tmp_path / "tmp" / "project"))
    inside._since = 0
    (tmp_path / "tmp" / "project").mkdir()
    (tmp_path / "tmp" / "project" / "own.txt").write_text("x")
    assert "own.txt" in inside.end().said


def test_files_of_ours_are_not_the_programs_where_it_runs_in_the_folder_for_temporary_files(tmp_path, monkeypatch):
    """Beside the answer's own file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "answers").mkdir()
    seen = effects.watch(str(tmp_path), ours=str(tmp_path / "answers"))
    (tmp_path / "answers" / "ran").write_text("")
    assert seen.end().said == ""


def test_the_end_of_the_interpreter_is_quiet():
    """Python reports to the hook until the very end, when it has set the names of modules to None."""
    program = (
        "from graphwidget.trials import effects\neffects.watch('.')\n"
        "for name in list(vars(effects)): vars(effects)[name] = None\n"
        "open('/dev/null').close()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("made", "expected"), [("torchinductor_me", ""), ("out", "the program writes files (out)")])
def test_what_torch_compiled_is_no_effect_in_a_program_that_runs_in_the_folder_for_temporary_files(
    tmp_path, monkeypatch, made, expected
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = effects.watch(str(tmp_path))
    (tmp_path / made).mkdir()
    (tmp_path / made / "x").mkdir()
    assert seen.end().said == expected.replace("(out)", f"(out, out{os.sep}x)")

"""What a process does to files under a keeper is undone by its journal, whatever it was and however it ended."""

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from graphwidget.trials.files import keeping
from graphwidget.trials.files.keeping import lines_of
from graphwidget.trials.files.undoing import JOB, after_the_parent, undo

BEGIN = """
import os, shutil, sys
from pathlib import Path
from graphwidget.trials.files import keeping
keeping.MOST_BYTES = 2_000_000
keeper = keeping.Keeper(Path(sys.argv[1]), os.getcwd(), os.path.dirname(sys.argv[1]), ["log.txt"], must=sys.argv[2] == "must")
keeper.listen()
"""
ACTS = {
    "overwrites": "open('log.txt', 'w').write('new')",
    "appends": "open('log.txt', 'a').write('new')",
    "writes twice": "for n in range(3): open('log.txt', 'w').write(str(n))",
    "in place": "with open('log.txt', 'r+b') as f: f.seek(1); f.write(b'new'); f.truncate(2)",
    "through a map": "import mmap\nwith open('log.txt', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m: m[0] = 0",
    "os.open": "os.write(os.open('log.txt', os.O_WRONLY | os.O_APPEND), b'new')",
    "makes": "open('new.txt', 'w').write('new'); os.makedirs('runs/1/x'); open('runs/1/x/a', 'w')",
    "removes": "os.remove('log.txt'); os.remove('data/a.txt'); os.remove('link')",
    "replaces": "open('tmp', 'w').write('new'); os.replace('tmp', 'log.txt')",
    "renames": "os.rename('log.txt', 'old.txt'); open('log.txt', 'w').write('new'); os.rename('old.txt', 'older.txt')",
    "truncates": "os.truncate('log.txt', 0); Path('data/a.txt').touch(); os.chmod('log.txt', 0o600)",
    "removes a tree": "shutil.rmtree('data')",
    "moves a tree": (
        "os.rename('data', 'moved'); open('moved/a.txt', 'w').write('new'); os.remove('moved/sub/b.txt')\n"
        "os.mkdir('data'); open('data/a.txt', 'w').write('other')"
    ),
    "changes, and moves a tree": (
        "open('data/a.txt', 'w').write('one'); os.rename('data', 'moved'); open('moved/a.txt', 'w').write('two')"
    ),
    "moves into a tree": "shutil.move('log.txt', 'data'); shutil.copytree('data', 'copy')",
    "through a link": "open('link', 'w').write('new'); os.symlink('log.txt', 'other'); open('other', 'a').write('x')",
    "a hard link": "os.link('log.txt', 'hard'); open('hard', 'a').write('new')",
    "outside": "open('../outside.txt', 'w').write('new'); open('../beside.txt', 'w')",
    "elsewhere": "os.chdir('data'); open('a.txt', 'w'); open('../log.txt', 'a').write('x')",
    "read only": "os.chmod('log.txt', 0o400); os.chmod('data', 0o700)",
    "a folder in place of a file": "os.remove('log.txt'); os.mkdir('log.txt'); open('log.txt/a', 'w')",
    "a file in place of a folder": "shutil.rmtree('data'); open('data', 'w').write('x')",
    "forks": (
        "for n in range(3):\n"
        "    if not os.fork():\n"
        "        open('log.txt', 'a').write(str(n)); open(f'{n}.txt', 'w'); os._exit(0)\n"
        "for n in range(3): os.wait()"
    ),
    "threads": (
        "import threading\nPath('big').write_bytes(b'x')\n"
        "def work(n):\n    for name in ('log.txt', 'data/a.txt', f'{n}'): open(name, 'a').write(str(n))\n"
        "all = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n"
        "for one in all: one.start()\nfor one in all: one.join()"
    ),
    "torch": "import torch; keeper.listen(); torch.save(torch.ones(2), 'log.txt'); torch.save(torch.ones(2), Path('new.pt'))",
    "is killed": "open('log.txt', 'w').write('new'); os.kill(os.getpid(), 9)",
    "fails": (
        "for act in (lambda: os.mkdir('data'), lambda: os.rename('no', 'x'), lambda: os.rmdir('data'), lambda: open('no/x', 'w')):\n"
        "    try: act()\n    except OSError: pass"
    ),
}


def world(folder):
    """A folder with all sorts of things in it."""
    work = folder / "work"
    (work / "data" / "sub").mkdir(parents=True)
    files = ("work/log.txt", "work/data/a.txt", "work/data/sub/b.txt", "outside.txt")
    for n, name in enumerate(files):
        (folder / name).write_text(f"contents of {name}")
        (folder / name).chmod((0o644, 0o640, 0o755, 0o600)[n])
        os.utime(folder / name, ns=(10**18 + n, 10**18 + 123456789 + n))
    (work / "link").symlink_to("data/a.txt")
    for n, name in enumerate(("work/data/sub", "work/data", "work")):
        (folder / name).chmod(0o750)
        os.utime(folder / name, ns=(10**18, 10**18 + n))
    return work


def seen(folder):
    """All that is in a folder: kind, mode, times, contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        times = about.st_mtime_ns if not path.is_symlink() else None
        found[str(path.relative_to(folder))] = (stat.filemode(about.st_mode), times, what)
    return found


def run(folder, code, must="must"):
    place = folder.parent / f"{folder.name}-trial" / "kept"
    place.mkdir(parents=True)
    program = f"{BEGIN}{textwrap.dedent(code)}"
    environment = {**os.environ, "TMPDIR": str(place.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(place), must],
        cwd=folder / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return place, done


@pytest.mark.parametrize("what", ACTS)
def test_all_is_as_it_was(tmp_path, what):
    world(tmp_path)
    before = seen(tmp_path)
    place, done = run(tmp_path, ACTS[what])
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    assert what == "fails" or seen(tmp_path) != before
    assert undo(place) == {}
    assert seen(tmp_path) == before
    assert undo(place) == {} and seen(tmp_path) == before


def test_who_has_a_file_open_keeps_it(tmp_path):
    """The program that ran before may write to it when it ends."""
    world(tmp_path)
    with open(tmp_path / "work" / "log.txt", "a") as file:
        place, _done = run(tmp_path, ACTS["overwrites"])
        undo(place)
        file.write(", and more")
    assert (tmp_path / "work" / "log.txt").read_text() == "contents of work/log.txt, and more"


def test_only_what_the_journal_names_is_touched(tmp_path):
    """A folder that was made stays if somebody else has put something into it."""
    work = world(tmp_path)
    place, _done = run(tmp_path, ACTS["makes"])
    (work / "runs" / "others.txt").write_text("of somebody else")
    (work / "data" / "sub" / "b.txt").write_text("of somebody else")
    assert undo(place) == {}
    assert (work / "runs" / "others.txt").read_text() == (work / "data" / "sub" / "b.txt").read_text()
    assert not (work / "runs" / "1").exists() and not (work / "new.txt").exists()


STOPPED = {
    "would overwrite more than 2.0 MB (": "open('large', 'r+b').write(b'new')",
    "would write to a device or a pipe (": "os.open('pipe', os.O_RDWR)",
}


@pytest.mark.parametrize("why", STOPPED)
def test_what_cannot_be_kept_is_not_done(tmp_path, why):
    work = world(tmp_path)
    (work / "large").write_bytes(b"x" * 3_000_000)
    os.mkfifo(work / "pipe")
    place, done = run(tmp_path, f"{STOPPED[why]}\nopen('after', 'w')")
    assert done.returncode == 1
    assert (place / keeping.STOPPED).read_text().startswith(why)
    assert (work / "large").read_bytes() == b"x" * 3_000_000 and not (work / "after").exists()


def test_what_cannot_be_kept_is_done_and_noted_where_that_is_wanted(tmp_path):
    work = world(tmp_path)
    (work / "large").write_bytes(b"x" * 3_000_000)
    before = seen(tmp_path)
    place, done = run(tmp_path, "open('large', 'r+b').write(b'new'); open('log.txt', 'w')", must="")
    assert done.returncode == 0, done.stderr
    assert [line["why"][:30] for line in lines_of(place) if line["was"] == "not kept"] == [
        "would overwrite more than 2.0 "
    ]
    undo(place)
    after = seen(tmp_path)
    assert {name for name in before if before[name] != after[name]} == {"work/large"}


def test_a_line_that_is_not_whole_was_no_act(tmp_path):
    world(tmp_path)
    before = seen(tmp_path)
    place, _done = run(tmp_path, ACTS["overwrites"])
    with open(place / keeping.JOURNAL, "a") as journal:
        journal.write(json.dumps({"path": str(tmp_path / "outside.txt"), "was": "absent"})[:-4])
    assert undo(place) == {} and seen(tmp_path) == before


def test_what_cannot_be_put_back_is_told(tmp_path):
    world(tmp_path)
    place, _done = run(tmp_path, "open('log.txt', 'w'); open('data/a.txt', 'w')")
    copies = [place / line["copy"] for line in lines_of(place) if "copy" in line]
    copies[0].unlink()
    failed = undo(place)
    assert list(failed) == [str(tmp_path / "work" / "log.txt")] and "FileNotFoundError" in next(iter(failed.values()))
    assert (tmp_path / "work" / "data" / "a.txt").read_text() == "contents of work/data/a.txt"


def test_the_last_process_of_a_trial_undoes_it_where_its_parent_is_gone(tmp_path):
    world(tmp_path)
    before = seen(tmp_path)
    place, _done = run(tmp_path, ACTS["replaces"])
    place.with_name(JOB).touch()
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    after_the_parent(str(place), other.pid)
    assert other.wait(30) == -signal.SIGKILL
    assert seen(tmp_path) == before and not Path(place.parent).exists()


def test_who_undoes_removes_no_folder_but_a_trial_s(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "own.txt").touch()
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    after_the_parent(str(tmp_path / "kept"), other.pid)
    assert other.wait(30) == -signal.SIGKILL and (tmp_path / "own.txt").exists()


def test_who_undoes_needs_no_torch():
    code = "import sys; from graphwidget.trials.files import undoing; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr

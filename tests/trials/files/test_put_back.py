"""A program that writes files is tried, and its files are as its own run left them."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import prepared
import pytest

# What the program's own run leaves is noted when it ends, in a folder that does not count. It is read as compiled code
# reads it: to read files is an act of the program, too.
NOTES = """
import atexit, ctypes, json, os
_open = ctypes.CDLL(None).open
def _contents(path):
    number = _open(path.encode(), 0)
    text = os.read(number, 10**6)
    os.close(number)
    return text.hex()
def _note():
    note = os.path.join(os.environ["NOTES"], "left.json")
    if os.path.exists(note): return
    left = {}
    for top in (os.getcwd(), os.environ["OUTSIDE"]):
        for folder, folders, files in os.walk(top):
            for path in [folder, *(os.path.join(folder, one) for one in files)]:
                about = os.stat(path)
                text = _contents(path) if os.path.isfile(path) else ""
                left[path] = [about.st_mode, about.st_mtime_ns, text]
    json.dump(left, open(note, "w"))
atexit.register(_note)
"""
TRAIN = """
import torch, time
from torch import nn
os.makedirs("images", exist_ok=True)
os.makedirs("runs/one", exist_ok=True)
torch.manual_seed(0)
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    with torch.no_grad():
        z = net(torch.randn(2, 3)).sigmoid()
    print(step, file=open("log.txt", "a"))
    torch.save(net.state_dict(), "tmp.pt")
    os.replace("tmp.pt", "best.pt")
    open(f"runs/one/{step}.txt", "w").write("x")
    if os.path.exists("old.txt"):
        os.remove("old.txt")
    if step and os.path.exists("removed_later.txt"):
        os.remove("removed_later.txt")
        torch.save(net.state_dict(), "last_year.pt")
        os.chmod("private.txt", 0o644)
    open(os.path.join(os.environ["OUTSIDE"], "figure.png"), "wb").write(bytes(step + 9))
    #HERE
    opt.zero_grad()
    z.sum().backward()
    opt.step()
"""


@pytest.fixture
def place(tmp_path):
    """Folders for the program, what it writes elsewhere, our notes, and temporary files."""
    for name in ("work", "work/images", "outside", "tmp", "tmp/notes"):
        (tmp_path / name).mkdir()
    for name in ("old.txt", "removed_later.txt", "last_year.pt", "private.txt"):
        (tmp_path / "work" / name).write_text(f"precious {name}")
    (tmp_path / "work" / "private.txt").chmod(0o600)
    return tmp_path


def command(*options):
    return [sys.executable, "-m", "graphwidget", "explain", "--format", "json", *options]


def environment(place):
    named = {"NOTES": place / "tmp" / "notes", "OUTSIDE": place / "outside", "TMPDIR": place / "tmp"}
    return {**os.environ, **{name: str(path) for name, path in named.items()}}


def write(place, text, name="train.py"):
    (place / "work" / name).write_text(NOTES + textwrap.dedent(text))


def explained(place, *options):
    done = prepared.run(*command(*options)[1:], cwd=place / "work", env=environment(place))
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.stderr


def left(place):
    return json.loads((place / "tmp" / "notes" / "left.json").read_text())


def now(place):
    found = {}
    for top in ("work", "outside"):
        for path in [place / top, *(place / top).rglob("*")]:
            about = path.stat()
            text = ""
            if path.is_file():
                with open(path, "rb") as file:
                    text = file.read(10**6).hex()
            found[str(path)] = [about.st_mode, about.st_mtime_ns, text]
    return found


def fixes(document):
    return [fix for finding in document["findings"] for fix in finding["fixes"]]


def test_a_training_script_is_tried_and_all_its_files_are_as_they_were(place):
    write(place, TRAIN)
    document, said = explained(place, "--try-seconds", "120", "train.py")
    tried = fixes(document)[0]["tried"]
    assert tried["ok"] and tried["passes"] == 3, said
    assert "to measure where values leave the graph" in said
    assert now(place) == left(place)
    assert (place / "work" / "last_year.pt").read_text() == "precious last_year.pt"  # only the fixed program came there
    assert not document["not_tried"] and not [note for note in document["notes"] if "chang" in note]
    assert [one.name for one in (place / "tmp").iterdir() if not one.name.startswith("torchinductor")] == ["notes"]


ENDS = {
    "hangs": ("if step == 2: time.sleep(600)", "4"),
    "is killed": ("if step == 2: os.kill(os.getpid(), 9)", "60"),
}


@pytest.mark.parametrize("how", ENDS)
def test_files_are_put_back_however_the_trial_ends(place, how):
    code, seconds = ENDS[how]
    write(place, TRAIN.replace("#HERE", code))
    document, said = explained(place, "--try-seconds", seconds, "train.py")
    assert fixes(document)[0]["tried"] is not None, said
    assert now(place) == left(place)


def test_files_are_put_back_where_the_one_who_tries_is_killed(place):
    """The trial notices that it is alone."""
    sign = place / "tmp" / "notes" / "there"
    code = f"if step == 2:\n        open({str(sign)!r}, 'w').close(); time.sleep(600)"
    write(place, TRAIN.replace("#HERE", code))
    whole = [*command("--try-seconds", "100", "train.py")]
    process = subprocess.Popen(
        whole, cwd=place / "work", env=environment(place), stdout=-3, stderr=-3, start_new_session=True
    )
    try:
        until(sign.exists, 100)
        assert now(place) != left(place)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    until(lambda: now(place) == left(place), 30)


def until(what, seconds):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.1)


RESUMES = TRAIN.replace("torch.manual_seed(0)", "state = torch.load('best.pt') if os.path.exists('best.pt') else None")


def test_a_program_that_goes_on_from_its_own_checkpoint_is_not_judged(place):
    write(place, RESUMES)
    document, said = explained(place, "--try-seconds", "120", "train.py")
    assert [fix["tried"] for fix in fixes(document)][0] is None
    assert document["not_tried"] == (
        "No fix was tried: the program was to run again, but it began from what the run before had written (`best.pt`)."
    )
    assert now(place) == left(place)


KEEPS_DATA = TRAIN.replace(
    "torch.manual_seed(0)",
    "if not os.path.exists('data.pt'): torch.save(torch.ones(3), 'data.pt')\ndata = torch.load('data.pt')",
)


def test_data_that_a_program_makes_once_and_reads_each_time_are_no_other_beginning(place):
    write(place, KEEPS_DATA)
    document, said = explained(place, "--try-seconds", "120", "train.py")
    assert fixes(document)[0]["tried"]["ok"], said


TWICE = """
import sys, torch
{before}
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.sum().backward()
(y * 2).sum().backward()
{behind}
"""


def twice(before, behind=""):
    return TWICE.format(before=before, behind=behind)


MEETS = {
    "an error": ("os.mkdir('run')", "raised FileExistsError"),
    "an exit": ("if os.path.exists('run'): sys.exit('there is a run')\nos.mkdir('run'); open('run/x', 'w')", "`run/x`"),
}


@pytest.mark.parametrize("what", MEETS)
def test_a_program_that_minds_what_it_has_made_is_not_said_to_have_failed(place, what):
    before, said = MEETS[what]
    write(place, twice(before))
    document, _stderr = explained(place, "--try-seconds", "120", "train.py")
    tried = fixes(document)[0]["tried"]
    assert tried["ok"] is None and said in tried["why"]
    assert fixes(document)[0]["verified"]  # as it was by its simulation
    assert now(place) == left(place)


NOT_TRIED = {
    "large": (
        "with open('large.bin', 'wb') as file: file.truncate(600_000_000)",
        "No fix was tried: the program writes files (large.bin); they have 600 MB, and of more than 512 MB no copy is "
        "made.",
    ),
    "another program": (
        "import subprocess; open('x', 'w'); subprocess.run(['true'])",
        "No fix was tried: the program writes files (x) and starts other programs (true), and that would happen again.",
    ),
}


@pytest.mark.parametrize("what", NOT_TRIED)
def test_what_cannot_be_put_back_is_not_run_again(place, what):
    before, why = NOT_TRIED[what]
    write(place, twice(before))
    document, _said = explained(place, "train.py")
    assert document["not_tried"].startswith(why), document["not_tried"]
    assert now(place) == left(place)


def test_a_file_that_only_the_fixed_program_would_overwrite_and_that_is_too_large_stops_it(place):
    with open(place / "work" / "large.bin", "wb") as file:
        file.truncate(600_000_000)
    write(place, twice("open('x', 'w')", "open('large.bin', 'wb').write(b'x')"))
    document, _said = explained(place, "--try-seconds", "120", "train.py")
    tried = fixes(document)[0]["tried"]
    assert tried["ok"] is None and tried["why"].startswith("it would overwrite more than 512 MB (`")
    assert (place / "work" / "large.bin").stat().st_size == 600_000_000


def test_compiled_code_is_put_back_where_the_run_before_wrote_the_same_and_is_named_where_not(place):
    write(
        place,
        twice(
            "import ctypes; libc = ctypes.CDLL(None)\n"
            "def native(name, text): libc.write(libc.creat(name, 0o600), text, len(text))\n"
            "native(b'known.bin', b'%d' % os.getpid())",
            "native(b'unknown.bin', b'new')",
        ),
    )
    document, _said = explained(place, "--try-seconds", "120", "train.py")
    assert fixes(document)[0]["tried"]["ok"]
    before, after = left(place), now(place)
    unknown = str(place / "work" / "unknown.bin")
    assert after.pop(unknown) and {k: v for k, v in after.items() if k != str(place / "work")} == {
        k: v for k, v in before.items() if k != str(place / "work")
    }
    assert (
        "While the program ran again, `unknown.bin` changed, by compiled code or by another program: that file stays so."
        in document["notes"]
    )


def test_workers_that_write_and_buffers_that_are_not_written_yet(place):
    write(
        place,
        twice(
            "from torch.utils.data import DataLoader, Dataset\n"
            "log = open('open.txt', 'w'); log.write('begin ')\n"
            "class Data(Dataset):\n"
            "    def __len__(self): return 4\n"
            "    def __getitem__(self, n):\n"
            "        open(f'item{n}.txt', 'a').write('x'); return n\n"
            "for _ in DataLoader(Data(), num_workers=2, collate_fn=list): pass",
            "log.write('end')",
        ),
    )
    document, _said = explained(place, "--try-seconds", "120", "train.py")
    assert fixes(document)[0]["tried"]["ok"], fixes(document)[0]["tried"]
    assert (place / "work" / "item0.txt").read_text() == "x"
    assert (place / "work" / "open.txt").read_text() == "begin "


def test_modules_and_cells_are_put_back_too(place):
    write(place, twice("open('x', 'a').write('x')"))
    document, said = explained(place, "--try-seconds", "120", "-m", "train")
    assert fixes(document)[0]["tried"]["ok"] and now(place) == left(place), said
    cells = "# %%\nimport torch\nopen('cells.txt', 'a').write('x')\n# %%\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\n"
    (place / "work" / "cells.py").write_text(
        f"{cells}y.sum().backward()\n# %%\n(y * 2).sum().backward()\n# %%\nopen('behind.txt', 'w')"
    )
    document, said = explained(place, "--try-seconds", "120", "cells.py")
    assert fixes(document)[0]["tried"]["ok"], said
    assert (place / "work" / "cells.txt").read_text() == "x"

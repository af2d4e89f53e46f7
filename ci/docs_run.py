#!/usr/bin/env python3
"""Runs the shell lines of the documents: docs_run.py BUILD [--long] [PAGE ...]

README.md and then each page of docs/ (or PAGEs) runs from its first line to its last in a fresh
copy of the tree, with an empty HOME, after `meson install` of BUILD.  Where the system lets us,
that is into /usr/local of a root of our own (unshare, overlays), else into ~/clebsch, as getting
started has it.  Code that a page names a file of is there.  LINES lists what does not run, and why;
with --long all runs that can, in one copy for all pages, which README.md builds."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from code_blocks import ROOT, blocks, pages

OWN_ROOT = "CLB_DOCS_RUN_ROOT"  # set by the first of two processes: whether the second has one
INSTALL = ("meson", "install", "--no-rebuild", "--quiet")
FOREIGN = ("LD_LIBRARY_PATH", "PYTHONPATH", "PKG_CONFIG_PATH", "DESTDIR", "CLB_LIBRARY",
           "CLB_COMMAND")
NEVER, LONG, ROOTS = "never", "with --long", "with --long, where a root of our own can be had"
LINES = [
    (r"ci/install\.sh", NEVER, "needs root and the network, and installs for the tests"),
    (r"^packaging/", NEVER, "compiles everything, with what only packagers have"),
    (r"ci/test\.sh|meson test", NEVER, "runs the tests: a test of its own"),
    (r"ci/format\.sh", NEVER, "a test, too: format"),
    (r"[ _]scale\b", NEVER, "an op that the reader writes"),
    (r"^fpm ", NEVER, "Debian 12 does not have it"),
    (r"^export CLB_MDI_LIBRARY", NEVER, "needs PyPI's pymdi; a test does: python_test_mdi"),
    (r"^clebsch serve", NEVER, "waits for another program; a test does: python_test_serve"),
    (r"bench/hosts\.py", NEVER, "needs a GPU and a quiet machine"),
    (r"bin/lmp ", NEVER, "needs an input of the reader's; a test has one: lammps"),
    (r"^meson install", ROOTS, "installs into /usr/local; the short run has done so"),
    (r"^(meson|ninja) ", LONG, "compiles everything; the short run has BUILD"),
    (r"LAMMPS_PLUGIN_PATH", LONG, "BUILD may be without LAMMPS"),
    (r"^python3 -m venv|^pip ", LONG, "fetches packages and compiles everything"),
    (r"ci/(python|lammps)\.sh", LONG, "fetches packages"),
    (r"^(mpiexec -n 8 )?clebsch (evaluate|gradient|train)", NEVER, "needs labels of the reader's; tests have some"),
    (r"^clebsch (md|relax) .*(box\.gro|--continue run )", NEVER, "needs atoms of the reader's"),
    (r"^clebsch (md|relax) .*spc216", LONG, "minutes on a CPU"),
    (r"^clebsch convert model\.nequip\.zip", NEVER, "needs a package of the reader's; tests have some: test_model_reference"),
    (r"^clebsch rdf|^examples/train/water.sh", NEVER, "needs trajectories or a model of the reader's; tests: test_rdf, example_train"),
    (r"^clebsch (bench|compare|tune)", LONG, "minutes on a CPU"),
]


def unshared(build):
    """The words that give us a root of our own; none if we may not, or if BUILD goes elsewhere."""
    options = json.loads(pathlib.Path(build, "meson-info", "intro-buildoptions.json").read_text())
    if next(o["value"] for o in options if o["name"] == "prefix") != "/usr/local":
        return []
    words = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    try:
        with tempfile.TemporaryDirectory() as folder:
            mount = f"mount -t tmpfs tmpfs {folder} && mkdir {folder}/a {folder}/b && mount -t " \
                    f"overlay overlay -o lowerdir=/etc,upperdir={folder}/a,workdir={folder}/b /etc"
            subprocess.run([*words, "sh", "-c", mount], check=True, capture_output=True)
        return words
    except (OSError, subprocess.CalledProcessError):
        return []


def overlay(scratch, folder):
    """What is written into the folder from now on lies in memory, and is gone at the end."""
    for part in ("upper", "work"):
        os.makedirs(f"{scratch}/{part}{folder}")
    where = f"lowerdir={folder},upperdir={scratch}/upper{folder},workdir={scratch}/work{folder}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", where, folder], check=True)


def copy(to):
    names = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def install(build, home, env):
    """Without a root of our own: into ~/clebsch."""
    stage, prefix = home / "stage", home / "clebsch"
    subprocess.run([*INSTALL, "-C", build], check=True, env={**env, "DESTDIR": str(stage)})
    config = next(stage.rglob("clebsch.pc"))
    was = re.search("^prefix=(.*)", config.read_text(), re.M)[1]
    config.write_text(config.read_text().replace(f"prefix={was}", f"prefix={prefix}", 1))
    (stage / was[1:]).rename(prefix)
    env.update(PATH=f"{prefix}/bin:{env['PATH']}", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig",
               LD_LIBRARY_PATH=f"{prefix}/lib")


def lines_of(block):
    """Logical lines with their numbers."""
    first, text = block[0], block[2]
    for match in re.finditer(r"(?:.*\\\n)*.*\n", text):
        yield first + text.count("\n", 0, match.start()), match[0]


def missing(line, env):
    """What this machine lacks for a line, or None."""
    if re.search(r"ci/sevennet\.sh|clebsch fetch", line) and "CLB_SEVENNET_DIR" not in env:
        return "CLB_TEST_SEVENNET is not set"
    return next((f"no {path}" for path in re.findall(r"/usr/share/[\w./-]+", line)
                 if not os.path.exists(path)), None)


def script(page, env, runs, used):
    """The page as a script, which ends with the place of the first line that fails."""
    done = ["fail() { echo \"$1\" >&2; exit 1; }\n"]
    for block in blocks(page):
        for number, line in lines_of(block) if block[1] == "sh" else []:
            row = next((row for row in LINES if re.search(row[0], line)), None)
            used.add(row)
            place = f"{page.relative_to(ROOT)}:{number}"
            if missing(line, env):
                print(f"docs_run.py: {place} and what follows does not run: {missing(line, env)}")
                return "".join(done)
            if row is None or row[1] in runs:
                done.append(f"{{ {line}}} || fail '{place}: this line fails'\n")
                done += [f"[ -e {path} ] || fail '{place}: there is no {path}'\n"
                         for path in re.findall(r"^export \w+=\$PWD/(\S+)", line)]
    return "".join(done)


def run(page, folder, env, runs, used):
    """Runs a page in a folder; the end of what it says if it fails."""
    for _, _, text, file in blocks(page):
        if file:
            (folder / file).write_text(text)
    start, lines = time.time(), folder.with_suffix(".sh")
    lines.write_text(script(page, env, runs, used))
    done = subprocess.run(["bash", "-e", lines], cwd=folder, env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    print(f"{page.relative_to(ROOT)}: {time.time() - start:.0f} s")
    return done.returncode and "\n".join(done.stdout.split("\n")[-40:])


def run_pages(wanted, scratch, build, own, long):
    """What failed, and the rows of LINES that were met."""
    runs = {kind for kind, runs in ((LONG, long), (ROOTS, long and own)) if runs}
    bad, used, home = [], set(), scratch / "home"
    home.mkdir()
    env = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    if "CLB_TEST_SEVENNET" in env:
        env["CLB_SEVENNET_DIR"] = str(pathlib.Path(env["CLB_TEST_SEVENNET"]).parent.parent)
    elif long:
        env["CLB_SEVENNET_DIR"] = str(scratch / "sevennet")
    if not long:  # without a network
        env["CLB_MODELS_MIRROR"] = env.get("CLB_SEVENNET_DIR", "/nonexistent")
    if own:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", home], check=True)
        for part in ("/etc", "/usr/local"):
            overlay(home, part)
        subprocess.run([*INSTALL, "-C", build], check=True, env=env)
    else:
        install(build, home, env)
    env["HOME"] = str(home)
    for page in wanted:
        if not any(language == "sh" for _, language, _, _ in blocks(page)):
            continue
        folder = scratch / ("all" if long else page.stem)
        if not folder.exists():
            copy(folder)
        if not long:
            (folder / "build").symlink_to(build)
        said = run(page, folder, env, runs, used)
        bad += [said] if said else []
    return bad, used


def main():
    long = "--long" in sys.argv
    build, *names = (name for name in sys.argv[1:] if name != "--long")
    build, wanted = os.path.abspath(build), [ROOT / name for name in names] or pages()
    if OWN_ROOT not in os.environ:
        with tempfile.TemporaryDirectory() as scratch:
            words = [*unshared(build), sys.executable, *sys.argv]
            env = {**os.environ, OWN_ROOT: "yes" if len(words) > len(sys.argv) + 1 else "no"}
            sys.exit(subprocess.call(words, env={**env, "TMPDIR": scratch}))
    scratch, own = pathlib.Path(os.environ["TMPDIR"]), os.environ[OWN_ROOT] == "yes"
    bad, used = run_pages(wanted, scratch, build, own, long)
    if not names:
        bad += [f"docs_run.py: no line is {row[0]}" for row in LINES if row not in used]
    sys.exit("\n".join(bad) if bad else 0)


main()

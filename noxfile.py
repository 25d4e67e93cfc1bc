"""The project's tasks, ``python3 noxfile.py -s NAME``; ``-l`` lists them. Needs nothing but Python."""

import sys

if sys.version_info < (3, 11):
    sys.exit("noxfile.py: Python 3.11 or newer is needed; this is " + sys.version.split()[0])

if __name__ == "__main__":
    from tools.bootstrap import run_nox

    run_nox(sys.argv[1:])

import hashlib
import time
from pathlib import Path

import nox

nox.needs_version = ">=2026.4"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = True  # else a session without its Python is skipped, and looks passed
nox.options.reuse_venv = "yes"
nox.options.sessions = ["docs", "check"]

SITE = "docs/_build/html"
CHECKER = "projects/tpu-systems-audit/tests/check.py"
SOLUTION = "projects/tpu-systems-audit/solution/model.py"
PLAIN = {"PYTHONPATH": "src", "JAX_PLATFORMS": "cpu"}
GOOGLE = "0x1ae0"  # makes network cards and disks too, so the device counts
TPU_DEVICES = ("0x0027", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")  # v2 and v3, v4, v5p, v5e, v6e, tpu7x
LOCKS = ("test", "docs", "lint", "nox", "proof", "tpu")  # one for each extra; test comes first and binds the rest


def has_tpu() -> bool:
    """Say whether a TPU is on the PCI bus; asking JAX would need it installed first."""
    devices = Path("/sys/bus/pci/devices").glob("*")
    return any(
        (device / "vendor").read_text().strip() == GOOGLE and (device / "device").read_text().strip() in TPU_DEVICES
        for device in devices
    )


def install(session: nox.Session, lock: str) -> None:
    """Install a hashed lock, unless this environment already holds it; the package itself comes from src/."""
    path, stamp = Path("requirements", f"{lock}.txt"), Path(session.virtualenv.location, "installed")
    wanted = hashlib.sha256(path.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        session.install("--require-hashes", "-r", str(path))
        stamp.write_text(wanted)


def build(session: nox.Session) -> None:
    """Build the site; what has not changed is not built again, and any warning is an error."""
    strict = ["-n", "-W", "--keep-going", "-j", "auto", "-d", "docs/_build/doctrees"]
    session.run("sphinx-build", "-b", "html", "-q", *strict, "docs", SITE, env={"SOURCE_DATE_EPOCH": "0"})
    session.log(f"The site is in {SITE}; open {SITE}/index.html")


def test(session: nox.Session, *arguments: str) -> None:
    """Run pytest on every core."""
    session.run("pytest", "-n", "auto", *arguments, env=PLAIN)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into docs/_build/html."""
    install(session, "docs")
    build(session)


@nox.session
def check(session: nox.Session) -> None:
    """Run tests, doctests and staged checks on CPU; ``-- --impl FILE [--stage N]`` checks one learner's file."""
    install(session, "test")
    if any(argument.startswith("--impl") for argument in session.posargs):
        session.run("python", CHECKER, *session.posargs, env=PLAIN)
        return
    test(session, "--ignore=tests/browser", "-m", "not slow", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Open the built site in Chromium as a reader would; builds what is missing or stale first."""
    install(session, "test")
    build(session)
    test(session, *(session.posargs or ["tests/browser"]))


@nox.session
def thorough(session: nox.Session) -> None:
    """Run what ``check`` leaves out: slow tests, full sizes, and many more drawn examples of every property."""
    install(session, "test")
    wanted = "slow or sized or hypothesis"
    test(session, "--ignore=tests/browser", "--hypothesis-profile=thorough", "-m", wanted, *session.posargs)


@nox.session
def tpu(session: nox.Session) -> None:
    """Run stage 2 on a TPU, capture, audit, sign and attach a trace; ``-- --rehearse`` does so on CPU."""
    rehearse = session.posargs == ["--rehearse"]
    if session.posargs and not rehearse:
        session.error(f"{' '.join(session.posargs)}: is not known here; --rehearse is, or nothing")
    if not rehearse and not has_tpu():
        session.error("no TPU on this machine; python3 noxfile.py -s tpu -- --rehearse does the same steps on the CPU")
    install(session, "tpu")
    platform = "cpu" if rehearse else "tpu"
    folder = Path(session.create_tmp()) / f"{platform}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder.mkdir(parents=True)
    environment = PLAIN | {"PYTHONPATH": str(Path("src").resolve()), "JAX_PLATFORMS": platform}
    audit = ["python", "-m", "tpu_systems_audit.cli"]
    summary, receipt = folder / "precision.json", folder / "receipt.json"
    session.run("python", CHECKER, "--impl", SOLUTION, "--stage", "2", env=environment)
    with summary.open("w", encoding="utf-8") as file:
        session.run(*audit, "precision", "--json", env=environment, stdout=file)
    session.run(*audit, "trace", "capture", str(folder), env=environment)
    create = ["receipt", "create", str(folder), "--output", str(receipt), "--precision", str(summary)]
    session.run(*audit, *create, env=environment)
    session.run(*audit, "receipt", "verify", str(receipt), "--trace", str(folder), env=environment)
    session.run(*audit, "receipt", "attach", str(receipt), "--trace", str(folder), env=environment)
    told = "a rehearsal on the CPU, which stands on no rung" if rehearse else "attached"
    session.log(f"{told}; the next docs build shows it")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure what the project claims about speed, into benchmarks/results/."""
    install(session, "test")
    for script in ("startup", "planning", "traces", "xprof_overview"):
        session.run("python", f"benchmarks/{script}.py", *session.posargs, env=PLAIN)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and types."""
    install(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")


@nox.session
def lock(session: nox.Session) -> None:
    """Resolve requirements/*.txt anew; ``-- --upgrade`` also moves what is locked to the newest versions."""
    install(session, "nox")
    # The hosts a package came from are not our users' business, so no index appears in a lock. One version for all
    # Pythons ("fewest"): what is tested on one is what the others install.
    common = ["--universal", "--python-version=3.11", "--fork-strategy=fewest", "--generate-hashes"]
    common += ["--no-header", "--no-emit-index-url", "--no-emit-find-links", "--quiet", *session.posargs]
    for name in LOCKS:
        bound = [] if name == "test" else ["--constraint=requirements/test.txt"]
        session.run(
            "uv", "pip", "compile", *common, *bound, f"--extra={name}", "pyproject.toml", f"-o=requirements/{name}.txt"
        )

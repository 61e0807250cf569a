"""Settings shared by all tests: Hypothesis without deadlines, torch on one thread, W&B offline."""

import os
import pickle
import threading
import time
from pathlib import Path

import pytest
import torch
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from frugal_rl.report import speech

settings.register_profile(
    "frugal", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("frugal")
os.environ.setdefault("WANDB_MODE", "offline")
torch.set_num_threads(1)  # the last bits of an initial weight depend on the number of threads

SHARED = Path(__file__).resolve().parents[2] / "shared"
KERNELS_OF = {"npp_rl": "nclone"} | {g: g for g in ("nclone", "mine_rl_npv", "fighting")}
"""Whose kernels the tests of a folder compile."""


class ByKernels(LoadScopeScheduling):
    """One process for all that compile a guest's kernels: two would compile each of them twice."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return KERNELS_OF.get(Path(file).parts[1], file)


def pytest_xdist_make_scheduler(config, log):
    """How tests are given to processes; files of all others go one by one."""
    return ByKernels(config, log)


def pytest_collection_modifyitems(items):
    """Guests first: what is dealt out last should be short, so that both processes end together.

    The simulator of N++ comes first of its own: it is compiled before the search that contains it.
    """
    parts = {item: Path(item.nodeid).parts[1:] for item in items}
    items.sort(key=lambda i: (parts[i][0] not in KERNELS_OF, parts[i][:2] != ("nclone", "sim")))


QUIET = 4
"""Seconds without the end of a test after which it is said which one is running."""


class Meanwhile:
    """Says what workers do for long without a word: collect the tests, compile for one of them."""

    def __init__(self, reporter):
        self.reporter, self.over = reporter, threading.Event()
        self.collecting, self.running, self.heard = 0, {}, time.monotonic()

    def pytest_xdist_setupnodes(self, specs):
        self.collecting = len(specs)
        threading.Thread(target=self.tell, daemon=True).start()

    def pytest_xdist_node_collection_finished(self):
        self.collecting, self.heard = self.collecting - 1, time.monotonic()

    def pytest_runtest_logstart(self, nodeid):
        self.running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid):
        self.running.pop(nodeid, None)
        self.heard = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        """Behind xdist's own, which waits for the workers to end."""
        self.over.set()

    def tell(self):
        begun = time.monotonic()
        while not self.over.wait(2):
            if said := self.said(begun, time.monotonic()):
                self.reporter.write_line(said)
                self.reporter.flush()

    def said(self, begun, now):
        """A line, or nothing while tests end one after the other."""
        if self.collecting > 0:
            return f"collecting the tests, {now - begun:.0f} s"
        if now - self.heard < QUIET:
            return ""
        self.heard = now
        if not (running := list(self.running.items())):
            return "no test runs: processes begin or end"
        nodeid, since = min(running, key=lambda item: item[1])
        return f"{now - since:.0f} s in {nodeid}"


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """The reporter is there last of all."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Meanwhile(reporter))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of large reference data beside the checkout; its tests skip elsewhere."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the reference data (../shared/data) is not beside this checkout")
    return folder


def files_of(loader) -> tuple:
    """What Hydra composes from, by path, time and size: a file that a test writes is another.

    The path of structured configurations is empty, not the folder in which the tests run.
    """
    folders = [str(source.path).removeprefix("file://") for source in loader.get_sources()]
    files = [file for each in folders if each for file in sorted(Path(each).rglob("*.yaml"))]
    return (*folders, *((str(f), (s := f.stat()).st_mtime_ns, s.st_size) for f in files))


@pytest.fixture(scope="session", autouse=True)
def words_are_composed_once():
    """Hydra takes 0.1 s to compose what the same words composed before; a copy takes 0.002 s."""
    compose, known = ConfigLoaderImpl.load_configuration, {}

    def composed(loader, config_name, overrides, run_mode, *more, **named):
        asked = (config_name, tuple(overrides), run_mode, more, tuple(named.items()), os.getcwd())
        key = (*asked, *files_of(loader))
        if key not in known:
            found = compose(loader, config_name, overrides, run_mode, *more, **named)
            known[key] = pickle.dumps(found)
            return found
        return pickle.loads(known[key])

    ConfigLoaderImpl.load_configuration = composed
    yield
    ConfigLoaderImpl.load_configuration = compose


@pytest.fixture(autouse=True)
def nobody_called_us(monkeypatch):
    """How a test calls the console command is forgotten after it."""
    monkeypatch.setattr("frugal_rl.invocation._CALLED", [])


@pytest.fixture(autouse=True)
def nobody_starts():
    """A command that a test called, and that ended before it spoke, says no more that it starts."""
    yield
    while speech._EARLY:
        speech._EARLY.pop().stop()


@pytest.fixture(autouse=True)
def libraries_stay(monkeypatch):
    """Pages that one run gives back the next test brings again: a fifth of tests that train.

    What calls it has tests of its own, which put it back or something else there.
    """
    monkeypatch.setattr("frugal_rl.memory.process.give_back_pages", lambda: 0)

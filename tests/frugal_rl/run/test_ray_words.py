"""Actors and clusters without Ray: what is asked of it, and what is done with its answers."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.run import building

SOURCE = Path(building.__file__).with_name("ray_ranks.py")


class Remote:
    """A method of an actor: called with `.remote`, it answers at once."""

    def __init__(self, method):
        self.remote = method


class FakeRay(ModuleType):
    """What our module asks of Ray, with one process for everything."""

    def __init__(self):
        super().__init__("ray")
        self.machines, self.joined, self.killed, self.removed = [], True, [], []
        self.options, self.groups, self.told = [], [], []
        self.answers = {}

    def init(self, **given):
        self.given = given
        if self.joined is not True:
            raise self.joined or ConnectionError

    def nodes(self):
        return self.machines

    def get(self, what):
        if isinstance(what, list):
            return [self.get(w) for w in what]
        answer = self.answers.get(what, what)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait(self, waiting, num_returns=1, timeout=None):
        return list(waiting[:1]), list(waiting[1:])

    def kill(self, actor):
        self.killed.append(actor)

    def remote(self, kind):
        def options(**given):
            self.options.append(given)
            return SimpleNamespace(remote=lambda: self.actor(len(self.options) - 1))

        return SimpleNamespace(options=options)

    def actor(self, rank):
        return SimpleNamespace(
            rank=rank,
            place=Remote(lambda: ("10.0.0.1", 4711)),
            train=Remote(lambda words, environ, cwd, said: self.train(rank, words, environ, said)),
            tell=Remote(lambda number: self.told.append((rank, number))),
        )

    def train(self, rank, words, environ, said):
        Path(said).write_text(f"process {rank} says {words[0]}\n")
        self.environs = [*getattr(self, "environs", []), environ]
        return f"job {rank}"


@pytest.fixture
def ray(monkeypatch):
    fake = FakeRay()

    def module(name, **members):
        made = ModuleType(name)
        vars(made).update(members)
        monkeypatch.setitem(sys.modules, name, made)

    class Group:
        def __init__(self, bundles, strategy):
            fake.groups.append((bundles, strategy))

        def ready(self):
            return "ready"

    monkeypatch.setitem(sys.modules, "ray", fake)
    fake.util = SimpleNamespace(get_node_ip_address=lambda: "10.0.0.7")
    module("ray.util")
    module("ray.exceptions", RayError=type("RayError", (Exception,), {}))
    module(
        "ray.util.placement_group",
        placement_group=Group,
        remove_placement_group=fake.removed.append,
    )
    module(
        "ray.util.scheduling_strategies",
        PlacementGroupSchedulingStrategy=lambda group, index: index,
    )
    return fake


@pytest.fixture
def ranks(ray, monkeypatch):
    """Our module, imported with that Ray."""
    spec = importlib.util.spec_from_file_location("ray_ranks_without_ray", SOURCE)
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, found)
    spec.loader.exec_module(found)
    monkeypatch.setattr(found, "LOOK_SECONDS", 0.0)
    return found


def run_of(nodes=2, processes=3, cores=0, run_dir=""):
    launch = SimpleNamespace(nodes=nodes, processes=processes, size=nodes * processes)
    return SimpleNamespace(launch=launch, hardware=SimpleNamespace(cores=cores), run_dir=run_dir)


def plan_of(ram=1000, vram=0):
    return SimpleNamespace(ram_bytes=ram, vram_bytes=vram)


def test_a_machine_is_asked_for_all_its_processes_and_a_margin(ranks):
    assert ranks.needs_of(run_of(), plan_of(), 1.1) == {"CPU": 3.0, "memory": 3300.0}
    assert ranks.needs_of(run_of(cores=8), plan_of(), 1.0)["CPU"] == 8.0
    assert ranks.needs_of(run_of(), plan_of(vram=1), 1.0)["GPU"] == 3.0


def machine(alive=True, **resources):
    return {"Alive": alive, "Resources": resources}


def test_a_cluster_that_has_such_machines_is_joined(ray, ranks):
    ray.machines = [machine(CPU=4.0, memory=10.0), machine(CPU=3.0, memory=9.0)]
    ranks.join_cluster({"CPU": 3.0, "memory": 9.0}, 2)
    assert ray.given["address"] == "auto"


@pytest.mark.parametrize(
    "second",
    [
        machine(CPU=2.0, memory=10.0),
        machine(CPU=3.0, memory=8.0),
        machine(CPU=3.0),
        machine(alive=False, CPU=9.0, memory=99.0),
    ],
)
def test_a_cluster_with_too_few_such_machines_is_refused_with_its_numbers(ray, ranks, second):
    ray.machines = [machine(CPU=4.0, memory=10.0), second]
    alive = sum(m["Alive"] for m in ray.machines)
    with pytest.raises(ConfigError, match=f"2 machines with CPU 3, memory 9 .* 1 of {alive}"):
        ranks.join_cluster({"CPU": 3.0, "memory": 9.0}, 2)


def test_where_no_cluster_runs_the_line_says_how_to_start_one(ray, ranks):
    ray.joined = False
    with pytest.raises(ConfigError, match="ray start --head"):
        ranks.join_cluster({}, 1)


def test_a_cluster_of_another_version_is_refused_in_words(ray, ranks):
    ray.joined = RuntimeError("Version mismatch: The cluster was started with:\n  Ray: 2.9")
    with pytest.raises(ConfigError, match=r"Version mismatch.*same Python and Ray"):
        ranks.join_cluster({}, 1)


def test_each_process_is_an_actor_with_its_share_on_its_machine(ray, ranks):
    with ranks.actors(run_of(), {"CPU": 6.0, "memory": 300.0, "GPU": 3.0}, []) as held:
        assert [actor.rank for actor in held] == list(range(6))
    assert ray.groups == [([{"CPU": 6.0, "memory": 300.0, "GPU": 3.0}] * 2, "STRICT_SPREAD")]
    first = ray.options[0]
    assert (first["num_cpus"], first["num_gpus"], first["memory"]) == (2.0, 1.0, 100.0)
    assert [o["scheduling_strategy"] for o in ray.options] == [0, 0, 0, 1, 1, 1]


def test_actors_are_ended_whatever_happens(ray, ranks):
    with (
        pytest.raises(RuntimeError, match="in between"),
        ranks.actors(run_of(1, 2), {"CPU": 2.0, "memory": 2.0}, []),
    ):
        raise RuntimeError("in between")
    assert ray.told == [(0, signal.SIGKILL), (1, signal.SIGKILL)]
    assert len(ray.killed) == 2
    assert len(ray.removed) == 1


@pytest.mark.parametrize(("rank", "machine_number"), [(0, "0"), (2, "0"), (3, "1"), (5, "1")])
def test_a_process_gets_the_variables_of_torchrun(ranks, rank, machine_number):
    environ = ranks.environ_of(run_of(), rank, 7, ("host", 99))
    assert environ["RANK"] == str(rank)
    assert environ["GROUP_RANK"] == machine_number
    assert (environ["WORLD_SIZE"], environ["LOCAL_WORLD_SIZE"]) == ("6", "3")
    assert (environ["MASTER_ADDR"], environ["MASTER_PORT"]) == ("host", "99")
    assert environ["LOCAL_RANK"] == "0"
    assert environ["TORCHELASTIC_RUN_ID"] == "frugal-rl-7"
    assert all(part for part in environ["PYTHONPATH"].split(":"))


def ended(ranks, rank, status=0, **message):
    return ranks.Ended(rank, f"pid {rank}", status, message)


def test_where_all_processes_did_well_nothing_is_told(ray, ranks, tmp_path, capsys):
    ray.answers = {f"job {r}": ended(ranks, r) for r in range(2)}
    run = run_of(1, 2, run_dir=str(tmp_path))
    found = ranks.train_on_ray(run, ["train.py"], {"CPU": 2.0, "memory": 2.0}, 3, [])
    assert found is None
    assert capsys.readouterr().out == "process 0 says train.py\n"
    assert (tmp_path / "ranks" / "ray_3" / "1.log").is_file()
    assert [e["RANK"] for e in ray.environs] == ["0", "1"]


def test_the_first_that_failed_is_told_and_the_rest_ended(ray, ranks, tmp_path):
    ray.answers = {"job 0": ended(ranks, 0), "job 1": ended(ranks, 1, status=3, error="lost")}
    run = run_of(1, 2, run_dir=str(tmp_path))
    found = ranks.train_on_ray(run, ["train.py"], {"CPU": 2.0, "memory": 2.0}, 1, [])
    assert (found.rank, found.status, found.message) == (1, 3, {"error": "lost"})
    assert len(ray.killed) == 2


def test_an_actor_that_is_lost_is_a_process_that_failed(ray, ranks, tmp_path):
    lost = sys.modules["ray.exceptions"].RayError("The node died.\nmore")
    ray.answers = {"job 0": lost}
    run = run_of(1, 1, run_dir=str(tmp_path))
    found = ranks.train_on_ray(run, ["train.py"], {"CPU": 1.0, "memory": 1.0}, 1, [])
    assert (found.rank, found.status) == (0, 1)
    assert found.who == "Ray actor: The node died."


def test_an_actor_that_is_lost_before_it_has_a_place_is_a_process_that_failed(ray, ranks, tmp_path):
    ray.answers = {("10.0.0.1", 4711): sys.modules["ray.exceptions"].RayError("")}
    run = run_of(1, 1, run_dir=str(tmp_path))
    found = ranks.train_on_ray(run, ["train.py"], {"CPU": 1.0, "memory": 1.0}, 1, [])
    assert (found.rank, found.status, found.who) == (0, 1, "Ray actor: RayError")


def test_a_request_to_stop_is_passed_on_once(ray, ranks, tmp_path):
    ray.answers = {f"job {r}": ended(ranks, r) for r in range(3)}
    run, asked, begin = run_of(1, 3, run_dir=str(tmp_path)), [], ray.train
    ray.train = lambda *given: asked.append(15) or begin(*given)
    ranks.train_on_ray(run, ["train.py"], {"CPU": 3.0, "memory": 3.0}, 1, asked)
    assert [t for t in ray.told if t[1] == signal.SIGUSR1] == [
        (r, signal.SIGUSR1) for r in range(3)
    ]


def test_what_an_older_start_said_is_gone(ray, ranks, tmp_path):
    ray.answers = {"job 0": ended(ranks, 0)}
    run = run_of(1, 1, run_dir=str(tmp_path))
    old = tmp_path / "ranks" / "ray_1" / "9.log"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    ranks.train_on_ray(run, ["train.py"], {"CPU": 1.0, "memory": 1.0}, 1, [])
    assert not old.exists()


def test_an_actor_holds_one_process_and_tells_how_it_ended(ranks, tmp_path):
    words = ["-c", "import os, sys; print('hello', os.environ['RANK']); sys.exit(4)"]
    said = tmp_path / "0.log"
    found = ranks.RankActor().train(words, {"RANK": "5"}, str(tmp_path), str(said))
    assert (found.rank, found.status, dict(found.message)) == (5, 4, {})
    assert said.read_text() == "hello 5\n"


def test_what_a_process_says_of_its_error_is_handed_on(ranks, tmp_path):
    error = '{"message": {"message": "out of memory"}}'
    code = f"import os; open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write('''{error}''')"
    said = tmp_path / "0.log"
    found = ranks.RankActor().train(["-c", code], {"RANK": "0"}, str(tmp_path), str(said))
    assert dict(found.message) == {"message": "out of memory"}
    again = ranks.RankActor().train(["-c", ""], {"RANK": "0"}, str(tmp_path), str(said))
    assert dict(again.message) == {}


def test_a_signal_reaches_a_process_that_runs_and_no_other(ranks):
    actor = ranks.RankActor()
    actor.tell(signal.SIGTERM)
    actor.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    actor.tell(signal.SIGTERM)
    assert actor.child.wait(20) == -signal.SIGTERM
    actor.tell(signal.SIGKILL)


def test_a_free_port_of_this_machine_is_offered(ranks):
    host, port = ranks.RankActor().place()
    assert host == "10.0.0.7"
    assert 1024 <= port < 65536


def test_only_what_is_new_in_a_file_is_shown(ranks, tmp_path, capsys):
    said = tmp_path / "0.log"
    assert ranks._show(said, 0) == 0
    said.write_bytes(b"one\n")
    assert ranks._show(said, 0) == 4
    said.write_bytes(b"one\ntw\xff")
    assert ranks._show(said, 4) == 7
    assert capsys.readouterr().out == "one\ntw\ufffd"

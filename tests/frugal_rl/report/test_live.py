"""The live page: numbers of a run as it grows, on this machine alone, stopped by its token."""

import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from frugal_rl.errors import DataError
from frugal_rl.report.live import MOST_POINTS, LivePage, LiveRun, follow

ROOT = Path(__file__).resolve().parents[3]
HOLD = """
import signal, sys, time
from pathlib import Path
from frugal_rl.run.lock import locked
from frugal_rl.run.signals import asked_to_stop
with locked(Path(sys.argv[1])), asked_to_stop() as stop:
    print("held", flush=True)
    if not stop.wait(30):
        sys.exit(1)
Path(sys.argv[1], "saved").touch()
"""


@pytest.fixture
def folder(tmp_path):
    config = {
        "env": {"name": "toy"},
        "memory": {"profile": "lossless"},
        "algo": {"total_steps": 4096},
        "seed": 3,
    }
    asked = {"config": config, "overrides": ["env=toy"]}
    parts = [{"name": "rollout", "ram_bytes": 5, "vram_bytes": 2}]
    (tmp_path / "run.json").write_text(json.dumps(asked))
    (tmp_path / "plan.json").write_text(json.dumps({"ram_bytes": 7, "parts": parts}))
    logged(tmp_path, *range(1, 5))
    return tmp_path


def logged(folder, *steps):
    with (folder / "metrics.jsonl").open("a") as file:
        for step in steps:
            line = {"step": step, "seconds": step / 2, "episode/return": step / 10}
            file.write(json.dumps(line | {"memory/held_bytes": 9}) + "\n")


@contextmanager
def served(folder):
    page = LivePage(LiveRun(folder), token="secret")
    thread = threading.Thread(target=page.serve_forever, daemon=True)
    thread.start()
    try:
        yield page
    finally:
        page.shutdown()
        page.server_close()
        thread.join()


def asked(page, place, data=None, host=None):
    request = urllib.request.Request(page.address + place, data)
    if host:
        request.add_header("Host", host)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


def test_it_shows_what_the_run_has_logged_so_far(folder):
    run = LiveRun(folder)
    first = run.state()
    logged(folder, 5)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6, "epi')  # still being written
    second = run.state()

    assert (first["steps"], second["steps"], second["total_steps"]) == (4, 5, 4096)
    assert second["curves"]["episode/return"] == [(s, s / 10) for s in range(1, 6)]
    assert second["memory"]["parts"] == {"rollout": 7}
    assert second["memory"]["held"] == 9
    assert second["state"] == "killed"


def test_a_long_run_does_not_make_a_long_page(folder):
    logged(folder, *range(5, 3000))
    curves = LiveRun(folder).state()["curves"]
    points = curves["memory/held_bytes"]

    assert max(len(points), len(curves["episode/return"])) <= MOST_POINTS
    assert (points[0][0], points[-1][0]) == (1, 2999)
    assert curves["episode/return"][-1][0] == 2999


def test_episodes_are_averaged_as_in_a_report_once_there_are_enough(folder):
    run = LiveRun(folder)
    logged(folder, *range(5, 10))
    short = run.state()
    logged(folder, 10)
    state = run.state()

    assert (short["averaged"], len(short["curves"]["episode/return"])) == ([], 9)
    assert state["averaged"] == ["episode/return"]
    assert state["curves"]["episode/return"] == [
        (s, pytest.approx((s - 2) / 10)) for s in range(5, 11)
    ]
    assert len(state["curves"]["memory/held_bytes"]) == 10


def test_the_newest_film_is_served(folder):
    (folder / "films").mkdir()
    (folder / "films" / "100.gif").write_bytes(b"old")
    time.sleep(0.02)
    (folder / "films" / "200.gif").write_bytes(b"new")
    with served(folder) as page:
        status, body, headers = asked(page, "film")

    assert (status, body, headers["Content-Type"]) == (200, "new", "image/gif")


def test_the_page_is_for_this_machine_and_loads_nothing_from_elsewhere(folder):
    with served(folder) as page:
        status, body, headers = asked(page, "")
        foreign, _, _ = asked(page, "state", host="evil.example")
        above, _, _ = asked(page, "../run.json")

    assert (status, foreign, above) == (200, 403, 404)
    assert page.server_address[0] == "127.0.0.1"
    assert "http://" not in body
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_only_the_token_stops_the_run_and_it_stops_by_its_own_way(folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    assert holder.stdout.readline() == b"held\n"
    with served(folder) as page:
        wrong = asked(page, "stop", b"token=guess")
        running = json.loads(asked(page, "state")[1])["state"]
        foreign = asked(page, "stop", b"token=secret", host="evil.example")
        assert holder.poll() is None
        right = asked(page, "stop", b"token=secret")
        assert holder.wait(20) == 0
        again = asked(page, "stop", b"token=secret")
    holder.stdout.close()

    assert (wrong[0], foreign[0], right[0], running) == (403, 404, 200, "running")
    assert (folder / "saved").exists()
    assert "nothing to stop" in again[1]


@pytest.mark.slow
@pytest.mark.parametrize("size", ["1200,900", "390,844"])
def test_a_browser_draws_it(folder, size, tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with served(folder) as page:
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={size}"]
            + [f"--user-data-dir={tmp_path}/browser", "--virtual-time-budget=4000", "--dump-dom"]
            + [page.address],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )

    assert "4 of 4,096 steps" in done.stdout
    assert "<polyline" in done.stdout
    assert "episode/return" in done.stdout


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("plan.json", {"parts": None}),
        ("plan.json", {"parts": [{}]}),
        ("plan.json", {"parts": [{"name": "\x1b[2J", "ram_bytes": "y"}]}),
        ("run.json", {"config": {"seed": None}, "overrides": []}),
        ("run.json", {"config": {"env": None}, "overrides": []}),
        ("run.json", {"config": {"algo": {"total_steps": "x"}}, "overrides": []}),
    ],
)
def test_a_folder_with_values_that_no_run_writes_is_told_in_one_line(name, values, folder):
    (folder / "report.json").write_text('{"num_steps": 3}')
    with served(folder) as page:
        (folder / name).write_text(json.dumps(values))
        status, words, _ = asked(page, "/state")
    assert status == 500
    assert "holds values that no run writes" in words
    assert words.isprintable()
    with pytest.raises(DataError, match="holds values that no run writes"):
        follow(str(folder), 0)


def test_lines_of_any_length_and_numbers_that_are_none_stop_no_page(folder):
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b"0" * (3 << 20) + b"\n")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "episode/return": NaN, "seconds": 1}\n')
    logged(folder, 6)
    state = LiveRun(folder).state()
    assert state["steps"] == 6
    assert [step for step, _ in state["curves"]["episode/return"]] == [1, 2, 3, 4, 6]


def test_a_file_that_is_damaged_meanwhile_is_told_in_its_own_words(folder):
    with served(folder) as page:
        (folder / "run.json").write_text("{")
        status, words, _ = asked(page, "/state")
    assert status == 500
    assert "run.json" in words
    assert "no run writes" not in words

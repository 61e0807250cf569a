"""The report on W&B, sent to a stub on this machine that keeps what it is given."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.report import wandb_report
from frugal_rl.report.document import Document
from frugal_rl.report.files import write_json, write_text

ROOT = Path(__file__).resolve().parents[3]
PROJECT = {"id": "UHJvamVjdA==", "internalId": "UHJvamVjdEludGVybmFsSWQ6MQ==", "name": "frugal-rl"}
VIEWER = {
    "id": "VXNlcjox", "name": "me", "username": "me", "email": "me@example.org", "flags": "{}",
    "entity": "me", "admin": False, "teams": {"edges": []}, "apiKeys": {"edges": []},
}  # fmt: skip


class Stub(BaseHTTPRequestHandler):
    """Answers the few questions that a report asks; keeps the report."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        query, given = asked.get("query", ""), asked.get("variables") or {}
        if "upsertView" in query:
            self.server.reports.append(given)
            project = {"id": PROJECT["id"], "name": "frugal-rl", "entityName": "me"}
            view = {"id": "Vmlldzox", "type": "runs", "name": given["name"], "project": project}
            view |= {"displayName": given["displayName"], "description": "", "updatedAt": None}
            view |= {"spec": given["spec"]}
            data = {"upsertView": {"view": view, "inserted": True}}
        elif "projects" in query or "models" in query:
            info = {"endCursor": None, "hasNextPage": False}
            known = {"createdAt": "2026-01-01T00:00:00", "isBenchmark": False, "entityName": "me"}
            edge = {
                "node": PROJECT | known | {"user": None, "__typename": "Project"},
                "cursor": "c",
            }
            data = {"models": {"edges": [edge], "pageInfo": info, "totalCount": 1}}
        elif "viewer" in query:
            data = {"viewer": VIEWER}
        else:
            data = {"project": PROJECT, "serverInfo": {"features": []}}
        self.server.asked.append(query)
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def stub():
    server = HTTPServer(("127.0.0.1", 0), Stub)
    server.reports, server.asked = [], []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def finished(folder):
    config = {"env": {"name": "toy"}, "memory": {"profile": "lossless"}, "seed": 0}
    config["tracking"] = {"entity": "me", "project": "frugal-rl"}
    write_json(folder / "run.json", {"config": config, "overrides": ["env=toy"]})
    write_json(folder / "plan.json", {"label": "lossless", "ram_bytes": 100})
    write_json(
        folder / "report.json", {"num_steps": 2, "memory/peak_bytes": 110, "eval/success": 0.5}
    )
    lines = [f'{{"step": {s}, "eval/success": 0.5}}' for s in (1, 2)]
    write_text(folder / "metrics.jsonl", "\n".join(lines) + "\n")


def test_the_report_arrives_with_the_content_of_the_page(stub, tmp_path):
    pytest.importorskip("wandb_workspaces", reason="the extra viz is not installed")
    finished(tmp_path / "runs" / "a")
    environ = {k: v for k, v in os.environ.items() if not k.startswith("WANDB")}
    environ |= {"WANDB_BASE_URL": f"http://127.0.0.1:{stub.server_port}", "WANDB_API_KEY": "a" * 40}
    environ |= {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "frugal_rl", "report", "runs=[runs]", "format=wandb", "--quiet"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"http://127.0.0.1:{stub.server_port}/me/frugal-rl/reports/")
    (report,) = stub.reports
    spec = json.loads(report["spec"])
    text = report["spec"]
    assert (report["entityName"], report["displayName"]) == ("me", "Comparison of runs")
    kinds = [block["type"] for block in spec["blocks"]]
    assert "panel-grid" in kinds
    assert "code-block" in kinds
    assert "| lossless | 1 | - | - | 100 B | 110 B | -9.1% |" in text
    assert "plan/ram_bytes" in text
    assert "eval/success" in text
    assert "global_step" in text
    assert "scripts/train.py" in text or "frugal" in text


def test_a_missing_package_and_a_missing_entity_are_named(monkeypatch):
    with pytest.raises(ConfigError, match="entity=NAME"):
        wandb_report.save_report(Document("x"), "", "p")
    monkeypatch.setattr(wandb_report, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"frugal-rl\[viz\]|-e .\.\[viz\]"):
        wandb_report.save_report(Document("x"), "me", "p")

"""What is in ``deploy/``: tried as far as is possible without a container runtime."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import typer.main
import yaml  # type: ignore[import-untyped]

import bandanna as bd
from bandanna.cli import app
from tests.browser import missing
from tests.service.running import copied, free_port

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


def options() -> set[str]:
    """Return what ``bandanna serve`` understands."""
    command = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.slow
def test_the_image_is_built_from_the_files_it_copies(tmp_path: Path) -> None:
    """A wheel is made from exactly these files, installed, and holds the module for devices."""
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE):
        *sources, target = line.split()
        for name in sources:
            to = tmp_path / "src" / (name if target == "./" else target)
            to.parent.mkdir(parents=True, exist_ok=True)
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "node_modules")
                shutil.copytree(source, to, symlinks=True, ignore=ignored)
            else:
                shutil.copy(source, to)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    made = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path / "dist")]
    subprocess.run([*pip, "wheel", *made, str(tmp_path / "src")], check=True)
    (wheel,) = (tmp_path / "dist").glob("bandanna-*.whl")
    into = tmp_path / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(into), str(wheel)], check=True)
    program = (
        "import bandanna, bandanna.service.app as app, bandanna.device as device; "
        "assert 'export' in device.MODULE.read_text(); print(app.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(into), "PATH": "/usr/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(into))


def test_the_image_uses_the_versions_that_were_tested(tmp_path: Path) -> None:
    (command,) = re.findall(r"RUN (sed .*?) > /constraints.txt", DOCKERFILE)
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, cwd=ROOT)
    pinned = done.stdout.splitlines()
    for name in ("uvicorn", "fastapi", "sqlalchemy", "hatchling", "opendp"):
        assert any(line.startswith(f"{name}==") for line in pinned), name
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[^ ]+", line) for line in pinned)


def test_whatever_is_deployed_is_started_with_options_that_exist() -> None:
    known = options()
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    compose = (ROOT / "deploy" / "compose.yaml").read_text()
    (command,) = re.findall(r"command: (.*)$", compose, re.MULTILINE)
    unit = (ROOT / "deploy" / "bandanna.service").read_text()
    manifests = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/bandanna.yaml").read_text()))
    (pod,) = (one["spec"]["template"]["spec"] for one in manifests if one["kind"] == "StatefulSet")
    (container,) = pod["containers"]
    used = [
        *json.loads(entry),
        *json.loads(command),
        *container["command"],
        *re.findall(r"--[a-z-]+", unit),
    ]
    variables = {one["name"] for one in container["env"]} - {"NUMBA_CACHE_DIR"}
    used += [f"--{one.removeprefix('BANDANNA_').lower().replace('_', '-')}" for one in variables]
    assert {word for word in used if word.startswith("--")} <= known
    volumes = re.findall(r"^VOLUME (.*)$", DOCKERFILE, re.MULTILINE)
    assert json.loads(volumes[0]) == ["/data", "/guard"], "the guard is apart from the database"
    assert "StateDirectory=bandanna bandanna-guard" in unit


NGINX = "/usr/sbin/nginx"


@pytest.mark.skipif(missing(NGINX), reason="no nginx on this machine")
def test_the_proxy_speaks_tls_and_finds_the_process_that_leads(tmp_path: Path) -> None:
    """The example is used as it is, but for addresses and files."""
    certificate, key, port = tmp_path / "one.pem", tmp_path / "one.key", free_port()
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    trusted = ssl.create_default_context(cafile=str(certificate))
    with copied(tmp_path) as first, copied(tmp_path) as second:
        text = (ROOT / "deploy" / "nginx.conf").read_text()
        for before, after in (
            ("127.0.0.1:8001", f"127.0.0.1:{second.port}"),  # the stand-by is asked first
            ("127.0.0.1:8002", f"127.0.0.1:{first.port}"),
            ("listen 443", f"listen 127.0.0.1:{port}"),
            ("/etc/ssl/decide.example.pem", str(certificate)),
            ("/etc/ssl/decide.example.key", str(key)),
        ):
            assert before in text
            text = text.replace(before, after)
        main = f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/errors; user root;\n"
        files = "".join(
            f"{what}_temp_path {tmp_path}/{what};\n"
            for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(
            f"{main}events {{}}\nhttp {{\naccess_log off;\n{files}{text}}}\n"
        )
        proxy = subprocess.Popen([NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        http = httpx.Client(verify=trusted, base_url=f"https://localhost:{port}", timeout=60)
        try:
            end = time.monotonic() + 60
            while True:
                try:
                    assert http.get("/livez").status_code == 200
                    break
                except httpx.TransportError:
                    assert time.monotonic() < end, "the proxy does not answer"
                    time.sleep(0.05)
            with bd.Client(f"https://localhost:{port}", first.key, patience=60.0) as client:
                client._http.close()
                client._http = httpx.Client(verify=trusted, headers=client._headers, timeout=60)
                bandit = client.create("button", ["a", "b"], 1.0, rounds=1000)
                for _ in range(20):
                    bandit.observe(bandit.decide(), reward=1.0)
                assert bandit.show()["observed"] == 20
            answer = http.get("/v1/keys", headers={"X-Forwarded-Email": "ann@example.com"})
            assert answer.status_code == 401
            assert "max-age" in answer.headers["Strict-Transport-Security"]
            assert http.post("/v1/plan", content=bytes(1_100_000)).status_code == 413
        finally:
            http.close()
            proxy.terminate()
            proxy.wait(30)

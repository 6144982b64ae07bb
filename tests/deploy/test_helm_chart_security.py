"""Database users, TLS certificates and NATS configuration in the rendered chart."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from reverie.bus.permissions import PUBLISH_PERMISSIONS
from reverie.embedded.servers.binaries import find_nats_server
from tests.deploy.test_helm_chart import of_kind, pod_specs, render


def test_each_service_has_its_own_database_user_and_only_recall_uses_the_reader() -> None:
    for variant in ("trial", "production", "secured"):
        for name, spec in pod_specs(variant):
            [one, *_] = spec["containers"]
            told = {v["name"]: v for v in one.get("env", [])}
            reads = any(one in name for one in ("recall", "migrate", "backup"))
            assert ("REVERIE_DATABASE_READONLY_URL" in told) is reads, (variant, name)
            if "REVERIE_NATS_URL" not in told:
                continue
            user = next(
                (user for user in PUBLISH_PERMISSIONS if user in one["args"][-1]), "reverie"
            )
            if variant == "trial":
                assert told["REVERIE_NATS_URL"]["value"].startswith(f"nats://{user}:"), name
            if variant == "production" and user != "reverie":
                key = told["REVERIE_NATS_URL"]["valueFrom"]["secretKeyRef"]["key"]
                assert key == f"nats-url-{user}", name
            if variant == "secured":
                [files] = [v["secret"] for v in spec["volumes"] if v["name"] == "nats"]
                held = {"reverie": "keeper"}.get(user, user)
                assert files["items"] == [{"key": f"{held}.creds", "path": "natsCreds"}], name
                path = told["REVERIE_NATS_CREDS"]["value"]
                assert path == "/etc/reverie/nats/natsCreds"
                assert "/etc/reverie/nats" in {m["mountPath"] for m in one["volumeMounts"]}


def test_with_tls_probes_scraping_and_calls_use_https_by_certificate_names() -> None:
    [certificate] = of_kind("secured", "Certificate").values()
    names = certificate["spec"]["dnsNames"]
    for name, deployment in of_kind("secured", "Deployment").items():
        spec = deployment["spec"]["template"]["spec"]
        [one] = spec["containers"]
        for probe in ("startup", "readiness", "liveness"):
            assert one[f"{probe}Probe"]["httpGet"]["scheme"] == "HTTPS", name
        told = {v["name"]: v.get("value") for v in one["env"]}
        [tls] = [v["secret"]["secretName"] for v in spec["volumes"] if v["name"] == "tls"]
        assert tls == certificate["spec"]["secretName"]
        assert told["REVERIE_TLS_CERT"] == "/etc/reverie/tls/tls.crt"
        assert told["REVERIE_CA_FILE"] == "/etc/reverie/tls/ca.crt"
        assert told["REVERIE_OIDC_AUDIENCE"] == "reverie"
        assert told["REVERIE_RATE_LIMIT"] == "600"
        # The gateway calls the others by the names of their Services.
        assert "reverie-recall" in told.get("REVERIE_ALLOWED_HOSTS", "reverie-recall")
        assert ("REVERIE_ALLOWED_HOSTS" in told) is (name == "reverie-recall")
        for variable, value in told.items():
            if name == "reverie-recall" and re.fullmatch("REVERIE_(ING|DRE|STA).*_URL", variable):
                assert re.fullmatch(r"https://([\w-]+):\d+", str(value))[1] in names  # type: ignore[index]
    for kind in ("ServiceMonitor", "PodMonitor"):
        for monitor in of_kind("secured", kind).values():
            spec = monitor["spec"]
            [scraped] = spec.get("endpoints") or spec["podMetricsEndpoints"]
            assert scraped["scheme"] == "https"
            assert scraped["tlsConfig"]["serverName"] in names
    [pod] = of_kind("secured", "Pod").values()
    told = {v["name"]: v.get("value") for v in pod["spec"]["containers"][0]["env"]}
    assert told["REVERIE_GATEWAY_URL"] == "https://reverie-recall:3456"
    assert "scheme" not in render("default")


def test_the_trial_nats_uses_its_configuration_and_routes(tmp_path: Path) -> None:
    [config] = of_kind("trial", "ConfigMap").values()
    file = tmp_path / "nats.conf"
    file.write_text(config["data"]["nats.conf"])
    [server] = [one for name, one in of_kind("trial", "StatefulSet").items() if "nats" in name]
    [one] = server["spec"]["template"]["spec"]["containers"]
    named = {v["name"] for v in one["env"] if v["name"].startswith("NATS_")}
    assert {f"NATS_{user.upper()}_PASSWORD" for user in PUBLISH_PERMISSIONS} <= named
    environment = {"POD_NAME": "reverie-nats-0", **dict.fromkeys(named, "a-word")}
    flags = [flag.replace("$(NATS_PASSWORD)", "a-word") for flag in one["args"]]
    flags[flags.index("/etc/nats/nats.conf")] = str(file)
    command = [str(find_nats_server()), *flags, "-t"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    routes = flags[flags.index("--routes") + 1].split(",")
    names = [f"reverie-nats-{n}.{server['spec']['serviceName']}" for n in range(3)]
    assert [url.split("@")[1] for url in routes] == [f"{name}:6222" for name in names]


def test_behind_an_ingress_the_gateway_answers_to_its_public_and_inner_names() -> None:
    recall = of_kind("prometheus", "Deployment")["reverie-recall"]
    [container] = recall["spec"]["template"]["spec"]["containers"]
    told = {variable["name"]: variable.get("value") for variable in container["env"]}
    names = str(told["REVERIE_ALLOWED_HOSTS"]).split(",")
    assert names[0] == "memory.example.com"
    assert "reverie-recall" in names
    assert any(name.endswith(".svc.cluster.local") for name in names)

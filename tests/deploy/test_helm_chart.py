"""The Helm chart: linting, rendering, schemas of the rendered manifests."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils
from pydantic import SecretStr

from reverie import __version__
from reverie.bus.streams import DREAM_WORKERS, ENGINE_WORKERS, STREAMS
from reverie.runtime.settings.settings import PREFIX, Settings, has_type
from tests.deploy.checker_programs import helm

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "reverie"
KUBERNETES = "1.37"

VARIANTS: dict[str, tuple[str, ...]] = {
    "default": (),
    "trial": ("-f", "values-trial.yaml"),
    "production": ("-f", "values-production.yaml"),
    "secured": ("-f", "values-production.yaml", "-f", "values-secured.yaml"),
    "prometheus": (
        *("-f", "values-production.yaml", "--set", "dream.keda.trigger=prometheus"),
        *("--set", "dream.keda.authenticationRef=prometheus-token"),
        *("--set", "prometheusRule.enabled=true,dashboards.enabled=true"),
        *("--set", "ingress.enabled=true,ingress.hosts[0].host=memory.example.com"),
        *("--set", "ingress.tls[0].hosts[0]=memory.example.com,ingress.tls[0].secretName=tls"),
    ),
    "routed": (
        *("-f", "values-production.yaml", "-f", "values-secured.yaml", "--set"),
        "route.enabled=true,route.grpc.enabled=true,route.caConfigMap=authority",
    ),
    "engine": (
        *("-f", "values-production.yaml", "--set", "engine.enabled=true"),
        *("--set", "engine.keda.enabled=true,secret.keys.engineModels=engine-models"),
    ),
    "operated": ("-f", "values-production.yaml", "-f", "../../tests/deploy/operated.yaml"),
    "bare": (
        *("--set", "networkPolicy.enabled=false,serviceAccount.create=false"),
        *("--set", "dream.replicas=0,migrate.enabled=false,secret.keys.vaultKey="),
        *(
            "--set",
            "recall.autoscaling.enabled=false,settings.grpc_enabled=false,tests.enabled=false",
        ),
    ),
}
OF_OTHERS = {
    "cert-manager.io/v1": "cloudcoil.models.cert_manager.v1",
    "keda.sh/v1alpha1": "cloudcoil.models.keda.v1alpha1",
    "monitoring.coreos.com/v1": "cloudcoil.models.prometheus_operator.v1",
}
GATEWAY = "gateway.networking.k8s.io/v1"

Manifest = dict[str, Any]


def run(*arguments: str) -> str:
    done = subprocess.run(
        [str(helm()), *arguments], cwd=CHART, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@cache
def render(variant: str) -> str:
    return run("template", "reverie", ".", "--namespace", "reverie", *VARIANTS[variant])


@cache
def manifests(variant: str) -> list[Manifest]:
    return [one for one in yaml.load_all(render(variant), yaml.CSafeLoader) if one]


def of_kind(variant: str, kind: str) -> dict[str, Manifest]:
    return {one["metadata"]["name"]: one for one in manifests(variant) if one["kind"] == kind}


def pod_specs(variant: str) -> Iterator[tuple[str, Manifest]]:
    """Every pod that the chart makes, by the name of what makes it."""
    for one in manifests(variant):
        name = f"{one['kind']}/{one['metadata']['name']}"
        if one["kind"] == "Pod":
            yield name, one["spec"]
        elif one["kind"] == "CronJob":
            yield name, one["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        elif "template" in one.get("spec", {}):
            yield name, one["spec"]["template"]["spec"]


def containers(spec: Manifest) -> list[Manifest]:
    return [*spec.get("initContainers", []), *spec["containers"]]


@pytest.fixture(scope="module", autouse=True)
def schemas_read_once() -> Iterator[None]:
    """They are megabytes, and else read anew for every manifest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "schema_contents", cache(utils.schema_contents))
        yield


@pytest.mark.parametrize("variant", VARIANTS)
def test_manifests_are_valid_run_unprivileged_hold_no_secret_and_fit_together(variant: str) -> None:
    """One test, so that each variant is rendered once."""
    run("lint", ".", "--strict", "--quiet", *VARIANTS[variant])
    check_against_schemas(variant)
    check_pods_are_unprivileged(variant)
    check_variables_are_settings_and_no_secrets(variant)
    check_selectors_match_pods_and_ports(variant)


def check_against_schemas(variant: str) -> None:
    for one in manifests(variant):
        if one["apiVersion"] in OF_OTHERS:
            model = getattr(models_of(OF_OTHERS[one["apiVersion"]]), one["kind"])
            # The models pass over what they do not know: it would be missing afterwards.
            known = model.model_validate(one).model_dump(mode="json", by_alias=True)
            assert missing(one, known) == [], one["metadata"]["name"]
        elif one["apiVersion"] != GATEWAY:
            kubernetes_validate.validate(one, KUBERNETES, strict=True)


def models_of(module: str) -> ModuleType:
    """The models of one version, without the thousands of the others in its package."""
    package, _, _ = module.rpartition(".")
    if package not in sys.modules:
        above, _, name = package.rpartition(".")
        folders = [str(Path(place) / name) for place in import_module(above).__path__]
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = folders
    return import_module(module)


def missing(given: Any, known: Any, path: str = "") -> list[str]:
    """Paths of `given` that `known` lacks or has otherwise."""
    if isinstance(given, dict) and isinstance(known, dict):
        return [
            lack for key in given for lack in missing(given[key], known.get(key), f"{path}.{key}")
        ]
    if isinstance(given, list) and isinstance(known, list) and len(given) == len(known):
        pairs = zip(given, known, strict=True)
        return [lack for a, b in pairs for lack in missing(a, b, f"{path}[]")]
    return [] if given == known else [path]


def test_each_service_is_a_deployment_of_one_image_with_its_own_port() -> None:
    services = {f"reverie-{name}" for name in ("ingest", "recall", "dream", "staleness")}
    more = {"reverie-ingest-derive", "reverie-dream-api"}
    for variant, deployments in (("default", services), ("production", services | more)):
        made = of_kind(variant, "Deployment")
        assert made.keys() == deployments
        assert len({c["image"] for one in made.values() for c in containers(_pod_of(one))}) == 1
        for name, deployment in made.items():
            [container] = _pod_of(deployment)["containers"]
            assert container["args"][0] == "serve", name
            assert "http" in {port["name"] for port in container["ports"]}, name


def _pod_of(deployment: Manifest) -> Manifest:
    spec: Manifest = deployment["spec"]["template"]["spec"]
    return spec


def check_pods_are_unprivileged(variant: str) -> None:
    """Each states its resources, too."""
    for name, spec in pod_specs(variant):
        assert spec["automountServiceAccountToken"] is False, name
        # Kubernetes would put REVERIE_RECALL_PORT=tcp://... among the settings.
        assert spec["enableServiceLinks"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for one in containers(spec):
            held = one["securityContext"]
            assert held["readOnlyRootFilesystem"] is True, name
            assert held["allowPrivilegeEscalation"] is False, name
            assert held["capabilities"] == {"drop": ["ALL"]}, name
            assert {"cpu", "memory"} <= one["resources"]["requests"].keys(), name
            assert "memory" in one["resources"]["limits"], name


def check_variables_are_settings_and_no_secrets(variant: str) -> None:
    secrets = {name for name in Settings.model_fields if has_type(name, SecretStr)}
    for name, spec in pod_specs(variant):
        for variable in (one for c in containers(spec) for one in c.get("env", [])):
            if not variable["name"].startswith(PREFIX):
                continue
            setting = variable["name"].removeprefix(PREFIX).lower()
            assert setting in Settings.model_fields, (name, setting)
            if setting in secrets and "value" in variable:
                words = re.search(r"://[^:]+:([^@]*)@", variable["value"])
                assert words, (name, setting)
                assert re.fullmatch(r"\$\([A-Z_]+\)", words[1]), (name, setting)
    assert not of_kind(variant, "Secret")


def check_selectors_match_pods_and_ports(variant: str) -> None:
    """Of services, budgets, scalers and routes."""
    pods = [
        (one["spec"]["template"]["metadata"]["labels"], one["spec"]["template"]["spec"])
        for one in manifests(variant)
        if one["kind"] in {"Deployment", "StatefulSet"}
    ]

    def meets(selector: Manifest) -> list[Manifest]:
        return [spec for labels, spec in pods if selector.items() <= labels.items()]

    for name, service in of_kind(variant, "Service").items():
        [spec] = meets(service["spec"]["selector"])
        named = {port["name"] for c in spec["containers"] for port in c.get("ports", [])}
        wanted = {port["targetPort"] for port in service["spec"]["ports"]}
        assert wanted <= named, name
    for name, budget in of_kind(variant, "PodDisruptionBudget").items():
        assert len(meets(budget["spec"]["selector"]["matchLabels"])) == 1, name
    deployments = of_kind(variant, "Deployment")
    for kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        for name, scaler in of_kind(variant, kind).items():
            target = deployments[scaler["spec"]["scaleTargetRef"]["name"]]
            assert "replicas" not in target["spec"], name
    for route in (*of_kind(variant, "HTTPRoute").values(), *of_kind(variant, "GRPCRoute").values()):
        assert route["apiVersion"] == GATEWAY
        assert route["spec"].keys() <= {"parentRefs", "hostnames", "rules"}
        for rule in route["spec"]["rules"]:
            for backend in rule["backendRefs"]:
                service = of_kind(variant, "Service")[backend["name"]]
                assert backend["port"] in {port["port"] for port in service["spec"]["ports"]}


def test_a_gateway_uses_tls_to_the_pods_with_a_name_in_their_certificate() -> None:
    [policy] = of_kind("routed", "BackendTLSPolicy").values()
    [target], checked = policy["spec"]["targetRefs"], policy["spec"]["validation"]
    assert target["name"] in of_kind("routed", target["kind"])
    assert checked["hostname"] in of_kind("routed", "Certificate")["reverie"]["spec"]["dnsNames"]
    assert [one["name"] for one in checked["caCertificateRefs"]] == ["authority"]
    assert not of_kind("production", "BackendTLSPolicy")


def test_network_policies_admit_only_named_traffic() -> None:
    policies = of_kind("trial", "NetworkPolicy")
    deny = policies["reverie-deny"]["spec"]
    labels = dict.fromkeys(("app.kubernetes.io/name", "app.kubernetes.io/instance"), "reverie")
    policy_types = ["Ingress", "Egress"]
    assert deny == {"podSelector": {"matchLabels": labels}, "policyTypes": policy_types}
    for one in manifests("trial"):
        template = one if one["kind"] == "Pod" else one.get("spec", {}).get("template")
        if template and "spec" in template:
            assert labels.items() <= template["metadata"]["labels"].items(), one["metadata"]["name"]
    # Only the gateway calls the others, and only NATS its own.
    for name in ("ingest", "dream", "staleness"):
        callers = policies[f"reverie-{name}"]["spec"]["ingress"][0]["from"]
        assert [
            c["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for c in callers
        ] == ["recall"]
    assert policies["reverie-migrate"]["spec"]["ingress"] == []
    assert not policies["reverie-postgres"]["spec"].get("egress")


def test_the_gateway_has_no_bus_address_and_cannot_reach_it() -> None:
    for variant in ("default", "trial", "production", "secured"):
        for name, spec in pod_specs(variant):
            told = str([c.get("env") for c in spec["containers"]])
            users = ("ingest", "dream", "staleness", "migrate", "backup")
            assert ("NATS_URL" in told) is any(f"reverie-{one}" in name for one in users), name
        egress = of_kind(variant, "NetworkPolicy")["reverie-recall"]["spec"]["egress"]
        assert 4222 not in {port["port"] for one in egress for port in one["ports"]}


def test_the_engine_is_off_unless_enabled_and_scales_by_its_queue() -> None:
    assert "reverie-engine" not in of_kind("production", "Deployment")
    [container] = dict(pod_specs("engine"))["Deployment/reverie-engine"]["containers"]
    assert container["args"] == ["serve", "engine"]
    told = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert told["REVERIE_GATEWAY_URL"].endswith("://reverie-recall:3456")
    assert told.keys() >= {"REVERIE_ENGINE_MODELS", "REVERIE_VAULT_KEY", "REVERIE_NATS_URL"}
    assert "://reverie-engine:3463" in str(of_kind("engine", "Deployment")["reverie-recall"])
    told = of_kind("engine", "ScaledObject")["reverie-engine"]["spec"]["triggers"][0]["metadata"]
    assert (told["stream"], told["consumer"]) == (ENGINE_WORKERS.stream, ENGINE_WORKERS.name)
    egress = str(of_kind("engine", "NetworkPolicy")["reverie-engine"]["spec"]["egress"])
    assert all(f"'port': {port}" in egress for port in (3456, 4222, 5432))


def test_workers_scale_by_the_consumer_that_the_migration_creates() -> None:
    [scaled] = of_kind("production", "ScaledObject").values()
    assert scaled["spec"]["minReplicaCount"] == 0
    [trigger] = scaled["spec"]["triggers"]
    assert trigger["type"] == "nats-jetstream"
    metadata = trigger["metadata"]
    assert (metadata["stream"], metadata["consumer"]) == (DREAM_WORKERS.stream, DREAM_WORKERS.name)
    assert metadata["stream"] in {stream.name for stream in STREAMS}
    assert all(isinstance(value, str) for value in metadata.values())
    # What the scaler of KEDA cannot do without.
    assert {"natsServerMonitoringEndpoint", "account", "lagThreshold"} <= metadata.keys()
    [other] = of_kind("prometheus", "ScaledObject").values()
    [trigger] = other["spec"]["triggers"]
    assert {"serverAddress", "query", "threshold"} <= trigger["metadata"].keys()
    assert trigger["authenticationRef"] == {"name": "prometheus-token"}
    known_metrics = (ROOT / "docs/reference/metrics.md").read_text()
    for metric in re.findall(r"reverie_\w+", trigger["metadata"]["query"]):
        assert f"`{metric}`" in known_metrics
    # While there is no worker, this process answers calls about dreams, and digests nothing itself.
    [service] = [s for n, s in of_kind("production", "Service").items() if n.endswith("-dream")]
    assert service["spec"]["selector"]["app.kubernetes.io/component"] == "dream-api"
    api = of_kind("production", "Deployment")["reverie-dream-api"]["spec"]["template"]["spec"]
    assert {"name": "REVERIE_DREAM_WORKER_ENABLED", "value": "false"} in api["containers"][0]["env"]


def test_where_some_ingest_pods_only_answer_others_derive() -> None:
    roles = {}
    for name, one in of_kind("production", "Deployment").items():
        [container] = one["spec"]["template"]["spec"]["containers"]
        told = {v["name"]: v.get("value") for v in container["env"]}
        roles[name] = told.get("REVERIE_INGEST_ROLE")
    assert roles["reverie-ingest"] == "api"
    assert roles["reverie-ingest-derive"] == "derive"
    alone = of_kind("default", "Deployment")["reverie-ingest"]["spec"]["template"]["spec"]
    assert "REVERIE_INGEST_ROLE" not in str(alone)
    assert "reverie-ingest-derive" in of_kind("production", "HorizontalPodAutoscaler")
    assert "reverie-ingest-derive" in of_kind("production", "PodMonitor")


def test_old_pods_survive_the_migration_and_new_ones_wait_for_it() -> None:
    [job] = of_kind("default", "Job").values()
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert "serviceAccountName" not in job["spec"]["template"]["spec"]
    for name, deployment in of_kind("default", "Deployment").items():
        spec = deployment["spec"]["template"]["spec"]
        [waits] = spec["initContainers"]
        assert waits["args"][:3] == ["migrate", "--check", "--wait"]
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        own = {v["name"] for v in spec["containers"][0]["env"]}
        assert "REVERIE_DATABASE_MIGRATION_URL" not in own, name
        assert "REVERIE_API_KEY" not in own, name
    # Servers that come with the release are not there before it: the Job comes with it too.
    [job] = of_kind("trial", "Job").values()
    assert "annotations" not in job["metadata"]
    assert "--login" in job["spec"]["template"]["spec"]["containers"][0]["args"]


def test_probes_use_the_health_routes_and_termination_has_enough_time() -> None:
    for deployment in of_kind("default", "Deployment").values():
        spec = deployment["spec"]["template"]["spec"]
        [one] = spec["containers"]
        paths = [
            one[f"{probe}Probe"]["httpGet"]["path"]
            for probe in ("startup", "readiness", "liveness")
        ]
        assert paths == ["/ready", "/ready?own=true", "/health"]
        told = {v["name"]: v.get("value") for v in one["env"]}
        took = one["lifecycle"]["preStop"]["sleep"]["seconds"] + int(
            told["REVERIE_SHUTDOWN_TIMEOUT"]
        )
        assert spec["terminationGracePeriodSeconds"] > took


def test_alerts_and_dashboards_equal_those_of_the_project() -> None:
    [rule] = of_kind("prometheus", "PrometheusRule").values()
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/alerts/reverie.yml").read_text())
    found: dict[str, str] = {}
    for board in of_kind("prometheus", "ConfigMap").values():
        assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
        found |= board["data"]
    assert found == {f.name: f.read_text() for f in (ROOT / "deploy/dashboards").glob("*.json")}


def test_the_notes_match_what_was_installed_and_the_version_is_that_of_the_package() -> None:
    told = run("install", "reverie", ".", "--dry-run=client", "-f", "values-trial.yaml")
    notes = told.split("NOTES:")[1]
    assert "create secret generic reverie" in notes
    assert "service/reverie-recall 3456" in notes
    assert "There is no dream worker" not in notes
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)

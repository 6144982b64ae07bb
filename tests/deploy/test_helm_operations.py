"""What operators do with the chart: the Secret, backups, administration, a mirror, additions."""

from __future__ import annotations

import re
from pathlib import Path

from tests.deploy.test_helm_chart import (
    CHART,
    ROOT,
    containers,
    of_kind,
    pod_specs,
    run,
)

README = CHART / "README.md"
COMMAND = re.compile(r"create secret generic reverie\b((?:.*\\\n)*.*)")
KEY = re.compile(r"--from-(?:literal|file)='?([\w.-]+)=")


def keys_made(page: Path) -> set[str]:
    """The keys of the Secret that the command on a page makes."""
    [command] = COMMAND.findall(page.read_text().replace("\n#", "\n"))
    return set(KEY.findall(command))


def keys_read(variant: str) -> set[str]:
    """The keys that pods of a variant need of the Secret."""
    found = set()
    for _, spec in pod_specs(variant):
        for variable in (one for c in containers(spec) for one in c.get("env", [])):
            if reference := variable.get("valueFrom", {}).get("secretKeyRef"):
                found.add(reference["key"])
        for volume in spec.get("volumes", []):
            if volume.get("secret", {}).get("secretName") == "reverie":
                found |= {item["key"] for item in volume["secret"]["items"]}
    return found


def test_the_documented_command_makes_every_key_that_the_pods_read() -> None:
    for variant in ("default", "production", "operated"):
        assert keys_read(variant) - keys_made(README) == set(), variant
    assert keys_read("trial") - keys_made(CHART / "values-trial.yaml") == set()


def test_the_secured_example_names_the_keys_that_it_adds() -> None:
    added = keys_read("secured") - keys_made(README)
    head = (CHART / "values-secured.yaml").read_text().partition("\nsecret:")[0]
    assert added == set(KEY.findall(head))


def test_a_timer_backs_up_to_a_volume_that_outlives_the_release() -> None:
    assert not of_kind("default", "CronJob")
    [job] = of_kind("operated", "CronJob").values()
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert job["spec"]["timeZone"] == "Etc/UTC"
    spec = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = spec["containers"]
    [claim] = [one["persistentVolumeClaim"] for one in spec["volumes"] if one["name"] == "backups"]
    volume = of_kind("operated", "PersistentVolumeClaim")[claim["claimName"]]
    assert volume["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    told = {one["name"]: one.get("value") for one in container["env"]}
    assert told["BACKUPS"] == mounted["backups"]
    assert "REVERIE_DATABASE_MIGRATION_URL" in told


def test_the_pod_for_administration_has_what_commands_need_and_serves_nothing() -> None:
    assert not of_kind("default", "Deployment").get("reverie-admin")
    pod = of_kind("operated", "Deployment")["reverie-admin"]["spec"]["template"]
    [container] = pod["spec"]["containers"]
    told = {one["name"]: one.get("value") for one in container["env"]}
    assert told["REVERIE_GATEWAY_URL"] == "http://reverie-recall:3456"
    assert {"REVERIE_DATABASE_MIGRATION_URL", "REVERIE_NATS_URL", "REVERIE_API_KEY"} <= told.keys()
    assert "/backups" in {one["mountPath"] for one in container["volumeMounts"]}
    assert "ports" not in container
    labels = pod["metadata"]["labels"]
    for policy, port in (("reverie-migrate", 5432), ("reverie-test", 3456)):
        rules = of_kind("operated", "NetworkPolicy")[policy]["spec"]
        [matched] = rules["podSelector"]["matchExpressions"]
        assert labels["app.kubernetes.io/component"] in matched["values"]
        assert port in {one["port"] for rule in rules["egress"] for one in rule["ports"]}


def test_every_image_can_come_from_a_mirror() -> None:
    flags = ("-f", "values-trial.yaml", "--set", "image.registry=mirror.example.com/team")
    told = run("template", "reverie", ".", *flags)
    images = set(re.findall(r"image: (\S+)", told))
    assert len(images) == 3
    assert all(image.startswith("mirror.example.com/team/") for image in images)


def test_containers_and_objects_can_be_added() -> None:
    assert {"gateway": "3456"} in [one["data"] for one in of_kind("operated", "ConfigMap").values()]
    assert "reverie-more" in of_kind("operated", "ConfigMap")
    for name, spec in pod_specs("operated"):
        first = spec["initContainers"][0]
        assert first["name"] == "proxy", name
        serves = any(one.get("args", [""])[0] == "serve" for one in spec["containers"])
        beside = [one["name"] for one in spec["containers"]].count("beside")
        assert beside == int(serves), name


def test_the_readme_of_the_chart_names_every_example_and_the_pages_for_operators_name_it() -> None:
    text = README.read_text()
    for file in CHART.glob("values-*.yaml"):
        assert f"`{file.name}`" in text, file.name
    assert "docs/operate/back-up.md" in text
    assert (ROOT / "docs/operate/deploy.md").read_text().count("helm/reverie/README.md")

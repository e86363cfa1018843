#!/usr/bin/env python3
"""Holds what `kubectl kustomize` makes of each overlay against the schemas of Kubernetes, strictly and offline, and against rules
of our own: every service is there, a service with a store runs once, nothing runs as root or writes to its image, and no manifest
contains a secret. Kinds of operators have no schema at hand: they are counted as unchecked. Started by `--test deploy` of tg-server."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml

ROOT = Path(__file__).resolve().parent.parent
OVERLAYS = ["small", "standard", "production"]
# Groups of operators, whose schemas nobody here has.
FOREIGN = ("rabbitmq.com/", "keda.sh/")
SECRET_NAMES = re.compile(r"(password|passwd|secret|token|api_?key|_KEY$)", re.I)
CREDENTIALS = re.compile(r"://[^/@\s]+:[^/@\s]+@")


def made(overlay):
    folder = ROOT / "deploy/k8s/overlays" / overlay
    ran = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{overlay}: kubectl kustomize: {ran.stderr}")
    return [one for one in yaml.safe_load_all(ran.stdout) if one]


def name(one):
    return f"{one['kind']}/{one['metadata']['name']}"


def texts(value, key=""):
    """Each text below a value, with the key that it stands under."""
    if isinstance(value, dict):
        for below, inner in value.items():
            yield from texts(inner, below)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, key)
    elif isinstance(value, str):
        yield key, value


def secrets(one):
    """Why a manifest counts as one that contains a secret."""
    if one["kind"] == "Secret":
        yield f"{name(one)} is a secret"
    for _, text in texts(one):
        if CREDENTIALS.search(text):
            yield f"{name(one)} has an address with credentials"
    for key, text in (one.get("data") or {}).items() if one["kind"] == "ConfigMap" else []:
        if SECRET_NAMES.search(key) and text:
            yield f"{name(one)}: {key}"
    for container in containers(one):
        for variable in container.get("env", []):
            if SECRET_NAMES.search(variable["name"]) and "value" in variable:
                yield f"{name(one)}: {variable['name']}"


def template(one):
    return one.get("spec", {}).get("template", {}).get("spec", {}) if one["kind"] in ("Deployment", "StatefulSet") else {}


def containers(one):
    pod = template(one)
    return pod.get("containers", []) + pod.get("initContainers", [])


# What "restricted" of the Pod Security Standards lets a pod mount.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def restricted(one):
    """Why a namespace that enforces the Pod Security Standard "restricted" refuses a pod."""
    pod = template(one)
    whole = pod.get("securityContext", {})
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(key):
            yield f"{name(one)} has {key}"
    if whole.get("sysctls"):
        yield f"{name(one)} has sysctls"
    for volume in pod.get("volumes", []):
        if set(volume) - {"name"} - VOLUMES:
            yield f"{name(one)} mounts {sorted(set(volume) - {'name'})}"
    for container in containers(one):
        own = container.get("securityContext", {})
        profile = own.get("seccompProfile", whole.get("seccompProfile", {})).get("type")
        if profile not in ("RuntimeDefault", "Localhost"):
            yield f"{name(one)} has no seccomp profile"
        if own.get("runAsNonRoot", whole.get("runAsNonRoot")) is not True:
            yield f"{name(one)} may run as root"
        if not own.get("runAsUser", whole.get("runAsUser")):
            yield f"{name(one)} is nobody in particular, or root"
        capabilities = own.get("capabilities", {})
        if own.get("allowPrivilegeEscalation") is not False or capabilities.get("drop") != ["ALL"] or capabilities.get("add"):
            yield f"{name(one)} has privileges"
        if own.get("privileged") or own.get("procMount", "Default") != "Default":
            yield f"{name(one)} sees more of its node"
        for port in container.get("ports", []):
            if port.get("hostPort"):
                yield f"{name(one)} takes a port of its node"


def closed(one):
    """Why a pod is more open than it has to be, or less looked after."""
    pod = template(one)
    if not pod:
        return
    yield from restricted(one)
    if pod.get("automountServiceAccountToken") is not False:
        yield f"{name(one)} has a token of the cluster"
    for container in containers(one):
        if not container.get("securityContext", {}).get("readOnlyRootFilesystem"):
            yield f"{name(one)} may write to its image"
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe not in container:
                yield f"{name(one)} has no {probe}"
        if "memory" not in container.get("resources", {}).get("limits", {}):
            yield f"{name(one)} has no limit of memory"
        # The image has no shell and no other program.
        for when, action in container.get("lifecycle", {}).items():
            if "exec" in action:
                yield f"{name(one)} runs a program at {when}"


def traps(one):
    """Defaults of Kubernetes and KEDA that leave a system standing."""
    if one["kind"] == "StatefulSet" and one["spec"].get("podManagementPolicy") != "Parallel":
        yield f"{name(one)} keeps a pod that never became ready when its template is mended"
    if template(one) and template(one).get("enableServiceLinks") is not False:
        yield f"{name(one)} takes addresses of the Service threadgraph for its settings"
    for trigger in one["spec"].get("triggers", []) if one["kind"] == "ScaledObject" else []:
        if trigger["metadata"].get("useRegex") == "true" and "pageSize" not in trigger["metadata"]:
            yield f"{name(one)} stops at a hundred queues"


def replicas(all_of, single):
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in all_of if one["kind"] == "ScaledObject"}
    for one in all_of:
        if one["kind"] == "Deployment" and one["metadata"]["name"] in scaled and "replicas" in one["spec"]:
            yield f"{name(one)} is scaled, and has a number of its own"
        service = one["metadata"].get("labels", {}).get("app.kubernetes.io/component")
        count = one.get("spec", {}).get("replicas")
        if one["kind"] in ("Deployment", "StatefulSet") and service in single and (count != 1 or one["kind"] != "StatefulSet"):
            yield f"{name(one)} is the owner of a store: {one['kind']}, {count} replicas"
        target = one.get("spec", {}).get("scaleTargetRef", {}).get("name", "")
        if target.removeprefix("threadgraph-") in single:
            yield f"{name(one)} scales the owner of a store"


def services(all_of, single, workers):
    there = {}
    for one in all_of:
        if one["kind"] in ("Deployment", "StatefulSet"):
            there.setdefault(one["metadata"]["labels"]["app.kubernetes.io/component"], []).append(one)
    wanted = set(single) | set(workers)
    if set(there) != wanted:
        yield f"services: {sorted(set(there) ^ wanted)} differ from the table"
    for service, ones in there.items():
        if len(ones) != 1:
            yield f"{service} is there {len(ones)} times"
    budgets = {one["metadata"]["name"].removeprefix("threadgraph-") for one in all_of if one["kind"] == "PodDisruptionBudget"}
    brokers = {one["metadata"]["name"].removeprefix("threadgraph-") for one in all_of if one["kind"] == "RabbitmqCluster"}
    if budgets != wanted | brokers:
        yield f"budgets: {sorted(budgets ^ (wanted | brokers))} differ from the table"


def schema(one, version):
    """Whether a schema was there, and what it refuses."""
    if one["apiVersion"].startswith(FOREIGN):
        return False, None
    try:
        kubernetes_validate.validate(one, version, strict=True)
        return True, None
    except kubernetes_validate.ValidationError as fault:
        return True, f"{name(one)}: {fault.message} at {'.'.join(str(part) for part in fault.path)}"


def own_rules(all_of, single):
    for one in all_of:
        yield from secrets(one)
        yield from closed(one)
        yield from traps(one)
    yield from replicas(all_of, single)


def self_test():
    """Each rule refuses what it is there for."""
    container = {
        "name": "c", "image": "i", "env": [{"name": "OPENAI_API_KEY", "value": "x"}],
        "securityContext": {"privileged": True, "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}},
        "ports": [{"containerPort": 1, "hostPort": 1}],
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}},
    }
    pod = {"hostNetwork": True, "volumes": [{"name": "v", "hostPath": {"path": "/"}}], "containers": [container]}
    labels = {"app.kubernetes.io/component": "graph"}
    bad = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "threadgraph-graph", "labels": labels},
        "spec": {"replicas": 2, "serviceName": "s", "selector": {"matchLabels": labels}, "unknown": 1,
                 "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "s"},
              "spec": {"scaleTargetRef": {"name": "threadgraph-graph"}, "host": "amqp://u:p@h/",
                       "triggers": [{"type": "rabbitmq", "metadata": {"useRegex": "true"}}]}}
    twice = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "threadgraph-graph"}, "spec": {"replicas": 2}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "k"}, "data": {"a": "YQ=="}}
    told = list(own_rules([bad, scaled, twice, secret], ["graph"]))
    for wanted in ("OPENAI_API_KEY", "2 replicas", "scales the owner", "a number of its own", "is a secret", "with credentials", "may run as root",
                   "may write to its image", "has no readinessProbe", "has no limit of memory", "has hostNetwork", "mounts ['hostPath']",
                   "no seccomp profile", "has privileges", "sees more of its node", "a port of its node", "runs a program at preStop",
                   "never became ready", "a hundred queues", "for its settings"):
        assert any(wanted in one for one in told), (wanted, told)
    _, fault = schema(bad, "1.33")
    assert fault and "unknown" in fault, fault
    assert list(services([bad], ["graph"], ["llm"])), "a service is missing"
    broker = {"apiVersion": "rabbitmq.com/v1beta1", "kind": "RabbitmqCluster", "metadata": {"name": "threadgraph-broker"}}
    assert list(services([broker], [], [])) == ["budgets: ['broker'] differ from the table"], "a broker without a budget"
    print("ok")


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--versions", default="1.30,1.33,1.36")
    parse.add_argument("--single", default="")
    parse.add_argument("--workers", default="")
    parse.add_argument("--self-test", action="store_true")
    told = parse.parse_args()
    if told.self_test:
        return self_test()
    single, workers = [list(filter(None, one.split(","))) for one in (told.single, told.workers)]
    faults = []
    for overlay in OVERLAYS:
        all_of = made(overlay)
        faults += [f"{overlay}: {one}" for one in own_rules(all_of, [*single, "up"])]
        if overlay != "small":
            faults += [f"{overlay}: {one}" for one in services(all_of, single, workers)]
        for version in told.versions.split(","):
            seen = [schema(one, version) for one in all_of]
            faults += [f"{overlay} {version}: {fault}" for _, fault in seen if fault]
            checked = sum(known for known, _ in seen)
            print(f"{overlay} {version}: {checked} checked, {len(seen) - checked} without a schema")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

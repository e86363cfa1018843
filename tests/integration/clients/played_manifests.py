"""Makes of the manifests on standard input what podman plays. It knows no StatefulSet: the pod becomes a Deployment's, with a claim of
its own. It plays no Service and no policy. Its probes run a program inside the image, which has none; it does not know the
pause before a stop; and a pod on the network of its host has no ports to map.

With the address of a broker and a file as arguments it also writes the secret that the pods read the address from, for `podman secret
create`: podman 4.3 takes a manifest of a secret, but reads no variable from it. All pods are on one network then: of each service one is
played, and each reports on a port of its own.
"""

import base64
import json
import sys
from pathlib import Path

import yaml

UNPLAYED = ("startupProbe", "livenessProbe", "readinessProbe", "lifecycle", "ports")
# The first port of those that report.
REPORT = 9101


def service(one):
    return one["metadata"]["labels"]["app.kubernetes.io/component"]


def pods(manifests):
    return [one for one in manifests if one["kind"] in ("StatefulSet", "Deployment")]


def deployment(one):
    """The claims of a StatefulSet, then what is left of it; or a Deployment."""
    spec = one["spec"]
    pod = spec["template"]["spec"]
    for key in ("serviceName", "podManagementPolicy", "strategy"):
        spec.pop(key, None)
    spec["replicas"] = 1
    for claim in spec.pop("volumeClaimTemplates", []):
        name = claim["metadata"]["name"]
        of_pod = name if service(one) == "up" else f"{name}-{service(one)}"
        pod["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": of_pod}})
        claim["metadata"]["name"] = of_pod
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}
    for container in pod["containers"]:
        for key in UNPLAYED:
            container.pop(key, None)
    # Volumes of one name are one volume, of whichever pods.
    if service(one) != "up":
        for named in [*pod["volumes"], *pod["containers"][0]["volumeMounts"]]:
            named["name"] += f"-{service(one)}"
    yield {**one, "kind": "Deployment"}


def secret(services, address):
    encoded = base64.b64encode(address.encode()).decode()
    return json.dumps({name: encoded for name in services})


def played(manifests, on_one_network):
    for one in manifests:
        if one["kind"] == "ConfigMap":
            if on_one_network:
                # In podman 4.3 it would count, and not what the container has.
                one["data"].pop("THREADGRAPH_REPORT__LISTEN")
            yield one
    for port, one in enumerate(pods(manifests), REPORT):
        if on_one_network:
            setting = {"name": "THREADGRAPH_REPORT__LISTEN", "value": f"127.0.0.1:{port}"}
            one["spec"]["template"]["spec"]["containers"][0]["env"].append(setting)
        yield from deployment(one)


def main(address=None, file=None):
    manifests = list(yaml.safe_load_all(sys.stdin))
    if file:
        Path(file).write_text(secret([service(one) for one in pods(manifests)], address))
    yaml.safe_dump_all(played(manifests, file is not None), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

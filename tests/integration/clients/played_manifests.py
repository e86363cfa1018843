"""Makes of the manifests on standard input what podman plays. It knows no StatefulSet: the pod becomes a Deployment's, with a claim of
the same name. It plays no Service and no policy. Its probes run a program inside the image, which has none; it does not know the
pause before a stop; and a pod on the network of its host has no ports to map.
"""

import sys

import yaml

UNPLAYED = ("startupProbe", "livenessProbe", "readinessProbe", "lifecycle", "ports")


def deployment(one):
    """The claims of a StatefulSet, then what is left of it."""
    spec = one["spec"]
    pod = spec["template"]["spec"]
    spec.pop("serviceName")
    spec.pop("podManagementPolicy")
    for claim in spec.pop("volumeClaimTemplates"):
        name = claim["metadata"]["name"]
        pod["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": name}})
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}
    for container in pod["containers"]:
        for key in UNPLAYED:
            container.pop(key, None)
    yield {**one, "kind": "Deployment"}


def played(manifests):
    for one in manifests:
        if one["kind"] == "ConfigMap":
            yield one
        elif one["kind"] == "StatefulSet":
            yield from deployment(one)


if __name__ == "__main__":
    yaml.safe_dump_all(played(yaml.safe_load_all(sys.stdin)), sys.stdout)

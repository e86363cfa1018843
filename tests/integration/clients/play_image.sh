#!/usr/bin/env bash
# Starts the container image of an archive, adds the demo's document, asks the demo's question and prints the answer. Then kills the
# process, waits until another one has taken its place, asks again, and stops it in order.
#
#   play_image.sh run|play ARCHIVE WORK TG DOCUMENT QUESTION
#
# `run` starts the image by itself, `play` as the pod of deploy/k8s/overlays/small; both with a read-only file system and a volume. It
# needs root. The containers' network has a loopback device only, and all that is theirs is below WORK.
set -euo pipefail
cd "$(dirname "$0")/../../.."
what=$1 archive=$2 work=$3 tg=$4 document=$5 question=$6

if [ -z "${PLAYED:-}" ]; then
  export PLAYED=yes
  exec unshare --mount --net --propagation private bash "$PWD/tests/integration/clients/play_image.sh" "$@"
fi
# Beside hierarchies of version 1, one of version 2 is more than the runtime reads.
! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified
ip link set lo up

cat >"$work/containers.conf" <<'CONF'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
pids_limit = 0

[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
helper_binaries_dir = ["/usr/libexec/podman", "/usr/lib/podman", "/usr/bin"]

[network]
network_backend = "netavark"
CONF
export CONTAINERS_CONF=$work/containers.conf
pod() { podman --root "$work/storage" --runroot "$work/run" --tmpdir "$work/libpod" --storage-driver vfs "$@"; }
finish() {
  local status=$? one
  if [ "$status" != 0 ]; then
    for one in $(pod ps --all --quiet); do pod logs "$one" >&2 || true; done
  fi
  pod pod rm --force --all >/dev/null || true
  pod rm --force --time 5 --all >/dev/null || true
  exit "$status"
}
trap finish EXIT

image=$(pod load --quiet --input "$archive" | sed -n 's/^Loaded image: *//p')
case $what in
  run) pod run --detach --network host --read-only --volume data:/data --restart always "$image" >/dev/null ;;
  play)
    kubectl kustomize deploy/k8s/overlays/small |
      .cache/kubernetes/bin/python3 tests/integration/clients/played_manifests.py >"$work/played.yaml"
    pod kube play --network host "$work/played.yaml" >/dev/null
    ;;
  *) echo "play_image: run or play" >&2; exit 1 ;;
esac

until_there() {
  local _
  for _ in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  echo "play_image: not in time: $*" >&2
  exit 1
}
is_ready() { curl -fs http://127.0.0.1:9090/health/ready && curl -fs http://127.0.0.1:8888/health/ready; }
until_there is_ready
code=$(pod volume inspect data --format '{{.Mountpoint}}')/threadgraph/bootstrap-code
until_there test -s "$code"

export TRUSTGRAPH_URL=http://127.0.0.1:8888/ XDG_CONFIG_HOME=/nowhere
TRUSTGRAPH_TOKEN=$("$tg" bootstrap-iam --code "$(cat "$code")")
export TRUSTGRAPH_TOKEN
"$tg" add "$document" --wait
"$tg" ask "$question"

# Not the one that podman holds a pod's network with.
ours() {
  local one
  for one in $(pod ps --quiet); do
    case $(pod inspect "$one" --format '{{.ImageName}}') in *podman-pause*) ;; *) echo "$one" ;; esac
  done
}
container=$(ours)
pod inspect "$container" --format 'read-only {{.HostConfig.ReadonlyRootfs}}, user {{.Config.User}}'

process() { pod inspect "$container" --format '{{.State.Pid}}'; }
killed=$(process)
is_replaced() {
  local now
  now=$(process)
  [ "$now" != 0 ] && [ "$now" != "$killed" ]
}
kill -9 "$killed"
until_there is_replaced
until_there is_ready
echo "killed, and replaced by another process"
"$tg" ask "$question"

# As long as the manifests give it.
pod stop --time 40 "$container" >/dev/null
pod inspect "$container" --format 'stopped with status {{.State.ExitCode}}'

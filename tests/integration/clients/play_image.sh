#!/usr/bin/env bash
# Starts the container image of an archive, adds the demo's document, asks the demo's question and prints the answer. Then kills each
# process, waits until another one has taken its place, asks again, and stops all in order.
#
#   play_image.sh run|small|standard ARCHIVE WORK TG DOCUMENT QUESTION
#
# `run` starts the image by itself, `small` and `standard` as the pods of these overlays of deploy/k8s: one pod, or one of each service
# over a RabbitMQ node; all with a read-only file system, those that keep something with a volume. It needs root. The containers' network
# has a loopback device only, and all that is theirs is below WORK.
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
broker=() containers=() ports=()
finish() {
  local status=$? one
  if [ "$status" != 0 ]; then
    for one in $(pod ps --all --quiet); do pod logs --tail 200 "$one" >&2 || true; done
    tail -n 50 "$work/rabbitmq.out" >&2 2>/dev/null || true
  fi
  pod pod rm --force --all >/dev/null || true
  pod rm --force --time 5 --all >/dev/null || true
  # The server's own process, which the script that started it outlives.
  [ ! -s "$work/rabbitmq.pid" ] || kill -9 "$(cat "$work/rabbitmq.pid")" || true
  if [ ${#broker[@]} != 0 ]; then
    kill -9 "${broker[@]}" 2>/dev/null || true
    wait "${broker[@]}" 2>/dev/null || true
  fi
  exit "$status"
}
trap finish EXIT

until_there() {
  local _
  for _ in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  echo "play_image: not in time: $*" >&2
  exit 1
}

# A node of its own, on the usual port: nobody else is on this network. Its port mapper would outlive it, so it is not left to start one.
start_broker() {
  mkdir "$work/home" "$work/rabbitmq"
  echo '[].' >"$work/rabbitmq/plugins"
  echo 'log.console = false' >"$work/rabbitmq/rabbitmq.conf"
  export HOME=$work/home ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_NODENAME=played@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
  export RABBITMQ_MNESIA_BASE=$work/rabbitmq/data RABBITMQ_LOG_BASE=$work/rabbitmq/log RABBITMQ_PID_FILE=$work/rabbitmq.pid
  export RABBITMQ_ENABLED_PLUGINS_FILE=$work/rabbitmq/plugins RABBITMQ_CONFIG_FILE=$work/rabbitmq/rabbitmq.conf
  export RABBITMQ_CONF_ENV_FILE=/dev/null
  export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} +sbwt none"
  epmd -address 127.0.0.1 >/dev/null 2>&1 &
  broker+=("$!")
  /usr/lib/rabbitmq/bin/rabbitmq-server >"$work/rabbitmq.out" 2>&1 &
  broker+=("$!")
  # Its listener opens last.
  until_there bash -c 'exec 3<>/dev/tcp/127.0.0.1/5672'
}

image=$(pod load --quiet --input "$archive" | sed -n 's/^Loaded image: *//p')
keeper=data
case $what in
  run) pod run --detach --network host --read-only --volume data:/data --restart always "$image" >/dev/null ;;
  small | standard)
    broker_of=()
    if [ "$what" = standard ]; then
      # Its volume has the code for the first login.
      keeper=data-iam
      start_broker
      broker_of=("amqp://guest:guest@127.0.0.1:5672/%2f" "$work/secret.json")
    fi
    kubectl kustomize "deploy/k8s/overlays/$what" |
      .cache/kubernetes/bin/python3 tests/integration/clients/played_manifests.py ${broker_of[@]+"${broker_of[@]}"} >"$work/played.yaml"
    [ "$what" = small ] || pod secret create threadgraph-broker "$work/secret.json" >/dev/null
    pod kube play --network host "$work/played.yaml" >/dev/null
    ;;
  *) echo "play_image: run, small or standard" >&2; exit 1 ;;
esac

# Without those that podman holds a pod's network with. A process that is replaced stays in its container.
for container in $(pod ps --all --quiet); do
  case $(pod inspect "$container" --format '{{.ImageName}}') in *podman-pause*) continue ;; esac
  containers+=("$container")
  ports+=("$(pod inspect "$container" --format '{{range .Config.Env}}{{println .}}{{end}}' | sed -n 's/^THREADGRAPH_REPORT__LISTEN=.*://p')")
done
is_ready() {
  local port
  for port in "${ports[@]}"; do curl -fs "http://127.0.0.1:$port/health/ready" || return; done
  curl -fs http://127.0.0.1:8888/health/ready
}
until_there is_ready
code=$(pod volume inspect "$keeper" --format '{{.Mountpoint}}')/threadgraph/bootstrap-code
until_there test -s "$code"

export TRUSTGRAPH_URL=http://127.0.0.1:8888/ XDG_CONFIG_HOME=/nowhere
TRUSTGRAPH_TOKEN=$("$tg" bootstrap-iam --code "$(cat "$code")")
export TRUSTGRAPH_TOKEN
"$tg" add "$document" --wait
"$tg" ask "$question"

pod inspect "${containers[@]}" --format 'read-only {{.HostConfig.ReadonlyRootfs}}, user {{.Config.User}}' | sort -u
process() { pod inspect "$container" --format '{{.State.Pid}}'; }
is_replaced() {
  local now
  now=$(process)
  [ "$now" != 0 ] && [ "$now" != "$killed" ]
}
for container in "${containers[@]}"; do
  killed=$(process)
  kill -9 "$killed"
  until_there is_replaced
  until_there is_ready
done
echo "${#containers[@]} killed, and each replaced by another process"
"$tg" ask "$question"

# As long as the manifests give them.
pod stop --time 40 "${containers[@]}" >/dev/null
pod inspect "${containers[@]}" --format 'stopped with status {{.State.ExitCode}}' | sort -u

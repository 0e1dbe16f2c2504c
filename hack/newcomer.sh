#!/usr/bin/env bash
# Does what a newcomer does on a machine with an empty cache and only the wheel: install, write a
# project, run its tests and its drill, develop it against a shoot, write its chart and its image.
# Prints the seconds of each command, and fails at the first that fails, at more than 12 commands, or
# after more than 10 minutes.
#
#     make newcomer        # builds the wheel first; the first build of the cluster is included
set -euo pipefail

wheels=$(cd "${1:?usage: hack/newcomer.sh FOLDER_WITH_THE_WHEEL}" && pwd)
work=$(mktemp -d)
developing=
trap '[[ -z $developing ]] || { kill "$developing" && wait "$developing"; } || true; rm -rf "$work"' EXIT
unset KUBECONFIG PYTHONHOME PYTHONPATH PYTEST_ADDOPTS VIRTUAL_ENV
export XDG_CACHE_HOME="$work/cache"                   # of pip, Go and the embedded cluster
export PIP_FIND_LINKS="$wheels ${PIP_FIND_LINKS:-}"   # the wheel is not yet on an index
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=newcomer
export GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=newcomer@example.org
cd "$work"

commands=0
began=$SECONDS

step() {
    local start=$SECONDS
    commands=$((commands + 1))
    if ! "$@" > "$work/log" 2>&1; then
        cat "$work/log"
        echo "failed: $*" >&2
        exit 1
    fi
    printf '%5d s  %s\n' $((SECONDS - start)) "$*"
}

develop() {
    actuator dev acme:extension > "$work/dev.log" 2>&1 &
    developing=$!
    for _ in {1..120}; do
        grep -q "actuator shoot create" "$work/dev.log" && return
        kill -0 "$developing" || break
        sleep 0.5
    done
    cat "$work/dev.log"
    return 1
}

step python3 -m venv .venv
export PATH="$work/.venv/bin:$PATH"
step pip install --quiet 'gardener-actuator[new]'
step actuator new acme
cd acme
step pip install --quiet --editable '.[dev]'
step pytest -q
step actuator drill acme.rehearsal:AcmeRehearsal --shoots 3
step develop # actuator dev acme:extension, in a second terminal
step actuator shoot create local
step actuator explain shoot--dev--local
step actuator shoot force-delete local
step actuator chart acme:extension --name acme --output chart
step actuator image acme:extension --output .

grep -q '^ENTRYPOINT \["actuator"\]' Dockerfile
test -s chart/acme/Chart.yaml
echo "$commands commands, $((SECONDS - began)) s"
((commands <= 12 && SECONDS - began <= 600))

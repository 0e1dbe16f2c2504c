#!/usr/bin/env bash
# Does what a newcomer with a realistic provider does, on a machine with an empty cache and only the
# wheel: the files and commands of docs/realistic-provider.md and docs/in-shoot.md, then chart and
# image. Prints the seconds of each command, and the lines that the newcomer writes. Fails at the
# first command that fails, and after more than 30 minutes.
#
#     make newcomer                # builds the wheel first; the first build of the cluster is included
#     make newcomer ARGS=landscape # also the commands for a real Gardener, which need 5 GiB of memory
#
# NEWCOMER_CACHE names a cache that exists, so that nothing is built; the minutes are then not those
# of a newcomer.
set -euo pipefail

wheels=$(cd "${1:?usage: hack/newcomer.sh FOLDER_WITH_THE_WHEEL [landscape]}" && pwd)
docs=$(cd "$(dirname "$0")/../docs" && pwd)
work=$(mktemp -d)
running=()
stop() { for process in "${running[@]}"; do kill "$process" && wait "$process"; done || true; }
trap 'stop; rm -rf "$work"' EXIT
unset KUBECONFIG PYTHONHOME PYTHONPATH PYTEST_ADDOPTS VIRTUAL_ENV
export XDG_CACHE_HOME="${NEWCOMER_CACHE:-$work/cache}" # of pip, Go and the embedded cluster
export PIP_FIND_LINKS="$wheels ${PIP_FIND_LINKS:-}"   # the wheel is not yet on an index
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=newcomer
export GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=newcomer@example.org
cd "$work"
commands=0
lines=0

step() {
    local start=$SECONDS
    commands=$((commands + 1))
    if ! "$@" > "$work/log" 2>&1; then
        cat "$work/log" "$work"/background-* || true
        echo "failed: $*" >&2
        exit 1
    fi
    printf '%5d s  %s\n' $((SECONDS - start)) "$*"
}

write_files() { # PAGE: the files that it says to create
    local file='' line
    while IFS= read -r line; do
        if [[ $line =~ ^('Create'|'Append to')' `'(.+)'`:'$ ]]; then
            file=${BASH_REMATCH[2]}
            [[ ${BASH_REMATCH[1]} != Create ]] || : > "$file"
        elif [[ $line == '```' ]]; then
            file=
        elif [[ -n $file && $line != '```'* && -n $line$(< "$file") ]]; then
            printf '%s\n' "$line" >> "$file"
            [[ -z $line ]] || lines=$((lines + 1))
        fi
    done < "$docs/$1"
}

commands_of() { # PAGE SECTION: its commands, without those that do not end
    awk -v section="## $2" '
        /^## / { wanted = ($0 == section) }
        /^```/ { inside = !inside; shell = inside && ($0 == "```" || $0 == "```sh"); next }
        wanted && shell' "$docs/$1" | grep -vE '^(python -m polar.server|actuator dev) '
}

follow() { # PAGE SECTION
    local line
    while IFS= read -r line; do
        eval "step $line"
    done < <(commands_of "$@")
}

background() { # TEXT COMMAND...: start it, and wait until it prints the text
    local text=$1 log="$work/background-${#running[@]}"
    shift
    "$@" > "$log" 2>&1 &
    running+=($!)
    for _ in {1..240}; do
        grep -q "$text" "$log" && return
        kill -0 "${running[-1]}" || break
        sleep 0.5
    done
    cat "$log"
    return 1
}

step python3 -m venv .venv
export PATH="$work/.venv/bin:$PATH"
step pip install --quiet 'gardener-actuator[new]'
step actuator new polar --kind Infrastructure --kind Worker --kind DNSRecord
cd polar
step pip install --quiet --editable '.[dev]'
step pytest -q

write_files realistic-provider.md
for section in 'Test it' 'Rehearse force deletions' 'Kill the manager at each call'; do
    follow realistic-provider.md "$section"
done
write_files in-shoot.md
step ruff check
step mypy
follow in-shoot.md 'Test it with an API server of the shoot'
follow in-shoot.md 'Rehearse the migration'

background serving python -u -m polar.server 8017
step background 'actuator shoot create' actuator dev polar:extension --with-shoot-api
follow realistic-provider.md 'Develop it'
stop
running=()
step actuator chart polar:extension --name polar --output chart
step actuator image polar:extension --output .
grep -q '^ENTRYPOINT \["actuator"\]' Dockerfile
test -s chart/polar/Chart.yaml
minutes=$((SECONDS / 60))
if [[ ${2:-} == landscape ]]; then
    follow realistic-provider.md 'Try it with a real Gardener'
fi
echo "$commands commands, $lines written lines, $minutes minutes without the landscape"
((minutes < 30))

# What scripts share that need programs of the system and ports for them; to be sourced.

# install <package…>: packages start what they install unless they are told not to.
install() {
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        echo "$* is missing: install it to run this" >&2
        return 1
    fi
    local policy=/usr/sbin/policy-rc.d status=0
    [[ -e $policy ]] && policy="" || printf '#!/bin/sh\nexit 101\n' >"$policy"
    [[ -z $policy ]] || chmod +x "$policy"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$@" >/dev/null; } || status=$?
    [[ -z $policy ]] || rm -f "$policy"
    return "$status"
}

answers() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Prints a port that nobody listens on, below those that connections are given.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 10000))
        answers "$port" || break
    done
    echo "$port"
}

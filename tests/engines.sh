# Starts PostgreSQL and Redis for tests, from a folder of their own on free ports of this machine; to be sourced after
# packages.sh. No service of the system is touched. Whoever sources it sets `home` to an empty folder and calls `stop_engines` at the end.

# Prints where the programs of the newest PostgreSQL are.
postgres_programs() {
    local folder found=""
    for folder in /usr/lib/postgresql/*/bin; do
        [[ -x $folder/initdb ]] && found=$folder
    done
    echo "$found"
}

# PostgreSQL does not run as root.
as_postgres=()
[[ $(id -u) != 0 ]] || as_postgres=(runuser -u postgres --)

# install_engines <engine…>: `postgres`, `redis`, and what their scripts need.
install_engines() {
    local missing=() engine
    for engine; do
        case $engine in
            postgres) [[ -n $(postgres_programs) ]] || missing+=(postgresql) ;;
            redis) command -v redis-server >/dev/null && command -v redis-cli >/dev/null || missing+=(redis-server redis-tools) ;;
        esac
    done
    command -v ps >/dev/null || missing+=(procps)
    [[ ${#missing[@]} == 0 ]] || install "${missing[@]}"
}

# Writes a script that kills a server and waits until it is gone: write_kill <file> <lines that set `all`>
write_kill() {
    cat >"$1" <<SCRIPT
$2
kill -9 \$all 2>/dev/null
# A dead process may stay in the list as a zombie.
for pid in \$all; do
    while [[ \$(ps -o stat= -p "\$pid") == [^Z]* ]]; do sleep 0.02; done
done
SCRIPT
}

# Starts PostgreSQL, with TLS if there is a certificate in $home/tls. Sets BOWLINE_STORE_POSTGRES. $home/kill-postgres,
# start-postgres and restart-postgres are scripts.
start_postgres() {
    local bin
    bin=$(postgres_programs) postgres_port=$(free_port)
    [[ $(id -u) != 0 ]] || chown postgres "$home"
    [[ $(id -u) != 0 || ! -e $home/tls ]] || chown -R postgres "$home/tls"
    (cd "$home" && "${as_postgres[@]}" "$bin/initdb" -D "$home/data" -U ann -A trust -E UTF8 --locale=C -N >/dev/null)
    # What was acknowledged survives, whichever way it ends: fsync and synchronous_commit are on.
    cat >>"$home/data/postgresql.conf" <<CONF
port = $postgres_port
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
CONF
    [[ ! -e $home/tls ]] || cat >>"$home/data/postgresql.conf" <<CONF
ssl = on
ssl_cert_file = '$home/tls/server.pem'
ssl_key_file = '$home/tls/server.key'
CONF
    # The whole server dies at once, as with a failure of its machine: no child is left to finish a commit.
    write_kill "$home/kill-postgres" "pid=\$(head -n 1 '$home/data/postmaster.pid')
kill -STOP \"\$pid\"
all=\"\$(ps -o pid= --ppid \"\$pid\") \$pid\"
rm -f '$home/data/postmaster.pid'"
    echo "cd '$home' && ${as_postgres[*]} '$bin/pg_ctl' -s -w -D data -l log start" >"$home/start-postgres"
    echo "bash '$home/kill-postgres' && bash '$home/start-postgres'" >"$home/restart-postgres"
    bash "$home/start-postgres"
    export BOWLINE_STORE_POSTGRES=postgres://ann@127.0.0.1:$postgres_port/postgres
}

# Starts Redis, with TLS on $redis_tls_port if there is a certificate in $home/tls. Sets BOWLINE_STORE_REDIS. $home/kill-redis,
# start-redis and restart-redis are scripts.
start_redis() {
    redis_port=$(free_port) redis_tls_port=$(free_port)
    mkdir "$home/redis"
    cat >"$home/redis.conf" <<CONF
bind 127.0.0.1
port $redis_port
dir $home/redis
daemonize yes
pidfile $home/redis.pid
logfile $home/redis.log
appendonly yes
appendfsync always
save ""
CONF
    [[ ! -e $home/tls ]] || cat >>"$home/redis.conf" <<CONF
tls-port $redis_tls_port
tls-cert-file $home/tls/server.pem
tls-key-file $home/tls/server.key
tls-ca-cert-file $home/tls/root.pem
tls-auth-clients no
CONF
    write_kill "$home/kill-redis" "all=\$(<'$home/redis.pid')
rm -f '$home/redis.pid'"
    cat >"$home/start-redis" <<SCRIPT
redis-server "$home/redis.conf"
until [[ \$(redis-cli -p $redis_port ping 2>/dev/null) == PONG ]]; do sleep 0.02; done
SCRIPT
    echo "bash '$home/kill-redis' && bash '$home/start-redis'" >"$home/restart-redis"
    bash "$home/start-redis"
    export BOWLINE_STORE_REDIS=redis://127.0.0.1:$redis_port
}

# Kills what was started here.
stop_engines() {
    [[ ! -e $home/data/postmaster.pid ]] || bash "$home/kill-postgres" || true
    local pid
    for pid in "$home"/redis*.pid; do
        [[ ! -e $pid ]] || kill -9 "$(<"$pid")" 2>/dev/null || true
    done
}

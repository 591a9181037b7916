# Installs the packages that are named as arguments, by apt-get, and makes sure that none of their services runs.
set -eu
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    # Debian asks this program before it starts a service; 101 forbids it.
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM HUP
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
# Somebody else may be installing at the same time.
apt-get -o DPkg::Lock::Timeout=300 update
apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
if command -v systemctl >/dev/null 2>&1; then
    # Not now and not at the next boot. Only what was just installed: a service that was there before is somebody's.
    for package in "$@"; do
        case $package in
        postgresql) services=postgresql ;;
        rabbitmq-server) services='rabbitmq-server epmd.service epmd.socket' ;;
        pgbouncer) services=pgbouncer ;;
        redis-server) services=redis-server ;;
        *) continue ;;
        esac
        for service in $services; do
            systemctl disable "$service" >/dev/null 2>&1 || true
            if [ -d /run/systemd/system ]; then systemctl stop "$service" >/dev/null 2>&1 || true; fi
        done
    done
fi

#!/bin/sh
# Install Debian's packages that tests use, if we may: bubblewrap (confinement of shell commands), PgBouncer, the reverse
# proxies nginx and Caddy, and prometheus for promtool, which tests the alert rules. Without them the tests that need them
# are skipped, and say so.
set -eu

missing=""
command -v bwrap >/dev/null || missing="$missing bubblewrap"
[ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || missing="$missing pgbouncer"
[ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || missing="$missing nginx-light"
command -v caddy >/dev/null || missing="$missing caddy"
command -v promtool >/dev/null || missing="$missing prometheus"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "Tests that need$missing are skipped." >&2
  exit 0
fi
echo "Installing$missing for the tests" >&2
export DEBIAN_FRONTEND=noninteractive
# A service that a package would start must not run here.
printf '#!/bin/sh\nexit 101\n' >/tmp/policy-rc.d.$$ && chmod +x /tmp/policy-rc.d.$$
had_policy=""
[ -e /usr/sbin/policy-rc.d ] && had_policy=1 || mv /tmp/policy-rc.d.$$ /usr/sbin/policy-rc.d
{
  apt-get -qq update
  # shellcheck disable=SC2086  (a list of packages)
  apt-get -qq install -y --no-install-recommends $missing
} >/dev/null 2>&1 || echo "$missing could not be installed; the tests that need them are skipped." >&2
[ -n "$had_policy" ] || rm -f /usr/sbin/policy-rc.d
rm -f /tmp/policy-rc.d.$$

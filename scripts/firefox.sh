#!/bin/sh
# Print the path of Firefox for the tests of push messages and of every page in a second browser. If there is none and
# we may, install it: as root, with apt-get (Debian). Otherwise print instructions and fail.
set -eu

find_one() {
  if [ -n "${WAKEFUL_TEST_FIREFOX:-}" ]; then
    echo "$WAKEFUL_TEST_FIREFOX"
    return
  fi
  for name in firefox-esr firefox; do
    command -v "$name" && return
  done
  return 1
}

if find_one; then exit 0; fi

how="Install Firefox (on Debian: apt-get install firefox-esr), or name one with WAKEFUL_TEST_FIREFOX=/path/to/firefox."
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "There is no Firefox. $how" >&2
  exit 1
fi
echo "Installing Firefox for tests/web/test_firefox.py" >&2
export DEBIAN_FRONTEND=noninteractive
{
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends firefox-esr
} >/dev/null 2>&1 || true
find_one || { echo "Firefox could not be installed. $how" >&2; exit 1; }

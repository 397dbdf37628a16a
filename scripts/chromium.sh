#!/bin/sh
# Print the path of the browser for tests, bench and screenshots. If there is none and we may, install it: as root,
# with apt-get (Debian). Otherwise print instructions and fail.
set -eu

find_one() {
  if [ -n "${WAKEFUL_TEST_CHROMIUM:-}" ]; then
    echo "$WAKEFUL_TEST_CHROMIUM"
    return
  fi
  # The headless shell is the same browser without windows, and twice as fast.
  for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    command -v "$name" && return
  done
  return 1
}

if find_one; then exit 0; fi

how="Install Chromium (on Debian: apt-get install chromium-headless-shell), or name one with WAKEFUL_TEST_CHROMIUM=/path/to/chromium."
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "There is no browser. $how" >&2
  exit 1
fi
echo "Installing Chromium for the tests of the page" >&2
export DEBIAN_FRONTEND=noninteractive
{
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends chromium-headless-shell ||
    apt-get -qq install -y --no-install-recommends chromium
} >/dev/null 2>&1 || true
find_one || { echo "Chromium could not be installed. $how" >&2; exit 1; }

#!/bin/sh
# Install the browser that the tests in tests/browser drive, where we may: as root, with apt-get (Debian).
# Elsewhere say how, and let the other tests go on; those in tests/browser fail with the same words.
set -eu

found() {
  [ -n "${WAKEFUL_TEST_CHROMIUM:-}" ] && return
  for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    command -v "$name" && return
  done
  return 1
} >/dev/null

if found; then exit 0; fi

how="install Chromium (on Debian: apt-get install chromium-headless-shell), or name one with WAKEFUL_TEST_CHROMIUM=/path/to/chromium"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "There is no browser for the tests in tests/browser: $how." >&2
  exit 0
fi
echo "Installing Chromium for the tests in tests/browser"
export DEBIAN_FRONTEND=noninteractive
{
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends chromium-headless-shell ||
    apt-get -qq install -y --no-install-recommends chromium
} >/dev/null 2>&1 || true
found || echo "Chromium could not be installed: $how." >&2

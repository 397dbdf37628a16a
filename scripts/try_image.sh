#!/bin/sh
# Build the image from the Dockerfile as it is, on a machine without Docker and without a registry, into a folder:
#
#     scripts/try_image.sh FOLDER    FOLDER/rootfs is the image's file system, FOLDER/image.json its configuration
#
# Debian's base is made with debootstrap, and gets the name in FROM. tests/deploy/test_image.py runs the
# result. Needs root, buildah and debootstrap; packages are downloaded as this machine's pip, npm and TLS are configured.
set -eu

[ $# -eq 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
for program in buildah debootstrap; do
  command -v $program >/dev/null || { echo "$program is missing: apt-get install buildah debootstrap" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "debootstrap and buildah need root here." >&2; exit 1; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

base=$(sed -n 's/^FROM \([^ ]*\)$/\1/p' Dockerfile)
suite=${base#*:}
suite=${suite%-slim}
buildah() { command buildah --root "$folder/storage" --runroot "$folder/run" --storage-driver vfs "$@"; }

if ! buildah inspect --type image "docker.io/library/$base" >/dev/null 2>&1; then
  echo "Making $base with debootstrap"
  debootstrap --variant=minbase "$suite" "$folder/base" >"$folder/debootstrap.log" ||
    { tail -n 20 "$folder/debootstrap.log" >&2; exit 1; }
  # Without documentation, translations and package lists, as the official image.
  for path in doc man locale info; do
    echo "path-exclude /usr/share/$path/*" >>"$folder/base/etc/dpkg/dpkg.cfg.d/slim"
  done
  rm -rf "$folder/base/var/cache/apt/archives" "$folder/base/var/lib/apt/lists" "$folder/base/usr/share/doc" \
    "$folder/base/usr/share/man" "$folder/base/usr/share/locale" "$folder/base/usr/share/info"
  mkdir -p "$folder/base/var/lib/apt/lists/partial" "$folder/base/var/cache/apt/archives/partial"
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$folder/base" / >/dev/null
  buildah commit --quiet --rm "$container" "docker.io/library/$base" >/dev/null
  rm -rf "$folder/base"
fi

# This machine's own settings for downloads, for the time of the build alone.
cat /usr/etc/npmrc /etc/npmrc "$HOME/.npmrc" >"$folder/npmrc" 2>/dev/null || true
set -- --volume "$folder/npmrc:/root/.npmrc:ro"
[ ! -e /etc/pip.conf ] || set -- "$@" --volume /etc/pip.conf:/etc/pip.conf:ro
[ -z "${SSL_CERT_FILE:-}" ] || set -- "$@" --volume "$SSL_CERT_FILE:/usr/local/share/ca-certificates/machine.crt:ro"

echo "Building the image"
buildah build --quiet --isolation=chroot --pull-never --format docker "$@" --tag wakeful . >"$folder/build.log" 2>&1 ||
  { tail -n 40 "$folder/build.log" >&2; exit 1; }

buildah inspect --type image wakeful >"$folder/inspect.json"
python3 -c 'import json, sys; json.dump(json.load(sys.stdin)["Docker"]["config"], sys.stdout, indent=1)' \
  <"$folder/inspect.json" >"$folder/image.json"
container=$(buildah from --pull-never wakeful)
rm -rf "$folder/rootfs"
cp -a "$(buildah mount "$container")" "$folder/rootfs"
buildah rm "$container" >/dev/null
echo "$(du -sm --apparent-size "$folder/rootfs" | cut -f1) MB in $folder/rootfs"

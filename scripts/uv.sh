#!/bin/sh
# Install the locked uv into .venv, with any pip that this machine has.
# Debian and Ubuntu ship Python without pip; it is in a package that can be unpacked without root.
set -eu

python=.venv/bin/python
base=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n '/^uv==/,/[^\\]$/p' requirements.lock >"$work/uv.txt"
[ -s "$work/uv.txt" ] || { echo "requirements.lock has no line for uv; restore the file." >&2; exit 1; }

unpack_debian_pip() {
    (cd "$work" && apt-get download python3-pip-whl && dpkg-deb -x python3-pip-whl_*.deb .) >/dev/null 2>&1
}

# Installing a pip with ensurepip takes longer than installing uv, so one that is there goes first, from 22.3 on.
if "$base" -m pip --python "$python" --version >/dev/null 2>&1; then
    set -- "$base" -m pip --python "$python"
elif "$python" -m ensurepip >/dev/null 2>&1; then
    set -- "$python" -m pip
elif unpack_debian_pip; then
    # A wheel is an archive that Python can run; the pattern has to end at the file itself.
    set -- "$work"/usr/share/python-wheels/pip-*.whl
    set -- "$python" "$1/pip"
else
    echo "$base has no pip, and none could be fetched. Install one, then run make again:" >&2
    echo "    sudo apt install python3-venv" >&2
    exit 1
fi
"$@" install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement "$work/uv.txt"
# uv takes pip's place: 24 MB less.
.venv/bin/uv pip uninstall --quiet --python "$python" pip setuptools 2>/dev/null || true

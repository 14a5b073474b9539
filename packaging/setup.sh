#!/bin/sh
# Makes .venv in the checkout and installs Burnish with its window, both engines and the development tools into it.
# On Debian and Ubuntu it also installs the system libraries that Qt needs, where it may. Run by make.
set -eu
cd "$(dirname "$0")/.."

# Shared library and the Debian package that brings it.
LIBRARIES="
libEGL.so.1:libegl1 libGL.so.1:libgl1 libxkbcommon.so.0:libxkbcommon0 libxkbcommon-x11.so.0:libxkbcommon-x11-0
libxcb-cursor.so.0:libxcb-cursor0 libxcb-icccm.so.4:libxcb-icccm4 libxcb-image.so.0:libxcb-image0
libxcb-keysyms.so.1:libxcb-keysyms1 libxcb-render-util.so.0:libxcb-render-util0 libxcb-xkb.so.1:libxcb-xkb1
libxcb-shape.so.0:libxcb-shape0 libdbus-1.so.3:libdbus-1-3 libfontconfig.so.1:libfontconfig1
libglib-2.0.so.0:libglib2.0-0
"

say() { printf '%s\n' "$*" >&2; }

is_debian() { [ "$(uname -s)" = Linux ] && command -v apt-get >/dev/null 2>&1; }

# How to become root without asking for a password: nothing, sudo -n, or "no".
root_prefix() {
    if [ "$(id -u)" = 0 ]; then echo ""
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then echo "sudo -n"
    else echo no
    fi
}

# install_packages PURPOSE PACKAGE…: true if they are there afterwards. Says the command where it may not run it.
install_packages() {
    purpose=$1; shift
    root=$(root_prefix)
    if [ "$root" = no ]; then
        say "$purpose needs system packages that are missing here. Install them with:"
        say "  sudo apt-get install --no-install-recommends $*"
        return 1
    fi
    say "Installing system packages for $purpose: $*"
    quick="-qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30"
    # shellcheck disable=SC2086
    if $root env DEBIAN_FRONTEND=noninteractive apt-get $quick update >&2 &&
        $root env DEBIAN_FRONTEND=noninteractive apt-get $quick install -y --no-install-recommends "$@" >&2
    then return 0; fi
    say "That did not work. Try it yourself later:  sudo apt-get install --no-install-recommends $*"
    return 1
}

missing_libraries() {
    known=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null) || return 0
    for pair in $LIBRARIES; do
        case "$known" in *"${pair%%:*} "*) ;; *) printf '%s ' "${pair##*:}" ;; esac
    done
}

find_python() {
    for candidate in ${PYTHON3:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

make_environment() {
    if [ -L .venv ]; then
        # Making it anew would empty the environment of another checkout.
        say ".venv is a link, and is left as it is. Run the programs in .venv/bin without make, or remove the link."
        exit 1
    fi
    python=$(find_python)
    if [ -z "$python" ]; then
        say "Burnish needs Python 3.11 or newer, and there is none here. Install it (Debian 12, Ubuntu 24.04 or newer:"
        say "  sudo apt-get install python3 python3-venv"
        say "), or name one:  make PYTHON3=/path/to/python3.12 …"
        exit 1
    fi
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        # Debian ships venv apart, under the name of the very version.
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if ! { is_debian && install_packages "Python's venv" "$package"; }; then
            say "This Python cannot make virtual environments: install its venv module ($package on Debian and Ubuntu)."
            exit 1
        fi
    fi
    say "Making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

install_burnish() {
    quiet=-q
    if [ -t 2 ]; then quiet=; fi
    say "Installing Burnish and what it needs into .venv; the first time this takes some minutes"
    # shellcheck disable=SC2086
    if ! .venv/bin/python -m pip install $quiet --disable-pip-version-check -e '.[torch,quantized,onnx,search,jax,window,dev]' >&2; then
        say "The packages could not be installed; what pip says above tells why. Once that is mended, run make again."
        exit 1
    fi
}

# An environment that was made in another place, or whose Python is gone, is made anew.
belongs_here() { .venv/bin/pip --version >/dev/null 2>&1 && grep -q "$PWD/.venv/bin/python" .venv/bin/pip; }
belongs_here || make_environment
if is_debian; then
    packages=$(missing_libraries)
    # Without these the window does not open, but everything else works: no reason to stop.
    # shellcheck disable=SC2086
    [ -z "$packages" ] || install_packages "the window" $packages || true
fi
install_burnish
say "Ready."

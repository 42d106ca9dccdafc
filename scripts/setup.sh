#!/usr/bin/env bash
# Installs what a fresh Debian machine lacks to build Takt and to test it against other vendors.
#
#   scripts/setup.sh [build|peers|all]      (default: all)
#
# build  a C compiler and Rust (by rustup, only if there is no cargo)
# peers  CycloneDDS 0.10 and Fast DDS 2.9 (apt), CycloneDDS 11 (pip, in a virtual environment of its
#        own), tshark, and the tools for network namespaces
#
# Safe to run again: what is there is left alone, and nothing is downloaded then. Exit code 1 if
# Takt itself cannot be built, or if an installation was possible and failed; a machine where we may
# not install packages is told what is missing and goes on.
set -euo pipefail

readonly CYCLONEDDS_PYTHON=11.0.1
readonly VENV="${XDG_CACHE_HOME:-$HOME/.cache}/takt/venv"
readonly BUILD_PACKAGES=(build-essential curl ca-certificates)
readonly PEER_PACKAGES=(
    cyclonedds-dev cyclonedds-tools
    libfastrtps-dev libfastcdr-dev libasio-dev libtinyxml2-dev
    tshark iproute2 nftables python3 python3-venv
)

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export DEBIAN_FRONTEND=noninteractive

say() { printf 'setup: %s\n' "$*"; }
warn() { printf 'setup: warning: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Sets `as_root` to what makes a command run as root, or fails.
find_root() {
    as_root=()
    [ "$(id -u)" -eq 0 ] && return 0
    command -v sudo >/dev/null || return 1
    as_root=(sudo)
    if sudo -n true 2>/dev/null; then return 0; fi
    [ -t 0 ] || return 1 # Nobody there to type a password.
    say "sudo may ask for your password"
}

# apt_install PACKAGE...: installs those that are missing.
apt_install() {
    local missing=() package
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    if ! command -v apt-get >/dev/null; then
        warn "no apt-get here; install by hand what corresponds to: ${missing[*]}"
        return 0
    fi
    if ! find_root; then
        warn "neither root nor sudo, so not installed: ${missing[*]}"
        return 0
    fi
    if ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then
        say "fetching the package lists (apt-get update)"
        "${as_root[@]}" apt-get update -qq || warn "apt-get update fails; trying with the lists there are"
    fi
    say "installing ${#missing[@]} packages: ${missing[*]}"
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
        apt-get install -y -q --no-install-recommends "${missing[@]}")
    if ! "${install[@]}"; then
        say "once more, with fresh package lists"
        "${as_root[@]}" apt-get update -qq
        "${install[@]}" || die "apt-get cannot install: ${missing[*]}"
    fi
}

install_rust() {
    PATH="$PATH:$HOME/.cargo/bin"
    if ! command -v cargo >/dev/null; then
        say "no cargo: installing Rust with rustup (into $HOME/.cargo)"
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
    fi
    # With rustup, the first call installs the toolchain that rust-toolchain.toml names.
    cargo --version >/dev/null || die "cargo does not run; see rust-toolchain.toml for the version"
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(rustc --version | cut -d' ' -f2)
    if [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n1)" != "$wanted" ]; then
        die "rustc is $found, Takt needs $wanted: install it with rustup, or take the old one off PATH"
    fi
    say "rustc $found"
}

setup_build() {
    apt_install "${BUILD_PACKAGES[@]}"
    command -v cc >/dev/null || die "no C compiler (cc): Rust cannot link without it"
    install_rust
}

has_cyclonedds_python() {
    "$VENV/bin/python" - "$CYCLONEDDS_PYTHON" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version
import cyclonedds
sys.exit(version("cyclonedds") != sys.argv[1])
PYTHON
}

install_cyclonedds_python() {
    if has_cyclonedds_python; then return 0; fi
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -c 'import ensurepip, venv' 2>/dev/null; then break; fi
        python=
    done
    if [ -z "$python" ]; then
        warn "no python3 with venv, so no CycloneDDS $CYCLONEDDS_PYTHON"
        return 0
    fi
    say "installing CycloneDDS $CYCLONEDDS_PYTHON with pip into $VENV"
    "$python" -m venv --clear "$VENV"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "cyclonedds==$CYCLONEDDS_PYTHON"
    has_cyclonedds_python || die "CycloneDDS $CYCLONEDDS_PYTHON is installed in $VENV but does not load"
}

setup_peers() {
    apt_install "${PEER_PACKAGES[@]}"
    install_cyclonedds_python
    local package state=()
    for package in cyclonedds-dev libfastrtps-dev tshark; do
        state+=("$package $(dpkg-query -W -f='${Version}' "$package" 2>/dev/null || echo missing)")
    done
    has_cyclonedds_python && state+=("cyclonedds (pip) $CYCLONEDDS_PYTHON")
    say "peers: $(printf '%s; ' "${state[@]}" | sed 's/; $//')"
}

case "${1:-all}" in
    build) setup_build ;;
    peers) setup_peers ;;
    all) setup_build; setup_peers ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '/^set /d'; exit 2 ;;
esac

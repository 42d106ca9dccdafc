#!/usr/bin/env bash
# Installs what a fresh Debian machine lacks to build Takt and to test it against other vendors.
#
#   scripts/setup.sh [build|demo|peers|bench-peers|nightly|all]      (default: all, without bench-peers and nightly)
#
# build  a C compiler, OpenSSL (DDS Security) and Rust (by rustup, only if there is no cargo)
# demo   what `make demo` needs: Open vSwitch, CycloneDDS 11
# peers  CycloneDDS 0.10 and Fast DDS 2.9 (apt), CycloneDDS 11 and Fast DDS 3.2 (pip, in a virtual environment below
#        ~/.cache/takt), the packet vectors of os-ken (pip), the programs of lab/interop/peers, DiscoDNC with a JDK
#        and Maven (Maven Central), tshark, iperf3, sshd (not started),
#        Open vSwitch, the tools for network namespaces, DPDK, Valgrind
# bench-peers  the systems that `takt bench` compares Takt with (lab/peers): CycloneDDS 0.10 with iceoryx, Fast DDS 2.9 and
#        ZeroMQ (apt), CycloneDDS 11 and Fast DDS 3.2 (pip), and the agents of lab/peers
# nightly  the nightly compiler of `make fuzz`, `fuzz-coverage` and `sanitize`, with Miri, llvm-tools and
#        the sources of the standard library (by rustup), and cargo-fuzz
#
# Safe to run again: what is there is left alone, and nothing is downloaded then. Exit code 1 if
# Takt itself cannot be built, or if an installation was possible and failed; a machine where we may
# not install packages is told what is missing and goes on.
set -euo pipefail

readonly BUILD_PACKAGES=(build-essential curl ca-certificates libssl-dev pkg-config openssl)
readonly PEER_PACKAGES=(
    cyclonedds-dev cyclonedds-tools
    libfastrtps-dev libfastcdr-dev
    tshark iproute2 nftables iperf3 python3 python3-venv
    dpdk-dev pkg-config ethtool iputils-ping
    openvswitch-common openvswitch-switch
    etcd-server etcd-client
    openssh-server openssh-client
    chromium chromium-driver
    softhsm2
    valgrind
)
readonly BENCH_PEER_PACKAGES=(
    build-essential python3 python3-venv
    cyclonedds-dev cyclonedds-tools iceoryx
    libfastrtps-dev libfastcdr-dev
    libzmq3-dev
    omniidl omniorb-idl libomniorb4-dev gsoap libgsoap-dev mosquitto libmosquitto-dev default-jdk-headless maven
)
readonly ORACLE_PACKAGES=(default-jdk-headless maven)
# Headers and compiler of Debian's CycloneDDS build the program that uses the one of PyPI.
readonly DEMO_PACKAGES=(
    cyclonedds-dev cyclonedds-tools python3 python3-venv
    openvswitch-common openvswitch-switch
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
    [ -t 0 ] || return 1 # Without a terminal no password can be typed.
    say "sudo may ask for your password"
    sudo -v
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
    # tshark asks whether everyone may capture; the answer here is no.
    echo 'wireshark-common wireshark-common/install-setuid boolean false' |
        "${as_root[@]}" debconf-set-selections 2>/dev/null || true
    say "installing ${#missing[@]} packages: ${missing[*]}"
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
        apt-get install -y -q --no-install-recommends "${missing[@]}")
    local policy=/usr/sbin/policy-rc.d own_policy=
    if [ ! -e "$policy" ]; then
        # No service is started: tests start switches of their own, in namespaces.
        own_policy=$policy
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod 755 "$policy"
    fi
    local failed=
    if ! "${install[@]}"; then
        say "once more, with fresh package lists"
        "${as_root[@]}" apt-get update -qq
        "${install[@]}" || failed=1
    fi
    [ -z "$own_policy" ] || "${as_root[@]}" rm -f "$own_policy"
    [ -z "$failed" ] || die "apt-get cannot install: ${missing[*]}"
    local unit service
    for unit in openvswitch-switch:openvswitch-switch etcd-server:etcd openssh-server:ssh; do
        service=${unit#*:}
        if [[ " ${missing[*]} " == *" ${unit%:*} "* ]] && command -v systemctl >/dev/null; then
            "${as_root[@]}" systemctl disable --quiet "$service" 2>/dev/null ||
                warn "the service $service is enabled and starts with the machine; nothing here needs it"
        fi
    done
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

# The programs that tests and the demo talk to; their Makefile also makes the virtual environment.
build_peers() {
    say "building the peer programs (lab/interop/peers, incremental)"
    make --no-print-directory --keep-going -C lab/interop/peers ||
        warn "not all peers could be built: tests that need the others will say so"
}

# A network calculus tool of others, which tests of takt-calculus compare bounds with.
fetch_oracle() {
    if ! command -v mvn >/dev/null || ! command -v javac >/dev/null; then
        apt_install "${ORACLE_PACKAGES[@]}"
    fi
    make --no-print-directory -C crates/timing/takt-calculus/tests/oracle ||
        warn "DiscoDNC cannot be fetched: tests that need it will say so"
}

setup_demo() {
    apt_install "${DEMO_PACKAGES[@]}"
    make --no-print-directory -C lab/interop/peers cyclone11 ||
        die "the program of CycloneDDS cannot be built; the demo needs it"
}

setup_peers() {
    apt_install "${PEER_PACKAGES[@]}"
    build_peers
    fetch_oracle
    local package state=()
    for package in cyclonedds-dev libfastrtps-dev tshark openvswitch-common dpdk-dev; do
        state+=("$package $(dpkg-query -W -f='${Version}' "$package" 2>/dev/null || echo missing)")
    done
    say "peers: $(printf '%s; ' "${state[@]}" | sed 's/; $//')"
}

setup_bench_peers() {
    apt_install "${BENCH_PEER_PACKAGES[@]}"
    say "building the agents of the benchmark (lab/peers, incremental)"
    make --no-print-directory -C lab/peers
}

setup_nightly() {
    command -v rustup >/dev/null || die "no rustup: install a nightly compiler with miri, rust-src and llvm-tools by hand"
    local component installed missing=()
    installed=$(rustup component list --toolchain nightly --installed 2>/dev/null || true)
    for component in miri rust-src llvm-tools; do
        grep -q "^$component" <<<"$installed" || missing+=(--component "$component")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        say "installing the nightly compiler and:${missing[*]/--component/}"
        rustup toolchain install nightly --profile minimal "${missing[@]}"
    fi
    if ! command -v cargo-fuzz >/dev/null; then
        say "installing cargo-fuzz"
        cargo install --locked cargo-fuzz
    fi
}

case "${1:-all}" in
    build) setup_build ;;
    nightly) setup_nightly ;;
    demo) setup_build; setup_demo ;;
    peers) setup_peers ;;
    bench-peers) setup_bench_peers ;;
    all) setup_build; setup_peers ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '/^set /d'; exit 2 ;;
esac

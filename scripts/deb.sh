#!/usr/bin/env bash
# Builds target/debian/takt_VERSION_ARCH.deb: the stripped command, its completions and manual
# pages, and systemd units for durability, the discovery server and host settings at boot. No unit
# is enabled by the installation.
#
#   scripts/deb.sh
#
# Needs dpkg-deb, and dpkg-shlibdeps of dpkg-dev for the dependencies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --locked --release -p takt-cli
readonly VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
readonly ARCH=$(dpkg --print-architecture)
readonly ROOT=target/debian/takt
rm -rf target/debian
mkdir -p "$ROOT"/DEBIAN "$ROOT"/usr/bin "$ROOT"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d,man/man1,doc/takt} \
    "$ROOT"/usr/lib/systemd/{system,user} "$ROOT"/etc/default

strip -o "$ROOT/usr/bin/takt" target/release/takt
takt="$ROOT/usr/bin/takt"
"$takt" completions bash > "$ROOT/usr/share/bash-completion/completions/takt"
"$takt" completions zsh > "$ROOT/usr/share/zsh/vendor-completions/_takt"
"$takt" completions fish > "$ROOT/usr/share/fish/vendor_completions.d/takt.fish"
"$takt" man "$ROOT/usr/share/man/man1"
gzip -9n "$ROOT"/usr/share/man/man1/*.1
cp packaging/systemd/*.service "$ROOT/usr/lib/systemd/system/"
cp packaging/systemd/user/*.service "$ROOT/usr/lib/systemd/user/"
cp packaging/default "$ROOT/etc/default/takt"
cp LICENSE "$ROOT/usr/share/doc/takt/copyright"

# dpkg-shlibdeps reads the file debian/control of the directory where it runs.
mkdir -p target/debian/source/debian
printf 'Source: takt\n\nPackage: takt\nArchitecture: any\n' > target/debian/source/debian/control
depends=$(cd target/debian/source && dpkg-shlibdeps -O "../../../$takt" | sed -n 's/^shlibs:Depends=//p')

printf '/etc/default/takt\n' > "$ROOT/DEBIAN/conffiles"
cat > "$ROOT/DEBIAN/control" <<CONTROL
Package: takt
Version: $VERSION
Architecture: $ARCH
Maintainer: Takt <takt@localhost>
Depends: $depends
Section: net
Priority: optional
Description: real-time DDS: command line and services
 Lists, prints and measures topics of any DDS vendor, computes worst-case
 timing bounds, tunes a host for real-time traffic, controls OpenFlow
 switches, and runs the durability service and the discovery server.
CONTROL
dpkg-deb --build --root-owner-group "$ROOT" "target/debian/takt_${VERSION}_$ARCH.deb"

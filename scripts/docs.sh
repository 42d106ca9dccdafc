#!/usr/bin/env bash
# Builds the documentation as a site with search: target/docs/index.html. The pages are those of the
# repository; a link that leads nowhere is an error of `cargo xtask tidy`, not of this script.
#
#   scripts/docs.sh
#
# Installs mdbook and mdbook-mermaid with cargo, if they are missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly SITE=target/docs-source
for program in mdbook mdbook-mermaid; do
    command -v "$program" > /dev/null || cargo install --locked "$program"
done

# A copy, so that links to files outside docs/ lead somewhere in the site, too.
rm -rf "$SITE" target/docs
mkdir -p "$SITE/src"
git ls-files -z -- '*.md' docs examples/src packaging LICENSE | grep -zv '\.gz$' \
    | xargs -0 cp --parents -t "$SITE/src"
sed 's#](#](docs/#; s#](docs/\.\./#](#' docs/SUMMARY.md > "$SITE/src/SUMMARY.md"
rm "$SITE/src/docs/SUMMARY.md"
cat > "$SITE/book.toml" <<'TOML'
[book]
title = "Takt"
description = "A DDS in Rust whose timing is a contract"
language = "en"

[build]
build-dir = "../docs"
create-missing = false

[output.html]
no-section-label = true

[output.html.search]
limit-results = 30
TOML
mdbook-mermaid install "$SITE" > /dev/null
mdbook build "$SITE"
printf 'docs: %s/target/docs/index.html\n' "$PWD"

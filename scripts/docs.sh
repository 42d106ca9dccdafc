#!/usr/bin/env bash
# Builds the documentation as a site with search: target/docs/index.html. The pages are those of the
# repository; a link that does not resolve is an error of `cargo xtask tidy`, not of this script.
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
git ls-files -z -- '*.md' '*.rs' '*.toml' docs examples packaging LICENSE lab xtask .cargo .ci scripts | grep -zv '\.gz$' \
    | xargs -0 cp --parents -t "$SITE/src"
{
    printf '[Takt](README.md)\n'
    for page in ARCHITECTURE CONTRIBUTING CHANGELOG SECURITY; do
        printf '[%s](%s.md)\n' "$page" "$page"
    done
    sed 's#](#](docs/#; /^# Summary/d' docs/SUMMARY.md
    printf '\n# Directories\n\n'
    git ls-files -- '*/README.md' ':!docs' | sed 's#\(.*\)/README.md#- [\1](&)#'
} > "$SITE/src/SUMMARY.md"
rm "$SITE/src/docs/SUMMARY.md"
# mdbook names the page of README.md index.html, and the contents are in the sidebar.
find "$SITE/src" -name '*.md' ! -name SUMMARY.md -exec \
    sed -i 's#README\.md)#index.md)#g; s#\[SUMMARY.md\](SUMMARY.md) lists#The sidebar lists#' {} +
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

//! Writes `docs/qos.md` and `docs/settings.md` from the tables of policies and settings.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::write(docs.join("qos.md"), takt_config::reference::policies())?;
    std::fs::write(docs.join("settings.md"), takt_config::reference::settings())
}

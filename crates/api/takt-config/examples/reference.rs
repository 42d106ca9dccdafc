//! Writes `docs/reference/qos.md` and `docs/reference/settings.md` from the tables of policies and
//! settings.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    std::fs::write(docs.join("reference/qos.md"), takt_config::reference::policies())?;
    std::fs::write(docs.join("reference/settings.md"), takt_config::reference::settings())
}

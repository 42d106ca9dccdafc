//! Probes of a writer to best-effort readers: of a changed route, and of the path MTU.

use super::path_probe::PathProbe;
use super::route_change::RouteChange;
use alloc::boxed::Box;

#[derive(Debug, Default)]
pub(crate) struct Probes {
    /// Pending change of the route, while best-effort readers are probed.
    pub(super) route_change: Option<Box<RouteChange>>,
    /// Path MTU probe; present with best-effort readers on a path that may have a smaller MTU.
    pub(super) path: Option<PathProbe>,
    pub(super) is_queued: bool,
}

//! Routes of the API with access control, and their responses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::controller_client::Source;
use super::http::{Method, Request, Response};
use super::registrations::{self, Permission};
use super::token::Token;
use super::what_if::{WhatIf, WhatIfError};
use super::{ApiCounters, metrics};
use crate::registration::Owner;
use crate::view::{Cluster, Decision, Isolation, View};

const JSON: &str = "application/json";

/// OpenAPI document of the API.
pub const OPENAPI: &str = include_str!("openapi.json");

/// Path, type and content of the parts of the web page.
const PAGE: [(&str, &str, &str); 4] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
];

/// Access control of a listener.
#[derive(Debug, Clone)]
pub enum Access {
    /// Everybody with access to the socket: its permissions in the file system decide.
    Reachable,
    /// Clients with a token; with `is_open`, others may read.
    Token {
        /// Token for reading and what-if; `None` if none exists.
        token: Option<Token>,
        /// Tokens that also permit changes of registrations, with their names.
        writers: Vec<(String, Token)>,
        /// Whether reading needs no token.
        is_open: bool,
    },
}

/// Handles the requests of the API.
#[derive(Debug, Clone)]
pub struct Service {
    /// Source of the state.
    pub source: Arc<dyn Source>,
    /// Access control.
    pub access: Access,
    /// Counters of the API.
    pub counters: Arc<ApiCounters>,
}

/// Returns an error response.
pub(super) fn error(status: u16, what: &str) -> Response {
    Response::new(status, JSON, format!("{}\n", json!({ "error": what })))
}

pub(super) fn content(status: u16, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(mut body) => {
            body.push(b'\n');
            Response::new(status, JSON, body)
        }
        Err(_) => error(503, "the state cannot be written as JSON"),
    }
}

/// Reports whether a Host header field names this machine by address or as `localhost`. This
/// prevents DNS rebinding from a foreign domain.
fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok()
}

impl Service {
    /// Returns the response to a request.
    pub fn answer(&self, request: &Request) -> Response {
        if let Access::Token { .. } = self.access
            && !request.host.as_deref().is_some_and(is_local)
        {
            return error(421, "the header field Host must be an address of this machine, or localhost");
        }
        if let Some((_, kind, text)) = PAGE.iter().find(|(path, ..)| *path == request.path) {
            // The page contains no state.
            return self.readable(request, || Response::new(200, kind, *text));
        }
        if request.path == "/openapi.json" {
            return self.readable(request, || Response::new(200, JSON, OPENAPI));
        }
        let permission = match self.permission(request) {
            Ok(permission) => permission,
            Err(refusal) => return refusal,
        };
        if let Some(resource) = registrations::resource(&request.path) {
            return self.registrations(&permission, request, resource);
        }
        match request.path.as_str() {
            "/v1/what-if" if request.method == Method::Post => self.what_if(&request.body),
            "/v1/what-if" => error(405, "what-if requires POST"),
            "/v1/status" => self.of_view(request, |view| content(200, &self.status(view))),
            "/v1/state" => self.of_view(request, |view| content(200, view)),
            "/v1/topology" => self.of_view(request, |view| {
                content(200, &json!({ "switches": view.switches, "links": view.links, "hosts": view.hosts }))
            }),
            "/v1/flows" => self.of_view(request, |view| {
                let flows: Vec<_> = view.pairs.iter().filter(|pair| pair.contract.is_some()).collect();
                content(200, &json!({ "flows": flows }))
            }),
            "/v1/log" => self.of_view(request, |view| content(200, &json!({ "log": view.log }))),
            "/metrics" => self.of_view(request, |view| {
                Response::new(200, metrics::CONTENT_TYPE, metrics::render(view, &self.counters))
            }),
            "/v1/certificate" => self.readable(request, || self.certificate()),
            _ => error(404, "unknown path; /openapi.json lists the paths"),
        }
    }

    /// Returns the permission of a client. Every token is compared, so that the time does not
    /// reveal which one is similar.
    fn permission(&self, request: &Request) -> Result<Permission, Response> {
        let Access::Token { token, writers, is_open } = &self.access else {
            return Ok(Permission::Write(Owner::Operator));
        };
        let authorization = request.authorization.as_deref();
        let reads = token.as_ref().zip(authorization).is_some_and(|(token, authorization)| token.is_in(authorization));
        let is_authorized =
            |(_, token): &&(String, Token)| authorization.is_some_and(|authorization| token.is_in(authorization));
        let writer = writers.iter().filter(is_authorized).fold(None, |_, (name, _)| Some(Owner::Token(name.clone())));
        // A wrong token is refused even where none is needed. What-if always needs a token, because
        // it is expensive.
        let is_reading = matches!(request.method, Method::Get | Method::Head);
        match writer {
            Some(owner) => Ok(Permission::Write(owner)),
            None if reads || *is_open && authorization.is_none() && is_reading => Ok(Permission::Read),
            None => {
                ApiCounters::count(&self.counters.unauthorized);
                Err(error(401, "the header field Authorization must be Bearer and the token"))
            }
        }
    }

    pub(super) fn readable(&self, request: &Request, response: impl FnOnce() -> Response) -> Response {
        let is_reading = matches!(request.method, Method::Get | Method::Head);
        if is_reading { response() } else { error(405, "this path requires GET") }
    }

    pub(super) fn of_view(&self, request: &Request, response: impl FnOnce(&View) -> Response) -> Response {
        self.readable(request, || match self.source.view() {
            Ok(view) => response(&view),
            Err(why) => error(503, &why.to_string()),
        })
    }

    fn what_if(&self, body: &[u8]) -> Response {
        let query: WhatIf = match serde_json::from_slice(body) {
            Ok(query) => query,
            Err(why) => return error(400, &format!("the body is not a what-if request: {why}")),
        };
        match query.decide(self.source.as_ref()) {
            Ok(verdict) => content(200, &verdict),
            Err(WhatIfError::Invalid(what)) => error(400, what),
            Err(WhatIfError::NoNetwork) => error(
                404,
                "the controller has no description of the network and admits nothing; start it with --network",
            ),
            Err(WhatIfError::NoAnswer) => error(503, "the controller does not answer"),
        }
    }

    fn certificate(&self) -> Response {
        match self.source.trial() {
            Ok(Some(trial)) => content(200, &trial.certificate()),
            Ok(None) => error(404, "the controller has no description of the network and admits nothing"),
            Err(why) => error(503, &why.to_string()),
        }
    }

    fn status(&self, view: &View) -> Status {
        let count = |decision| view.pairs.iter().filter(|pair| pair.decision == decision).count();
        let connected = view.switches.iter().filter(|switch| switch.state != crate::view::SwitchState::Disconnected);
        Status {
            uptime_ns: view.time_ns,
            is_settled: view.is_settled,
            topology_version: view.topology_version,
            network_version: view.network_version,
            cluster: view.cluster.clone(),
            isolation: view.isolation.clone(),
            switches: view.switches.len(),
            connected_switches: connected.count(),
            links: view.links.len(),
            hosts: view.hosts.len(),
            participants: view.participants.len(),
            endpoints: view.endpoints.len(),
            pairs: Decision::ALL.iter().map(|decision| (decision.name().to_owned(), count(*decision))).collect(),
            counters: view.counters.clone(),
            api: self.counters.values().into_iter().map(|(name, _, value)| (name.to_owned(), value)).collect(),
        }
    }
}

/// State of the controller in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Status {
    /// Time since the start of the controller.
    pub uptime_ns: u64,
    /// Whether every connected switch has its wanted tables.
    pub is_settled: bool,
    /// Version of the topology, incremented by changes of switches, port roles and links.
    pub topology_version: u64,
    /// Version of the network that admission uses; absent without a description of the network.
    pub network_version: Option<u64>,
    /// Whether this controller is the leader; absent without a cluster.
    pub cluster: Option<Cluster>,
    /// Isolation policy; absent if it cannot deny anything.
    pub isolation: Option<Isolation>,
    /// Number of switches.
    pub switches: usize,
    /// Number of connected switches.
    pub connected_switches: usize,
    /// Number of links between switches.
    pub links: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of participants.
    pub participants: usize,
    /// Number of writers and readers.
    pub endpoints: usize,
    /// Number of pairs by decision.
    pub pairs: std::collections::BTreeMap<String, usize>,
    /// Counters since the start, by the names of [`COUNTERS`](crate::view::COUNTERS).
    pub counters: std::collections::BTreeMap<String, u64>,
    /// Counters of the API.
    pub api: std::collections::BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn host_is_local_by_address_and_as_localhost() {
        for host in ["localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["", "example.org", "example.org:8080", "localhost.example.org", "127.0.0.1.example.org:80"] {
            assert!(!is_local(host), "{host}");
        }
    }
}

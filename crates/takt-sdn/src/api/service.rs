//! The routes of the API: who may ask for what, and the answers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::http::{Method, Request, Response};
use super::questions::Source;
use super::registrations::{self, Permission};
use super::token::Token;
use super::what_if::{WhatIf, WhatIfError};
use super::{ApiCounters, metrics};
use crate::registration::Owner;
use crate::view::{Cluster, Decision, Isolation, View};

const JSON: &str = "application/json";

/// The document that describes the API.
pub const OPENAPI: &str = include_str!("openapi.json");

/// The web page: path, type and content of its parts.
const PAGE: [(&str, &str, &str); 4] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
];

/// Who may ask on a listener.
#[derive(Debug, Clone)]
pub enum Access {
    /// Whoever reaches it: a socket in the file system, which has permissions.
    Reachable,
    /// Whoever has the token; with `is_open`, others may read.
    Token {
        /// The token for reading and what-if; none if reading needs none.
        token: Option<Token>,
        /// Tokens that may also change registrations, with their names.
        writers: Vec<(String, Token)>,
        /// Whether reading needs none.
        is_open: bool,
    },
}

/// What answers requests.
#[derive(Debug, Clone)]
pub struct Service {
    /// Where the state comes from.
    pub source: Arc<dyn Source>,
    /// Who may ask.
    pub access: Access,
    /// What is counted.
    pub counters: Arc<ApiCounters>,
}

/// An error as the API words it.
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

/// Whether a field Host names this machine by address or as localhost, so that no name of a foreign domain leads a browser here.
fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok()
}

impl Service {
    /// Answers a request.
    pub fn answer(&self, request: &Request) -> Response {
        if let Access::Token { .. } = self.access
            && !request.host.as_deref().is_some_and(is_local)
        {
            return error(421, "the field Host is an address of this machine, or localhost");
        }
        if let Some((_, kind, text)) = PAGE.iter().find(|(path, ..)| *path == request.path) {
            // The page has no state in it.
            return self.readable(request, || Response::new(200, kind, *text));
        }
        if request.path == "/openapi.json" {
            return self.readable(request, || Response::new(200, JSON, OPENAPI));
        }
        let permission = match self.permission(request) {
            Ok(permission) => permission,
            Err(refusal) => return refusal,
        };
        if let Some(place) = registrations::place(&request.path) {
            return self.registrations(&permission, request, place);
        }
        match request.path.as_str() {
            "/v1/what-if" if request.method == Method::Post => self.what_if(&request.body),
            "/v1/what-if" => error(405, "what-if is asked by POST"),
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
            _ => error(404, "nothing is here; /openapi.json says what is"),
        }
    }

    /// What a caller may do. Every token is compared, so that the time does not tell which one is close.
    fn permission(&self, request: &Request) -> Result<Permission, Response> {
        let Access::Token { token, writers, is_open } = &self.access else {
            return Ok(Permission::Write(Owner::Operator));
        };
        let given = request.authorization.as_deref();
        let reads = token.as_ref().zip(given).is_some_and(|(token, given)| token.is_in(given));
        let is_given = |(_, token): &&(String, Token)| given.is_some_and(|given| token.is_in(given));
        let writer = writers.iter().filter(is_given).fold(None, |_, (name, _)| Some(Owner::Token(name.clone())));
        // A wrong token is refused, also where none is needed. What-if takes time, so that it always needs one.
        let is_reading = matches!(request.method, Method::Get | Method::Head);
        match writer {
            Some(owner) => Ok(Permission::Write(owner)),
            None if reads || *is_open && given.is_none() && is_reading => Ok(Permission::Read),
            None => {
                ApiCounters::count(&self.counters.unauthorized);
                Err(error(401, "the field Authorization is Bearer and the token"))
            }
        }
    }

    pub(super) fn readable(&self, request: &Request, response: impl FnOnce() -> Response) -> Response {
        let is_reading = matches!(request.method, Method::Get | Method::Head);
        if is_reading { response() } else { error(405, "this is asked by GET") }
    }

    pub(super) fn of_view(&self, request: &Request, response: impl FnOnce(&View) -> Response) -> Response {
        self.readable(request, || match self.source.view() {
            Ok(view) => response(&view),
            Err(why) => error(503, &why.to_string()),
        })
    }

    fn what_if(&self, body: &[u8]) -> Response {
        let asked: WhatIf = match serde_json::from_slice(body) {
            Ok(asked) => asked,
            Err(why) => return error(400, &format!("the body is no what-if: {why}")),
        };
        match asked.decide(self.source.as_ref()) {
            Ok(verdict) => content(200, &verdict),
            Err(WhatIfError::Nonsense(what)) => error(400, what),
            Err(WhatIfError::NoNetwork) => error(
                404,
                "the controller has no description of the network, and admits nothing; start it with --network",
            ),
            Err(WhatIfError::NoAnswer) => error(503, "the controller does not answer"),
        }
    }

    fn certificate(&self) -> Response {
        match self.source.trial() {
            Ok(Some(trial)) => content(200, &trial.certificate()),
            Ok(None) => error(404, "the controller has no description of the network, and admits nothing"),
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

/// The state in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Status {
    /// Since the start of the controller.
    pub uptime_ns: u64,
    /// Whether every connected switch has the tables that it shall have.
    pub is_settled: bool,
    /// Counts the changes of switches, roles of ports and links.
    pub topology_version: u64,
    /// The version of the network that admission has; absent without a description of the network.
    pub network_version: Option<u64>,
    /// Whether this controller leads; absent if it is the only one.
    pub cluster: Option<Cluster>,
    /// The policy of isolation; absent if nothing can be denied.
    pub isolation: Option<Isolation>,
    /// Switches.
    pub switches: usize,
    /// Of these, with a connection.
    pub connected_switches: usize,
    /// Links between switches.
    pub links: usize,
    /// Hosts.
    pub hosts: usize,
    /// Participants.
    pub participants: usize,
    /// Writers and readers.
    pub endpoints: usize,
    /// Pairs by decision.
    pub pairs: std::collections::BTreeMap<String, usize>,
    /// Counts since the start, by the names of [`COUNTERS`](crate::view::COUNTERS).
    pub counters: std::collections::BTreeMap<String, u64>,
    /// What the API counted.
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

//! Tests of registrations over REST and by the control socket: permissions, every status, and the
//! OpenAPI document.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use takt_sdn::admission::Trial;
use takt_sdn::api::ApiCounters;
use takt_sdn::api::control::{Client, ControlError};
use takt_sdn::api::controller_client::{NoAnswer, Registered, Source};
use takt_sdn::api::server::Server;
use takt_sdn::api::service::{Access, OPENAPI, Service};
use takt_sdn::api::token::Token;
use takt_sdn::registration::{Owner, Registration, RegistrationError, RegistrationId};
use takt_sdn::view::{Pair, View};
use takt_testkit::directory::Directory;

use crate::admission::{NETWORK, Site};
use crate::api::{ask, faults};
use crate::fabric::line;
use crate::view::view;

const READER: &str = "0123456789abcdef0123456789abcdef";
const GATEWAY: &str = "1123456789abcdef0123456789abcdef";
const PLANT: &str = "2123456789abcdef0123456789abcdef";

/// Source with the changing state of a site.
struct Live {
    site: Mutex<Site>,
    /// Whether the switches do not answer.
    is_stalled: AtomicBool,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Live")
    }
}

impl Live {
    fn with<T>(&self, act: impl FnOnce(&mut Site) -> T) -> T {
        act(&mut self.site.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Source for Live {
    fn view(&self) -> Result<Arc<View>, NoAnswer> {
        Ok(Arc::new(self.with(|site| view(site))))
    }

    fn trial(&self) -> Result<Option<Trial>, NoAnswer> {
        Ok(self.with(|site| site.fabric.controller.admission().map(|admission| admission.trial())))
    }

    fn register(&self, owner: &Owner, wanted: Registration) -> Result<Result<Registered, RegistrationError>, NoAnswer> {
        let is_stalled = self.is_stalled.load(Ordering::Relaxed);
        Ok(self.with(|site| {
            let now = site.fabric.now;
            let (id, is_new) = site.fabric.controller.register(now, owner, wanted)?;
            if !is_stalled {
                site.run(100);
            }
            let pair = site.fabric.controller.registration_view(id).ok_or(RegistrationError::Unknown)?;
            Ok(Registered { pair, is_new })
        }))
    }

    fn unregister(&self, owner: &Owner, id: RegistrationId) -> Result<Result<Pair, RegistrationError>, NoAnswer> {
        Ok(self.with(|site| {
            let pair = site.fabric.controller.registration_view(id).ok_or(RegistrationError::Unknown)?;
            let now = site.fabric.now;
            site.fabric.controller.unregister(now, owner, id)?;
            site.run(100);
            Ok(pair)
        }))
    }
}

struct Api {
    live: Arc<Live>,
    server: Server,
    address: SocketAddr,
    counters: Arc<ApiCounters>,
    document: Value,
    _directory: Directory,
}

impl Api {
    fn new(test: &str, network: Option<&str>, is_open: bool) -> Self {
        let directory = Directory::new(test);
        let token = |text: &str| {
            let path = directory.write(&text[..8], text);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("the test owns the file");
            Token::load(&path).expect("a token")
        };
        let writers = vec![("gateway".to_owned(), token(GATEWAY)), ("plant".to_owned(), token(PLANT))];
        let access = Access::Token { token: Some(token(READER)), writers, is_open };
        let site = Mutex::new(Site::new(2, &line(2), network));
        let live = Arc::new(Live { site, is_stalled: AtomicBool::new(false) });
        let counters = Arc::new(ApiCounters::default());
        let source = Arc::<Live>::clone(&live);
        let service = Service { source, access, counters: Arc::clone(&counters) };
        let server = Server::tcp("127.0.0.1:0".parse().expect("a valid address"), service).expect("a port is free");
        let address = server.address().expect("the server listens on TCP");
        let document = serde_json::from_str(OPENAPI).expect("JSON");
        Self { live, server, address, counters, document, _directory: directory }
    }

    /// Sends a request with a token, or without one; the response must conform to the OpenAPI
    /// document.
    fn ask(&self, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
        let fields = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let (status, content) = ask(self.address, method, path, &fields, body);
        let value: Value = serde_json::from_str(&content).unwrap_or_else(|error| panic!("{content}: {error}"));
        let described = match path.strip_prefix("/v1/registrations/") {
            Some(_) => "/v1/registrations/{id}",
            None => path,
        };
        let operation = &self.document["paths"][described][method.to_lowercase()];
        let response = &operation["responses"][status.to_string()];
        assert!(response.is_object(), "{method} {path}: the document has no {status}");
        let found = faults(&self.document, &response["content"]["application/json"]["schema"], &value, path);
        assert!(found.is_empty(), "{method} {path}, {status}: {found:#?}");
        (status, value)
    }

    fn register(&self, token: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", "/v1/registrations", token, &body.to_string())
    }

    fn count(&self, name: &str) -> u64 {
        let values = self.counters.values();
        values.iter().find(|(own, ..)| *own == name).map(|(_, _, value)| *value).expect("the counter exists")
    }

    fn registered(&self) -> usize {
        let (status, list) = self.ask("GET", "/v1/registrations", READER, "");
        assert_eq!(status, 200);
        list["registrations"].as_array().map(Vec::len).expect("a list")
    }
}

/// Returns a registration that uses 12 of 20 Mbit/s.
fn camera() -> Value {
    json!({
        "topic": "Camera", "writer": "robot/camera", "reader": "desk/screen", "from": "10.0.0.1", "to": "10.0.0.2",
        "port": 7421, "separation_ns": 5_000_000, "size": 7000, "limit_ns": 100_000_000, "overhead": 0,
    })
}

fn changed(changes: &[(&str, Value)]) -> Value {
    let mut body = camera();
    changes.iter().for_each(|(key, value)| body[*key] = value.clone());
    body
}

#[test]
fn registration_requires_a_write_token() {
    for is_open in [false, true] {
        let api = Api::new("sdn-registration-tokens", Some(NETWORK), is_open);
        let wrong = READER.replace('0', "9");
        for token in ["", wrong.as_str()] {
            assert_eq!(api.register(token, &camera()).0, 401, "{token:?}");
            assert_eq!(api.ask("DELETE", "/v1/registrations/1", token, "").0, 401, "{token:?}");
        }
        assert_eq!(api.count("unauthorized"), 4);
        let (status, content) = api.register(READER, &camera());
        assert!(status == 403 && content["error"].as_str().is_some_and(|what| what.contains("--api-write-token")));
        assert_eq!(api.ask("DELETE", "/v1/registrations/1", READER, "").0, 403);
        assert_eq!(api.count("forbidden"), 2);
        assert_eq!(api.registered(), 0, "nothing was registered");
        assert_eq!(api.register(GATEWAY, &camera()).0, 201);
        assert_eq!(api.registered(), 1);
    }
}

#[test]
fn registration_is_made_renewed_shown_and_removed() {
    let api = Api::new("sdn-registration-life", Some(NETWORK), false);
    let (status, made) = api.register(GATEWAY, &camera());
    assert_eq!(
        (status, &made["decision"], &made["registration"]["state"]),
        (201, &json!("admitted"), &json!("admitted"))
    );
    assert!(made["bound_ns"].as_u64().is_some_and(|bound_ns| bound_ns > 0), "{made}");
    assert_eq!(made["registration"]["owner"], json!("token gateway"));
    let path = format!("/v1/registrations/{}", made["registration"]["id"].as_str().expect("a text"));
    // The same request again: a retry or a replay.
    let (status, again) = api.register(GATEWAY, &camera());
    assert_eq!((status, &again["registration"]["id"]), (200, &made["registration"]["id"]));
    assert_eq!(api.registered(), 1);
    let (status, shown) = api.ask("GET", &path, READER, "");
    assert_eq!((status, &shown["writer"], &shown["topic"]), (200, &json!("robot/camera"), &json!("Camera")));
    let (_, flows) = api.ask("GET", "/v1/flows", READER, "");
    assert_eq!(flows["flows"][0]["registration"]["id"], made["registration"]["id"], "the same id");
    assert_eq!(api.ask("DELETE", &path, PLANT, "").0, 403, "the registration belongs to another token");
    assert_eq!(api.ask("DELETE", &path, GATEWAY, "").0, 200);
    assert_eq!(api.ask("DELETE", &path, GATEWAY, "").0, 404);
    assert_eq!(api.ask("GET", &path, READER, "").0, 404);
    assert_eq!(api.registered(), 0);
}

#[test]
fn refused_registration_is_answered_with_hop_and_remedies() {
    let api = Api::new("sdn-registration-refused", Some(NETWORK), false);
    assert_eq!(api.register(GATEWAY, &camera()).0, 201);
    let lidar = changed(&[("topic", json!("Lidar")), ("from", json!("10.0.0.3")), ("to", json!("10.0.0.4"))]);
    let (status, content) = api.register(GATEWAY, &lidar);
    assert_eq!((status, &content["registration"]["state"]), (201, &json!("refused")));
    assert!(content["binding_hop"].is_object() && content["remedies"]["separation_ns"].is_u64(), "{content}");
    assert!(content["reason"].as_str().is_some_and(|reason| reason.contains("port 1 of switch")), "{content}");
}

#[test]
fn registration_with_pending_entries_is_answered_as_accepted() {
    let api = Api::new("sdn-registration-accepted", Some(NETWORK), false);
    api.live.is_stalled.store(true, Ordering::Relaxed);
    let (status, content) = api.register(GATEWAY, &camera());
    assert_eq!((status, &content["registration"]["state"]), (202, &json!("installing")));
    api.live.with(|site| site.run(100));
    let path = format!("/v1/registrations/{}", content["registration"]["id"].as_str().expect("a text"));
    assert_eq!(api.ask("GET", &path, READER, "").1["registration"]["state"], json!("admitted"));
}

#[test]
fn rejected_registration_is_answered_with_the_reason_and_counted() {
    let api = Api::new("sdn-registration-errors", Some(NETWORK), false);
    api.live.with(|site| {
        site.pair(2, "Lidar", 0);
        site.run(1_000);
    });
    let of_pair = [("from", json!("10.0.0.3")), ("to", json!("10.0.0.4")), ("port", json!(7411))];
    for (body, status, word) in [
        (changed(&[("colour", json!("red"))]), 400, "colour"),
        (changed(&[("size", json!(0))]), 400, "size"),
        (changed(&[("lease_s", json!(1))]), 400, "lease_s"),
        (changed(&[("to", json!("host"))]), 400, "to"),
        (changed(&[("port", json!(7400))]), 409, "discovery"),
        (changed(&of_pair), 409, "belong to pair"),
    ] {
        let (got, content) = api.register(GATEWAY, &body);
        let reason = content["error"].as_str().unwrap_or_default();
        assert!(got == status && (reason.contains(word) || reason.contains("line 1")), "{word}: {got} {reason}");
    }
    assert_eq!((api.count("rejected"), api.registered()), (6, 0));
    assert_eq!(api.ask("GET", "/v1/registrations/x", READER, "").0, 404);
    assert_eq!(api.ask("DELETE", "/v1/registrations/x", GATEWAY, "").0, 404);
    let without = Api::new("sdn-registration-no-network", None, false);
    let (status, content) = without.register(GATEWAY, &camera());
    assert!(status == 404 && content["error"].as_str().is_some_and(|what| what.contains("--network")), "{content}");
}

#[test]
fn flood_of_registrations_is_refused_and_counted() {
    let api = Api::new("sdn-registration-flood", Some(NETWORK), false);
    // No time passes, so the budget of changes is not refilled.
    api.live.is_stalled.store(true, Ordering::Relaxed);
    let statuses = (0..120).map(|n| {
        let other = [("topic", json!(format!("Topic {n}"))), ("from", json!("10.0.0.101"))];
        api.register(GATEWAY, &changed(&other)).0
    });
    let limited = statuses.filter(|status| *status == 429).count();
    assert_eq!(limited, 20, "100 of 120 changes pass at once");
    assert_eq!(api.count("rejected"), limited as u64);
    assert_eq!(api.register(PLANT, &camera()).0, 202, "another token is not held up");
}

#[test]
fn control_socket_registers_for_the_operator() {
    let api = Api::new("sdn-registration-control", Some(NETWORK), false);
    let directory = Directory::new("sdn-registration-socket");
    let path = directory.file("control.sock");
    let source = Arc::<Live>::clone(&api.live);
    let service = Service { source, access: Access::Reachable, counters: Arc::clone(&api.counters) };
    let _server = Server::unix(&path, service).expect("the socket can be created");
    let client = Client::find(Some(&path)).expect("the socket is named");
    let registered = client.post("/v1/registrations", camera().to_string().as_bytes()).expect("accepted");
    let registered: Pair = serde_json::from_slice(&registered).expect("a pair");
    let own = registered.registration.expect("the pair is registered");
    assert_eq!(own.owner, "control socket");
    let path = format!("/v1/registrations/{}", own.id);
    assert_eq!(api.ask("DELETE", &path, GATEWAY, "").0, 403, "a token may not remove it");
    let (_, other) = api.register(GATEWAY, &changed(&[("topic", json!("Joint")), ("port", json!(7422))]));
    client
        .delete(&format!("/v1/registrations/{}", other["registration"]["id"].as_str().expect("a text")))
        .expect("the registration is removed");
    client.delete(&path).expect("the registration is removed");
    assert!(matches!(client.delete(&path), Err(ControlError::Refused(why)) if why.contains("no such registration")));
    assert!(api.server.address().is_some());
}

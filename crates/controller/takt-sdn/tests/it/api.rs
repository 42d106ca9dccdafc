//! Tests of the API: access control, responses, limits, and the control socket.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use serde_json::{Value, json};
use takt_sdn::admission::Trial;
use takt_sdn::api::ApiCounters;
use takt_sdn::api::control::{Client, ControlError};
use takt_sdn::api::controller_client::{NoAnswer, Registered, Source};
use takt_sdn::api::http::{BODY_MAX, HEAD_MAX};
use takt_sdn::api::server::{CONNECTIONS_MAX, Server};
use takt_sdn::api::service::{Access, OPENAPI, Service};
use takt_sdn::api::token::Token;
use takt_sdn::registration::{Owner, Registration, RegistrationError, RegistrationId};
use takt_sdn::view::{COUNTERS, Pair, View};
use takt_testkit::directory::Directory;
use takt_testkit::waiting::LIMIT;

use crate::admission::{NETWORK, Site};
use crate::fabric::line;
use crate::view::view;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Source with the constant state of a site.
#[derive(Debug)]
struct Fixed {
    view: Arc<View>,
    trial: Option<Trial>,
}

impl Source for Fixed {
    fn view(&self) -> Result<Arc<View>, NoAnswer> {
        Ok(Arc::clone(&self.view))
    }

    fn trial(&self) -> Result<Option<Trial>, NoAnswer> {
        Ok(self.trial.clone())
    }

    fn register(&self, _: &Owner, _: Registration) -> Result<Result<Registered, RegistrationError>, NoAnswer> {
        Err(NoAnswer)
    }

    fn unregister(&self, _: &Owner, _: RegistrationId) -> Result<Result<Pair, RegistrationError>, NoAnswer> {
        Err(NoAnswer)
    }
}

fn token(directory: &Directory) -> Token {
    let path = directory.write("token", TOKEN);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("the test owns the file");
    Token::load(&path).expect("a token")
}

/// Creates a site with an admitted pair and a refused one.
fn busy_site() -> Site {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    site.pair(0, "Camera", 0);
    site.run(1_000);
    site.pair(2, "Lidar", 0);
    // The counters of both switches are read twice.
    site.run(5_000);
    site
}

fn service(site: &Site, access: Access) -> Service {
    let trial = site.fabric.controller.admission().map(|admission| admission.trial());
    let source = Arc::new(Fixed { view: Arc::new(view(site)), trial });
    Service { source, access, counters: Arc::new(ApiCounters::default()) }
}

/// Starts a server on loopback, and returns its counters.
fn serve(site: &Site, token: Option<Token>, is_open: bool) -> (Server, SocketAddr, Arc<ApiCounters>) {
    let service = service(site, Access::Token { token, writers: Vec::new(), is_open });
    let counters = Arc::clone(&service.counters);
    let server = Server::tcp("127.0.0.1:0".parse().expect("a valid address"), service).expect("a port is free");
    let address = server.address().expect("the server listens on TCP");
    (server, address, counters)
}

/// Opens a connection with a read timeout.
fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("the peer listens");
    socket.set_read_timeout(Some(LIMIT)).expect("a timeout");
    socket
}

/// Returns the complete response to these octets.
fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut socket = connect(address);
    // The server may have refused before it has read everything.
    let _ = socket.write_all(request).and_then(|()| socket.shutdown(Shutdown::Write));
    let mut response = Vec::new();
    let _ = socket.read_to_end(&mut response);
    String::from_utf8(response).expect("text")
}

/// Splits a response into status and content.
fn parts(response: &str) -> (u16, &str) {
    let (head, content) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {response:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), content)
}

pub fn ask(address: SocketAddr, method: &str, path: &str, fields: &str, body: &str) -> (u16, String) {
    let len = body.len();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {len}\r\n{fields}\r\n{body}");
    let response = raw(address, request.as_bytes());
    let (status, content) = parts(&response);
    (status, content.to_owned())
}

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

fn get(address: SocketAddr, path: &str) -> (u16, String) {
    ask(address, "GET", path, &bearer(), "")
}

fn unauthorized(counters: &ApiCounters) -> u64 {
    counters.values()[1].2
}

#[test]
fn client_without_the_token_is_refused_and_counted() {
    let directory = Directory::new("sdn-api-refused");
    let site = Site::new(1, &[], None);
    let (_server, address, counters) = serve(&site, Some(token(&directory)), false);
    let wrong = format!("Authorization: Bearer {}\r\n", TOKEN.replace('0', "1"));
    for fields in ["", "Authorization: Basic YTpi\r\n", &wrong] {
        for path in ["/v1/status", "/v1/state", "/metrics", "/v1/unknown"] {
            let (status, content) = ask(address, "GET", path, fields, "");
            assert_eq!(status, 401, "{path} with {fields:?}");
            assert!(!content.contains("switches"), "{content}");
        }
    }
    assert_eq!(unauthorized(&counters), 12);
    assert_eq!(get(address, "/v1/status").0, 200);
    assert_eq!(unauthorized(&counters), 12);
}

#[test]
fn reading_without_the_token_requires_open_access() {
    let directory = Directory::new("sdn-api-open");
    let site = busy_site();
    let (_server, address, counters) = serve(&site, Some(token(&directory)), true);
    assert_eq!(ask(address, "GET", "/v1/state", "", "").0, 200);
    let wrong = "Authorization: Bearer wrong\r\n";
    assert_eq!(ask(address, "GET", "/v1/state", wrong, "").0, 401, "a wrong token is refused all the same");
    assert_eq!(ask(address, "POST", "/v1/what-if", "", "{}").0, 401, "what-if needs the token, since it is costly");
    assert_eq!(unauthorized(&counters), 2);
    let (_server, address, _) = serve(&site, None, true);
    assert_eq!(ask(address, "GET", "/v1/state", "", "").0, 200);
    assert_eq!(ask(address, "POST", "/v1/what-if", &bearer(), "{}").0, 401, "no token is configured");
}

#[test]
fn page_is_served_without_the_token_and_loads_nothing_from_elsewhere() {
    let directory = Directory::new("sdn-api-page");
    let site = Site::new(1, &[], None);
    let (_server, address, _) = serve(&site, Some(token(&directory)), false);
    for path in ["/", "/page.js", "/page.css", "/icon.svg"] {
        let response = raw(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes());
        let (status, content) = parts(&response);
        assert_eq!(status, 200);
        assert!(response.contains("Content-Security-Policy: default-src 'none'; script-src 'self';"), "{response}");
        let foreign = content.replace("http://www.w3.org/2000/svg", "").contains("://");
        assert!(!foreign, "{path} names another site");
        assert!(!content.contains("style=") && !content.contains("innerHTML"), "{path} needs a weaker policy");
    }
}

#[test]
fn request_with_a_foreign_host_name_is_refused() {
    let site = Site::new(1, &[], None);
    let (_server, address, _) = serve(&site, None, true);
    for host in ["Host: attacker.example\r\n", "Host: attacker.example:80\r\n", ""] {
        let response = raw(address, format!("GET /v1/state HTTP/1.1\r\n{host}\r\n").as_bytes());
        assert_eq!(parts(&response).0, 421, "{host}");
    }
    let port = address.port();
    let response = raw(address, format!("GET /v1/state HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n").as_bytes());
    assert_eq!(parts(&response).0, 200);
}

#[test]
fn api_listens_only_on_loopback() {
    let site = Site::new(1, &[], None);
    let service = service(&site, Access::Token { token: None, writers: Vec::new(), is_open: true });
    let error = Server::tcp("0.0.0.0:0".parse().expect("a valid address"), service).expect_err("no encryption");
    assert!(error.to_string().contains("loopback"), "{error}");
}

#[test]
fn request_beyond_a_limit_is_refused_and_counted() {
    let site = Site::new(1, &[], None);
    let (_server, address, counters) = serve(&site, None, true);
    let long = "x".repeat(HEAD_MAX);
    let fields = "a: b\r\n".repeat(100);
    let too_long = BODY_MAX + 1;
    let cases = [
        (format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"), 431),
        (format!("GET / HTTP/1.1\r\n{fields}\r\n"), 431),
        (format!("POST /v1/what-if HTTP/1.1\r\nHost: localhost\r\nContent-Length: {too_long}\r\n\r\n"), 413),
        ("POST /v1/what-if HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(), 400),
        ("POST /v1/what-if HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(), 400),
        ("POST /v1/what-if HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 501),
        ("PUT / HTTP/1.1\r\n\r\n".to_owned(), 405),
        ("\x16\x03\x01 no HTTP\r\n\r\n".to_owned(), 400),
    ];
    for (n, (request, status)) in cases.iter().enumerate() {
        assert_eq!(parts(&raw(address, request.as_bytes())).0, *status, "{request:.60}");
        assert_eq!(counters.values()[2].2, n as u64 + 1);
    }
    let half = raw(address, b"");
    assert_eq!(half, "", "the request is incomplete");
}

#[test]
fn late_request_is_refused() {
    let site = Site::new(1, &[], None);
    let (_server, address, _) = serve(&site, None, true);
    let mut socket = connect(address);
    socket.write_all(b"GET / HTTP/1.1\r\nHost: local").expect("the write succeeds");
    let mut response = String::new();
    socket.read_to_string(&mut response).expect("the stream ends");
    assert_eq!(parts(&response).0, 408);
}

#[test]
fn connection_beyond_the_limit_is_closed_and_counted() {
    let site = Site::new(1, &[], None);
    let (_server, address, counters) = serve(&site, None, true);
    // Each has sent a part of a request, so that its thread waits for the rest.
    let waiting: Vec<TcpStream> = (0..CONNECTIONS_MAX)
        .map(|_| {
            let mut socket = connect(address);
            socket.write_all(b"GET").expect("the write succeeds");
            socket
        })
        .collect();
    let mut one_more = connect(address);
    let mut response = Vec::new();
    // The connection may be closed with or without a reset.
    if let Err(error) = one_more.read_to_end(&mut response) {
        assert!(!matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "not closed: {error}");
    }
    assert_eq!(response, b"");
    assert_eq!(counters.values()[3].2, 1);
    drop(waiting);
}

/// Returns the violations of a schema by a value.
pub fn faults(document: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches("#/components/schemas/");
        let referred = &document["components"]["schemas"][name];
        assert!(referred.is_object(), "the document has no schema {name}");
        return faults(document, referred, value, at);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = choices.iter().filter(|choice| faults(document, choice, value, at).is_empty()).count();
        return if fits == 1 { Vec::new() } else { vec![format!("{at}: {fits} choices fit")] };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !types.contains(&actual) {
        return vec![format!("{at}: {actual} instead of {types:?}")];
    }
    let mut found = Vec::new();
    if let (Some(least), Some(number)) = (schema["minimum"].as_i64(), value.as_i64()) {
        found.extend((number < least).then(|| format!("{at}: {number} is below {least}")));
    }
    if let (Some(names), Some(text)) = (schema["enum"].as_array(), value.as_str()) {
        found.extend((!names.iter().any(|name| name == text)).then(|| format!("{at}: {text}")));
    }
    if let Some(all) = value.as_array() {
        let each = all.iter().enumerate();
        found.extend(each.flat_map(|(n, one)| faults(document, &schema["items"], one, &format!("{at}[{n}]"))));
    }
    if let Some(object) = value.as_object() {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        found.extend(required.filter(|name| !object.contains_key(*name)).map(|name| format!("{at}: no {name}")));
        for (name, own) in object {
            let described = &schema["properties"][name];
            let other = &schema["additionalProperties"];
            let path = format!("{at}.{name}");
            match (described.is_object(), other.is_object()) {
                (true, _) => found.extend(faults(document, described, own, &path)),
                (false, true) => found.extend(faults(document, other, own, &path)),
                (false, false) if *other == json!(false) => found.push(format!("{path} is not described")),
                (false, false) => {}
            }
        }
    }
    found
}

#[test]
fn every_path_of_the_openapi_document_answers_by_its_schema() {
    let directory = Directory::new("sdn-api-document");
    let site = busy_site();
    let (_server, address, _) = serve(&site, Some(token(&directory)), false);
    let (status, served) = get(address, "/openapi.json");
    assert_eq!((status, served.as_str()), (200, OPENAPI));
    let document: Value = serde_json::from_str(OPENAPI).expect("JSON");
    let body = json!({ "from": "10.0.0.3", "to": "10.0.0.4", "separation_ns": 5_000_000, "size": 7000, "limit_ns": 1 });
    for (path, operations) in document["paths"].as_object().expect("paths") {
        // Operations on registrations change the state and are tested separately.
        let mut all = operations.as_object().into_iter().flatten();
        let Some((method, operation)) = all.find(|(method, _)| !path.contains("registrations") || *method == "get")
        else {
            continue;
        };
        if path.contains('{') {
            continue;
        }
        let body = if method == "post" { body.to_string() } else { String::new() };
        let response = ask(address, &method.to_uppercase(), path, &bearer(), &body);
        assert_eq!(response.0, 200, "{path}: {}", response.1);
        let Some(schema) = operation["responses"]["200"]["content"].get("application/json") else { continue };
        if path == "/openapi.json" {
            continue;
        }
        let value: Value = serde_json::from_str(&response.1).expect("JSON");
        let found = faults(&document, &schema["schema"], &value, path);
        assert!(found.is_empty(), "{found:#?}");
    }
    let (status, content) = get(address, "/v1/unknown");
    let error: Value = serde_json::from_str(&content).expect("JSON");
    assert_eq!(status, 404);
    assert!(faults(&document, &json!({ "$ref": "#/components/schemas/Error" }), &error, "error").is_empty());
}

#[test]
fn metrics_have_unit_help_and_type_and_the_values_of_the_state() {
    let directory = Directory::new("sdn-api-metrics");
    let site = busy_site();
    let (_server, address, _) = serve(&site, Some(token(&directory)), false);
    let (status, text) = get(address, "/metrics");
    assert_eq!(status, 200);
    let (mut helped, mut typed, mut sampled) = (Vec::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, first, ..] if !first.is_empty() => helped.push(name.to_string()),
            ["#", "TYPE", name, kind] => typed.push((name.to_string(), kind.to_string())),
            _ => {
                let (series, value) = line.rsplit_once(' ').expect("a sample");
                value.parse::<f64>().unwrap_or_else(|error| panic!("{line}: {error}"));
                let name = series.split('{').next().expect("a name").to_owned();
                let last = typed.last().expect("a type comes first");
                assert_eq!((helped.last(), &last.0), (Some(&name), &name), "{line}");
                assert_eq!(last.1 == "counter", name.ends_with("_total"), "{line}");
                sampled.push(name);
            }
        }
    }
    for counter in COUNTERS {
        let name = format!("takt_sdn_{}_total", counter.name);
        assert!(sampled.contains(&name), "{name}");
    }
    for line in [
        "takt_sdn_pairs{decision=\"admitted\"} 1",
        "takt_sdn_pairs{decision=\"refused\"} 1",
        "takt_sdn_switches{state=\"settled\"} 2",
        "takt_sdn_hosts 4",
        "takt_sdn_registrations{state=\"admitted\"} 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in {text}");
    }
    let limit = text.lines().find(|line| line.starts_with("takt_sdn_flow_limit_seconds{topic=\"Camera\""));
    assert!(limit.is_some_and(|line| line.ends_with(" 0.1")), "{limit:?}");
    for (name, labels, value) in [
        ("flow_contract_broken", "topic=\"Camera\"", " 0"),
        ("flow_dropped_frames_total", "kind=\"samples\"", " 0"),
        ("port_sent_ratio", "datapath_id=\"0000000000000001\",port=\"1\"", ""),
        ("port_frames_total", "port=\"1\",direction=\"received\"", ""),
    ] {
        let own = |line: &&str| line.starts_with(&format!("takt_sdn_{name}{{")) && line.contains(labels);
        assert!(text.lines().any(|line| own(&line) && line.ends_with(value)), "{name} {labels}{value} in {text}");
    }
}

fn what_if(address: SocketAddr, query: &Value) -> (u16, Value) {
    let (status, content) = ask(address, "POST", "/v1/what-if", &bearer(), &query.to_string());
    (status, serde_json::from_str(&content).unwrap_or_else(|error| panic!("{content}: {error}")))
}

/// Returns a what-if request with the contract of [`Site::pair`] between two hosts.
fn asked(from: &str, to: &str) -> Value {
    json!({
        "from": from, "to": to, "separation_ns": 5_000_000, "size": 7000, "limit_ns": 100_000_000, "is_reliable": true,
    })
}

#[test]
fn what_if_answers_as_admission_decides_and_changes_nothing() {
    let directory = Directory::new("sdn-api-what-if");
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (_server, address, _) = serve(&site, Some(token(&directory)), false);
    let (status, decision) = what_if(address, &asked("10.0.0.1", "10.0.0.2"));
    assert_eq!((status, &decision["is_admitted"]), (200, &json!(true)), "{decision}");
    assert_eq!(what_if(address, &asked("10.0.0.1", "10.0.0.2")).1, decision, "nothing was registered");
    site.pair(0, "Camera", 0);
    site.run(1_000);
    let now = view(&site);
    assert_eq!(decision["bound_ns"], json!(now.pairs[0].bound_ns));
    assert_eq!(decision["hops"], json!(now.pairs[0].hops));
    let (_server, address, _) = serve(&site, Some(token(&directory)), false);
    let (_, refused) = what_if(address, &asked("10.0.0.3", "10.0.0.4"));
    assert_eq!(refused["is_admitted"], json!(false));
    site.pair(2, "Lidar", 0);
    site.run(1_000);
    let now = view(&site);
    let lidar = now.pairs.iter().find(|pair| pair.topic == "Lidar").expect("the pair matches");
    assert_eq!(refused["binding_hop"], json!(lidar.binding_hop));
    assert_eq!(refused["remedies"], json!(lidar.remedies));
}

#[test]
fn what_if_counts_samples_by_multicast_to_all_readers() {
    let directory = Directory::new("sdn-api-what-if-group");
    let site = Site::new(2, &line(2), Some(NETWORK));
    let (_server, address, _) = serve(&site, Some(token(&directory)), false);
    let with = |size: u64, others: Value| {
        let mut changed = asked("10.0.0.1", "10.0.0.2");
        (changed["size"], changed["group"], changed["others"]) = (json!(size), json!("239.255.0.1:7401"), others);
        what_if(address, &changed)
    };
    let (_, fits) = with(1000, json!(["10.0.0.3", "10.0.0.4"]));
    assert_eq!(fits["is_admitted"], json!(true), "{fits}");
    let alone = what_if(address, &asked("10.0.0.1", "10.0.0.2")).1;
    assert_eq!(alone["is_admitted"], json!(true), "{alone}");
    // Samples to each reader take 12 of 20 Mbit/s, and those to the group the same again.
    let (_, refused) = with(7000, json!(["10.0.0.4"]));
    assert_eq!(refused["is_admitted"], json!(false), "{refused}");
    assert!(refused["binding_hop"].is_object(), "{refused}");
    for (key, value, word) in [
        ("group", json!("10.0.0.7:7401"), "multicast"),
        ("group", json!("[ff02::1]:7401"), "version of IP"),
        ("group", json!(null), "group"),
        ("others", json!(vec!["10.0.0.3"; 65]), "at most"),
    ] {
        let mut changed = asked("10.0.0.1", "10.0.0.2");
        (changed["group"], changed["others"]) = (json!("239.255.0.1:7401"), json!(["10.0.0.3"]));
        changed[key] = value;
        let (status, response) = what_if(address, &changed);
        assert!(status == 400 && response["error"].as_str().is_some_and(|error| error.contains(word)), "{response}");
    }
}

#[test]
fn invalid_what_if_request_is_refused_with_the_reason() {
    let directory = Directory::new("sdn-api-nonsense");
    let site = Site::new(2, &line(2), Some(NETWORK));
    let (_server, address, _) = serve(&site, Some(token(&directory)), false);
    let with = |key: &str, value: Value| {
        let mut changed = asked("10.0.0.1", "10.0.0.2");
        changed[key] = value;
        what_if(address, &changed)
    };
    for (key, value, word) in [
        ("size", json!(0), "above 0"),
        ("limit_ns", json!(-1), "limit_ns"),
        ("from", json!("host"), "from"),
        ("to", json!("fd00::1"), "version of IP"),
        ("colour", json!("red"), "colour"),
    ] {
        let (status, response) = with(key, value);
        let reason = response["error"].as_str().unwrap_or_default();
        assert!(status == 400 && (reason.contains(word) || reason.contains("line 1")), "{key}: {status} {reason}");
    }
    let (status, unknown) = with("to", json!("10.0.0.99"));
    assert_eq!((status, &unknown["is_admitted"]), (200, &json!(false)));
    assert_eq!(unknown["reason"], json!("the host of the reader, 10.0.0.99, is not known"));
    let site = Site::new(2, &line(2), None);
    let (_server, address, _) = serve(&site, Some(token(&directory)), false);
    let (status, response) = what_if(address, &asked("10.0.0.1", "10.0.0.2"));
    assert_eq!(status, 404);
    assert!(response["error"].as_str().is_some_and(|error| error.contains("--network")), "{response}");
}

#[test]
fn control_socket_is_private_and_answers_its_owner() {
    let directory = Directory::new("sdn-api-control");
    let path = directory.file("control.sock");
    let site = busy_site();
    let service = service(&site, Access::Token { token: None, writers: Vec::new(), is_open: false });
    let server = Server::unix(&path, service.clone()).expect("the socket can be created");
    let mode = std::fs::metadata(&path).expect("the file was created").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 1, "nothing else is left");
    let client = Client::find(Some(&path)).expect("the socket is named");
    let state: View = serde_json::from_slice(&client.get("/v1/state").expect("an answer")).expect("a view");
    assert_eq!(state, view(&site));
    let error = Server::unix(&path, service.clone()).expect_err("another server listens there");
    assert!(error.to_string().contains("another controller"), "{error}");
    assert!(matches!(client.get("/v1/unknown"), Err(ControlError::Refused(why)) if why.contains("openapi")));
    drop(server);
    assert!(!path.exists());
    assert!(matches!(client.get("/v1/state"), Err(ControlError::Socket { .. })));
}

#[test]
fn control_socket_of_a_killed_controller_is_replaced_and_other_files_are_not() {
    let directory = Directory::new("sdn-api-stale");
    let site = Site::new(1, &[], None);
    let service = service(&site, Access::Reachable);
    let path = directory.file("control.sock");
    drop(UnixListener::bind(&path).expect("the socket can be created"));
    assert!(path.exists(), "the file outlives its owner");
    let server = Server::unix(&path, service.clone()).expect("no server listens there");
    assert!(Client::find(Some(&path)).expect("the socket is named").get("/v1/status").is_ok());
    drop(server);
    std::fs::write(&path, "text").expect("written");
    assert!(Server::unix(&path, service).is_err());
    assert_eq!(std::fs::read_to_string(&path).expect("the file exists"), "text");
}

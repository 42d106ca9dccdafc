//! The web page in a headless Chromium, driven by ChromeDriver (WebDriver, W3C Recommendation of 2018).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};
use takt_sdn::admission::Trial;
use takt_sdn::api::ApiCounters;
use takt_sdn::api::questions::{NoAnswer, Registered, Source};
use takt_sdn::api::server::Server;
use takt_sdn::api::service::{Access, Service};
use takt_sdn::registration::{Owner, Registration, RegistrationError, RegistrationId};
use takt_sdn::view::{Pair, View};
use takt_testkit::waiting::{LIMIT, lines, receive};
use takt_testkit::{not_run, require};

use crate::admission::{NETWORK, Site};
use crate::fabric::line;
use crate::registration::registration;
use crate::view::view;

const ARROW_RIGHT: &str = "\u{e014}";
const ENTER: &str = "\u{e007}";

/// What the page is shown: a state, or nothing.
#[derive(Debug)]
struct Shown {
    view: Mutex<Option<Arc<View>>>,
    trial: Option<Trial>,
}

impl Source for Shown {
    fn view(&self) -> Result<Arc<View>, NoAnswer> {
        self.view.lock().expect("no test panicked with it").clone().ok_or(NoAnswer)
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

fn shown(site: &Site) -> Arc<Shown> {
    let trial = site.fabric.controller.admission().map(|admission| admission.trial());
    Arc::new(Shown { view: Mutex::new(Some(Arc::new(view(site)))), trial })
}

fn serve(source: Arc<Shown>, is_open: bool) -> (Server, SocketAddr) {
    let access = Access::Token { token: None, writers: Vec::new(), is_open };
    let service = Service { source, access, counters: Arc::new(ApiCounters::default()) };
    let server = Server::tcp("127.0.0.1:0".parse().expect("an address"), service).expect("a port is free");
    let address = server.address().expect("it is TCP");
    (server, address)
}

/// A Chromium with one window, which ends with this.
struct Browser {
    driver: Child,
    at: SocketAddr,
    session: String,
    profile: PathBuf,
}

impl Browser {
    fn start(name: &str, flags: &[&str]) -> Self {
        let mut driver =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn().expect("it is there");
        let lines = lines(driver.stdout.take().expect("it is piped"));
        let port = |line: &str| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse::<u16>().ok();
        let mut said = std::iter::repeat_with(|| receive("chromedriver says where it listens", &lines));
        let at = SocketAddr::from(([127, 0, 0, 1], said.find_map(|line| port(&line)).expect("lines have no end")));
        let profile = std::env::temp_dir().join(format!("takt-sdn-page-{}-{name}", std::process::id()));
        let own = format!("--user-data-dir={}", profile.display());
        let fixed = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", &own];
        let args: Vec<&str> = fixed.into_iter().chain(flags.iter().copied()).collect();
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": { "args": args },
            "goog:loggingPrefs": { "browser": "ALL" } });
        let mut browser = Self { driver, at, session: String::new(), profile };
        let made = browser.post("/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = made["sessionId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        browser
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> Value {
        let mut socket = TcpStream::connect(self.at).expect("it listens");
        socket.set_read_timeout(Some(LIMIT)).expect("a timeout");
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.at);
        write!(socket, "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .expect("there is room");
        // The connection may stay open behind the answer.
        let (mut reader, mut len) = (BufReader::new(socket), 0);
        loop {
            let mut line = String::new();
            assert!(reader.read_line(&mut line).expect("it answers") > 0, "{method} {path}: no answer");
            let field = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            len = field.map_or(len, |(_, value)| value.trim().parse().expect("a number"));
            if line.trim_end().is_empty() {
                break;
            }
        }
        let mut content = vec![0; len];
        reader.read_exact(&mut content).expect("it answers");
        let value: Value = serde_json::from_slice(&content).unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        assert!(value["value"]["error"].is_null(), "{method} {path}: {value:#}");
        value["value"].clone()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.exchange("POST", path, &body.to_string())
    }

    fn of_session(&self, path: &str, body: &Value) -> Value {
        self.post(&format!("/session/{}/{path}", self.session), body)
    }

    fn open(&self, address: SocketAddr, path: &str) {
        self.of_session("url", &json!({ "url": format!("http://{address}{path}") }));
    }

    /// The value of an expression in the page.
    fn value(&self, expression: &str) -> Value {
        self.of_session("execute/sync", &json!({ "script": format!("return {expression}"), "args": [] }))
    }

    /// Waits until an expression in the page is true.
    fn until(&self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != json!(true) {
            let text = || self.value("document.body.innerText");
            assert!(begin.elapsed() < LIMIT, "{expression} is not true: {}", text());
        }
    }

    /// Waits until an element has this text.
    fn until_text(&self, id: &str, text: &str) {
        self.until(&format!("document.getElementById({}).textContent.includes({})", json!(id), json!(text)));
    }

    /// Keys to the element that has the focus.
    fn press(&self, keys: &str) {
        let active = self.exchange("GET", &format!("/session/{}/element/active", self.session), "");
        let element = active.as_object().and_then(|all| all.values().next()?.as_str()).expect("an element").to_owned();
        self.of_session(&format!("element/{element}/value"), &json!({ "text": keys }));
    }

    /// What the browser complains about.
    fn complaints(&self) -> Vec<Value> {
        let log = self.of_session("se/log", &json!({ "type": "browser" }));
        log.as_array().into_iter().flatten().filter(|entry| entry["level"] == "SEVERE").cloned().collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.exchange("DELETE", &format!("/session/{}", self.session), "");
        }
        // It ends by itself if the session could not.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn can_browse() -> Result<(), String> {
    require::program("chromium").and_then(|()| require::program("chromedriver"))
}

#[test]
fn page_shows_the_state_and_is_used_by_keyboard() {
    if let Err(why) = can_browse() {
        return not_run(why);
    }
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    site.pair(0, "<b>Camera</b>", 0);
    site.run(1_000);
    site.pair(2, "Lidar", 0);
    site.run(1_000);
    let (_server, address) = serve(shown(&site), true);
    let browser = Browser::start("keyboard", &["--blink-settings=preferredColorScheme=1"]);
    browser.open(address, "/");
    browser.until_text("summary", "2 switches · 1 links · 4 hosts · 1 flows admitted, 1 refused");
    assert_eq!(browser.value("document.querySelectorAll('#map .node').length"), json!(2 + 1 + 4));
    let own = "performance.getEntriesByType('resource').every(entry => entry.name.startsWith(location.origin))";
    assert_eq!(browser.value(own), json!(true), "everything comes from the controller");
    // A switch is chosen by Enter.
    browser.value("document.querySelector('[data-key=\"0000000000000001\"]').focus()");
    browser.press(ENTER);
    browser.until_text("detail", "Switch 0000000000000001");
    browser.until_text("detail", "Queues of port 1");
    // The next view is chosen by an arrow key; texts of the network are no HTML.
    browser.value("document.getElementById('tab-topology').focus()");
    browser.press(ARROW_RIGHT);
    browser.until("!document.getElementById('flows').hidden && document.getElementById('topology').hidden");
    assert_eq!(browser.value("document.activeElement.id"), json!("tab-flows"));
    for text in ["<b>Camera</b>", "Lidar", "admitted", "refused", "Would fit: "] {
        browser.until_text("flow-table", text);
    }
    assert_eq!(browser.value("document.querySelectorAll('#flow-table b').length"), json!(0));
    browser.press(ARROW_RIGHT);
    browser.until_text("log-table", "The last decisions");
    assert_eq!(browser.complaints(), Vec::<Value>::new());
    let light = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(light, json!("rgb(255, 255, 255)"));
    let dark = Browser::start("dark", &["--blink-settings=preferredColorScheme=0"]);
    dark.open(address, "/#flows");
    dark.until_text("flow-table", "Lidar");
    assert_ne!(dark.value("getComputedStyle(document.body).backgroundColor"), light);
}

#[test]
fn page_shows_measured_use_registrations_and_a_broken_contract() {
    if let Err(why) = can_browse() {
        return not_run(why);
    }
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let small = Registration { size: 1000, ..registration("Secured", 1, 2) };
    site.register(&Owner::Token("<i>gateway</i>".to_owned()), small).expect("it is taken");
    site.run(3_000);
    for _ in 0..4 {
        let frame = site.fabric.udp(0, 1, 7421, &[0; 958]);
        (0..1_000).for_each(|_| site.fabric.send_from(0, frame.clone()));
        site.run(1_000);
    }
    let now = view(&site);
    assert!(now.pairs[0].traffic.is_some_and(|traffic| traffic.breaks_contract), "{:?}", now.pairs);
    let (_server, address) = serve(shown(&site), true);
    let browser = Browser::start("measured", &[]);
    browser.open(address, "/");
    browser.until_text("map", " admitted, ");
    browser.until_text("map", " % sent");
    assert_eq!(browser.value("document.querySelectorAll('#map .link line.sent').length"), json!(1));
    let broken = "document.querySelector('#map .node.broken').getAttribute('aria-label')";
    let name = browser.value(broken);
    assert!(
        name.as_str().is_some_and(|name| name.contains("10.0.0.1") && name.contains("breaks its contract")),
        "{name}"
    );
    browser.value("document.querySelector('[data-key=\"0000000000000001\"]').focus()");
    browser.press(ENTER);
    browser.until_text("detail", "received");
    browser.value("document.getElementById('tab-topology').focus()");
    browser.press(ARROW_RIGHT);
    for text in ["Breaks its contract.", "of token <i>gateway</i>, admitted.", "Mbit/s"] {
        browser.until_text("flow-table", text);
    }
    assert_eq!(browser.value("document.querySelectorAll('#flow-table i').length"), json!(0));
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
fn page_says_that_nothing_is_there_and_that_the_controller_does_not_answer() {
    if let Err(why) = can_browse() {
        return not_run(why);
    }
    let site = Site::new(1, &[], None);
    let mut empty = view(&site);
    empty.switches.clear();
    empty.hosts.clear();
    let source = Arc::new(Shown { view: Mutex::new(Some(Arc::new(empty))), trial: None });
    let (server, address) = serve(Arc::clone(&source), true);
    let browser = Browser::start("states", &[]);
    browser.open(address, "/");
    browser.until_text("map", "No switch has connected.");
    browser.until_text("flow-table", "No pair has a contract.");
    browser.until_text("log-table", "Nothing has been decided yet.");
    *source.view.lock().expect("no thread panicked with it") = None;
    browser.until_text("banner", "the controller does not answer");
    browser.until("document.getElementById('content').classList.contains('stale')");
    drop(server);
    browser.until_text("banner", "The controller does not answer. Switches go on to forward");
}

#[test]
fn page_asks_for_the_token() {
    if let Err(why) = can_browse() {
        return not_run(why);
    }
    let site = Site::new(1, &[], None);
    let (_server, address) = serve(shown(&site), false);
    let browser = Browser::start("token", &[]);
    browser.open(address, "/");
    browser.until_text("banner", "The controller wants a token.");
    browser.until("!document.getElementById('login').hidden");
    browser.value("document.getElementById('token').focus()");
    browser.press("wrong");
    browser.press(ENTER);
    browser.until_text("banner", "The controller refuses this token.");
}

//! Tests of the web page in a headless Chromium.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use takt_sdn::admission::Trial;
use takt_sdn::api::ApiCounters;
use takt_sdn::api::controller_client::{NoAnswer, Registered, Source};
use takt_sdn::api::server::Server;
use takt_sdn::api::service::{Access, Service};
use takt_sdn::registration::{Owner, Registration, RegistrationError, RegistrationId};
use takt_sdn::view::{Pair, View};
use takt_testkit::browser::{Browser, can_browse};
use takt_testkit::not_run;

use crate::admission::{NETWORK, Site};
use crate::fabric::line;
use crate::registration::registration;
use crate::view::view;

const ARROW_RIGHT: &str = "\u{e014}";
const ENTER: &str = "\u{e007}";

/// Source of the page's state, which may be absent.
#[derive(Debug)]
struct Shown {
    view: Mutex<Option<Arc<View>>>,
    trial: Option<Trial>,
}

impl Source for Shown {
    fn view(&self) -> Result<Arc<View>, NoAnswer> {
        self.view.lock().expect("no thread panicked while holding the lock").clone().ok_or(NoAnswer)
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
    let server = Server::tcp("127.0.0.1:0".parse().expect("a valid address"), service).expect("a port is free");
    let address = server.address().expect("the server listens on TCP");
    (server, address)
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
    browser.open(&format!("http://{address}/"));
    browser.until_text("summary", "2 switches · 1 links · 4 hosts · 1 flows admitted, 1 refused");
    assert_eq!(browser.value("document.querySelectorAll('#map .node').length"), json!(2 + 1 + 4));
    let own = "performance.getEntriesByType('resource').every(entry => entry.name.startsWith(location.origin))";
    assert_eq!(browser.value(own), json!(true), "every resource comes from the controller");
    // Enter selects a switch.
    browser.value("document.querySelector('[data-key=\"0000000000000001\"]').focus()");
    browser.press(ENTER);
    browser.until_text("detail", "Switch 0000000000000001");
    browser.until_text("detail", "Queues of port 1");
    // An arrow key selects the next view; texts of the network are not interpreted as HTML.
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
    dark.open(&format!("http://{address}/#flows"));
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
    site.register(&Owner::Token("<i>gateway</i>".to_owned()), small).expect("the registration is accepted");
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
    browser.open(&format!("http://{address}/"));
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
fn page_shows_an_empty_state_and_an_unreachable_controller() {
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
    browser.open(&format!("http://{address}/"));
    browser.until_text("map", "No switch has connected.");
    browser.until_text("flow-table", "No pair has a contract.");
    browser.until_text("log-table", "Nothing has been decided yet.");
    *source.view.lock().expect("no thread panicked while holding the lock") = None;
    browser.until_text("banner", "the controller does not answer");
    browser.until("document.getElementById('content').classList.contains('stale')");
    drop(server);
    browser.until_text("banner", "The controller does not answer. Switches go on to forward");
}

#[test]
fn page_requests_the_token() {
    if let Err(why) = can_browse() {
        return not_run(why);
    }
    let site = Site::new(1, &[], None);
    let (_server, address) = serve(shown(&site), false);
    let browser = Browser::start("token", &[]);
    browser.open(&format!("http://{address}/"));
    browser.until_text("banner", "The controller wants a token.");
    browser.until("!document.getElementById('login').hidden");
    browser.value("document.getElementById('token').focus()");
    browser.press("wrong");
    browser.press(ENTER);
    browser.until_text("banner", "The controller refuses this token.");
}

//! Headless Chromium for tests of web pages, driven by ChromeDriver (WebDriver, W3C Recommendation
//! of 2018).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::require;
use crate::waiting::{LIMIT, lines, receive};

/// Chromium process with one window, ended on drop.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    at: SocketAddr,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// Starts a browser with additional flags. `name` distinguishes the browsers of a test process.
    ///
    /// # Panics
    /// The browser does not start.
    #[must_use]
    pub fn start(name: &str, flags: &[&str]) -> Self {
        let mut driver =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn().expect("chromedriver");
        let lines = lines(driver.stdout.take().expect("stdout is piped"));
        // tidy-allow(dropped-cause): other lines have no port
        let port = |line: &str| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse::<u16>().ok();
        let mut output = std::iter::repeat_with(|| receive("chromedriver reports its port", &lines));
        let at = SocketAddr::from(([127, 0, 0, 1], output.find_map(|line| port(&line)).expect("a port")));
        let profile = std::env::temp_dir().join(format!("takt-browser-{}-{name}", std::process::id()));
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
        let mut socket = TcpStream::connect(self.at).expect("the peer listens");
        socket.set_read_timeout(Some(LIMIT)).expect("a timeout");
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.at);
        write!(socket, "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .expect("the buffer has space");
        // The connection may stay open after the response.
        let (mut reader, mut len) = (BufReader::new(socket), 0);
        loop {
            let mut line = String::new();
            assert!(reader.read_line(&mut line).expect("chromedriver answers") > 0, "{method} {path}: no answer");
            let field = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            len = field.map_or(len, |(_, value)| value.trim().parse().expect("a number"));
            if line.trim_end().is_empty() {
                break;
            }
        }
        let mut content = vec![0; len];
        reader.read_exact(&mut content).expect("chromedriver answers");
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

    /// Opens an address.
    pub fn open(&self, url: &str) {
        self.of_session("url", &json!({ "url": url }));
    }

    /// Sends a DevTools protocol command.
    pub fn command(&self, name: &str, parameters: &Value) -> Value {
        self.of_session("goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// Evaluates an expression in the page.
    pub fn value(&self, expression: &str) -> Value {
        self.of_session("execute/sync", &json!({ "script": format!("return {expression}"), "args": [] }))
    }

    /// Waits until an expression in the page is true.
    pub fn until(&self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != json!(true) {
            let text = || self.value("document.body.innerText");
            assert!(begin.elapsed() < LIMIT, "{expression} is not true: {}", text());
        }
    }

    /// Waits until an element has this text.
    pub fn until_text(&self, id: &str, text: &str) {
        self.until(&format!("document.getElementById({}).textContent.includes({})", json!(id), json!(text)));
    }

    /// Sends keys to the focused element.
    pub fn press(&self, keys: &str) {
        let active = self.exchange("GET", &format!("/session/{}/element/active", self.session), "");
        let element = active.as_object().and_then(|all| all.values().next()?.as_str()).expect("an element").to_owned();
        self.of_session(&format!("element/{element}/value"), &json!({ "text": keys }));
    }

    /// Returns the messages in the browser's log.
    #[must_use]
    pub fn complaints(&self) -> Vec<Value> {
        let log = self.of_session("se/log", &json!({ "type": "browser" }));
        log.as_array().into_iter().flatten().filter(|entry| entry["level"] == "SEVERE").cloned().collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.exchange("DELETE", &format!("/session/{}", self.session), "");
        }
        // The driver terminates on its own if the session could not be ended.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// Checks that Chromium and its driver are installed.
///
/// # Errors
/// The error names the missing program.
pub fn can_browse() -> Result<(), String> {
    require::program("chromium").and_then(|()| require::program("chromedriver"))
}

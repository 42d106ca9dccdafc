//! Tests of the HTML report of synthetic results in a headless Chromium.

use super::html::html;
use super::sample::{of_systems, results};
use crate::study::directory::Results;
use serde_json::{Value, json};
use takt_testkit::browser::{Browser, can_browse};
use takt_testkit::not_run;

/// Script that returns the lowest contrast of a text and its background, and the text (WCAG 2.2,
/// success criterion 1.4.3).
const CONTRAST: &str = "(() => {
  const channel = value => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  const light = color => { const [r, g, b] = parts(color); return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  const behind = element => {
    for (let one = element; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if ((parts(color)[3] ?? 1) > 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  let least = [99, ''];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ['TITLE', 'DESC'].includes(element.tagName.toUpperCase())) continue;
    const style = getComputedStyle(element);
    const [one, other] = [light(element instanceof SVGElement ? style.fill : style.color), light(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < least[0]) least = [contrast, walker.currentNode.data.trim()];
  }
  return least;
})()";

fn media(browser: &Browser, media: &str, scheme: &str) {
    let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
    browser.command("Emulation.setEmulatedMedia", &json!({ "media": media, "features": features }));
}

fn opened(browser: &Browser, name: &str, results: &Results) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("takt-report-{name}-{}.html", std::process::id()));
    std::fs::write(&path, html(results).unwrap()).unwrap();
    browser.open(&format!("file://{}", path.display()));
    path
}

#[test]
fn page_is_readable_light_dark_and_printed_without_network() {
    if let Err(why) = can_browse() {
        return not_run(why);
    }
    let browser = Browser::start("report", &[]);
    let path = opened(&browser, "whole", &results());
    browser.value("document.querySelectorAll('details').forEach(one => one.open = true)");
    let mut pages = Vec::new();
    for (kind, scheme) in [("screen", "light"), ("screen", "dark"), ("print", "dark")] {
        media(&browser, kind, scheme);
        let least = browser.value(CONTRAST);
        assert!(least[0].as_f64().is_some_and(|contrast| contrast >= 4.5), "{kind}, {scheme}: {least}");
        pages.push(browser.value("getComputedStyle(document.body).backgroundColor"));
    }
    assert_eq!(pages[0], json!("rgb(255, 255, 255)"));
    assert_ne!(pages[1], pages[0]);
    assert_eq!(pages[2], pages[0], "paper is white, also of a dark page");
    assert_eq!(browser.value("performance.getEntriesByType('resource').length"), json!(0));
    assert_eq!(browser.complaints(), Vec::<Value>::new());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn page_is_not_wider_than_a_narrow_window() {
    if let Err(why) = can_browse() {
        return not_run(why);
    }
    let browser = Browser::start("narrow", &[]);
    let size = json!({ "width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": true });
    browser.command("Emulation.setDeviceMetricsOverride", &size);
    for (name, results) in [("narrow", results()), ("many", of_systems(40))] {
        let path = opened(&browser, name, &results);
        browser.value("document.querySelectorAll('details').forEach(one => one.open = true)");
        assert_eq!(browser.value("innerWidth"), json!(360));
        assert_eq!(browser.value("document.documentElement.scrollWidth <= 360"), json!(true), "{name}");
        std::fs::remove_file(path).unwrap();
    }
}

//! Round trips of OpenFlow messages, and reception at both ends of a channel.

use std::time::Duration;

use takt_openflow::channel::{Controller, ControllerConfig, Instant, Limits, Switch, SwitchChannelConfig};
use takt_openflow::hello::Hello;
use takt_openflow::switch::Features;
use takt_openflow::{Message, Version, Versions};

/// Parses one message of any version; a parsed message that is written and parsed again must be
/// equal. Then passes the octets in two pieces to a connected switch and controller. Neither may
/// panic, and their state must stay within its limits.
pub fn run(input: &[u8]) {
    for version in Version::ALL {
        if let Ok((xid, message)) = Message::decode(version, input) {
            let written = message.encode(version, xid).expect("what was read has a form in its version");
            assert_eq!(written.len(), input.len());
            assert_eq!(Message::decode(version, &written), Ok((xid, message)));
        }
        arrive(version, input);
    }
    let _ = Hello::decode_body(input);
}

fn arrive(version: Version, input: &[u8]) {
    let limits = Limits { transmit_bytes: 4096, events: 16, ..Limits::default() };
    let own = Versions::of(&[version]);
    let mut hello = Message::Hello(Hello::new(own)).encode(version, 1).expect("HELLO has a form");
    hello.extend_from_slice(input);
    let config = SwitchChannelConfig { versions: own, features: Features::default(), limits: limits.clone() };
    let mut switch = Switch::new(Instant(0), config);
    let mut controller = Controller::new(Instant(0), ControllerConfig { versions: own, limits, ..Default::default() });
    let (first, second) = hello.split_at(hello.len() / 2);
    for piece in [first, second] {
        let mut rest = piece;
        while !rest.is_empty() {
            let taken = switch.handle_bytes(Instant(1), rest);
            rest = &rest[taken..];
            let events = std::iter::from_fn(|| switch.poll_event()).count();
            let octets = switch.poll_transmit().len();
            assert!(events <= 17 && octets <= 4096 + 65_535 + 17 * 100, "{events} events, {octets} octets");
            switch.transmitted(octets);
        }
        let mut rest = piece;
        while !rest.is_empty() {
            let taken = controller.handle_bytes(Instant(1), rest);
            rest = &rest[taken..];
            let events = std::iter::from_fn(|| controller.poll_event()).count();
            let octets = controller.poll_transmit().len();
            assert!(events <= 17 && octets <= 4096 + 65_535, "{events} events, {octets} octets");
            controller.transmitted(octets);
        }
    }
    let later = Instant(2).after(Duration::from_secs(60));
    for _ in 0..3 {
        switch.handle_timeout(later);
        controller.handle_timeout(later);
    }
}

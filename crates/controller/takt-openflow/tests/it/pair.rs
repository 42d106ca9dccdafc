//! Controller and switch, connected by two byte pipes with random fragments.

use std::collections::VecDeque;
use std::time::Duration;

use takt_openflow::channel::{
    Controller, ControllerConfig, Event, Instant, Limits, Switch, SwitchChannelConfig, SwitchEvent,
};
use takt_openflow::switch::Features;
use takt_openflow::{Version, Versions};
use takt_testkit::Random;

pub const TIMEOUT: Duration = Duration::from_secs(3);

/// Controller and switch with their pipes.
pub struct Pair {
    pub now: Instant,
    pub controller: Controller,
    pub switch: Switch,
    /// Octets on their way to the switch, and to the controller.
    pub to_switch: VecDeque<u8>,
    pub to_controller: VecDeque<u8>,
    random: Random,
}

pub fn features() -> Features {
    Features { datapath: 0x2a, n_tables: 254, ..Features::default() }
}

pub fn switch_of(versions: Versions, limits: Limits) -> Switch {
    Switch::new(Instant(0), SwitchChannelConfig { versions, features: features(), limits })
}

pub fn controller_of(versions: Versions, limits: Limits) -> Controller {
    Controller::new(Instant(0), ControllerConfig { versions, limits, ..ControllerConfig::default() })
}

impl Pair {
    pub fn new(seed: u64, controller: Versions, switch: Versions, limits: Limits) -> Self {
        Self {
            now: Instant(0),
            controller: controller_of(controller, limits.clone()),
            switch: switch_of(switch, limits),
            to_switch: VecDeque::new(),
            to_controller: VecDeque::new(),
            random: Random(seed),
        }
    }

    /// Creates a connected pair of one version.
    pub fn up(seed: u64, version: Version) -> Self {
        let mut pair = Self::new(seed, Versions::of(&[version]), Versions::ALL, Limits::default());
        pair.run();
        assert_eq!(pair.switch.poll_event(), Some(SwitchEvent::Up { version }));
        assert!(matches!(pair.switch.poll_event(), Some(SwitchEvent::Configured(_))));
        pair.answer_barriers();
        match pair.controller.poll_event() {
            Some(Event::Up { version: chosen, features: found }) => {
                assert_eq!((chosen, *found), (version, features()));
            }
            other => panic!("expected Up, got {other:?}"),
        }
        pair
    }

    /// Transfers octets, in fragments of random length, until there are none.
    pub fn run(&mut self) {
        loop {
            let mut moved = 0;
            for _ in 0..4 {
                let len = 1 + self.random.below(40);
                let out = self.controller.poll_transmit();
                let out = out[..out.len().min(len)].to_vec();
                self.controller.transmitted(out.len());
                self.to_switch.extend(&out);
                let back = self.switch.poll_transmit();
                let back = back[..back.len().min(len)].to_vec();
                self.switch.transmitted(back.len());
                self.to_controller.extend(&back);
                moved += out.len() + back.len();
                let len = 1 + self.random.below(70);
                let piece: Vec<u8> = self.to_switch.iter().copied().take(len).collect();
                let consumed = self.switch.handle_bytes(self.now, &piece);
                self.to_switch.drain(..consumed);
                let piece: Vec<u8> = self.to_controller.iter().copied().take(len).collect();
                let consumed_back = self.controller.handle_bytes(self.now, &piece);
                self.to_controller.drain(..consumed_back);
                moved += consumed + consumed_back;
            }
            if moved == 0 {
                return;
            }
        }
    }

    /// Returns the events of the switch. Barriers among them are answered, and the answers
    /// delivered.
    pub fn answer_barriers(&mut self) -> Vec<SwitchEvent> {
        let mut events = Vec::new();
        while let Some(event) = self.switch.poll_event() {
            if let SwitchEvent::Request(request) = &event
                && request.message == takt_openflow::Message::BarrierRequest
            {
                self.switch.reply(request.xid, &takt_openflow::Message::BarrierReply).expect("enough space");
                self.run();
                continue;
            }
            events.push(event);
        }
        self.run();
        events
    }

    pub fn controller_events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.controller.poll_event()).collect()
    }

    /// Advances the time of both ends.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now.after(span);
        self.controller.handle_timeout(self.now);
        self.switch.handle_timeout(self.now);
        self.run();
    }
}

//! Measurements of discovery traffic, discovery time and memory with many participants: the agent
//! roles `crowd`, `seek` and `mesh`.

use super::{Measurement, READY_LIMIT, RUN_LIMIT, Report, number};
use crate::error::Result;
use crate::study::site::Traffic;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time after the match in which messages still count.
const TRAFFIC_AFTER: Duration = Duration::from_millis(500);

impl Measurement<'_> {
    /// Measures a participant (`seek`) that joins a domain of many (`crowd`): time until it
    /// matches, and traffic.
    pub(super) fn discovery(&self) -> Result<Report> {
        let place = self.launcher.place;
        let before = place.traffic(0)?;
        let mut crowd = self.start("crowd", 1, &[])?;
        crowd.child.wait_for("ready", RUN_LIMIT)?;
        // The crowd prints its result after the warm-up, in which its participants discover one
        // another.
        crowd.child.wait_for("result", self.stream_limit())?;
        let until_newcomer = place.traffic(0)?;
        let mut seek = self.start("seek", 0, &[self.started()])?;
        let commands = vec![self.command(&seek), self.command(&crowd)];
        let matched = seek.child.wait_for("matched", RUN_LIMIT)?;
        std::thread::sleep(TRAFFIC_AFTER);
        let after = place.traffic(0)?;
        seek.child.stop()?;
        crowd.child.stop()?;
        let mut figures = BTreeMap::from([
            ("match_ms".to_owned(), number(&matched, "match_ms")),
            ("init_ms".to_owned(), number(&matched, "init_ms") - number(&matched, "main_ms")),
        ]);
        let mut add = |whose: &str, Traffic { frames, octets }: Traffic| {
            figures.insert(format!("{whose}_datagrams"), frames as f64);
            figures.insert(format!("{whose}_kib"), octets as f64 / 1024.0);
        };
        add("newcomer", after.since(&until_newcomer));
        add("all", after.since(&before));
        Ok(self.report(figures, commands))
    }

    /// Measures many processes of one participant each (`mesh`): time until the last one matches
    /// all others, and traffic.
    pub(super) fn mesh(&self) -> Result<Report> {
        let before = self.launcher.place.traffic(0)?;
        let started = self.started();
        let mut members = Vec::new();
        for _ in 0..self.number("participants", 1) {
            members.push(self.start("mesh", 0, std::slice::from_ref(&started))?);
        }
        let commands = members.iter().take(1).map(|member| self.command(member)).collect();
        let mut last_ms = 0.0_f64;
        for member in &mut members {
            last_ms = last_ms.max(number(&member.child.wait_for("matched", RUN_LIMIT)?, "match_ms"));
        }
        let Traffic { frames, octets } = self.launcher.place.traffic(0)?.since(&before);
        for member in &mut members {
            member.child.stop()?;
        }
        let figures = [("match_ms", last_ms), ("all_datagrams", frames as f64), ("all_kib", octets as f64 / 1024.0)];
        Ok(self.report(figures.map(|(name, value)| (name.to_owned(), value)).into(), commands))
    }

    /// Measures the memory of a process with many participants, endpoints and instances (`crowd`).
    pub(super) fn memory(&self) -> Result<Report> {
        let mut crowd = self.start("crowd", 0, &[])?;
        crowd.child.wait_for("ready", READY_LIMIT.max(RUN_LIMIT))?;
        let result = crowd.child.wait_for("result", self.stream_limit())?;
        let commands = vec![self.command(&crowd)];
        crowd.child.stop()?;
        let participants = self.number("participants", 1) as f64;
        let endpoints = participants * self.number("endpoints", 1) as f64;
        let instances = self.number("instances", 0) as f64;
        let mut figures = BTreeMap::new();
        let mut add = |name: &str, key: &str, factor: f64, count: f64| {
            if let (Some(kib), true) = (result[key].as_f64(), count > 0.0) {
                figures.insert(name.to_owned(), kib * factor / count);
            }
        };
        add("each_participant_kib", "participants_kib", 1.0, participants);
        add("each_endpoint_kib", "endpoints_kib", 1.0, endpoints);
        add("each_instance_octets", "instances_kib", 1024.0, instances);
        add("resident_kib", "resident_kib", 1.0, 1.0);
        add("private_kib", "private_kib", 1.0, 1.0);
        Ok(self.report(figures, commands))
    }
}

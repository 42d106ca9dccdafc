//! Scenarios of domains under DDS Security.

use takt_security::documents::{BasicProtectionKind, ProtectionKind};
use takt_security::identity::KeyAlgorithm;

use super::{Direction, EndPlan, Fault, FaultKind, Impairment, ProcessPlan, QosPlan, Role, Scenario, TopicPlan};
use crate::check::Rights;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::domain::{DomainPlan, ExpiryPlan, MemberKind, MemberPlan};
use crate::hostile::HostilePlan;
use crate::process::LEASE;
use crate::rng::Rng;

/// Minimum time after the start of a process during which handshakes are pending.
const HANDSHAKES: Nanos = 300 * MILLISECOND;

/// Period at which an unanswered handshake message is sent again.
const RESEND_PERIOD: Nanos = SECOND;

/// Maximum number of messages of a handshake that cannot complete, per [`RESEND_PERIOD`]: an
/// AuthRequest and a Request, and the answers to those of the other participant.
const MESSAGES_PER_PERIOD: u64 = 4;

const KINDS: [ProtectionKind; 5] = [
    ProtectionKind::None,
    ProtectionKind::Sign,
    ProtectionKind::Encrypt,
    ProtectionKind::SignWithOriginAuthentication,
    ProtectionKind::EncryptWithOriginAuthentication,
];

impl Scenario {
    /// Plans a domain. Its members may write and read some of its topics, and have endpoints of all
    /// of them. Some members are killed while they authenticate each other. One may be an insider,
    /// and one may be outside of the domain. Session keys change after a few messages, or never.
    /// Some members get another certificate.
    pub(super) fn plan_domain(&mut self, rng: &mut Rng) {
        self.add_members(rng);
        for _ in 0..rng.between(2, 3) {
            let sizes = (24, *rng.pick(&[200, 200, 3_000]));
            self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes });
        }
        self.domain = Some(self.domain_plan(rng));
        self.add_secured_endpoints(rng);
        self.kill_during_handshakes(rng);
        self.plan_fault(rng);
        self.vary_algorithms(rng);
        self.plan_renewals(rng);
        // Separate random numbers, so that worlds without these events stay unchanged.
        self.plan_expiries(&mut Rng::new(self.seed ^ 0x6578_7069));
        self.plan_revocations(&mut Rng::new(self.seed ^ 0x7265_766f));
        self.plan_hostile(&mut Rng::new(self.seed ^ 0x7365_6861));
    }

    /// Makes certificates or permissions of some members expire, in 25 % of the worlds. Two thirds
    /// of them get other documents, before or after that.
    fn plan_expiries(&mut self, rng: &mut Rng) {
        let seconds = self.active / SECOND;
        let active = self.active;
        let Some(domain) = self.domain.as_mut().filter(|_| rng.chance(250_000)) else { return };
        for member in domain.members.iter_mut().filter(|member| member.kind.has_identity()) {
            if !rng.chance(500_000) {
                continue;
            }
            let second = rng.between(1, seconds.max(1)) as u32;
            member.expiry = Some(ExpiryPlan { is_of_permissions: rng.chance(500_000), second });
            member.renews_at = rng.chance(650_000).then(|| rng.below(active));
        }
    }

    /// Makes renewed permissions of some members allow less, in 15 % of the worlds.
    fn plan_revocations(&mut self, rng: &mut Rng) {
        let active = self.active;
        let Some(domain) = self.domain.as_mut().filter(|_| rng.chance(150_000)) else { return };
        for member in domain.members.iter_mut().filter(|member| member.kind.has_identity()) {
            if rng.chance(600_000) {
                member.renews_at.get_or_insert_with(|| rng.below(active));
                let Rights { writes, reads } = member.rights;
                member.renewed_rights = Rights { writes: writes & rng.next(), reads: reads & rng.next() };
            }
        }
    }

    /// Puts a hostile host into 25 % of the worlds, which overhears everything and attacks
    /// handshakes and sessions in the names of others.
    fn plan_hostile(&mut self, rng: &mut Rng) {
        if rng.chance(250_000) {
            self.hostile = Some(HostilePlan::of_domain(rng, self.hosts.len(), self.active));
            self.plan_return_of_keys(rng);
        }
    }

    /// Makes the documents of one of the first two members expire, and renews them while the
    /// hostile host attacks, in 50 % of its worlds. Others remove its keys, and receive them again.
    fn plan_return_of_keys(&mut self, rng: &mut Rng) {
        let active = self.active;
        let Some(domain) = self.domain.as_mut().filter(|_| rng.chance(500_000)) else { return };
        let (member, renews_at) = (rng.below(2) as usize, SECOND + rng.below(active.saturating_sub(SECOND) / 2 + 1));
        let member = &mut domain.members[member];
        if member.expiry.is_none() && renews_at < active {
            member.expiry = Some(ExpiryPlan { is_of_permissions: rng.chance(500_000), second: 1 });
            member.renews_at = Some(renews_at);
        }
    }

    /// Plans renewals of certificates, in 30 % of the worlds.
    fn plan_renewals(&mut self, rng: &mut Rng) {
        let active = self.active;
        let Some(domain) = self.domain.as_mut().filter(|_| rng.chance(300_000)) else { return };
        for member in &mut domain.members {
            member.renews_at = rng.chance(600_000).then(|| rng.below(active));
        }
    }

    /// Gives RSA keys to some members, in 10 % of the worlds: the generation of an RSA key takes
    /// longer than most of such a simulation.
    fn vary_algorithms(&mut self, rng: &mut Rng) {
        let Some(domain) = self.domain.as_mut().filter(|_| rng.chance(100_000)) else { return };
        for member in &mut domain.members {
            if rng.chance(500_000) {
                member.algorithm = KeyAlgorithm::Rsa2048;
            }
        }
    }

    fn add_members(&mut self, rng: &mut Rng) {
        for _ in 0..rng.below(3) {
            let host = rng.below(self.hosts.len() as u64) as usize;
            let start = rng.below(HANDSHAKES);
            self.processes.push(ProcessPlan { host, start, ..self.processes[0].clone() });
        }
    }

    /// Plans protection kinds and members. The first process may write the first topic, and the
    /// second one may read it.
    fn domain_plan(&self, rng: &mut Rng) -> DomainPlan {
        let mut has_outsider = false;
        let mut member = |process: usize| {
            let topics = |rng: &mut Rng| {
                let some = (0..self.topics.len()).filter(|_| rng.chance(650_000));
                some.fold(0, |set, topic| set | 1 << topic)
            };
            let mut rights = Rights { writes: topics(rng), reads: topics(rng) };
            let kinds = [MemberKind::Honest, MemberKind::Insider, MemberKind::ForeignAuthority, MemberKind::Open];
            let mut kind = MemberKind::Honest;
            match process {
                0 => rights.writes |= 1,
                1 => rights.reads |= 1,
                _ => kind = *rng.pick(&kinds),
            }
            if matches!(kind, MemberKind::ForeignAuthority | MemberKind::Open)
                && std::mem::replace(&mut has_outsider, true)
            {
                kind = MemberKind::Insider;
            }
            let (has_deny_rule, algorithm) = (rng.chance(500_000), KeyAlgorithm::EcP256);
            MemberPlan { kind, rights, has_deny_rule, algorithm, expiry: None, renews_at: None, renewed_rights: rights }
        };
        let members = (0..self.processes.len()).map(&mut member).collect();
        let payloads = [BasicProtectionKind::None, BasicProtectionKind::Sign, BasicProtectionKind::Encrypt];
        DomainPlan {
            messages: *rng.pick(&KINDS),
            discovery: *rng.pick(&KINDS),
            submessages: *rng.pick(&KINDS),
            payloads: *rng.pick(&payloads),
            blocks_per_session: *rng.pick(&[100, 1_000, 1 << 32]),
            members,
        }
    }

    /// Adds endpoints, including those that permissions do not allow.
    fn add_secured_endpoints(&mut self, rng: &mut Rng) {
        for topic in 0..self.topics.len() {
            let transient_local = rng.chance(300_000);
            for number in 0..rng.between(1, 3) {
                let process = if topic == 0 && number == 0 { 0 } else { self.random_process(rng) };
                let qos = QosPlan { reliable: rng.chance(750_000), transient_local, ..QosPlan::default() };
                let period = rng.between(4, 20) * MILLISECOND;
                let role = Role::Writer { period, burst: rng.between(1, 3) as u32, samples: 400, endings: 0 };
                let create = self.creation(rng);
                self.add(process, topic, qos, role, create);
            }
            for number in 0..rng.between(1, 3) {
                let process = if topic == 0 && number == 0 { 1 } else { self.random_process(rng) };
                let reliable = rng.chance(750_000);
                let transient_local = transient_local && reliable && rng.chance(700_000);
                let qos = QosPlan { reliable, transient_local, ..QosPlan::default() };
                let create = self.creation(rng);
                self.add(process, topic, qos, Role::Reader { period: 0 }, create);
            }
        }
    }

    fn random_process(&self, rng: &mut Rng) -> usize {
        rng.below(self.processes.len() as u64) as usize
    }

    fn creation(&self, rng: &mut Rng) -> Nanos {
        if rng.chance(600_000) { 0 } else { rng.below(self.active / 2) }
    }

    fn kill_during_handshakes(&mut self, rng: &mut Rng) {
        let active = self.active;
        for process in &mut self.processes {
            let mut at = process.start;
            for _ in 0..2 {
                if !rng.chance(400_000) {
                    break;
                }
                at += if rng.chance(500_000) { rng.below(20 * MILLISECOND) } else { rng.below(HANDSHAKES) };
                let pause = rng.between(MILLISECOND, HANDSHAKES);
                process.ends.push(EndPlan { at: at.min(active), pause, farewell: rng.chance(300_000) });
                at += pause;
            }
        }
    }

    fn plan_fault(&mut self, rng: &mut Rng) {
        let host = rng.below(self.hosts.len() as u64) as usize;
        let from = if rng.chance(500_000) { 0 } else { rng.below(self.active / 2) };
        let mut until = rng.between(from + MILLISECOND, self.active);
        let link = |direction, impairment| FaultKind::Link { host, direction, impairment };
        let kinds = match rng.below(6) {
            0 => vec![],
            1 => {
                let impairment = Impairment::Loss(*rng.pick(&[50_000, 200_000, 400_000]));
                vec![link(Direction::Up, impairment), link(Direction::Down, impairment)]
            }
            2 => vec![
                link(Direction::Up, Impairment::Duplication(300_000)),
                link(Direction::Down, Impairment::Reordering(300_000, rng.between(MILLISECOND, 50 * MILLISECOND))),
            ],
            3 => {
                vec![link(Direction::Up, Impairment::Flips(100_000)), link(Direction::Down, Impairment::Flips(100_000))]
            }
            4 => vec![link(Direction::Down, Impairment::StructuralDamage(200_000))],
            _ => {
                let one_way = rng.chance(600_000);
                if one_way {
                    // The lease then ends on one side only.
                    until = from + LEASE + SECOND;
                    self.active = until + SECOND;
                }
                vec![FaultKind::Partition { group: 1 << host, one_way, flapping: 0 }]
            }
        };
        self.faults.extend(kinds.into_iter().map(|kind| Fault { from, until, kind }));
    }

    /// Returns the maximum number of datagrams that a process sends in `time` for handshakes that
    /// cannot complete.
    pub(super) fn handshakes(&self, time: Nanos) -> u64 {
        let others = self.processes.len() as u64 - 1;
        let has_outsider = self.domain.as_ref().is_some_and(DomainPlan::has_outsider);
        if has_outsider { others * MESSAGES_PER_PERIOD * time.div_ceil(RESEND_PERIOD) } else { 0 }
    }
}

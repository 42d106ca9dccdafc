//! Queueing disciplines of an interface, read and written as text in the manner of tc(8).
//!
//! | module | content |
//! |---|---|
//! | [`options`] | settings of disciplines and classes: octets of the kernel, and text where their meaning is known |
//! | [`words`] | the parser of such text |
//! | [`classes`] | traffic classes, which give frames of a priority their own queues |
//! | [`mqprio`], [`taprio`], [`etf`] | disciplines for these: queues, a gate schedule, launch times |
//! | [`steering`] | a program that assigns marked frames to a queue or class |
//!
//! A tree is one line: `default`, or its disciplines and classes from the root: `qdisc htb 1: root
//! default 20 r2q 10; class htb 1:1 root rate ..; qdisc pfifo 10: parent 1:10 limit 100`. The
//! kernel created entries with the number 0 itself, and creates them again.
//!
//! Settings without a text form are octets, so that any former value can be restored. A tree that
//! cannot be restored (kinds not listed in [`options::RESTORABLE`], filters, size tables) cannot be
//! read either, and is therefore never replaced. The module uses rtnetlink instead of tc(8), since
//! tc prints rounded values in a form that it does not accept.

pub(crate) mod classes;
mod etf;
mod mqprio;
pub(crate) mod options;
pub(crate) mod steering;
mod taprio;
mod words;

use std::fmt;
use std::io;

use takt_netlink::{CREATE_OR_REPLACE, NEW, Netlink, find, interface_index, number, put, put_text, text};

const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;
const NEW_CLASS: u16 = 40;
const GET_CLASS: u16 = 42;
const NEW_FILTER: u16 = 44;
const DELETE_FILTER: u16 = 45;
const GET_FILTER: u16 = 46;

/// Attributes of disciplines and classes.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const STAB: u16 = 8;

const ROOT: u32 = 0xffff_ffff;
/// Parent of `ingress` and `clsact`, which are not part of the tree.
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
/// Parents of filters for incoming and outgoing frames.
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

/// Text of the kernel's default tree, without configured disciplines or classes.
const DEFAULT: &str = "default";

/// Discipline or class.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    is_class: bool,
    kind: String,
    handle: u32,
    parent: u32,
    options: Vec<u8>,
}

/// Handle in the form of tc.
struct Handle(u32);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 >> 16, self.0 & 0xffff) {
            (major, 0) => write!(f, "{major:x}:"),
            (major, minor) => write!(f, "{major:x}:{minor:x}"),
        }
    }
}

fn parse_handle(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let part = |text: &str| if text.is_empty() { Some(0) } else { u16::from_str_radix(text, 16).ok() }; // tidy-allow(dropped-cause): the caller names the text
    Some(u32::from(part(major)?) << 16 | u32::from(part(minor)?))
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_class { "class" } else { "qdisc" };
        write!(f, "{what} {} {} ", self.kind, Handle(self.handle))?;
        match self.parent {
            ROOT => write!(f, "root")?,
            parent => write!(f, "parent {}", Handle(parent))?,
        }
        let words = options::to_text(&self.kind, self.is_class, &self.options);
        if words.is_empty() { Ok(()) } else { write!(f, " {words}") }
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let is_class = match words.next()? {
            "class" => true,
            "qdisc" => false,
            _ => return None,
        };
        let (kind, handle) = (words.next()?.to_owned(), parse_handle(words.next()?)?);
        let parent = match words.next()? {
            "root" => ROOT,
            "parent" => parse_handle(words.next()?)?,
            _ => return None,
        };
        let words: Vec<_> = words.collect();
        let options = options::octets(&kind, is_class, &words)?;
        Some(Self { is_class, kind, handle, parent, options })
    }

    /// Parses a message of the kernel. `None` for other interfaces, and for disciplines that are
    /// not part of the tree.
    fn read(index: i32, is_class: bool, message: &[u8]) -> Option<io::Result<Self>> {
        let (handle, parent) = (number(message.get(8..)?)?, number(message.get(12..)?)?);
        if number(message.get(4..)?)? != index.cast_unsigned() || parent == CLSACT {
            return None;
        }
        let attributes = message.get(20..)?;
        let kind = text(find(attributes, KIND)?);
        if find(attributes, STAB).is_some() {
            return Some(Err(unrestorable(&format!("{kind} {} has a size table", Handle(handle)))));
        }
        let options = options::normal(&kind, is_class, find(attributes, OPTIONS).unwrap_or_default());
        Some(Ok(Self { is_class, kind, handle, parent, options }))
    }

    /// Returns the message that creates the entry.
    fn message(&self, index: i32) -> Vec<u8> {
        let mut body = message(index, self.handle, self.parent, 0);
        put_text(&mut body, KIND, &self.kind);
        if !self.options.is_empty() {
            put(&mut body, OPTIONS, &self.options);
        }
        body
    }
}

/// Returns the common beginning of all messages.
fn message(index: i32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    [handle, parent, info].iter().for_each(|number| body.extend(number.to_ne_bytes()));
    body
}

fn unrestorable(what: &str) -> io::Error {
    let text = format!("{what}, which cannot be restored afterwards: remove it with tc first");
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Returns the kernel's entries of an interface, from the root.
fn entries(netlink: &mut Netlink, index: i32) -> io::Result<Vec<Entry>> {
    let qdiscs = netlink.dump(GET_QDISC, &message(index, 0, 0, 0))?;
    let qdiscs = qdiscs.iter().filter_map(|one| Entry::read(index, false, one)).collect::<io::Result<Vec<_>>>()?;
    let Some(root) = qdiscs.iter().find(|entry| entry.parent == ROOT && entry.handle != 0) else {
        return Ok(Vec::new());
    };
    for entry in qdiscs.iter().filter(|entry| entry.handle != 0) {
        if !options::RESTORABLE.contains(&entry.kind.as_str()) {
            return Err(unrestorable(&format!("a discipline has the kind {}", entry.kind)));
        }
        let words = options::to_text(&entry.kind, false, &entry.options);
        if options::TEXT_KINDS.contains(&entry.kind.as_str()) && words.starts_with(options::OCTETS) {
            return Err(unrestorable(&format!("{} {} has unknown settings", entry.kind, Handle(entry.handle))));
        }
    }
    let mut all = qdiscs.clone();
    if root.kind == "htb" || qdiscs.iter().any(|entry| entry.kind == "htb") {
        let classes = netlink.dump(GET_CLASS, &message(index, 0, 0, 0))?;
        let classes: Vec<_> =
            classes.iter().filter_map(|one| Entry::read(index, true, one)).collect::<io::Result<_>>()?;
        all.extend(classes.into_iter().filter(|class| class.kind == "htb"));
        for entry in all.iter().filter(|entry| entry.kind == "htb") {
            if !netlink.dump(GET_FILTER, &message(index, 0, entry.handle, 0))?.is_empty() {
                return Err(unrestorable(&format!("{} has filters", Handle(entry.handle))));
            }
        }
    }
    Ok(parents_first(all))
}

/// Sorts parents before children, and otherwise by number.
fn parents_first(mut rest: Vec<Entry>) -> Vec<Entry> {
    rest.sort_by_key(|entry| (!entry.is_class, entry.parent, entry.handle));
    let mut ordered: Vec<Entry> = Vec::new();
    loop {
        let is_next = |entry: &Entry| match (entry.is_class, entry.parent) {
            (false, ROOT) => true,
            // A class without a parent belongs to the discipline of its major number.
            (true, ROOT) => ordered.iter().any(|one| one.handle == entry.handle & 0xffff_0000),
            // Classes of some kinds are not listed. They exist with their discipline.
            (_, parent) => {
                let is_listed = rest.iter().any(|one| one.handle == parent);
                let parent = if is_listed { parent } else { parent & 0xffff_0000 };
                ordered.iter().any(|one| one.handle == parent)
            }
        };
        let Some(next) = rest.iter().position(is_next) else { break };
        ordered.push(rest.remove(next));
    }
    ordered
}

/// Returns the tree of an interface as text, see the [module](self).
pub(crate) fn read(interface: &str) -> io::Result<String> {
    let index = interface_index(interface)?;
    let entries = entries(&mut Netlink::route()?, index)?;
    if entries.is_empty() {
        return Ok(DEFAULT.to_owned());
    }
    Ok(entries.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Sets the tree of an interface. Frames in the former tree are lost, as with `tc qdisc replace`.
pub(crate) fn write(interface: &str, tree: &str) -> io::Result<()> {
    let wanted = parse(tree)?;
    let index = interface_index(interface)?;
    let mut netlink = Netlink::route()?;
    let qdiscs = netlink.dump(GET_QDISC, &message(index, 0, 0, 0))?;
    let mut qdiscs = qdiscs.iter().filter_map(|one| Entry::read(index, false, one)).flatten();
    if qdiscs.any(|entry| entry.parent == ROOT && entry.handle != 0) {
        netlink.request(DELETE_QDISC, 0, &message(index, 0, ROOT, 0))?;
    }
    for entry in wanted.iter().filter(|entry| entry.handle != 0) {
        let kind = if entry.is_class { NEW_CLASS } else { NEW_QDISC };
        // A queue of taprio reports taprio itself as its discipline until it receives another one.
        let flags = if entry.is_class || entry.parent == ROOT { NEW } else { CREATE_OR_REPLACE };
        let made = netlink.request(kind, flags, &entry.message(index));
        made.map_err(|why| io::Error::new(why.kind(), format!("{entry}: {why}{}", remedy(entry))))?;
    }
    restart_schedule(&mut netlink, index)
}

/// Restarts a gate schedule that uses the kernel's timers. The kernel stops them when a queue
/// receives a discipline or clsact is added or removed (`taprio_reset` in net/sched/sch_taprio.c).
/// It starts them only when it receives the schedule again.
fn restart_schedule(netlink: &mut Netlink, index: i32) -> io::Result<()> {
    let qdiscs = netlink.dump(GET_QDISC, &message(index, 0, 0, 0))?;
    let mut qdiscs = qdiscs.iter().filter_map(|one| Entry::read(index, false, one)).flatten();
    match qdiscs.find(|entry| entry.parent == ROOT && taprio::uses_kernel_timers(&entry.kind, &entry.options)) {
        Some(root) => netlink.request(NEW_QDISC, 0, &root.message(index)),
        None => Ok(()),
    }
}

/// Returns a remedy if a discipline cannot be created, where one is known.
fn remedy(entry: &Entry) -> &'static str {
    let words = options::to_text(&entry.kind, false, &entry.options);
    let has = |setting: &str| format!(" {words} ").contains(setting);
    match entry.kind.as_str() {
        "mqprio" if !has(" hw 0 ") => {
            "; if the card does not support this mapping of queues, use hw 0, or a plan without --offload"
        }
        "taprio" if has(" flags 2 ") => "; if the card does not support gate schedules, use a plan without --offload",
        "etf" if has(" offload on ") => "; if the card does not support launch times, use a plan without --offload",
        _ => "",
    }
}

/// Reports whether a tree assigns queues to priorities. Its creation and removal then reset the
/// assignment of queues to processors.
pub(crate) fn has_classes(tree: &str) -> bool {
    ["qdisc mqprio ", "qdisc taprio "].iter().any(|kind| tree.contains(kind))
}

fn parse(tree: &str) -> io::Result<Vec<Entry>> {
    if tree == DEFAULT {
        return Ok(Vec::new());
    }
    let entry = |text: &str| {
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidInput, format!("{text:?} is neither a discipline nor a class"));
        Entry::parse(text).ok_or_else(wrong)
    };
    tree.split(';').map(entry).collect()
}

/// Attributes of counters, and nested attributes.
const STATS: u16 = 7;
const STATS_BASIC: u16 = 1;

/// Returns the handle of the root discipline.
///
/// # Errors
/// The root discipline is the kernel's default.
pub(crate) fn root(interface: &str) -> io::Result<u32> {
    let index = interface_index(interface)?;
    let entries = entries(&mut Netlink::route()?, index)?;
    entries
        .first()
        .map(|root| root.handle)
        .ok_or_else(|| io::Error::other("the root discipline is the default of the kernel"))
}

/// Returns the class of the root discipline that is the queue of a priority.
///
/// # Errors
/// The root assigns no queues to priorities, or several to this priority.
pub(crate) fn leaf_of_priority(interface: &str, priority: u32) -> io::Result<u32> {
    let index = interface_index(interface)?;
    let entries = entries(&mut Netlink::route()?, index)?;
    let classes = |root: &Entry| match root.kind.as_str() {
        "mqprio" => classes::Classes::parse(&root.options),
        "taprio" => taprio::classes(&root.options),
        _ => None,
    };
    let root = entries.first();
    let queues = root.and_then(|root| Some((root.handle, classes(root)?.queues_of(priority)?)));
    match queues {
        Some((root, (1, queue))) => Ok(root | u32::from(queue + 1)),
        _ => Err(io::Error::other(format!("priority {priority} has no queue of its own"))),
    }
}

/// Returns the number of frames that left by the discipline below a class.
pub(crate) fn frames(interface: &str, class: u32) -> io::Result<u64> {
    let index = interface_index(interface)?;
    let qdiscs = Netlink::route()?.dump(GET_QDISC, &message(index, 0, 0, 0))?;
    let of_class = |message: &&Vec<u8>| {
        let number = |at: usize| message.get(at..).and_then(number);
        number(4) == Some(index.cast_unsigned()) && number(12) == Some(class)
    };
    let basic = |message: &Vec<u8>| {
        let basic = find(find(message.get(20..)?, STATS)?, STATS_BASIC)?;
        // Octets precede frames.
        number(basic.get(8..)?).map(u64::from)
    };
    let nothing = || io::Error::other(format!("the kernel has no counters of {}", Handle(class)));
    qdiscs.iter().find(of_class).and_then(basic).ok_or_else(nothing)
}

/// Reports whether the kernel has a kind of discipline. Requests one without its mandatory
/// settings, so that none is created.
///
/// # Errors
/// Only root may send the request.
pub(crate) fn has_kind(kind: &str) -> io::Result<bool> {
    debug_assert!(["mqprio", "taprio", "etf"].contains(&kind), "the kernel does not create it without settings");
    let mut body = message(interface_index("lo")?, 0, ROOT, 0);
    put_text(&mut body, KIND, kind);
    match Netlink::route()?.request(NEW_QDISC, NEW, &body).map_err(|e| (takt_netlink::code(&e), e)) {
        Ok(()) => Err(io::Error::other(format!("the kernel created {kind} without settings"))),
        Err((Some(libc::ENOENT), _)) => Ok(false),
        Err((Some(libc::EPERM), why)) => Err(why),
        Err(_) => Ok(true),
    }
}

/// Returns the discipline outside the tree: `none`, `clsact` or `ingress`.
pub(crate) fn read_clsact(interface: &str) -> io::Result<String> {
    let index = interface_index(interface)?;
    let qdiscs = Netlink::route()?.dump(GET_QDISC, &message(index, 0, 0, 0))?;
    let kind = |message: &Vec<u8>| {
        let is_on_interface =
            number(message.get(4..)?)? == index.cast_unsigned() && number(message.get(12..)?)? == CLSACT;
        is_on_interface.then(|| find(message.get(20..)?, KIND).map(text)).flatten()
    };
    Ok(qdiscs.iter().find_map(kind).unwrap_or_else(|| "none".to_owned()))
}

/// Adds or removes `clsact`. Fails as long as there are filters.
pub(crate) fn write_clsact(interface: &str, kind: &str) -> io::Result<()> {
    let index = interface_index(interface)?;
    let now = read_clsact(interface)?;
    let mut netlink = Netlink::route()?;
    match (now.as_str(), kind) {
        ("none", "clsact") => {
            let mut body = message(index, CLSACT_HANDLE, CLSACT, 0);
            put_text(&mut body, KIND, kind);
            netlink.request(NEW_QDISC, NEW, &body)?;
        }
        ("clsact", "none") => {
            for parent in [INGRESS, EGRESS] {
                if !netlink.dump(GET_FILTER, &message(index, 0, parent, 0))?.is_empty() {
                    return Err(io::Error::other("another program has added filters to clsact since"));
                }
            }
            netlink.request(DELETE_QDISC, 0, &message(index, 0, CLSACT, 0))?;
        }
        (now, kind) if now == kind => return Ok(()),
        (now, kind) => return Err(io::Error::other(format!("{now} cannot become {kind}"))),
    }
    restart_schedule(&mut netlink, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_parsed_and_formatted() {
        let tree = "qdisc htb 1: root default 20 r2q 10 direct_qlen 1000; \
             class htb 1:1 root rate 12500000 ceil 12500000 burst_ticks 2000 cburst_ticks 2000 quantum 1514 prio 0 overhead 24; \
             qdisc pfifo 10: parent 1:1 limit 100; qdisc tbf 11: parent 1:2 octets 00ff";
        let entries = parse(tree).expect("a tree");
        assert_eq!(entries.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "), tree);
        assert_eq!(parse("default").map(|entries| entries.len()).map_err(|e| e.kind()), Ok(0));
        for wrong in [
            "qdisc mqprio 1: root hw 0",
            "",
            "qdisc",
            "qdisc mq 1 root",
            "qdisc mq 1: over 1:2",
            "filter u32 1: root",
            "qdisc mq 1: root fast",
        ] {
            assert_eq!(parse(wrong).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput), "{wrong}");
        }
    }

    /// Two classes, in the octets that `tc qdisc add .. mqprio`, `taprio` and `etf` of iproute2 6.1
    /// send to the kernel.
    #[test]
    fn disciplines_with_classes_are_parsed_and_formatted() {
        let map = "map 0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0 queues 3@0,1@3";
        for settings in [
            format!("mqprio 1: root {map} hw 0"),
            format!("mqprio 1: root {map} hw 1 mode channel shaper dcb"),
            format!("taprio 1: root {map} clock tai flags 0 base_time 7 cycle 900 entries S:2:300,S:1:600"),
            format!("taprio 1: root {map} flags 2 base_time -7 cycle 900 extension 5 entries H:ff:300,R:0:600"),
            format!("taprio 1: root {map} clock tai flags 1 txtime_delay 9 base_time 0 cycle 1 entries S:3:1"),
            "etf 13: parent 1:4 clock tai delta 300000 offload off deadline on skip_sock_check off".to_owned(),
        ] {
            let tree = format!("qdisc {settings}");
            let entries = parse(&tree).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(entries.iter().map(ToString::to_string).collect::<Vec<_>>(), [tree.as_str()]);
            assert_eq!(options::normal(&entries[0].kind, false, &entries[0].options), entries[0].options, "{tree}");
            // Truncated options do not cause a panic.
            for len in 0..entries[0].options.len() {
                options::to_text(&entries[0].kind, false, &entries[0].options[..len]);
                options::normal(&entries[0].kind, false, &entries[0].options[..len]);
            }
        }
        for wrong in [
            format!("mqprio 1: root {map}"),
            format!("mqprio 1: root {map} hw 0 mode fast"),
            "mqprio 1: root map 0,0,0,0,0,2,0,0,0,0,0,0,0,0,0,0 queues 3@0,1@3 hw 0".to_owned(),
            "mqprio 1: root map 0,0 queues 3@0,1@3 hw 0".to_owned(),
            format!("taprio 1: root {map} clock moon flags 0 base_time 7 cycle 900 entries S:2:300"),
            format!("taprio 1: root {map} clock tai flags 0 base_time 7 cycle 900 entries S:2"),
            format!("taprio 1: root {map} clock tai flags 0 base_time 7 cycle 900 entries X:2:300"),
            "etf 13: parent 1:4 clock tai delta 300000 offload maybe deadline on skip_sock_check off".to_owned(),
        ] {
            assert_eq!(
                parse(&format!("qdisc {wrong}")).map_err(|e| e.kind()),
                Err(io::ErrorKind::InvalidInput),
                "{wrong}"
            );
        }
        assert!(has_classes("qdisc mqprio 1: root map") && !has_classes("qdisc mq 1: root"));
    }

    #[test]
    fn parents_precede_their_children() {
        let tree = "qdisc htb 9: root default 0 r2q 10; class htb 9:1 root octets 00; class htb 9:5 parent 9:1 octets 00; \
             class htb 9:3 parent 9:5 octets 00; qdisc pfifo 2: parent 9:3 limit 1";
        let mut entries = parse(tree).expect("a tree");
        entries.reverse();
        let ordered = parents_first(entries);
        assert_eq!(ordered.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "), tree);
        let leaves = "qdisc mq 1: root; qdisc pfifo_fast 0: parent 1:2; qdisc pfifo 10: parent 1:1 limit 7";
        let mut entries = parse(leaves).expect("a tree");
        entries.reverse();
        assert_eq!(parents_first(entries).len(), 3, "classes of mq are not listed");
    }
}

//! Names and descriptions of the controller's counters.

/// Description of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterDescription {
    /// Name in [`View::counters`](super::View::counters).
    pub name: &'static str,
    /// Description of the counted events.
    pub help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> CounterDescription {
    CounterDescription { name, help }
}

/// Counters of the controller, in the order of `Controller::counter_values`.
pub const COUNTERS: [CounterDescription; 47] = [
    counter("packets", "Packets from switches."),
    counter("malformed_packets", "Packets from switches that are not frames, or are truncated."),
    counter("ignored_packets", "Packets from ports that do not forward yet, or from unknown switches."),
    counter("spoofed_frames", "Frames whose source is attached to another port."),
    counter("refused_frames", "Frames dropped because their host exceeds the limit, or their source is not a host."),
    counter("directed_requests", "ARP requests and neighbor solicitations sent only to the requested host."),
    counter("flooded_frames", "Frames flooded to all edge ports."),
    counter("forwarded_frames", "Frames forwarded to one port."),
    counter("unreachable_frames", "Frames to hosts without a path."),
    counter("discovery_frames", "Frames of DDS discovery."),
    counter("unsent_messages", "Messages dropped because the send buffer of a switch was full."),
    counter("control_excess", "Control frames above the allowance of their port, sent in the lowest class."),
    counter("host_excess", "Packets to hosts above their limit, dropped by meters of switches."),
    counter("host_excess_of_controller", "Frames to hosts above their limit, not sent by the controller."),
    counter("isolated_frames", "Frames not forwarded because the isolation policy denies them."),
    counter("filters_without_room", "Filters of the isolation policy between participants that exceed a limit."),
    counter("rules_without_room", "Rules for hosts that exceed the table of a switch."),
    counter("switch_errors", "Errors of switches about packets."),
    counter("events_dropped", "Events that were dropped."),
    counter("registrations_expired", "Registrations whose lease ended."),
    counter("polls", "Readings of the counters of a switch."),
    counter("polls_left_out", "Readings skipped because the switch had not answered the previous one."),
    counter("polls_failed", "Counters that a switch refused, or did not report in time."),
    counter("contracts_broken", "Episodes in which the meter of an admitted flow dropped frames."),
    counter("probes_sent", "LLDP probes sent."),
    counter("probes_accepted", "LLDP probes accepted."),
    counter("probes_foreign", "LLDP frames of other senders, or malformed ones."),
    counter("probes_forged", "LLDP probes with a wrong authentication code."),
    counter("probes_repeated", "LLDP probes that were accepted before, or are too old."),
    counter("probes_late", "LLDP probes that were in transit for too long."),
    counter("probes_looped", "LLDP probes that returned to their own switch."),
    counter("ports_refused", "Ports of switches beyond the limit."),
    counter("rtps_messages", "Frames with RTPS messages of discovery ports."),
    counter("rtps_passed", "RTPS messages forwarded unchanged."),
    counter("ip_fragments", "Fragments of IP packets with UDP that were dropped."),
    counter("discovery_floods", "Discovery frames dropped because their host exceeds its rate."),
    counter("announcements_malformed", "Submessages or announcements that cannot be parsed."),
    counter("announcements_forged", "Submessages rejected as forged."),
    counter("announcements_of_strangers", "Announcements of participants that did not announce themselves."),
    counter("announcements_limited", "Announcements withheld because of a limit."),
    counter("announcements_held", "Announcements held until a verdict."),
    counter("announcements_refused", "Announcements sent as incompatible or as GAP because of a refusal."),
    counter("changes_inserted", "Changes inserted into streams of discovery."),
    counter("announcements_unfinished", "Incomplete announcements that were discarded."),
    counter("submessages_opaque", "Secured submessages and DATA of secured writers."),
    counter("discovery_events_lost", "Events of the interceptor dropped because of a limit."),
    counter("discovery_frames_lost", "Frames of the interceptor dropped because of a limit, or without a path."),
];

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
    counter("malformed_packets", "Packets from switches that are no frames, or were cut."),
    counter("ignored_packets", "Packets from ports that carry nothing yet, or from unknown switches."),
    counter("spoofed_frames", "Frames with a source that is elsewhere."),
    counter(
        "refused_frames",
        "Frames dropped since there is no room for their host, or since their source is no host.",
    ),
    counter("directed_requests", "ARP requests and neighbour solicitations that went to the host alone."),
    counter("flooded_frames", "Frames that went to all edges."),
    counter("forwarded_frames", "Frames that went to one port."),
    counter("unreachable_frames", "Frames to hosts to which no way leads."),
    counter("discovery_frames", "Frames of DDS discovery."),
    counter("unsent_messages", "Messages that a connection of a switch had no room for."),
    counter(
        "control_excess",
        "Frames of control traffic beyond the allowance of their port, sent in the lowest class.",
    ),
    counter("host_excess", "Packets to hosts beyond their limit that meters of switches dropped."),
    counter("host_excess_of_controller", "Frames to hosts beyond their limit that the controller did not send."),
    counter("isolated_frames", "Frames that the controller did not forward since the policy of isolation denies them."),
    counter("filters_without_room", "Filters of the policy of isolation between participants that found no room."),
    counter("rules_without_room", "Rules for hosts that did not fit."),
    counter("switch_errors", "Errors of switches about packets."),
    counter("events_dropped", "Events that were dropped."),
    counter("registrations_expired", "Registrations whose lease ended."),
    counter("polls", "Readings of the counters of a switch."),
    counter("polls_left_out", "Readings that were left out, since the switch had not answered the one before."),
    counter("polls_failed", "Counters that a switch refused, or did not give in time."),
    counter("contracts_broken", "Episodes in which the meter of an admitted flow dropped frames."),
    counter("probes_sent", "LLDP probes sent."),
    counter("probes_accepted", "LLDP probes accepted."),
    counter("probes_foreign", "LLDP frames of others, or malformed ones."),
    counter("probes_forged", "LLDP probes with a wrong authentication code."),
    counter("probes_repeated", "LLDP probes that were accepted before, or are too old."),
    counter("probes_late", "LLDP probes that were on their way for too long."),
    counter("probes_looped", "LLDP probes that came back to their own switch."),
    counter("ports_refused", "Ports of switches beyond the limit."),
    counter("rtps_messages", "Frames with RTPS messages of discovery ports."),
    counter("rtps_passed", "RTPS messages that went as they came."),
    counter("ip_fragments", "Fragments of IP packets with UDP that were dropped."),
    counter("discovery_floods", "Discovery frames of a host beyond its rate, which were dropped."),
    counter("announcements_malformed", "Submessages or announcements that are not readable."),
    counter("announcements_forged", "Submessages that were not believed."),
    counter("announcements_of_strangers", "Announcements of participants that did not announce themselves."),
    counter("announcements_limited", "Announcements that a limit withheld."),
    counter("announcements_held", "Announcements that were held until a verdict."),
    counter("announcements_refused", "Announcements that went out incompatible or as GAP because of a refusal."),
    counter("changes_inserted", "Changes inserted into streams of discovery."),
    counter("announcements_unfinished", "Incomplete announcements that were forgotten."),
    counter("submessages_opaque", "Secured submessages and DATA of secured writers."),
    counter("discovery_events_lost", "Events of the interceptor that found no room."),
    counter("discovery_frames_lost", "Frames of the interceptor that found no room, or no way."),
];

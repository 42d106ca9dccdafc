//! ERROR messages: named causes, and numbers for unknown ones (OF 1.3.5 §7.4.4).

use alloc::vec::Vec;
use core::fmt;

use crate::error::Malformed;
use crate::value::ONF;
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// First number of the ONF errors for bundles in 1.3 (ONF extension 230).
const ONF_BUNDLE_FAILED: u16 = 2300;
const EXPERIMENTER: u16 = 0xffff;

macro_rules! causes {
    ($($(#[$kind_meta:meta])* $kind:ident = $number:literal { $($code:ident = $code_number:literal, $text:literal;)* })*) => {
        $(
            $(#[$kind_meta])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            #[non_exhaustive]
            pub enum $kind {
                $(#[doc = concat!("The code ", stringify!($code_number), ": ", $text, ".")] $code,)*
                /// Code without a name in this crate.
                Other(u16),
            }

            impl $kind {
                const fn from_code(code: u16) -> Self {
                    match code {
                        $($code_number => Self::$code,)*
                        other => Self::Other(other),
                    }
                }

                const fn code(self) -> u16 {
                    match self {
                        $(Self::$code => $code_number,)*
                        Self::Other(code) => code,
                    }
                }
            }

            impl fmt::Display for $kind {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    match self {
                        $(Self::$code => f.write_str($text),)*
                        Self::Other(code) => write!(f, "code {code}"),
                    }
                }
            }
        )*

        /// Cause of a failed request.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum Cause {
            $($(#[$kind_meta])* $kind($kind),)*
            /// Experimenter error.
            Experimenter {
                /// Experimenter ID.
                experimenter: u32,
                /// Error type of the experimenter.
                kind: u16,
            },
            /// Type without a name in this crate.
            Other {
                /// Error type.
                kind: u16,
                /// Error code.
                code: u16,
            },
        }

        impl Cause {
            /// Converts type and code of OpenFlow 1.3 to 1.5.
            const fn from_numbers(kind: u16, code: u16) -> Self {
                match kind {
                    $($number => Self::$kind($kind::from_code(code)),)*
                    _ => Self::Other { kind, code },
                }
            }

            /// Returns type and code of OpenFlow 1.3 to 1.5.
            const fn numbers(self) -> (u16, u16) {
                match self {
                    $(Self::$kind(code) => ($number, code.code()),)*
                    Self::Experimenter { kind, .. } => (EXPERIMENTER, kind),
                    Self::Other { kind, code } => (kind, code),
                }
            }
        }

        impl fmt::Display for Cause {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$kind(code) => write!(f, "{}: {code}", stringify!($kind)),)*
                    Self::Experimenter { experimenter, kind } => {
                        write!(f, "error {kind} of the experimenter {experimenter:#010x}")
                    }
                    Self::Other { kind, code } => write!(f, "error {kind}, code {code}"),
                }
            }
        }

        #[cfg(test)]
        const NUMBERED: &[(u16, u16)] = &[$($(($number, $code_number),)*)*];
    };
}

causes! {
    /// The HELLO handshake failed: the versions are incompatible, or the peer is not permitted.
    HelloFailed = 0 {
        Incompatible = 0, "no compatible version";
        Eperm = 1, "permission denied";
    }
    /// The request is invalid.
    BadRequest = 1 {
        BadVersion = 0, "version is not supported";
        BadType = 1, "type of message is not supported";
        BadMultipart = 2, "type of multipart request is not supported";
        BadExperimenter = 3, "experimenter is not supported";
        BadExpType = 4, "experimenter's type is not supported";
        Eperm = 5, "permission denied";
        BadLen = 6, "wrong length for the type";
        BufferEmpty = 7, "buffer has been used";
        BufferUnknown = 8, "buffer does not exist";
        BadTableId = 9, "table does not exist";
        IsSlave = 10, "controller is slave";
        BadPort = 11, "port is invalid or missing";
        BadPacket = 12, "packet is invalid";
        MultipartBufferOverflow = 13, "multipart request overflows its buffer";
        MultipartRequestTimeout = 14, "multipart request timed out";
        MultipartReplyTimeout = 15, "multipart reply timed out";
        MultipartBadSched = 16, "scheduling tolerance cannot be set";
        PipelineFieldsOnly = 17, "match fields must be pipeline fields";
        Unknown = 18, "unspecified";
    }
    /// An action is invalid.
    BadAction = 2 {
        BadType = 0, "unknown action";
        BadLen = 1, "wrong length";
        BadExperimenter = 2, "unknown experimenter";
        BadExpType = 3, "unknown action of the experimenter";
        BadOutPort = 4, "port of output cannot be used";
        BadArgument = 5, "wrong argument";
        Eperm = 6, "permission denied";
        TooMany = 7, "too many actions";
        BadQueue = 8, "queue cannot be used";
        BadOutGroup = 9, "group does not exist";
        MatchInconsistent = 10, "action does not fit the match";
        UnsupportedOrder = 11, "order is not supported";
        BadTag = 12, "tag is not supported";
        BadSetType = 13, "field cannot be set";
        BadSetLen = 14, "wrong length of a field to set";
        BadSetArgument = 15, "wrong value of a field to set";
        BadSetMask = 16, "wrong mask of a field to set";
        BadMeter = 17, "meter does not exist";
    }
    /// An instruction is invalid.
    BadInstruction = 3 {
        UnknownInst = 0, "unknown instruction";
        UnsupInst = 1, "instruction is not supported by the table";
        BadTableId = 2, "table does not exist";
        UnsupMetadata = 3, "metadata is not supported";
        UnsupMetadataMask = 4, "mask of metadata is not supported";
        BadExperimenter = 5, "unknown experimenter";
        BadExpType = 6, "unknown instruction of the experimenter";
        BadLen = 7, "wrong length";
        Eperm = 8, "permission denied";
        DupInst = 9, "instruction occurs twice";
    }
    /// A match is invalid.
    BadMatch = 4 {
        BadType = 0, "type of match is not supported";
        BadLen = 1, "wrong length";
        BadTag = 2, "tag is not supported";
        BadDlAddrMask = 3, "mask of a link-layer address is not supported";
        BadNwAddrMask = 4, "mask of a network address is not supported";
        BadWildcards = 5, "combination of fields is not supported";
        BadField = 6, "field is not supported";
        BadValue = 7, "value is not supported";
        BadMask = 8, "mask is not supported";
        BadPrereq = 9, "prerequisite is not met";
        DupField = 10, "field occurs twice";
        Eperm = 11, "permission denied";
    }
    /// A flow was not added, changed or deleted.
    FlowModFailed = 5 {
        Unknown = 0, "unspecified";
        TableFull = 1, "table is full";
        BadTableId = 2, "table does not exist";
        Overlap = 3, "flow overlaps with another";
        Eperm = 4, "permission denied";
        BadTimeout = 5, "timeout is not supported";
        BadCommand = 6, "unknown command";
        BadFlags = 7, "flags are not supported";
        CantSync = 8, "tables cannot be synchronized";
        BadPriority = 9, "priority is not supported";
        IsSync = 10, "synchronized flow is read-only";
    }
    /// A group was not added, changed or deleted.
    GroupModFailed = 6 {
        GroupExists = 0, "group exists";
        InvalidGroup = 1, "group is invalid";
        WeightUnsupported = 2, "weights are not supported";
        OutOfGroups = 3, "group table is full";
        OutOfBuckets = 4, "too many buckets";
        ChainingUnsupported = 5, "groups cannot forward to groups";
        WatchUnsupported = 6, "port or group cannot be watched";
        Loop = 7, "groups form a loop";
        UnknownGroup = 8, "group does not exist";
        ChainedGroup = 9, "another group forwards to it";
        BadType = 10, "type of group is not supported";
        BadCommand = 11, "unknown command";
        BadBucket = 12, "bucket is wrong";
        BadWatch = 13, "watched port or group is wrong";
        Eperm = 14, "permission denied";
        UnknownBucket = 15, "bucket does not exist";
        BucketExists = 16, "bucket exists";
    }
    /// A port was not changed.
    PortModFailed = 7 {
        BadPort = 0, "port does not exist";
        BadHwAddr = 1, "address is not that of the port";
        BadConfig = 2, "configuration is not supported";
        BadAdvertise = 3, "advertisement is not supported";
        Eperm = 4, "permission denied";
    }
    /// A table was not changed.
    TableModFailed = 8 {
        BadTable = 0, "table does not exist";
        BadConfig = 1, "configuration is not supported";
        Eperm = 2, "permission denied";
    }
    /// An operation on a queue failed.
    QueueOpFailed = 9 {
        BadPort = 0, "port does not exist";
        BadQueue = 1, "queue does not exist";
        Eperm = 2, "permission denied";
    }
    /// The configuration of the switch was not set.
    SwitchConfigFailed = 10 {
        BadFlags = 0, "flags are not supported";
        BadLen = 1, "miss_send_len is not supported";
        Eperm = 2, "permission denied";
    }
    /// The role was not changed.
    RoleRequestFailed = 11 {
        Stale = 0, "generation id is stale";
        Unsup = 1, "roles are not supported";
        BadRole = 2, "unknown role";
        IdUnsup = 3, "short id cannot be changed";
        IdInUse = 4, "short id is in use";
    }
    /// A meter was not added, changed or deleted.
    MeterModFailed = 12 {
        Unknown = 0, "unspecified";
        MeterExists = 1, "meter exists";
        InvalidMeter = 2, "meter is invalid";
        UnknownMeter = 3, "meter does not exist";
        BadCommand = 4, "unknown command";
        BadFlags = 5, "flags are not supported";
        BadRate = 6, "rate is not supported";
        BadBurst = 7, "burst is not supported";
        BadBand = 8, "band is not supported";
        BadBandValue = 9, "value of a band is not supported";
        OutOfMeters = 10, "no more meters";
        OutOfBands = 11, "too many bands";
    }
    /// The features of tables were not set.
    TableFeaturesFailed = 13 {
        BadTable = 0, "table does not exist";
        BadMetadata = 1, "mask of metadata is wrong";
        BadType = 2, "unknown type of property";
        BadLen = 3, "wrong length of a property";
        BadArgument = 4, "value of a property is not supported";
        Eperm = 5, "permission denied";
        BadCap = 6, "capability is wrong";
        BadMaxEnt = 7, "number of entries is wrong";
        BadFeatures = 8, "features are wrong";
        BadCommand = 9, "unknown command";
        TooMany = 10, "too many tables";
    }
    /// A property is invalid.
    BadProperty = 14 {
        BadType = 0, "unknown type";
        BadLen = 1, "wrong length";
        BadValue = 2, "value is not supported";
        TooMany = 3, "too many properties";
        DupType = 4, "type occurs twice";
        BadExperimenter = 5, "unknown experimenter";
        BadExpType = 6, "unknown type of the experimenter";
        BadExpValue = 7, "unknown value of the experimenter";
        Eperm = 8, "permission denied";
    }
    /// Asynchronous messages were not configured.
    AsyncConfigFailed = 15 {
        Invalid = 0, "mask is invalid";
        Unsupported = 1, "configuration is not supported";
        Eperm = 2, "permission denied";
    }
    /// A flow monitor was not set.
    FlowMonitorFailed = 16 {
        Unknown = 0, "unspecified";
        MonitorExists = 1, "monitor exists";
        InvalidMonitor = 2, "monitor is invalid";
        UnknownMonitor = 3, "monitor does not exist";
        BadCommand = 4, "unknown command";
        BadFlags = 5, "flags are not supported";
        BadTableId = 6, "table does not exist";
        BadOut = 7, "port or group is wrong";
    }
    /// An operation on a bundle failed.
    BundleFailed = 17 {
        Unknown = 0, "unspecified";
        Eperm = 1, "permission denied";
        BadId = 2, "bundle does not exist";
        BundleExist = 3, "bundle exists";
        BundleClosed = 4, "bundle is closed";
        OutOfBundles = 5, "no more bundles";
        BadType = 6, "unknown type of control";
        BadFlags = 7, "flags are not supported or differ";
        MsgBadLen = 8, "wrong length of the included message";
        MsgBadXid = 9, "transaction id of the included message differs";
        MsgUnsup = 10, "message cannot be in a bundle";
        MsgConflict = 11, "messages cannot be in one bundle";
        MsgTooMany = 12, "too many messages";
        MsgFailed = 13, "a message of the bundle failed";
        Timeout = 14, "bundle takes too long";
        BundleInProgress = 15, "another bundle locks the resource";
        SchedNotSupported = 16, "scheduling is not supported";
        SchedFuture = 17, "time is too far in the future";
        SchedPast = 18, "time is too far in the past";
    }
}

impl Cause {
    /// Converts type and code of OpenFlow 1.0, which differ from later versions.
    const fn from_numbers_1_0(kind: u16, code: u16) -> Self {
        match (kind, code) {
            (0, 0 | 1) | (1, 0..=8) | (2, 0..=8) => Self::from_numbers(kind, code),
            (3, 0) => Self::FlowModFailed(FlowModFailed::TableFull),
            (3, 1) => Self::FlowModFailed(FlowModFailed::Overlap),
            (3, 2) => Self::FlowModFailed(FlowModFailed::Eperm),
            (3, 3) => Self::FlowModFailed(FlowModFailed::BadTimeout),
            (3, 4) => Self::FlowModFailed(FlowModFailed::BadCommand),
            (4, 0 | 1) => Self::from_numbers(7, code),
            (5, 0..=2) => Self::from_numbers(9, code),
            _ => Self::Other { kind, code },
        }
    }

    /// Returns type and code of OpenFlow 1.0, if it has the cause.
    fn numbers_1_0(self) -> Option<(u16, u16)> {
        if let Self::Other { kind, code } = self {
            return Some((kind, code));
        }
        (0..=5)
            .flat_map(|kind| (0..=8).map(move |code| (kind, code)))
            .find(|(kind, code)| Self::from_numbers_1_0(*kind, *code) == self)
    }
}

/// ERROR message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorMessage {
    /// Cause of the error.
    pub cause: Cause,
    /// The failed message or its beginning, at least 64 octets if it is that long. Text for a
    /// failed HELLO.
    pub data: Vec<u8>,
}

impl Wire for ErrorMessage {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, code) = (r.u16()?, r.u16()?);
        let cause = match (r.version(), kind) {
            (Version::V1_0, _) => Cause::from_numbers_1_0(kind, code),
            (version, EXPERIMENTER) => {
                let experimenter = r.u32()?;
                match code.checked_sub(ONF_BUNDLE_FAILED) {
                    Some(bundle @ 0..=15) if experimenter == ONF && version == Version::V1_3 => {
                        Cause::BundleFailed(BundleFailed::from_code(bundle))
                    }
                    _ => Cause::Experimenter { experimenter, kind: code },
                }
            }
            (Version::V1_3, 14..) => Cause::Other { kind, code },
            _ => Cause::from_numbers(kind, code),
        };
        Ok(Self { cause, data: r.rest().to_vec() })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let (kind, code, experimenter) = match (w.version(), self.cause) {
            (Version::V1_0, cause) => {
                w.refuse_if(cause.numbers_1_0().is_none(), "this cause of an error");
                let (kind, code) = cause.numbers_1_0().unwrap_or_default();
                (kind, code, None)
            }
            (Version::V1_3, Cause::BundleFailed(code)) if code.code() <= 15 => {
                (EXPERIMENTER, ONF_BUNDLE_FAILED + code.code(), Some(ONF))
            }
            (_, Cause::Experimenter { experimenter, kind }) => (EXPERIMENTER, kind, Some(experimenter)),
            (_, cause) => {
                let (kind, code) = cause.numbers();
                let is_later = w.version() == Version::V1_3 && kind > 13 && !matches!(cause, Cause::Other { .. });
                w.refuse_if(is_later, "this cause of an error");
                w.refuse_if(kind == EXPERIMENTER, "an experimenter's error without its experimenter");
                (kind, code, None)
            }
        };
        w.u16(kind);
        w.u16(code);
        if let Some(experimenter) = experimenter {
            w.u32(experimenter);
        }
        w.bytes(&self.data);
    }
}

impl fmt::Display for ErrorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn read(version: Version, octets: &[u8]) -> ErrorMessage {
        ErrorMessage::read(&mut Reader::new(version, octets)).expect("well formed")
    }

    fn written(version: Version, cause: Cause) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut w = Writer::new(version, &mut out);
        ErrorMessage { cause, data: vec![] }.write(&mut w);
        w.error().is_none().then_some(out)
    }

    #[test]
    fn every_pair_of_numbers_round_trips() {
        for version in Version::ALL {
            for kind in (0..20).chain([0xfffe]) {
                for code in (0..25).chain([0xffff]) {
                    let octets = [u16::to_be_bytes(kind), u16::to_be_bytes(code)].concat();
                    let message = read(version, &octets);
                    assert_eq!(written(version, message.cause), Some(octets), "{version} {message:?}");
                }
            }
        }
    }

    #[test]
    fn known_numbers_have_named_causes() {
        for (kind, code) in NUMBERED {
            let cause = Cause::from_numbers(*kind, *code);
            assert!(!cause.to_string().contains("code "), "{cause}");
            assert_eq!(cause.numbers(), (*kind, *code));
        }
        assert_eq!(Cause::from_numbers(99, 3).to_string(), "error 99, code 3");
    }

    #[test]
    fn bundle_errors_of_1_3_are_those_of_the_onf_extension() {
        let octets = [&[0xff, 0xff][..], &2313u16.to_be_bytes(), &ONF.to_be_bytes()].concat();
        let message = read(Version::V1_3, &octets);
        assert_eq!(message.cause, Cause::BundleFailed(BundleFailed::MsgFailed));
        assert_eq!(written(Version::V1_3, message.cause), Some(octets.clone()));
        assert_eq!(read(Version::V1_4, &octets).cause, Cause::Experimenter { experimenter: ONF, kind: 2313 });
        assert_eq!(written(Version::V1_4, message.cause), Some(vec![0, 17, 0, 13]));
    }

    #[test]
    fn causes_unknown_to_1_0_are_refused() {
        assert_eq!(written(Version::V1_0, Cause::BadMatch(BadMatch::BadPrereq)), None);
        assert_eq!(written(Version::V1_0, Cause::FlowModFailed(FlowModFailed::Overlap)), Some(vec![0, 3, 0, 1]));
    }
}

//! OpenFlow messages: header, decoding and encoding by version (OF 1.3.5 §7.1).

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bundle::{BundleAdd, BundleControl};
use crate::cause::ErrorMessage;
use crate::error::{EncodeError, Malformed};
use crate::flow::{FlowMod, FlowRemoved};
use crate::group::GroupMod;
use crate::hello::Hello;
use crate::meter::MeterMod;
use crate::multipart::{MultipartReply, MultipartRequest};
use crate::packet::{PacketIn, PacketOut};
use crate::port::{PortMod, PortStatus};
use crate::queue::QueueConfig;
use crate::switch::{AsyncConfig, ControllerStatus, Features, RoleMessage, RoleStatus, SwitchConfig};
use crate::table::{TableMod, TableStatus};
use crate::value::{Experimenter, ONF, PortNo};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Length of the header, in octets.
pub const HEADER_LEN: usize = 8;
/// Length of the longest message, in octets. The length field has 16 bits.
pub const MESSAGE_LEN_MAX: usize = 65_535;

/// Transaction ID of a request and of its reply.
pub type Xid = u32;

/// Header of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Wire version, which need not be one of [`Version`].
    pub version: u8,
    /// Message type, whose meaning depends on the version.
    pub kind: u8,
    /// Length of the message including the header, in octets.
    pub len: u16,
    /// Transaction ID.
    pub xid: Xid,
}

impl Header {
    /// Parses the header of a message. Returns `None` if there are fewer than [`HEADER_LEN`]
    /// octets.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [version, kind, a, b, xid @ ..] = *bytes.first_chunk::<HEADER_LEN>()?;
        Some(Self { version, kind, len: u16::from_be_bytes([a, b]), xid: u32::from_be_bytes(xid) })
    }
}

/// Message within another one: of a bundle, or forwarded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enclosed {
    /// Transaction ID of the enclosed message.
    pub xid: Xid,
    /// Enclosed message. It never encloses another one.
    pub message: Box<Message>,
}

impl Wire for Enclosed {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut lookahead = *r;
        lookahead.reserved(2)?;
        let len = usize::from(lookahead.u16()?);
        let at = *r;
        let (xid, message) = read_message(r.sub(len)?)?;
        if message.encloses_another() {
            return Err(at.malformed("message is nested too deeply"));
        }
        Ok(Self { xid, message: Box::new(message) })
    }

    fn write(&self, w: &mut Writer<'_>) {
        if self.message.encloses_another() {
            return w.refuse("a message that is nested twice");
        }
        write_message(&self.message, self.xid, w);
    }
}

macro_rules! messages {
    (
        empty { $($(#[$empty_meta:meta])* $empty:ident;)* }
        with { $($(#[$meta:meta])* $name:ident($body:ty);)* }
    ) => {
        /// Message of any version.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Message {
            $($(#[$empty_meta])* $empty,)*
            $($(#[$meta])* $name($body),)*
            /// Checks that the peer is alive. Any octets.
            EchoRequest(Vec<u8>),
            /// Reply with the octets of the request.
            EchoReply(Vec<u8>),
            /// Requests the queues of a port. Up to 1.3.
            QueueGetConfigRequest(PortNo),
        }

        impl Message {
            fn write_body(&self, w: &mut Writer<'_>) {
                match self {
                    $(Self::$empty => {})*
                    $(Self::$name(body) => body.write(w),)*
                    Self::EchoRequest(octets) | Self::EchoReply(octets) => w.bytes(octets),
                    Self::QueueGetConfigRequest(port) => {
                        port.write(w);
                        w.reserved(if w.version() == Version::V1_0 { 2 } else { 4 });
                    }
                }
            }
        }
    };
}

messages! {
    empty {
        /// Requests the features of the switch.
        FeaturesRequest;
        /// Requests the configuration of the switch.
        GetConfigRequest;
        /// Requests a reply after all earlier messages are processed.
        BarrierRequest;
        /// Confirms that all messages before the request are processed.
        BarrierReply;
        /// Requests the configuration of asynchronous messages.
        GetAsyncRequest;
    }
    with {
        /// First message of both ends.
        Hello(Hello);
        /// Report that a request failed.
        Error(ErrorMessage);
        /// Experimenter message.
        Experimenter(Experimenter);
        /// Features of the switch.
        FeaturesReply(Features);
        /// Configuration of the switch.
        GetConfigReply(SwitchConfig);
        /// Configures the switch.
        SetConfig(SwitchConfig);
        /// Packet for the controller.
        PacketIn(PacketIn);
        /// Report that a flow ended.
        FlowRemoved(FlowRemoved);
        /// Report that a port was added, removed or changed.
        PortStatus(PortStatus);
        /// Sends a packet.
        PacketOut(PacketOut);
        /// Adds, modifies or deletes flows.
        FlowMod(FlowMod);
        /// Adds, modifies or deletes groups. Since 1.1.
        GroupMod(GroupMod);
        /// Configures a port.
        PortMod(PortMod);
        /// Configures a table. Since 1.1.
        TableMod(TableMod);
        /// Request whose reply may consist of several messages.
        MultipartRequest(MultipartRequest);
        /// Reply to a multipart request, or a part of it.
        MultipartReply(MultipartReply);
        /// Queues of a port. Up to 1.3.
        QueueGetConfigReply(QueueConfig);
        /// Requests a role. Since 1.2.
        RoleRequest(RoleMessage);
        /// Role of the controller. Since 1.2.
        RoleReply(RoleMessage);
        /// Configuration of asynchronous messages. Since 1.3.
        GetAsyncReply(AsyncConfig);
        /// Configures asynchronous messages. Since 1.3.
        SetAsync(AsyncConfig);
        /// Adds, modifies or deletes meters. Since 1.3.
        MeterMod(MeterMod);
        /// Report that the role changed. Since 1.4.
        RoleStatus(RoleStatus);
        /// Report that a table reached a vacancy threshold. Since 1.4.
        TableStatus(TableStatus);
        /// Report that a request of another controller was executed. Since 1.4.
        RequestForward(Enclosed);
        /// Opens, closes, commits or discards a bundle. Since 1.3.
        BundleControl(BundleControl);
        /// Adds a message to a bundle. Since 1.3.
        BundleAdd(BundleAdd);
        /// Report that the channel to a controller changed. Since 1.5.
        ControllerStatus(ControllerStatus);
    }
}

/// ONF message types in 1.3 (extension 230).
const ONF_BUNDLE_CONTROL: u32 = 2300;
const ONF_BUNDLE_ADD: u32 = 2301;
/// Type of experimenter messages in every version.
const EXPERIMENTER: u8 = 4;

impl Message {
    /// Decodes one message. `bytes` begin with its header and end where it ends. The version of the
    /// header must be `version`.
    ///
    /// Errors name the offset. No input panics. Memory is bounded by 16 times the length of
    /// `bytes`, independent of the counts in them. Reserved octets are ignored and not kept, all
    /// others are kept.
    pub fn decode(version: Version, bytes: &[u8]) -> Result<(Xid, Self), Malformed> {
        read_message(Reader::new(version, bytes))
    }

    /// Encodes the message in `version`. It is an error if the version cannot express a part of it,
    /// or if a part is too long.
    pub fn encode(&self, version: Version, xid: Xid) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        self.encode_into(version, xid, &mut out)?;
        Ok(out)
    }

    /// Like [`Self::encode`], but appends to `out`, which is unchanged after an error.
    pub fn encode_into(&self, version: Version, xid: Xid, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        let mut w = Writer::new(version, out);
        write_message(self, xid, &mut w);
        match w.error() {
            None => Ok(()),
            Some(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }

    fn encloses_another(&self) -> bool {
        matches!(self, Self::BundleAdd(_) | Self::RequestForward(_))
    }

    /// Returns the type in the header, or `None` if the version lacks it.
    fn kind(&self, version: Version) -> Option<u8> {
        let is_1_0 = version == Version::V1_0;
        let by_age = |v1_0: u8, since_1_3: u8| Some(if is_1_0 { v1_0 } else { since_1_3 });
        let since = |first: Version, kind: u8| (version >= first).then_some(kind);
        match self {
            Self::Hello(_) => Some(0),
            Self::Error(_) => Some(1),
            Self::EchoRequest(_) => Some(2),
            Self::EchoReply(_) => Some(3),
            Self::Experimenter(_) => Some(EXPERIMENTER),
            Self::FeaturesRequest => Some(5),
            Self::FeaturesReply(_) => Some(6),
            Self::GetConfigRequest => Some(7),
            Self::GetConfigReply(_) => Some(8),
            Self::SetConfig(_) => Some(9),
            Self::PacketIn(_) => Some(10),
            Self::FlowRemoved(_) => Some(11),
            Self::PortStatus(_) => Some(12),
            Self::PacketOut(_) => Some(13),
            Self::FlowMod(_) => Some(14),
            Self::GroupMod(_) => since(Version::V1_3, 15),
            Self::PortMod(_) => by_age(15, 16),
            Self::TableMod(_) => since(Version::V1_3, 17),
            Self::MultipartRequest(_) => by_age(16, 18),
            Self::MultipartReply(_) => by_age(17, 19),
            Self::BarrierRequest => by_age(18, 20),
            Self::BarrierReply => by_age(19, 21),
            Self::QueueGetConfigRequest(_) => (version < Version::V1_4).then_some(if is_1_0 { 20 } else { 22 }),
            Self::QueueGetConfigReply(_) => (version < Version::V1_4).then_some(if is_1_0 { 21 } else { 23 }),
            Self::RoleRequest(_) => since(Version::V1_3, 24),
            Self::RoleReply(_) => since(Version::V1_3, 25),
            Self::GetAsyncRequest => since(Version::V1_3, 26),
            Self::GetAsyncReply(_) => since(Version::V1_3, 27),
            Self::SetAsync(_) => since(Version::V1_3, 28),
            Self::MeterMod(_) => since(Version::V1_3, 29),
            Self::RoleStatus(_) => since(Version::V1_4, 30),
            Self::TableStatus(_) => since(Version::V1_4, 31),
            Self::RequestForward(_) => since(Version::V1_4, 32),
            Self::BundleControl(_) if version == Version::V1_3 => Some(EXPERIMENTER),
            Self::BundleAdd(_) if version == Version::V1_3 => Some(EXPERIMENTER),
            Self::BundleControl(_) => since(Version::V1_4, 33),
            Self::BundleAdd(_) => since(Version::V1_4, 34),
            Self::ControllerStatus(_) => since(Version::V1_5, 35),
        }
    }
}

fn read_message(mut r: Reader<'_>) -> Result<(Xid, Message), Malformed> {
    let version = r.version();
    let at = r;
    if r.u8()? != version.octet() {
        return Err(at.malformed("version is not that of the channel"));
    }
    let kind = r.u8()?;
    let len = r.u16()?;
    let xid = r.u32()?;
    if usize::from(len) != HEADER_LEN + r.remaining() {
        return Err(at.malformed("length is not that of the message"));
    }
    let message = match version {
        Version::V1_0 => read_body_1_0(kind, &mut r)?,
        _ => read_body(kind, version, &mut r)?,
    };
    let Some(message) = message else {
        return Err(at.malformed(UNKNOWN_TYPE));
    };
    r.finish("message is longer than its fields")?;
    Ok((xid, message))
}

/// Error of a type that the version does not have.
pub(crate) const UNKNOWN_TYPE: &str = "type of message is not one of this version";

/// Reads messages whose type and form are the same in every version.
fn read_common(kind: u8, r: &mut Reader<'_>) -> Result<Option<Message>, Malformed> {
    Ok(Some(match kind {
        0 => Message::Hello(Wire::read(r)?),
        1 => Message::Error(Wire::read(r)?),
        2 => Message::EchoRequest(r.rest().to_vec()),
        3 => Message::EchoReply(r.rest().to_vec()),
        EXPERIMENTER => Message::Experimenter(Wire::read(r)?),
        5 => Message::FeaturesRequest,
        6 => Message::FeaturesReply(Wire::read(r)?),
        7 => Message::GetConfigRequest,
        8 => Message::GetConfigReply(Wire::read(r)?),
        9 => Message::SetConfig(Wire::read(r)?),
        10 => Message::PacketIn(Wire::read(r)?),
        11 => Message::FlowRemoved(Wire::read(r)?),
        12 => Message::PortStatus(Wire::read(r)?),
        13 => Message::PacketOut(Wire::read(r)?),
        14 => Message::FlowMod(Wire::read(r)?),
        _ => return Ok(None),
    }))
}

fn read_body_1_0(kind: u8, r: &mut Reader<'_>) -> Result<Option<Message>, Malformed> {
    Ok(Some(match kind {
        15 => Message::PortMod(Wire::read(r)?),
        16 => Message::MultipartRequest(Wire::read(r)?),
        17 => Message::MultipartReply(Wire::read(r)?),
        18 => Message::BarrierRequest,
        19 => Message::BarrierReply,
        20 => read_queue_request(r)?,
        21 => Message::QueueGetConfigReply(Wire::read(r)?),
        _ => return read_common(kind, r),
    }))
}

fn read_queue_request(r: &mut Reader<'_>) -> Result<Message, Malformed> {
    let port = PortNo::read(r)?;
    r.reserved(if r.version() == Version::V1_0 { 2 } else { 4 })?;
    Ok(Message::QueueGetConfigRequest(port))
}

fn read_body(kind: u8, version: Version, r: &mut Reader<'_>) -> Result<Option<Message>, Malformed> {
    let since_1_4 = version >= Version::V1_4;
    Ok(Some(match kind {
        EXPERIMENTER if version == Version::V1_3 => read_experimenter_1_3(r)?,
        15 => Message::GroupMod(Wire::read(r)?),
        16 => Message::PortMod(Wire::read(r)?),
        17 => Message::TableMod(Wire::read(r)?),
        18 => Message::MultipartRequest(Wire::read(r)?),
        19 => Message::MultipartReply(Wire::read(r)?),
        20 => Message::BarrierRequest,
        21 => Message::BarrierReply,
        22 if !since_1_4 => read_queue_request(r)?,
        23 if !since_1_4 => Message::QueueGetConfigReply(Wire::read(r)?),
        24 => Message::RoleRequest(Wire::read(r)?),
        25 => Message::RoleReply(Wire::read(r)?),
        26 => Message::GetAsyncRequest,
        27 => Message::GetAsyncReply(Wire::read(r)?),
        28 => Message::SetAsync(Wire::read(r)?),
        29 => Message::MeterMod(Wire::read(r)?),
        30 if since_1_4 => Message::RoleStatus(Wire::read(r)?),
        31 if since_1_4 => Message::TableStatus(Wire::read(r)?),
        32 if since_1_4 => Message::RequestForward(Wire::read(r)?),
        33 if since_1_4 => Message::BundleControl(Wire::read(r)?),
        34 if since_1_4 => Message::BundleAdd(Wire::read(r)?),
        35 if version == Version::V1_5 => Message::ControllerStatus(Wire::read(r)?),
        _ => return read_common(kind, r),
    }))
}

/// Reads an experimenter message of 1.3. Those of the ONF are bundles.
fn read_experimenter_1_3(r: &mut Reader<'_>) -> Result<Message, Malformed> {
    let mut lookahead = *r;
    let message = match (lookahead.u32()?, lookahead.u32()?) {
        (ONF, ONF_BUNDLE_CONTROL) => Message::BundleControl(Wire::read(&mut lookahead)?),
        (ONF, ONF_BUNDLE_ADD) => Message::BundleAdd(Wire::read(&mut lookahead)?),
        _ => return Ok(Message::Experimenter(Wire::read(r)?)),
    };
    *r = lookahead;
    Ok(message)
}

fn write_message(message: &Message, xid: Xid, w: &mut Writer<'_>) {
    let start = w.position();
    let version = w.version();
    let Some(kind) = message.kind(version) else {
        return w.refuse("this type of message");
    };
    w.u8(version.octet());
    w.u8(kind);
    w.u16(0);
    w.u32(xid);
    if version == Version::V1_3 {
        let onf = match message {
            Message::BundleControl(_) => Some(ONF_BUNDLE_CONTROL),
            Message::BundleAdd(_) => Some(ONF_BUNDLE_ADD),
            _ => None,
        };
        if let Some(kind) = onf {
            w.u32(ONF);
            w.u32(kind);
        }
    }
    message.write_body(w);
    w.set_len(start + 2, start, "message");
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::bundle::{BundleControlType, Properties};

    #[test]
    fn header_and_body_have_the_octets_of_the_specification() {
        let octets = Message::EchoRequest(vec![7]).encode(Version::V1_3, 0x0102_0304).expect("short");
        assert_eq!(octets, [4, 2, 0, 9, 1, 2, 3, 4, 7]);
        let header = Header::parse(&octets).expect("eight octets");
        assert_eq!(header, Header { version: 4, kind: 2, len: 9, xid: 0x0102_0304 });
        assert_eq!(Header::parse(&octets[..7]), None);
    }

    #[test]
    fn wrong_version_length_and_type_are_malformed() {
        let what = |octets: &[u8]| Message::decode(Version::V1_3, octets).expect_err("malformed").what;
        assert_eq!(what(&[5, 5, 0, 8, 0, 0, 0, 1]), "version is not that of the channel");
        assert_eq!(what(&[4, 5, 0, 9, 0, 0, 0, 1]), "length is not that of the message");
        assert_eq!(what(&[4, 5, 0, 9, 0, 0, 0, 1, 0]), "message is longer than its fields");
        assert_eq!(what(&[4, 30, 0, 8, 0, 0, 0, 1]), UNKNOWN_TYPE);
        assert_eq!(what(&[4, 5, 0]), "ends early");
    }

    #[test]
    fn messages_unknown_to_a_version_are_refused_and_leave_the_buffer_unchanged() {
        let mut out = vec![1, 2, 3];
        let role = Message::SetAsync(AsyncConfig::default());
        assert!(role.encode_into(Version::V1_0, 1, &mut out).is_err());
        assert!(Message::QueueGetConfigRequest(PortNo(1)).encode_into(Version::V1_4, 1, &mut out).is_err());
        let long = Message::EchoRequest(vec![0; MESSAGE_LEN_MAX - HEADER_LEN + 1]);
        assert!(long.encode_into(Version::V1_3, 1, &mut out).is_err());
        assert_eq!(out, [1, 2, 3]);
        let longest = Message::EchoRequest(vec![0; MESSAGE_LEN_MAX - HEADER_LEN]);
        assert_eq!(longest.encode(Version::V1_3, 1).expect("the message can be encoded").len(), MESSAGE_LEN_MAX);
    }

    #[test]
    fn bundles_of_1_3_are_encoded_as_onf_messages() {
        let kind = BundleControlType::OpenRequest;
        let open =
            Message::BundleControl(BundleControl { bundle: 1, kind, flags: 3, properties: Properties::default() });
        let octets = open.encode(Version::V1_3, 9).expect("the ONF's form");
        assert_eq!(octets[..16], [4, 4, 0, 24, 0, 0, 0, 9, 0x4f, 0x4e, 0x46, 0, 0, 0, 0x08, 0xfc]);
        assert_eq!(Message::decode(Version::V1_3, &octets), Ok((9, open.clone())));
        assert_eq!(open.encode(Version::V1_4, 9).expect("native")[1], 33);
        assert!(open.encode(Version::V1_0, 9).is_err());
    }

    #[test]
    fn doubly_nested_message_is_refused_and_malformed() {
        let enclose = |message| {
            let message = Enclosed { xid: 1, message: Box::new(message) };
            Message::BundleAdd(BundleAdd { bundle: 1, flags: 0, message, properties: vec![] })
        };
        let once = enclose(Message::BarrierRequest);
        let mut octets = once.encode(Version::V1_4, 1).expect("once is allowed");
        assert_eq!(Message::decode(Version::V1_4, &octets), Ok((1, once.clone())));
        assert!(enclose(once).encode(Version::V1_4, 1).is_err());
        let twice = [&[5, 34, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], &octets[..]].concat();
        assert_eq!(Message::decode(Version::V1_4, &twice).expect_err("nested").what, "message is nested too deeply");
        octets[17] = 99;
        assert!(Message::decode(Version::V1_4, &octets).is_err());
    }
}

//! Parameter lists: id, length and value in discovery data and inline QoS (RTPS 2.5 §9.4.2.11).
//!
//! A [`ParameterList`] is a view whose structure has been checked: each parameter lies within the
//! list, and the list ends in `PID_SENTINEL`. The values are interpreted by the callers that know
//! the ids.

use alloc::vec::Vec;

use crate::cursor::{Cursor, Endianness, padding};
use crate::error::Malformed;
use crate::guid::Guid;
use crate::locator::Locator;
use crate::sequence::SequenceNumber;
use crate::time::Duration;

/// Parameter ids, in the specification's spelling (RTPS 2.5 §9.6.3, §9.6.4; XTypes 1.3 §7.6.3).
#[allow(missing_docs, reason = "the names are the specification's")]
pub mod pid {
    pub const PID_PAD: u16 = 0x0000;
    pub const PID_SENTINEL: u16 = 0x0001;
    /// End of a list in XTypes; receivers accept both ends.
    pub const PID_LIST_END: u16 = 0x3f02;
    pub const PID_PARTICIPANT_LEASE_DURATION: u16 = 0x0002;
    pub const PID_TIME_BASED_FILTER: u16 = 0x0004;
    pub const PID_TOPIC_NAME: u16 = 0x0005;
    pub const PID_OWNERSHIP_STRENGTH: u16 = 0x0006;
    pub const PID_TYPE_NAME: u16 = 0x0007;
    pub const PID_DOMAIN_ID: u16 = 0x000f;
    pub const PID_PROTOCOL_VERSION: u16 = 0x0015;
    pub const PID_VENDORID: u16 = 0x0016;
    pub const PID_RELIABILITY: u16 = 0x001a;
    pub const PID_LIVELINESS: u16 = 0x001b;
    pub const PID_DURABILITY: u16 = 0x001d;
    pub const PID_DURABILITY_SERVICE: u16 = 0x001e;
    pub const PID_OWNERSHIP: u16 = 0x001f;
    pub const PID_PRESENTATION: u16 = 0x0021;
    pub const PID_DEADLINE: u16 = 0x0023;
    pub const PID_DESTINATION_ORDER: u16 = 0x0025;
    pub const PID_LATENCY_BUDGET: u16 = 0x0027;
    pub const PID_PARTITION: u16 = 0x0029;
    pub const PID_LIFESPAN: u16 = 0x002b;
    pub const PID_USER_DATA: u16 = 0x002c;
    pub const PID_GROUP_DATA: u16 = 0x002d;
    pub const PID_TOPIC_DATA: u16 = 0x002e;
    pub const PID_UNICAST_LOCATOR: u16 = 0x002f;
    pub const PID_MULTICAST_LOCATOR: u16 = 0x0030;
    pub const PID_DEFAULT_UNICAST_LOCATOR: u16 = 0x0031;
    pub const PID_METATRAFFIC_UNICAST_LOCATOR: u16 = 0x0032;
    pub const PID_METATRAFFIC_MULTICAST_LOCATOR: u16 = 0x0033;
    pub const PID_PARTICIPANT_MANUAL_LIVELINESS_COUNT: u16 = 0x0034;
    pub const PID_CONTENT_FILTER_PROPERTY: u16 = 0x0035;
    pub const PID_HISTORY: u16 = 0x0040;
    pub const PID_RESOURCE_LIMITS: u16 = 0x0041;
    pub const PID_EXPECTS_INLINE_QOS: u16 = 0x0043;
    pub const PID_DEFAULT_MULTICAST_LOCATOR: u16 = 0x0048;
    pub const PID_TRANSPORT_PRIORITY: u16 = 0x0049;
    pub const PID_PARTICIPANT_GUID: u16 = 0x0050;
    pub const PID_GROUP_GUID: u16 = 0x0052;
    pub const PID_GROUP_ENTITYID: u16 = 0x0053;
    pub const PID_CONTENT_FILTER_INFO: u16 = 0x0055;
    pub const PID_COHERENT_SET: u16 = 0x0056;
    pub const PID_DIRECTED_WRITE: u16 = 0x0057;
    pub const PID_BUILTIN_ENDPOINT_SET: u16 = 0x0058;
    pub const PID_PROPERTY_LIST: u16 = 0x0059;
    pub const PID_ENDPOINT_GUID: u16 = 0x005a;
    pub const PID_TYPE_MAX_SIZE_SERIALIZED: u16 = 0x0060;
    pub const PID_ORIGINAL_WRITER_INFO: u16 = 0x0061;
    pub const PID_ENTITY_NAME: u16 = 0x0062;
    pub const PID_GROUP_COHERENT_SET: u16 = 0x0063;
    pub const PID_GROUP_SEQ_NUM: u16 = 0x0064;
    pub const PID_WRITER_GROUP_INFO: u16 = 0x0065;
    pub const PID_SECURE_WRITER_GROUP_INFO: u16 = 0x0066;
    pub const PID_KEY_HASH: u16 = 0x0070;
    pub const PID_STATUS_INFO: u16 = 0x0071;
    pub const PID_TYPE_OBJECT: u16 = 0x0072;
    pub const PID_DATA_REPRESENTATION: u16 = 0x0073;
    pub const PID_TYPE_CONSISTENCY_ENFORCEMENT: u16 = 0x0074;
    pub const PID_TYPE_INFORMATION: u16 = 0x0075;
    pub const PID_BUILTIN_ENDPOINT_QOS: u16 = 0x0077;
    pub const PID_RELATED_SAMPLE_IDENTITY: u16 = 0x0083;
    pub const PID_IDENTITY_TOKEN: u16 = 0x1001;
    pub const PID_PERMISSIONS_TOKEN: u16 = 0x1002;
    pub const PID_DATA_TAGS: u16 = 0x1003;
    pub const PID_ENDPOINT_SECURITY_INFO: u16 = 0x1004;
    pub const PID_PARTICIPANT_SECURITY_INFO: u16 = 0x1005;
    pub const PID_DOMAIN_TAG: u16 = 0x4014;

    /// Flag of an id: a receiver that does not know the parameter must not use the list. A receiver
    /// that knows the parameter accepts it with and without the flag.
    pub const FLAG_MUST_UNDERSTAND: u16 = 0x4000;
    /// Flag of an id: the vendor of the sender defines the parameter.
    pub const FLAG_VENDOR_SPECIFIC: u16 = 0x8000;
}
pub use pid::*;

/// Maximum length of a parameter's value in octets: the length has 16 bits and is a multiple of
/// four.
pub const PARAMETER_LEN_MAX: usize = 65_532;

/// Parameter of a list.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'a> {
    /// Parameter id without `FLAG_MUST_UNDERSTAND`.
    pub pid: u16,
    /// True if a receiver that does not know the id must refuse the whole list.
    pub must_understand: bool,
    /// Octets of the value, padding included.
    pub value: &'a [u8],
    endianness: Endianness,
    /// Offset of the value in the input, for the offsets in errors.
    base: usize,
}

impl<'a> Parameter<'a> {
    /// Returns a cursor over the value.
    pub const fn cursor(&self) -> Cursor<'a> {
        Cursor::with_base(self.value, self.endianness, self.base)
    }

    /// Returns an error at the offset of the value.
    pub const fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { offset: self.base, what }
    }
}

/// Parameter list whose structure has been checked. A copy does not copy the parameters.
#[derive(Clone, Copy, Debug)]
pub struct ParameterList<'a> {
    /// Parameters without the sentinel.
    bytes: &'a [u8],
    endianness: Endianness,
    base: usize,
}

impl<'a> ParameterList<'a> {
    /// Checks the list at the start of `bytes`. Returns it with its length in octets, sentinel
    /// included. Octets after the sentinel are ignored.
    pub fn parse(bytes: &'a [u8], endianness: Endianness) -> Result<(Self, usize), Malformed> {
        let mut cursor = Cursor::new(bytes, endianness);
        let list = Self::parse_from(&mut cursor)?;
        Ok((list, cursor.position()))
    }

    /// Checks the list at the cursor and advances the cursor past the sentinel.
    pub(crate) fn parse_from(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let start = *cursor;
        loop {
            let len_before = cursor.position() - start.position();
            if cursor.is_empty() {
                return Err(cursor.malformed("parameter list has no sentinel"));
            }
            let at = cursor.malformed("length of a parameter is not a multiple of four");
            let pid = cursor.u16()?;
            let len = cursor.u16()?;
            if matches!(pid & !FLAG_MUST_UNDERSTAND, PID_SENTINEL | PID_LIST_END) {
                return Ok(Self {
                    bytes: &start.rest()[..len_before],
                    endianness: start.endianness(),
                    base: start.offset(),
                });
            }
            if len % 4 != 0 {
                return Err(at);
            }
            cursor.skip(usize::from(len))?;
        }
    }

    /// Returns the byte order of ids, lengths and values.
    pub const fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// Returns an iterator over the parameters, without padding and sentinel.
    pub fn iter(&self) -> Parameters<'a> {
        Parameters { cursor: Cursor::with_base(self.bytes, self.endianness, self.base) }
    }

    /// Returns the first parameter with this id, given without `FLAG_MUST_UNDERSTAND`.
    pub fn find(&self, pid: u16) -> Option<Parameter<'a>> {
        self.iter().find(|parameter| parameter.pid == pid)
    }
}

impl<'a> IntoIterator for ParameterList<'a> {
    type Item = Parameter<'a>;
    type IntoIter = Parameters<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the parameters of a list.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Parameter<'a>;

    fn next(&mut self) -> Option<Parameter<'a>> {
        loop {
            // The structure of the list has been checked, so an error can only be its end.
            let id = self.cursor.u16().ok()?;
            let len = self.cursor.u16().ok()?;
            let base = self.cursor.offset();
            let value = self.cursor.bytes(usize::from(len)).ok()?;
            let pid = id & !FLAG_MUST_UNDERSTAND;
            if pid != PID_PAD {
                let must_understand = id != pid;
                let endianness = self.cursor.endianness();
                return Some(Parameter { pid, must_understand, value, endianness, base });
            }
        }
    }
}

/// Builder of parameter lists for discovery, in memory that it allocates.
#[derive(Debug)]
pub struct ParameterListBuilder {
    bytes: Vec<u8>,
    endianness: Endianness,
}

impl ParameterListBuilder {
    /// Returns an empty list.
    pub const fn new(endianness: Endianness) -> Self {
        Self::after(Vec::new(), endianness)
    }

    /// Returns a list that is appended to `bytes`, for instance the encapsulation header. The
    /// length of `bytes` must be a multiple of four.
    pub const fn after(bytes: Vec<u8>, endianness: Endianness) -> Self {
        Self { bytes, endianness }
    }

    /// Appends a parameter whose value `write` produces, and pads it.
    ///
    /// A value of more than [`PARAMETER_LEN_MAX`] octets cannot be serialized: the parameter is
    /// left out. Callers limit the values that they accept from an application.
    pub fn put(&mut self, pid: u16, write: impl FnOnce(&mut ParameterWriter<'_>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let mut writer =
            ParameterWriter { start: self.bytes.len(), bytes: &mut self.bytes, endianness: self.endianness };
        write(&mut writer);
        writer.align(4);
        match u16::try_from(self.bytes.len() - start - 4) {
            Ok(len) => self.header(start, pid, len),
            Err(_) => self.bytes.truncate(start),
        }
    }

    /// Appends the sentinel and returns the list.
    pub fn finish(mut self) -> Vec<u8> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.header(start, PID_SENTINEL, 0);
        self.bytes
    }

    fn header(&mut self, start: usize, pid: u16, len: u16) {
        let (pid, len) = match self.endianness {
            Endianness::Big => (pid.to_be_bytes(), len.to_be_bytes()),
            Endianness::Little => (pid.to_le_bytes(), len.to_le_bytes()),
        };
        self.bytes[start..start + 4].copy_from_slice(&[pid[0], pid[1], len[0], len[1]]);
    }
}

/// Writer of the value of one parameter. Alignment counts from the start of the value.
#[derive(Debug)]
pub struct ParameterWriter<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
    endianness: Endianness,
}

impl ParameterWriter<'_> {
    /// Appends octets.
    pub fn bytes(&mut self, octets: &[u8]) {
        self.bytes.extend_from_slice(octets);
    }

    /// Appends zeros up to a multiple of `alignment`, a power of two.
    pub fn align(&mut self, alignment: usize) {
        let len = self.bytes.len() - self.start;
        self.bytes.resize(self.bytes.len() + padding(len, alignment), 0);
    }

    /// Appends an octet.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends a boolean as an octet.
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Appends an aligned 16-bit integer.
    pub fn u16(&mut self, value: u16) {
        self.align(2);
        match self.endianness {
            Endianness::Big => self.bytes(&value.to_be_bytes()),
            Endianness::Little => self.bytes(&value.to_le_bytes()),
        }
    }

    /// Appends an aligned 32-bit integer.
    pub fn u32(&mut self, value: u32) {
        self.align(4);
        match self.endianness {
            Endianness::Big => self.bytes(&value.to_be_bytes()),
            Endianness::Little => self.bytes(&value.to_le_bytes()),
        }
    }

    /// Appends an aligned, signed 32-bit integer.
    pub fn i32(&mut self, value: i32) {
        self.u32(value.cast_unsigned());
    }

    /// Appends the length of a sequence. It saturates: a sequence of that length exceeds a
    /// parameter.
    pub fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Appends a CDR string: length with the NUL, octets, NUL. The string ends at an embedded NUL,
    /// which CDR cannot express.
    pub fn string(&mut self, text: &str) {
        let text = text.split('\0').next().unwrap_or_default();
        self.count(text.len() + 1);
        self.bytes(text.as_bytes());
        self.u8(0);
    }

    /// Appends a sequence of octets.
    pub fn octets(&mut self, octets: &[u8]) {
        self.count(octets.len());
        self.bytes(octets);
    }

    /// Appends a GUID.
    pub fn guid(&mut self, guid: Guid) {
        self.bytes(&guid.to_bytes());
    }

    /// Appends a locator.
    pub fn locator(&mut self, locator: &Locator) {
        self.bytes(&locator.to_bytes(self.endianness));
    }

    /// Appends a duration.
    pub fn duration(&mut self, duration: Duration) {
        self.i32(duration.seconds);
        self.u32(duration.fraction);
    }

    /// Appends a sequence number.
    pub fn sequence_number(&mut self, number: SequenceNumber) {
        let (high, low) = number.halves();
        self.u32(high);
        self.u32(low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<(ParameterList<'_>, usize), Malformed> {
        ParameterList::parse(bytes, Endianness::Little)
    }

    #[test]
    fn builder_and_view_agree_in_both_byte_orders() {
        for endianness in [Endianness::Big, Endianness::Little] {
            let mut builder = ParameterListBuilder::new(endianness);
            builder.put(PID_TOPIC_NAME, |value| value.string("Square"));
            builder.put(PID_DOMAIN_ID, |value| value.u32(7));
            let bytes = builder.finish();
            let (list, len) = ParameterList::parse(&bytes, endianness).expect("well formed");
            assert_eq!(len, bytes.len());
            assert_eq!(list.iter().count(), 2);
            let topic = list.find(PID_TOPIC_NAME).expect("was put");
            assert_eq!(topic.cursor().string(), Ok("Square"));
            assert_eq!(topic.value.len(), 12, "padded to a multiple of four");
            assert_eq!(list.find(PID_DOMAIN_ID).map(|p| p.cursor().u32()), Some(Ok(7)));
            assert!(list.find(PID_USER_DATA).is_none());
        }
    }

    #[test]
    fn list_has_the_specified_octets() {
        let bytes = [
            0x71, 0x00, 0x04, 0x00, 0, 0, 0, 1, // PID_STATUS_INFO: disposed
            0x00, 0x00, 0x04, 0x00, 9, 9, 9, 9, // PID_PAD
            0x01, 0x00, 0xff, 0xff, // PID_SENTINEL, whose length means nothing
            0xee,
        ];
        let (list, len) = parse(&bytes).expect("well formed");
        assert_eq!(len, 20);
        let mut parameters = list.iter();
        let status = parameters.next().expect("one parameter");
        assert_eq!((status.pid, status.value), (PID_STATUS_INFO, &[0, 0, 0, 1][..]));
        assert!(parameters.next().is_none(), "padding is not shown");
    }

    #[test]
    fn list_without_sentinel_is_malformed() {
        let error = parse(&[0x71, 0, 4, 0, 0, 0, 0, 1]).expect_err("no sentinel");
        assert_eq!(error, Malformed { offset: 8, what: "parameter list has no sentinel" });
        assert!(parse(&[]).is_err());
        assert!(parse(&[1, 0, 0]).is_err());
    }

    #[test]
    fn parameter_longer_than_the_list_is_malformed() {
        assert!(parse(&[0x71, 0, 8, 0, 0, 0, 0, 1]).is_err());
        assert!(parse(&[0x71, 0, 0xfc, 0xff, 0, 0, 0, 1, 1, 0, 0, 0]).is_err());
    }

    #[test]
    fn parameter_length_not_a_multiple_of_four_is_malformed() {
        let error = parse(&[0x71, 0, 3, 0, 0, 0, 1, 1, 0, 0, 0]).expect_err("length three");
        assert_eq!(error.what, "length of a parameter is not a multiple of four");
    }

    #[test]
    fn must_understand_flag_is_removed_from_the_id() {
        let bytes = [0x14, 0x40, 0, 0, 0x0f, 0x80, 0, 0, 0x05, 0xc0, 0, 0, 1, 0, 0, 0];
        let (list, _) = parse(&bytes).expect("well formed");
        let ids = list.iter().map(|p| (p.pid, p.must_understand));
        assert!(ids.eq([(0x0014, true), (0x800f, false), (0x8005, true)]));
    }

    #[test]
    fn pid_list_end_of_xtypes_ends_a_list() {
        for id in [[0x01, 0x00], [0x02, 0x3f], [0x02, 0x7f]] {
            let bytes = [id[0], id[1], 0, 0, 0xff];
            let (list, len) = parse(&bytes).expect("well formed");
            assert_eq!((list.iter().count(), len), (0, 4));
        }
    }

    #[test]
    fn values_beyond_the_maximum_length_are_left_out() {
        let mut builder = ParameterListBuilder::new(Endianness::Little);
        builder.put(PID_USER_DATA, |value| value.octets(&[7; PARAMETER_LEN_MAX - 3]));
        builder.put(PID_GROUP_DATA, |value| value.octets(&[7; PARAMETER_LEN_MAX - 4]));
        let bytes = builder.finish();
        let (list, _) = parse(&bytes).expect("well formed");
        assert!(list.find(PID_USER_DATA).is_none());
        assert_eq!(list.find(PID_GROUP_DATA).map(|p| p.value.len()), Some(PARAMETER_LEN_MAX));
    }

    #[test]
    fn string_ends_at_its_first_nul() {
        let mut builder = ParameterListBuilder::new(Endianness::Big);
        builder.put(PID_TOPIC_NAME, |value| value.string("a\0b"));
        let bytes = builder.finish();
        assert_eq!(bytes[4..10], [0, 0, 0, 2, b'a', 0]);
    }
}

//! Queues: QUEUE_GET_CONFIG up to 1.3, descriptions since 1.4, counters (OF 1.3.5 §7.2.2, §7.3.6).

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::value::{PortNo, Property, read_property, write_property};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Property of a queue. Rates are in tenths of a percent of the port's rate. More than 1000 means
/// "not configured".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueProperty {
    /// Guaranteed rate.
    MinRate(u16),
    /// Maximum rate.
    MaxRate(u16),
    /// Property without a type in this crate. Up to 1.3, the body begins after the four reserved
    /// octets.
    Other(Property),
}

impl Wire for QueueProperty {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let is_old = r.version() < Version::V1_4;
        let (kind, mut body) = if is_old {
            let kind = r.u16()?;
            let len = r.u16()?;
            let mut body = r.rest_of(len, 4)?;
            body.reserved(4)?;
            (kind, body)
        } else {
            read_property(r)?
        };
        let property = match kind {
            1 | 2 => {
                let rate = body.u16()?;
                body.reserved(if is_old { 6 } else { 2 })?;
                if kind == 1 { Self::MinRate(rate) } else { Self::MaxRate(rate) }
            }
            kind => Self::Other(Property { kind, body: body.rest().to_vec() }),
        };
        body.finish("property is longer than its type")?;
        Ok(property)
    }

    fn write(&self, w: &mut Writer<'_>) {
        let is_old = w.version() < Version::V1_4;
        let kind = match self {
            Self::MinRate(_) => 1,
            Self::MaxRate(_) => 2,
            Self::Other(property) => property.kind,
        };
        let body = |w: &mut Writer<'_>| match self {
            Self::MinRate(rate) | Self::MaxRate(rate) => {
                w.u16(*rate);
                w.reserved(if is_old { 6 } else { 2 });
            }
            Self::Other(property) => w.bytes(&property.body),
        };
        if !is_old {
            return write_property(w, kind, body);
        }
        let start = w.position();
        w.u16(kind);
        w.reserved(6);
        body(w);
        w.set_len(start + 2, start, "property of a queue");
    }
}

/// Configuration of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Port of the queue. In 1.0, that of the reply.
    pub port: PortNo,
    /// Number of the queue.
    pub id: u32,
    /// Rates of the queue.
    pub properties: Vec<QueueProperty>,
}

/// Reply to QUEUE_GET_CONFIG. Up to 1.3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// Port of the request.
    pub port: PortNo,
    /// Queues of the port.
    pub queues: Vec<Queue>,
}

impl Queue {
    fn read(r: &mut Reader<'_>, port: Option<PortNo>) -> Result<Self, Malformed> {
        let (port, id, read) = match (r.version(), port) {
            (Version::V1_0, Some(port)) => (port, r.u32()?, 6),
            (version, _) => {
                let port = PortNo::read(r)?;
                (port, r.u32()?, if version == Version::V1_0 { 8 } else { 10 })
            }
        };
        let len = r.u16()?;
        let mut body = r.rest_of(len, read)?;
        body.reserved(if r.version() == Version::V1_0 { 2 } else { 6 })?;
        Ok(Self { port, id, properties: body.list()? })
    }

    fn write_in(&self, w: &mut Writer<'_>, port: Option<PortNo>) {
        let start = w.position();
        if w.version() == Version::V1_0 {
            w.refuse_if(port != Some(self.port), "a queue of another port than that of the reply");
        } else {
            self.port.write(w);
        }
        w.u32(self.id);
        let len = w.position();
        w.u16(0);
        w.reserved(if w.version() == Version::V1_0 { 2 } else { 6 });
        w.list(&self.properties);
        w.set_len(len, start, "queue");
    }
}

impl Wire for Queue {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::read(r, None)
    }

    fn write(&self, w: &mut Writer<'_>) {
        self.write_in(w, None);
    }
}

impl Wire for QueueConfig {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let port = PortNo::read(r)?;
        r.reserved(if r.version() == Version::V1_0 { 6 } else { 4 })?;
        let mut queues = Vec::new();
        while !r.is_empty() {
            queues.push(Queue::read(r, Some(port))?);
        }
        Ok(Self { port, queues })
    }

    fn write(&self, w: &mut Writer<'_>) {
        self.port.write(w);
        w.reserved(if w.version() == Version::V1_0 { 6 } else { 4 });
        for queue in &self.queues {
            queue.write_in(w, Some(self.port));
        }
    }
}

/// Counters of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueStats {
    /// Port of the queue.
    pub port: PortNo,
    /// Number of the queue.
    pub queue: u32,
    /// Octets sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped.
    pub tx_errors: u64,
    /// Time since the creation of the queue, in whole seconds. Not in 1.0.
    pub duration_sec: u32,
    /// Nanoseconds beyond these seconds. Not in 1.0.
    pub duration_nsec: u32,
    /// Experimenter properties. Since 1.4.
    pub properties: Vec<Property>,
}

impl Wire for QueueStats {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let version = r.version();
        let mut body = *r;
        if version >= Version::V1_4 {
            let len = r.u16()?;
            body = r.rest_of(len, 2)?;
            body.reserved(6)?;
        }
        let port = PortNo::read(&mut body)?;
        if version == Version::V1_0 {
            body.reserved(2)?;
        }
        let queue = body.u32()?;
        let (tx_bytes, tx_packets, tx_errors) = (body.u64()?, body.u64()?, body.u64()?);
        let (duration_sec, duration_nsec) = if version == Version::V1_0 { (0, 0) } else { (body.u32()?, body.u32()?) };
        let properties = if version >= Version::V1_4 { body.list()? } else { Vec::new() };
        if version < Version::V1_4 {
            *r = body;
        }
        Ok(Self { port, queue, tx_bytes, tx_packets, tx_errors, duration_sec, duration_nsec, properties })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        let version = w.version();
        if version >= Version::V1_4 {
            w.reserved(8);
        }
        self.port.write(w);
        if version == Version::V1_0 {
            w.reserved(2);
        }
        w.u32(self.queue);
        w.u64(self.tx_bytes);
        w.u64(self.tx_packets);
        w.u64(self.tx_errors);
        if version == Version::V1_0 {
            w.refuse_if(self.duration_sec != 0 || self.duration_nsec != 0, "the duration of a queue");
        } else {
            w.u32(self.duration_sec);
            w.u32(self.duration_nsec);
        }
        if version >= Version::V1_4 {
            w.list(&self.properties);
            w.set_len(start, start, "counters of a queue");
        } else {
            w.refuse_if(!self.properties.is_empty(), "properties of a queue's counters");
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::wire::written;

    #[test]
    fn queues_round_trip_in_every_version() {
        let queue = Queue { port: PortNo(1), id: 2, properties: vec![QueueProperty::MinRate(500)] };
        let config = QueueConfig { port: PortNo(1), queues: vec![queue.clone(), queue.clone()] };
        for version in [Version::V1_0, Version::V1_3] {
            let out = written(version, &config).expect("1.0 to 1.3 have it");
            assert_eq!(QueueConfig::read(&mut Reader::new(version, &out)).as_ref(), Ok(&config));
        }
        for version in [Version::V1_4, Version::V1_5] {
            let out = written(version, &queue).expect("1.4 and 1.5 have it");
            assert_eq!(<Queue as Wire>::read(&mut Reader::new(version, &out)).as_ref(), Ok(&queue));
        }
        let other = QueueConfig { port: PortNo(2), queues: vec![queue] };
        assert_eq!(written(Version::V1_0, &other), None, "1.0 has one port for all queues");
    }

    #[test]
    fn counters_round_trip_in_every_version() {
        let stats = QueueStats {
            port: PortNo(1),
            queue: 2,
            tx_bytes: 3,
            tx_packets: 4,
            tx_errors: 5,
            duration_sec: 0,
            duration_nsec: 0,
            properties: vec![],
        };
        for version in Version::ALL {
            let out = written(version, &stats).expect("every version can encode it");
            let twice = [&out[..], &out].concat();
            let read: Result<Vec<QueueStats>, _> = Reader::new(version, &twice).list();
            assert_eq!(read, Ok(vec![stats.clone(), stats.clone()]), "{version}");
        }
    }
}

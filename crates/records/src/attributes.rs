//! The 16 attribute bits of a batch.

/// The attribute bits as they stand in a batch's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes(i16);

const COMPRESSION_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const DELETE_HORIZON: i16 = 0x40;

impl Attributes {
    /// No bit set: not compressed, the producer's timestamps, plain data.
    pub const PLAIN: Self = Self(0);

    /// From the header's bits.
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits)
    }

    /// The header's bits.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// The codec of the records, or `None` for a number that no codec has (5, 6 and 7).
    pub const fn compression(self) -> Option<Compression> {
        match self.0 & COMPRESSION_MASK {
            0 => Some(Compression::None),
            1 => Some(Compression::Gzip),
            2 => Some(Compression::Snappy),
            3 => Some(Compression::Lz4),
            4 => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Whose clock the batch's timestamps come from.
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch is part of a transaction.
    pub const fn is_transactional(self) -> bool {
        self.0 & TRANSACTIONAL != 0
    }

    /// Whether the batch holds a control record (a transaction marker) instead of data.
    pub const fn is_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// Whether the base timestamp holds a delete horizon instead of the first timestamp (KIP-534).
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & DELETE_HORIZON != 0
    }

    /// The same bits with the mark of a transaction's batch.
    #[must_use]
    pub const fn with_transactional(self) -> Self {
        Self(self.0 | TRANSACTIONAL)
    }

    /// The same bits with the mark of a control batch.
    #[must_use]
    pub const fn with_control(self) -> Self {
        Self(self.0 | CONTROL)
    }

    /// The same bits with the mark of a base timestamp that is a delete horizon.
    #[must_use]
    pub const fn with_delete_horizon(self) -> Self {
        Self(self.0 | DELETE_HORIZON)
    }

    /// The same bits without that mark.
    #[must_use]
    pub const fn without_delete_horizon(self) -> Self {
        Self(self.0 & !DELETE_HORIZON)
    }

    /// The same bits with another codec.
    #[must_use]
    pub const fn with_compression(self, compression: Compression) -> Self {
        Self(self.0 & !COMPRESSION_MASK | compression as i16)
    }

    /// The same bits with another timestamp type.
    #[must_use]
    pub const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        match timestamp_type {
            TimestampType::CreateTime => Self(self.0 & !LOG_APPEND_TIME),
            TimestampType::LogAppendTime => Self(self.0 | LOG_APPEND_TIME),
        }
    }
}

/// The codec of a batch's records. The numbers are the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum Compression {
    /// Not compressed.
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// Snappy, raw or in the framing of the Java library.
    Snappy = 2,
    /// The LZ4 frame format.
    Lz4 = 3,
    /// RFC 8878 (KIP-110).
    Zstd = 4,
}

/// Whose clock stamped a record (KIP-32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's, when it made the record.
    CreateTime,
    /// The broker's, when it appended the record.
    LogAppendTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_stand_where_kafka_puts_them() {
        use Compression::{Gzip, Lz4, None as Plain, Snappy, Zstd};
        let codecs =
            [Some(Plain), Some(Gzip), Some(Snappy), Some(Lz4), Some(Zstd), None, None, None];
        for (bits, codec) in (0..).zip(codecs) {
            assert_eq!(Attributes::from_bits(bits).compression(), codec, "{bits}");
        }
        let of = |bits| {
            let attributes = Attributes::from_bits(bits);
            (
                attributes.timestamp_type() == TimestampType::LogAppendTime,
                attributes.is_transactional(),
                attributes.is_control(),
                attributes.has_delete_horizon(),
            )
        };
        assert_eq!(of(0x07), (false, false, false, false));
        assert_eq!(of(0x08), (true, false, false, false));
        assert_eq!(of(0x10), (false, true, false, false));
        assert_eq!(of(0x20), (false, false, true, false));
        assert_eq!(of(0x40), (false, false, false, true));
    }

    #[test]
    fn setting_a_bit_leaves_the_others() {
        for bits in [0, 0x7f, -1, i16::MIN, 0x55, 0x2a] {
            let attributes = Attributes::from_bits(bits);
            let zstd = attributes.with_compression(Compression::Zstd);
            assert_eq!(zstd.compression(), Some(Compression::Zstd));
            assert_eq!(zstd.bits() & !0x07, bits & !0x07);
            for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
                let timed = attributes.with_timestamp_type(timestamp_type);
                assert_eq!(timed.timestamp_type(), timestamp_type);
                assert_eq!(timed.bits() & !0x08, bits & !0x08);
            }
            assert_eq!(attributes.with_transactional().with_control().bits(), bits | 0x30);
            assert_eq!(attributes.with_delete_horizon().bits(), bits | 0x40);
            assert_eq!(attributes.without_delete_horizon().bits(), bits & !0x40);
        }
    }
}

//! Just enough of Kafka's wire format for the null broker and the raw-frame drivers.
//!
//! Written by hand and apart from the broker's own codec on purpose: the reference must not share
//! the code that it judges.

/// Reads the fields of a frame one after another; `None` means that the frame ends too early.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(n)?;
        let part = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(part)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// A big-endian i8.
    pub fn i8(&mut self) -> Option<i8> {
        self.array().map(i8::from_be_bytes)
    }

    /// A big-endian i16.
    pub fn i16(&mut self) -> Option<i16> {
        self.array().map(i16::from_be_bytes)
    }

    /// A big-endian i32.
    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// A big-endian i64.
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// An unsigned varint of at most 32 bits.
    pub fn uvarint(&mut self) -> Option<u32> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.array::<1>()?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    /// A length or count: i32 in the old encoding, one-based varint in the flexible one. Null is 0.
    pub fn length(&mut self, flexible: bool) -> Option<usize> {
        if flexible {
            usize::try_from(self.uvarint()?).ok().map(|n| n.saturating_sub(1))
        } else {
            usize::try_from(self.i32()?.max(0)).ok()
        }
    }

    /// A string, nullable or not; null reads as the empty one.
    pub fn string(&mut self, flexible: bool) -> Option<&'a str> {
        let length =
            if flexible { self.length(true)? } else { usize::try_from(self.i16()?.max(0)).ok()? };
        std::str::from_utf8(self.take(length)?).ok()
    }

    /// Skips the tagged fields of a flexible structure; nothing in the old encoding.
    pub fn tags(&mut self, flexible: bool) -> Option<()> {
        if flexible {
            for _ in 0..self.uvarint()? {
                self.uvarint()?;
                let size = usize::try_from(self.uvarint()?).ok()?;
                self.take(size)?;
            }
        }
        Some(())
    }
}

/// Appends the fields of a frame to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Appends to `out`.
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Raw bytes.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// A big-endian i8.
    pub fn i8(&mut self, value: i8) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// A big-endian i16.
    pub fn i16(&mut self, value: i16) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// A big-endian i32.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// A big-endian i64.
    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// An unsigned varint.
    pub fn uvarint(&mut self, mut value: u32) -> &mut Self {
        while value >= 0x80 {
            self.out.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
        self
    }

    /// A count or byte length in either encoding.
    pub fn length(&mut self, flexible: bool, length: usize) -> &mut Self {
        let length = u32::try_from(length).expect("frames of the bench are small");
        if flexible { self.uvarint(length + 1) } else { self.raw(&length.to_be_bytes()) }
    }

    /// A string in either encoding.
    pub fn string(&mut self, flexible: bool, text: &str) -> &mut Self {
        if flexible {
            self.length(true, text.len());
        } else {
            self.i16(i16::try_from(text.len()).expect("names of the bench are short"));
        }
        self.raw(text.as_bytes())
    }

    /// No tagged fields; nothing in the old encoding.
    pub fn tags(&mut self, flexible: bool) -> &mut Self {
        if flexible { self.uvarint(0) } else { self }
    }
}

/// Starts a frame: leaves room for its size and returns where that room is.
pub fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

/// Ends a frame begun at `at`, of which `elsewhere` more bytes follow from another source.
pub fn end(out: &mut [u8], at: usize, elsewhere: usize) {
    let size = u32::try_from(out.len() - at - 4 + elsewhere).expect("frames stay under 2 GiB");
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
}

/// Writes a whole request with its size and header.
pub fn request(
    api: Api,
    version: i16,
    correlation: i32,
    body: impl FnOnce(&mut Writer<'_>),
) -> Vec<u8> {
    let mut out = Vec::new();
    let at = begin(&mut out);
    let mut w = Writer::new(&mut out);
    w.i16(api as i16).i16(version).i32(correlation).string(false, "bench");
    w.tags(api.flexible(version));
    body(&mut w);
    end(&mut out, at, 0);
    out
}

/// Where the correlation id stands in a request with its size field.
pub const REQUEST_CORRELATION: std::ops::Range<usize> = 8..12;

/// The APIs that the bench speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum Api {
    /// Produce.
    Produce = 0,
    /// Fetch.
    Fetch = 1,
    /// `ListOffsets`.
    ListOffsets = 2,
    /// Metadata.
    Metadata = 3,
    /// `OffsetCommit`.
    OffsetCommit = 8,
    /// `JoinGroup`.
    JoinGroup = 11,
    /// Heartbeat.
    Heartbeat = 12,
    /// `SyncGroup`.
    SyncGroup = 14,
    /// `ApiVersions`.
    ApiVersions = 18,
    /// `CreateTopics`.
    CreateTopics = 19,
    /// `DeleteTopics`.
    DeleteTopics = 20,
    /// `InitProducerId`.
    InitProducerId = 22,
    /// `DescribeConfigs`.
    DescribeConfigs = 32,
    /// `IncrementalAlterConfigs`.
    IncrementalAlterConfigs = 44,
}

impl Api {
    /// All of them with the versions that the null broker serves.
    pub const SERVED: [(Self, i16, i16); 7] = [
        (Self::Produce, 0, 12),
        (Self::Fetch, 4, 11),
        (Self::ListOffsets, 1, 5),
        (Self::Metadata, 0, 8),
        (Self::ApiVersions, 0, 3),
        (Self::CreateTopics, 2, 4),
        (Self::InitProducerId, 0, 1),
    ];

    /// The API with this key.
    pub fn from_key(key: i16) -> Option<Self> {
        Self::SERVED.iter().map(|&(api, ..)| api).find(|&api| api as i16 == key)
    }

    /// Whether this version has compact fields and tags.
    pub const fn flexible(self, version: i16) -> bool {
        let first = match self {
            Self::Produce | Self::Metadata => 9,
            Self::Fetch => 12,
            Self::ListOffsets | Self::JoinGroup => 6,
            Self::OffsetCommit => 8,
            Self::Heartbeat | Self::SyncGroup | Self::DeleteTopics | Self::DescribeConfigs => 4,
            Self::ApiVersions => 3,
            Self::CreateTopics => 5,
            Self::InitProducerId => 2,
            Self::IncrementalAlterConfigs => 1,
        };
        version >= first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_written_in_both_encodings() {
        for flexible in [false, true] {
            let mut bytes = Vec::new();
            Writer::new(&mut bytes)
                .i16(-2)
                .string(flexible, "topic")
                .length(flexible, 300)
                .tags(flexible)
                .i64(i64::MIN);
            let mut r = Reader::new(&bytes);
            assert_eq!(r.i16(), Some(-2));
            assert_eq!(r.string(flexible), Some("topic"));
            assert_eq!(r.length(flexible), Some(300));
            assert_eq!(r.tags(flexible), Some(()));
            assert_eq!(r.i64(), Some(i64::MIN));
            assert_eq!(r.i8(), None, "nothing is left");
        }
    }

    #[test]
    fn a_request_carries_its_size_and_its_correlation_id() {
        let bytes = request(Api::Produce, 9, 77, |w| {
            w.i8(1);
        });
        assert_eq!(bytes[..4], u32::to_be_bytes(u32::try_from(bytes.len() - 4).unwrap()));
        assert_eq!(bytes[REQUEST_CORRELATION], 77_i32.to_be_bytes());
    }
}

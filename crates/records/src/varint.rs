//! Zig-zag varints, as the fields of a record carry them, and a reader that can't leave its bytes.

use crate::RecordError;

/// Reads fields off the front of a slice. Every method checks before it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) const fn byte(&mut self) -> Result<u8, RecordError> {
        let Some((&byte, rest)) = self.rest.split_first() else {
            return Err(RecordError::CutShort);
        };
        self.rest = rest;
        Ok(byte)
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(RecordError::CutShort)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<i32, RecordError> {
        let raw = u32::try_from(self.unsigned::<5>()?).map_err(|_| RecordError::Varint)?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    #[inline]
    pub(crate) fn varlong(&mut self) -> Result<i64, RecordError> {
        let raw = self.unsigned::<10>()?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// A length and that many bytes.
    #[inline]
    pub(crate) fn sized(&mut self) -> Result<&'a [u8], RecordError> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| RecordError::NegativeLength)?)
    }

    /// A length and that many bytes, or the length −1 and nothing.
    ///
    /// Kafka's broker reads every negative length as null. Other clients do not, so a record with
    /// another negative length is refused before it reaches them.
    #[inline]
    pub(crate) fn nullable(&mut self) -> Result<Option<&'a [u8]>, RecordError> {
        match self.varint()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| RecordError::NegativeLength)?;
                self.take(length).map(Some)
            }
        }
    }

    /// One and two bytes are nearly all that occurs: lengths and offset deltas up to 8191.
    #[inline]
    fn unsigned<const BYTES_MAX: u32>(&mut self) -> Result<u64, RecordError> {
        match *self.rest {
            [low, ref rest @ ..] if low < 0x80 => {
                self.rest = rest;
                Ok(u64::from(low))
            }
            [low, high, ref rest @ ..] if high < 0x80 => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.unsigned_long::<BYTES_MAX>(),
        }
    }

    #[inline(never)]
    fn unsigned_long<const BYTES_MAX: u32>(&mut self) -> Result<u64, RecordError> {
        let mut value = 0_u64;
        for index in 0..BYTES_MAX {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * index);
            // The tenth byte has room for one bit only.
            if shifted >> (7 * index) != bits {
                return Err(RecordError::Varint);
            }
            value |= shifted;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(RecordError::Varint)
    }
}

/// Appends a zig-zag varint of up to 32 bits.
pub(crate) fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_varlong(out, i64::from(value));
}

/// Appends a zig-zag varint of up to 64 bits.
pub(crate) fn put_varlong(out: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63).cast_unsigned();
    while rest >= 0x80 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

/// How many bytes [`put_varlong`] appends, and [`put_varint`] for the same number.
pub(crate) const fn varint_bytes(value: i64) -> usize {
    let bits = 64 - ((value << 1 ^ value >> 63).cast_unsigned() | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_encodings() {
        let cases: [(i64, &[u8]); 9] = [
            (0, &[0]),
            (-1, &[1]),
            (1, &[2]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 1]),
            (8191, &[0xfe, 0x7f]),
            (i64::from(i32::MIN), &[0xff, 0xff, 0xff, 0xff, 0x0f]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(Reader::new(bytes).varlong(), Ok(value));
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let cases: [(&[u8], RecordError); 4] = [
            (&[], RecordError::CutShort),
            (&[0x80, 0x80], RecordError::CutShort),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0], RecordError::Varint),
            (&[0xff, 0xff, 0xff, 0xff, 0x1f], RecordError::Varint),
        ];
        for (bytes, error) in cases {
            assert_eq!(Reader::new(bytes).varint(), Err(error), "{bytes:?}");
        }
        let eleven_bytes = [0x80; 10];
        assert_eq!(Reader::new(&eleven_bytes).varlong(), Err(RecordError::Varint));
        let second_bit_of_the_tenth = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(Reader::new(&second_bit_of_the_tenth).varlong(), Err(RecordError::Varint));
    }

    proptest! {
        #[test]
        fn varlongs_round_trip(value: i64, shift in 0_u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            prop_assert_eq!(out.len(), varint_bytes(value));
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varlong(), Ok(value));
            prop_assert!(reader.rest().is_empty());
        }

        #[test]
        fn varints_round_trip(value: i32, shift in 0_u32..32) {
            let value = value >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(Reader::new(&out).varint(), Ok(value));
        }
    }
}

//! Finds a record in one batch by its timestamp: the last step of a lookup by time.
//!
//! An index leads to the batch; which record of it is meant only the records say. Those of a
//! compressed batch are decompressed up to a bound.

use strandline_model::{ByteCount, Offset, Timestamp};

use crate::{BatchView, ContentError, records};

/// A record as a lookup by time answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTime {
    /// Where the record is.
    pub offset: Offset,
    /// Its timestamp.
    pub timestamp: Timestamp,
}

impl BatchView<'_> {
    /// The first record at or after offset `from` whose timestamp is at least `at`.
    ///
    /// `from` is the log start: a batch may begin below it.
    pub fn first_record_since(
        &self,
        at: Timestamp,
        from: Offset,
        decompressed_bytes_max: ByteCount,
    ) -> Result<Option<RecordTime>, ContentError> {
        if self.max_timestamp() < Some(at) {
            return Ok(None);
        }
        let mut found = None;
        self.each_record_time(decompressed_bytes_max, |record| {
            if found.is_none() && record.timestamp >= at && record.offset >= from {
                found = Some(record);
            }
        })?;
        Ok(found)
    }

    /// The first of the records at or after offset `from` that have the newest timestamp of those; `None`
    /// when none has any.
    ///
    /// `from` is the log start: a batch may begin below it.
    pub fn newest_record(
        &self,
        from: Offset,
        decompressed_bytes_max: ByteCount,
    ) -> Result<Option<RecordTime>, ContentError> {
        let mut newest: Option<RecordTime> = None;
        self.each_record_time(decompressed_bytes_max, |record| {
            let is_newer = newest.is_none_or(|newest| record.timestamp > newest.timestamp);
            if record.offset >= from && is_newer {
                newest = Some(record);
            }
        })?;
        Ok(newest)
    }

    /// Visits the records that have a timestamp, in order.
    fn each_record_time(
        &self,
        decompressed_bytes_max: ByteCount,
        mut visit: impl FnMut(RecordTime),
    ) -> Result<(), ContentError> {
        let block = self.decompressed(decompressed_bytes_max)?;
        for (record, index) in records(&block, self.records_count()).zip(0..) {
            let record = record.map_err(|error| ContentError::Record { index, error })?;
            if let (Some(offset), Some(timestamp)) =
                (self.offset_of(&record), self.timestamp_of(&record))
            {
                visit(RecordTime { offset, timestamp });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use strandline_model::LeaderEpoch;

    use super::*;
    use crate::{BatchBuilder, Codec, NewRecord, RecordError, SealedBatches, TimestampType};

    const LIMIT: ByteCount = ByteCount::mib(1);

    /// A batch at offset 100 of records with these timestamps.
    fn batch(codec: Codec, timestamps: &[Option<i64>]) -> BytesMut {
        let mut builder = BatchBuilder::new().base_offset(Offset::new(100));
        for timestamp in timestamps {
            let timestamp = timestamp.map(Timestamp::from_millis);
            builder.push(NewRecord { timestamp, value: Some(b"v"), ..NewRecord::default() });
        }
        builder.build_compressed(codec)
    }

    #[expect(clippy::unnecessary_wraps, reason = "the answers that it stands for are options")]
    fn found(offset: i64, timestamp: i64) -> Option<RecordTime> {
        let timestamp = Timestamp::from_millis(timestamp);
        Some(RecordTime { offset: Offset::new(offset), timestamp })
    }

    const CODECS: [Codec; 5] = [
        Codec::None,
        Codec::Gzip { level: 1 },
        Codec::Snappy,
        Codec::Lz4 { level: 1 },
        Codec::Zstd { level: 1 },
    ];

    #[test]
    fn the_first_record_since_a_time() {
        let times = [Some(50), Some(70), None, Some(60), Some(70), Some(90)];
        // (at, from, found)
        let cases = [
            (0, 0, found(100, 50)),
            (50, 0, found(100, 50)),
            (51, 0, found(101, 70)),
            (71, 0, found(105, 90)),
            (90, 0, found(105, 90)),
            (91, 0, None),
            (0, 101, found(101, 70)),
            (51, 102, found(103, 60)),
            (0, 106, None),
        ];
        for codec in CODECS {
            let bytes = batch(codec, &times);
            let view = BatchView::exactly(&bytes).unwrap();
            for (at, from, record) in cases {
                let (at, from) = (Timestamp::from_millis(at), Offset::new(from));
                let answer = view.first_record_since(at, from, LIMIT);
                assert_eq!(answer, Ok(record), "{codec:?}, at {at}, from {from}");
            }
        }
    }

    #[test]
    fn the_newest_record_is_the_first_with_the_newest_time() {
        let cases: [(&[Option<i64>], _); 5] = [
            (&[Some(5)], found(100, 5)),
            (&[Some(5), Some(9), Some(9), Some(7)], found(101, 9)),
            (&[Some(9), Some(5), Some(9)], found(100, 9)),
            (&[None, Some(0), None], found(101, 0)),
            (&[None, None], None),
        ];
        for (times, newest) in cases {
            for codec in CODECS {
                let bytes = batch(codec, times);
                let view = BatchView::exactly(&bytes).unwrap();
                assert_eq!(
                    view.newest_record(Offset::ZERO, LIMIT),
                    Ok(newest),
                    "{codec:?}, {times:?}"
                );
            }
        }
    }

    #[test]
    fn the_newest_record_is_one_that_is_left() {
        let bytes = batch(Codec::Lz4 { level: 1 }, &[Some(9), Some(5), Some(7), Some(7)]);
        let view = BatchView::exactly(&bytes).unwrap();
        for (from, newest) in [(100, found(100, 9)), (101, found(102, 7)), (104, None)] {
            assert_eq!(view.newest_record(Offset::new(from), LIMIT), Ok(newest), "from {from}");
        }
    }

    #[test]
    fn records_of_append_time_all_have_that_time() {
        let now = Timestamp::from_millis(1000);
        let sealed = SealedBatches::seal(
            batch(Codec::None, &[Some(5), Some(2000)]),
            Offset::new(100),
            LeaderEpoch::ZERO,
            TimestampType::LogAppendTime,
            now,
        );
        let view = sealed.iter().next().unwrap();
        assert_eq!(view.newest_record(Offset::ZERO, LIMIT), Ok(found(100, 1000)));
        let since = |at| view.first_record_since(Timestamp::from_millis(at), Offset::ZERO, LIMIT);
        assert_eq!(since(1000), Ok(found(100, 1000)));
        assert_eq!(since(1001), Ok(None));
    }

    #[test]
    fn records_that_were_trusted_and_are_broken_are_an_error() {
        let mut bytes = batch(Codec::None, &[Some(5)]);
        bytes.truncate(bytes.len() - 2);
        let length = i32::try_from(bytes.len() - 12).unwrap();
        crate::batch::write_field(&mut bytes, crate::batch::BATCH_LENGTH, length.to_be_bytes());
        let view = BatchView::exactly(&bytes).unwrap();
        let broken = ContentError::Record { index: 0, error: RecordError::CutShort };
        assert_eq!(view.newest_record(Offset::ZERO, LIMIT), Err(broken));

        let zstd = batch(Codec::Zstd { level: 1 }, &[Some(5)]);
        let view = BatchView::exactly(&zstd).unwrap();
        assert!(matches!(
            view.newest_record(Offset::ZERO, ByteCount::new(3)),
            Err(ContentError::Compression(_))
        ));
    }
}

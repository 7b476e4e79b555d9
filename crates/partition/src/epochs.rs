//! Where each leader epoch began (KIP-101, KIP-279).

use strandline_model::{LeaderEpoch, Offset};

/// The first offset of every epoch that appended something, in both orders ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochStarts {
    starts: Vec<(LeaderEpoch, Offset)>,
}

/// The answer to "where did that epoch end?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch that is not above the one asked for.
    pub epoch: LeaderEpoch,
    /// The offset after its last record.
    pub end_offset: Offset,
}

impl EpochStarts {
    /// The starts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (LeaderEpoch, Offset)> {
        self.starts.iter().copied()
    }

    /// The newest epoch that appended something.
    pub fn latest(&self) -> Option<LeaderEpoch> {
        self.starts.last().map(|&(epoch, _)| epoch)
    }

    /// Records that a batch of `epoch` was appended at `base_offset`. Only a newer epoch changes anything.
    pub fn record(&mut self, epoch: LeaderEpoch, base_offset: Offset) {
        if self.latest().is_none_or(|latest| epoch > latest) {
            self.starts.push((epoch, base_offset));
        }
    }

    /// Forgets epochs that end at or below `log_start`; the one that spans it begins there.
    pub fn trim(&mut self, log_start: Offset) {
        let spanning = self.starts.partition_point(|&(_, start)| start <= log_start);
        if spanning > 0 {
            self.starts.drain(..spanning - 1);
            if let Some(first) = self.starts.first_mut() {
                first.1 = log_start;
            }
        }
    }

    /// Where `epoch` ended, in a log that ends at `log_end` and is led in `current`.
    ///
    /// As Kafka answers `OffsetForLeaderEpoch`: the current epoch ends at the log's end; an older one
    /// ends where the next began; one that is newer than the current, or older than all known, has
    /// no end (`None`).
    pub fn end_of(
        &self,
        epoch: LeaderEpoch,
        current: LeaderEpoch,
        log_end: Offset,
    ) -> Option<EpochEnd> {
        if epoch == current {
            return Some(EpochEnd { epoch, end_offset: log_end });
        }
        if epoch > current {
            return None;
        }
        let above = self.starts.partition_point(|&(known, _)| known <= epoch);
        let floor = self.starts[..above].last();
        let next = self.starts.get(above);
        match (floor, next) {
            (Some(&(epoch, _)), Some(&(_, end_offset))) => Some(EpochEnd { epoch, end_offset }),
            (Some(&(epoch, _)), None) => Some(EpochEnd { epoch, end_offset: log_end }),
            // Older than everything that is kept: it ended where the oldest kept one begins.
            (None, Some(&(_, end_offset))) => Some(EpochEnd { epoch, end_offset }),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(number: i32) -> LeaderEpoch {
        LeaderEpoch::new(number)
    }

    fn starts(pairs: &[(i32, i64)]) -> EpochStarts {
        let mut starts = EpochStarts::default();
        for &(number, offset) in pairs {
            starts.record(epoch(number), Offset::new(offset));
        }
        starts
    }

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        let log = starts(&[(0, 0), (2, 10), (5, 30)]);
        let end = |asked| {
            log.end_of(epoch(asked), epoch(6), Offset::new(40))
                .map(|end| (end.epoch.get(), end.end_offset.get()))
        };
        let cases = [
            (0, Some((0, 10))),
            (1, Some((0, 10))),
            (2, Some((2, 30))),
            (4, Some((2, 30))),
            (5, Some((5, 40))),
            (6, Some((6, 40))),
            (7, None),
        ];
        for (asked, answer) in cases {
            assert_eq!(end(asked), answer, "epoch {asked}");
        }
    }

    #[test]
    fn an_older_or_equal_epoch_records_nothing() {
        assert_eq!(starts(&[(3, 7), (3, 9), (2, 11)]), starts(&[(3, 7)]));
    }

    #[test]
    fn trimming_keeps_the_epoch_that_spans_the_log_start() {
        let mut log = starts(&[(0, 0), (2, 10), (5, 30)]);
        log.trim(Offset::new(15));
        assert_eq!(log, starts(&[(2, 15), (5, 30)]));
        log.trim(Offset::new(30));
        assert_eq!(log, starts(&[(5, 30)]));
    }
}

//! A log in memory and passes over it, as the broker makes them.

use std::collections::BTreeMap;

use bytes::Bytes;
use strandline_model::{
    ByteCount, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp,
};
use strandline_partition::compaction::{Cleaning, Noted, OffsetMap, note_keys};
use strandline_records::{
    BatchBuilder, BatchView, Codec, Compression, FilterOutcome, NewRecord, ProducerStamp,
    SealedBatches, TimestampType, records,
};

const LIMIT: ByteCount = ByteCount::mib(1);

/// A record as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) offset: i64,
    pub(super) key: Option<u8>,
    pub(super) value: Option<u8>,
    pub(super) time: Option<i64>,
}

/// What is appended.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) records: Vec<(Option<u8>, Option<u8>)>,
    pub(super) producer: Option<i64>,
    pub(super) compression: Compression,
    pub(super) transactional: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) batches: Vec<Bytes>,
    pub(super) end: i64,
    /// Where the last batch of each producer ends.
    pub(super) producers: BTreeMap<ProducerId, Offset>,
    pub(super) clean_end: Offset,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) changed: usize,
    pub(super) removed: u32,
    pub(super) delete_horizon: Option<Timestamp>,
    pub(super) upto: Offset,
}

impl Log {
    pub(super) fn append(&mut self, draft: &Draft, now: i64) {
        let mut builder = BatchBuilder::new();
        if let Some(id) = draft.producer {
            let sequence = Sequence::from_wire(0);
            let (id, epoch) = (ProducerId::new(id), ProducerEpoch::ZERO);
            builder = builder.producer(ProducerStamp { id, epoch, base_sequence: sequence });
        }
        if draft.transactional {
            builder = builder.transactional();
        }
        for (key, value) in &draft.records {
            let (key, value) = (key.map(|key| [key]), value.map(|value| [value]));
            builder.push(NewRecord {
                timestamp: Some(Timestamp::from_millis(now)),
                key: key.as_ref().map(|key| &key[..]),
                value: value.as_ref().map(|value| &value[..]),
                headers: &[],
            });
        }
        let bytes = builder.build_compressed(Codec::at_default_level(draft.compression));
        let (at, epoch) = (Offset::new(self.end), LeaderEpoch::ZERO);
        let now = Timestamp::from_millis(now);
        let sealed = SealedBatches::seal(bytes, at, epoch, TimestampType::CreateTime, now);
        self.end = sealed.next_offset().get();
        if let Some(id) = draft.producer {
            self.producers.insert(ProducerId::new(id), sealed.next_offset());
        }
        self.batches.push(sealed.into_bytes());
    }

    /// Compacts the whole batches below `upto`, with room for few keys.
    pub(super) fn compact(&mut self, upto: i64, memory: u64, now: i64, retention_ms: u64) -> Pass {
        let upto = Offset::new(upto);
        let views: Vec<_> = self.batches.iter().map(|bytes| view(bytes)).collect();
        let part = views.iter().take_while(|batch| batch.next_offset() <= Some(upto)).count();
        let mut map = OffsetMap::new(100, ByteCount::new(memory), 0.9, 7);
        let mut noted_end = upto;
        for batch in &views[..part] {
            if batch.next_offset() <= Some(self.clean_end) {
                continue;
            }
            if let Noted::Below(end) = note_keys(batch, self.clean_end, &mut map, LIMIT).unwrap() {
                noted_end = end;
                break;
            }
        }
        let cleaning = Cleaning {
            map: &map,
            noted_end,
            upto: views[..part].last().and_then(BatchView::next_offset).unwrap_or(upto),
            producers: &self.producers,
            now: Timestamp::from_millis(now),
            latest: Timestamp::from_millis(now),
            delete_retention_ms: retention_ms,
            decompressed_bytes_max: LIMIT,
        };
        let mut pass = Pass { upto: noted_end, ..Pass::default() };
        let mut left = Vec::new();
        for (index, bytes) in self.batches.iter().enumerate() {
            if index >= part {
                left.push(bytes.clone());
                continue;
            }
            let cleaned = cleaning.clean(&view(bytes));
            pass.removed += cleaned.removed;
            let horizons = [pass.delete_horizon, cleaned.delete_horizon];
            pass.delete_horizon = horizons.into_iter().flatten().min();
            match cleaned.outcome {
                FilterOutcome::Same => left.push(bytes.clone()),
                FilterOutcome::Changed(changed) => {
                    pass.changed += 1;
                    left.push(changed);
                }
                FilterOutcome::Gone => pass.changed += 1,
            }
        }
        self.batches = left;
        self.clean_end = noted_end.max(self.clean_end);
        pass
    }

    pub(super) fn read(&self) -> Vec<Read> {
        let mut all = Vec::new();
        for bytes in &self.batches {
            let batch = view(bytes);
            assert_eq!(batch.check_crc(), Ok(()));
            let block = batch.decompressed(LIMIT).unwrap();
            for record in records(&block, batch.records_count()).map(Result::unwrap) {
                all.push(Read {
                    offset: batch.offset_of(&record).unwrap().get(),
                    key: record.key.map(|key| key[0]),
                    value: record.value.map(|value| value[0]),
                    time: batch.timestamp_of(&record).map(Timestamp::as_millis),
                });
            }
        }
        all
    }

    /// Key to value after reading everything: what a compacted topic is for.
    pub(super) fn table(&self) -> BTreeMap<u8, u8> {
        let mut table = BTreeMap::new();
        for Read { key, value, .. } in self.read() {
            match (key, value) {
                (Some(key), Some(value)) => _ = table.insert(key, value),
                (Some(key), None) => _ = table.remove(&key),
                (None, _) => {}
            }
        }
        table
    }

    pub(super) fn ends(&self) -> Vec<Offset> {
        self.batches.iter().map(|bytes| view(bytes).next_offset().unwrap()).collect()
    }
}

pub(super) fn view(bytes: &[u8]) -> BatchView<'_> {
    BatchView::exactly(bytes).unwrap()
}

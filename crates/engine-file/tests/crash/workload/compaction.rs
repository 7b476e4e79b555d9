//! Compaction in the workload: which batches go is a matter of luck, all that counts is that they go
//! together.

use bytes::Bytes;
use strandline_model::{Offset, PartitionId};
use strandline_records::batches;
use strandline_storage::{ChunkState, CommitLog, Compacted};

use super::Workload;
use crate::check;
use crate::oracle::Compaction;

impl Workload {
    /// Rewrites some sealed chunks without some of their batches, or gives that up half-way.
    pub(super) async fn compact(&mut self, id: PartitionId) {
        self.settle().await;
        if self.dice.one_in(2) {
            self.roll(id).await;
        }
        let log = self.handle(id).await.log;
        let bounds = log.bounds();
        let mut chunks = log.chunks();
        chunks.retain(|chunk| {
            chunk.state == ChunkState::Sealed && chunk.next_offset <= bounds.durable_end
        });
        let skip = self.dice.index(chunks.len() + 1);
        let count = 1 + self.dice.index(3);
        let part: Vec<_> = chunks.into_iter().skip(skip).take(count).collect();
        let (Some(first), Some(last)) = (part.first(), part.last()) else { return };
        let Some(held) = self.held_to_compact(&*log, first.base_offset, last.next_offset).await
        else {
            drop(log);
            return self.lose(id).await;
        };
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for batch in batches(&held).map(|batch| batch.expect("checked before")) {
            let range = batch.base_offset().expect("sealed")..batch.next_offset().expect("sealed");
            if range.end < bounds.written_end && self.dice.one_in(2) {
                gone.push(range);
            } else {
                kept.push(Bytes::copy_from_slice(batch.bytes()));
            }
        }
        let gives_up = self.dice.one_in(6);
        let begun = self.oracle.now();
        if !gives_up {
            let one = Compaction { gone, begun, acknowledged: None };
            self.oracle.log(id, |log| log.compactions.push(one));
        }
        let rewritten = async {
            let mut rewrite = log.rewrite(first.id, last.id).await?;
            for bytes in kept {
                rewrite.add(bytes).await?;
            }
            if gives_up { Ok(()) } else { rewrite.commit().await }
        };
        if rewritten.await.is_err() {
            drop(log);
            return self.lose(id).await;
        }
        let now = self.oracle.now();
        if !gives_up {
            self.oracle.log(id, |log| {
                log.compactions.last_mut().expect("just pushed").acknowledged = Some(now);
            });
            let compacted = Compacted { clean_end: last.next_offset, delete_horizon: None };
            if log.note_compacted(compacted).await.is_err() {
                drop(log);
                self.lose(id).await;
            }
        }
    }

    /// What is there to be compacted, if it can be read. Once a sync has failed, the cache may be dropped
    /// under a reader, whom the disk then gives what it has; a cleaner checks what it reads.
    async fn held_to_compact(
        &self,
        log: &dyn CommitLog,
        from: Offset,
        upto: Offset,
    ) -> Option<Bytes> {
        let held = check::read_between(log, from, upto).await.ok()?;
        let is_whole = batches(&held).all(|batch| batch.is_ok_and(|one| one.check_crc().is_ok()));
        assert!(
            is_whole || self.oracle.state.lock().sync_failed.is_some(),
            "only a failed sync takes what was written"
        );
        is_whole.then_some(held)
    }
}

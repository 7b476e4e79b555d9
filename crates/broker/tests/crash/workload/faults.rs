//! Files that can't be written or synced, and a full disk.

use std::io;
use std::time::Duration;

use strandline_broker::Environment;
use strandline_engine_file::disk::{Disk, Fault, Persisted};
use strandline_model::ByteCount;

use super::Workload;
use crate::promises::{Phase, Slot};

/// Records that are sent while something is to fail.
const RECORDS: u32 = 12;
/// How often one is sent again: by then what failed is mended.
const ATTEMPTS_MAX: u32 = 200;
/// What the engine keeps back for deleting, as the test configures it.
const RESERVE: u64 = 64 * 1024;

impl Workload {
    /// Appends to a partition whose files fail, or on a disk that is full.
    pub(super) async fn fail(&mut self, life: usize) {
        self.begin(Phase::Fault);
        let partition = self.partition(life);
        let id = self.promises.lives[life].id.expect("it was created");
        let files = format!("logs/{id}/{partition}/");
        let persisted = if self.dice.one_in(2) {
            Persisted::Nothing
        } else {
            Persisted::Torn(self.dice.next())
        };
        let skip = self.dice.index(4);
        let written = self.dice.index(100);
        match self.dice.below(4) {
            0 => self.disk.inject(&files, skip, Fault::Sync { persisted }),
            1 => {
                self.disk.inject(
                    &files,
                    skip,
                    Fault::Write { kind: io::ErrorKind::Other, written },
                );
            }
            2 => {
                let kind = io::ErrorKind::StorageFull;
                self.disk.inject(&files, skip, Fault::Write { kind, written });
            }
            // Others fill the disk: less than the reserve is left.
            _ => self.fill_disk(),
        }
        for _ in 0..RECORDS {
            self.produce_somehow(life, partition).await;
        }
        self.disk.clear_faults();
        self.disk.set_capacity(None);
        self.produce_somehow(life, partition).await;
        self.restart(true).await;
    }

    fn fill_disk(&mut self) {
        let large = ByteCount::gib(1);
        self.disk.set_capacity(Some(large));
        let free = self.disk.free_space().expect("it can tell").get();
        let left = RESERVE / 2 + u64::from(self.dice.below(40_000));
        self.disk.set_capacity(Some(ByteCount::new(large.get() - free + left)));
    }

    /// Sends a record until it is taken, or it was in vain so often that the disk must be mended first.
    async fn produce_somehow(&mut self, life: usize, partition: u32) {
        let name = self.promises.lives[life].name.clone();
        let base = self.records(life, partition).len();
        let (key, _) = self.any_record(life, partition, 0);
        let mut sent = Vec::new();
        for attempt in 0..ATTEMPTS_MAX {
            let begun = self.begin(Phase::Fault);
            let size = if self.dice.one_in(3) { 550 } else { 60 };
            let value = format!("{life}-{partition}-{base}.{attempt}-{}", "x".repeat(size));
            sent.push((Some(value.clone()), begun));
            let now = self.clock.now();
            let answer = self.client().produce(&name, partition, (&key, Some(&value)), now).await;
            match answer {
                Ok(offset) => {
                    let offset = usize::try_from(offset).unwrap();
                    return self.settle(life, partition, (&key, sent), offset).await;
                }
                Err(_) => self.promises.failed += 1,
            }
            if attempt == 2 {
                // A full disk stays full until somebody makes room.
                self.disk.set_capacity(None);
            }
            self.clock.advance(Duration::from_secs(5));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{name}-{partition} takes nothing any more");
    }

    /// The last of what was sent stands at `offset`; of what failed before, some may stand between.
    async fn settle(
        &mut self,
        life: usize,
        partition: u32,
        (key, sent): (&str, Vec<(Option<String>, crate::promises::Deed)>),
        offset: usize,
    ) {
        let base = self.records(life, partition).len();
        let from = i64::try_from(base).unwrap();
        let name = self.promises.lives[life].name.clone();
        let end = i64::try_from(offset).unwrap() + 1;
        let found = self.client().read(&name, partition, from, end).await;
        assert_eq!(found.len(), offset + 1 - base, "{name}-{partition}: no holes from {base} on");
        let now = self.now();
        for (at, (_, _, value)) in found.into_iter().enumerate() {
            // Nothing stands before what was sent before it.
            let mut slot = Slot { key: key.to_owned(), sent: sent[at..].to_vec() };
            let there = slot.sent.iter_mut().find(|(sent, _)| *sent == value);
            there.expect("what is there was sent").1.answered = Some(now);
            self.records(life, partition).push(slot);
        }
    }
}

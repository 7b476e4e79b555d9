//! A run of a broker from a seed: topics under few names, each of which has many lives.

mod faults;
mod strangers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use strandline_broker::Environment;
use strandline_engine_file::disk::TestDisk;
use strandline_model::Timestamp;

use crate::client::Client;
use crate::dice::Dice;
use crate::promises::{Deed, Life, PartitionLife, Phase, Promises, Slot};
use crate::world::{Clock, World};

/// The names that all topics of a workload share.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];
/// The one group.
pub(crate) const GROUP: &str = "g";
/// How long a deletion waits: the default of `deletion.grace.ms`.
const GRACE_MS: i64 = 60_000;
/// Keys of records: few, so that compaction has something to do.
const KEYS: u32 = 4;
/// How often a step is repeated that chance may leave without effect.
const TRIES_MAX: usize = 50;
/// The most partitions of a topic.
const PARTITIONS_MAX: u32 = 3;

/// Runs `steps` steps; gives back the disk and what was promised.
pub(crate) fn run(seed: u64, steps: usize) -> (TestDisk, Promises) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let disk = TestDisk::new();
    let promises = runtime.block_on(async {
        let clock = Clock::new(seed, Timestamp::from_millis(1_700_000_000_000));
        let mut promises = Promises::default();
        promises.phases.push((0, Phase::Start));
        let world = World::start(&disk, &clock).await;
        let client = world.client();
        let dice = Dice::new(seed);
        let mut workload = Workload {
            world: Some(world),
            client: Some(client),
            disk: disk.clone(),
            clock: Arc::clone(&clock),
            dice,
            promises,
        };
        for _ in 0..steps {
            workload.step().await;
        }
        workload.each_phase_once().await;
        workload.promises.ended_at = clock.now();
        workload.promises
    });
    (disk, promises)
}

struct Workload {
    /// `None` between two brokers.
    world: Option<World>,
    client: Option<Client>,
    disk: TestDisk,
    clock: Arc<Clock>,
    dice: Dice,
    promises: Promises,
}

impl Workload {
    async fn step(&mut self) {
        let name = NAMES[self.dice.index(NAMES.len())];
        let Some(life) = self.promises.living(name) else {
            return match self.can_return(name) {
                Some(life) if self.dice.one_in(3) => self.undelete(life).await,
                _ => self.create(name).await,
            };
        };
        match self.dice.below(100) {
            0..41 => self.produce(life).await,
            41..44 => self.rest().await,
            44..51 => self.retain(life).await,
            51..57 => self.trim(life).await,
            57..65 => self.compact(life).await,
            65..68 => self.fail(life).await,
            68..75 => self.commit(life).await,
            75..84 => self.delete(life).await,
            84..90 => self.purge().await,
            90..92 => self.estrange_and_return(life).await,
            92..94 => self.estrange_and_purge(life).await,
            94..97 => self.restart(true).await,
            _ => self.restart(false).await,
        }
    }

    /// What chance may have left out.
    async fn each_phase_once(&mut self) {
        let name = NAMES[0];
        if self.promises.living(name).is_none() {
            self.create(name).await;
        }
        let life = self.promises.living(name).expect("it was created");
        self.produce(life).await;
        self.retain(life).await;
        self.rest().await;
        self.produce(life).await;
        self.trim(life).await;
        self.commit(life).await;
        for _ in 0..TRIES_MAX {
            for _ in 0..8 {
                self.produce(life).await;
            }
            self.compact(life).await;
            if self.promises.compacted > 0 {
                break;
            }
        }
        self.estrange_and_return(life).await;
        for _ in 0..TRIES_MAX {
            self.fail(life).await;
            if self.promises.failed > 0 {
                break;
            }
        }
        self.delete(life).await;
        self.undelete(life).await;
        self.restart(true).await;
        self.delete(life).await;
        self.purge().await;
        self.create(name).await;
        let life = self.promises.living(name).expect("it was created");
        self.produce(life).await;
        self.estrange_and_purge(life).await;
        assert!(self.promises.compacted > 0, "compaction removed nothing");
        assert!(self.promises.failed > 0, "no append failed");
    }

    fn now(&self) -> usize {
        self.disk.operations()
    }

    fn begin(&mut self, phase: Phase) -> Deed {
        let now = self.now();
        self.promises.phases.push((now, phase));
        Deed::begun(now)
    }

    fn world(&self) -> &World {
        self.world.as_ref().expect("there is one while nobody restarts it")
    }

    fn client(&mut self) -> &mut Client {
        self.client.as_mut().expect("there is one while nobody restarts the broker")
    }

    /// Some partition of a life.
    fn partition(&mut self, life: usize) -> u32 {
        self.dice.below(self.promises.lives[life].partition_count)
    }

    async fn create(&mut self, name: &str) {
        let partition_count = 1 + self.dice.below(PARTITIONS_MAX);
        let created = self.begin(Phase::Create);
        self.promises.lives.push(Life {
            name: name.to_owned(),
            partition_count,
            id: None,
            changes: vec![created],
            may_return_since: None,
            estranged: None,
            partitions: vec![PartitionLife::default(); partition_count as usize],
            positions: BTreeMap::new(),
        });
        let id = self.client().create(name, partition_count).await;
        let now = self.now();
        let life = self.promises.lives.last_mut().expect("just pushed");
        life.id = Some(id);
        life.changes[0].answered = Some(now);
    }

    async fn produce(&mut self, life: usize) {
        let partition = self.partition(life);
        let name = self.promises.lives[life].name.clone();
        for _ in 0..=self.dice.below(5) {
            let sent = self.begin(Phase::Produce);
            let now = self.clock.now();
            let (key, value) = self.any_record(life, partition, 0);
            let records = self.records(life, partition);
            let offset = records.len();
            records.push(Slot::of(&key, value.clone(), sent));
            let record = (key.as_str(), value.as_deref());
            let found = self.client().produce(&name, partition, record, now).await;
            assert_eq!(found, Ok(i64::try_from(offset).unwrap()), "{name}-{partition}");
            let now = self.now();
            self.records(life, partition)[offset].sent[0].1.answered = Some(now);
        }
    }

    fn records(&mut self, life: usize, partition: u32) -> &mut Vec<Slot> {
        &mut self.promises.lives[life].partitions[partition as usize].records
    }

    /// One of a few keys, and a value that no other record has, or none. Some are large enough to go to
    /// the segment only.
    fn any_record(
        &mut self,
        life: usize,
        partition: u32,
        attempt: u32,
    ) -> (String, Option<String>) {
        let key = format!("key-{}", self.dice.below(KEYS));
        let size = if self.dice.one_in(6) { 550 } else { 60 };
        let offset = self.records(life, partition).len();
        let value = format!("{life}-{partition}-{offset}.{attempt}-{}", "x".repeat(size));
        (key, (!self.dice.one_in(8)).then_some(value))
    }

    /// A pass of retention with a limit that removes something of one topic.
    async fn retain(&mut self, life: usize) {
        let name = self.promises.lives[life].name.clone();
        let begun = self.begin(Phase::Retention);
        let limit = if self.dice.one_in(3) {
            // Older than everything: empties the topic, the active segments too.
            ("retention.ms", "1000")
        } else {
            ("retention.bytes", "500")
        };
        self.client().configure(&name, limit.0, limit.1).await;
        self.clock.advance(Duration::from_secs(2));
        self.world().broker.check_retention().await;
        self.client().configure(&name, limit.0, "-1").await;
        let answered = Some(self.now());
        for partition in 0..self.promises.lives[life].partition_count {
            let (log_start, _) = self.client().bounds(&name, partition).await;
            let trims = &mut self.promises.lives[life].partitions[partition as usize].trims;
            trims.push((log_start, Deed { answered, ..begun }));
        }
    }

    /// A pass of compaction over one topic.
    async fn compact(&mut self, life: usize) {
        let name = self.promises.lives[life].name.clone();
        let begun = self.begin(Phase::Compaction);
        for partition in &mut self.promises.lives[life].partitions {
            partition.compactions.push((partition.records.len(), begun));
        }
        self.client().configure(&name, "cleanup.policy", "compact,delete").await;
        // Once more when the tombstones of the first pass may go.
        for _ in 0..2 {
            let world = self.world();
            let removed = &world.broker.metrics().compaction_removed_records;
            let before = removed.get();
            world.while_time_passes(world.broker.check_compaction()).await;
            let now = removed.get();
            self.promises.compacted += now - before;
            self.clock.advance(Duration::from_secs(5));
        }
        self.client().configure(&name, "cleanup.policy", "delete").await;
    }

    /// Closes all logs, as when nobody has used them for a while: the disk sees nothing of it.
    async fn rest(&mut self) {
        // The first look finds that they were used.
        self.world().broker.close_idle().await;
        self.world().broker.close_idle().await;
    }

    async fn trim(&mut self, life: usize) {
        let partition = self.partition(life);
        let name = self.promises.lives[life].name.clone();
        let (log_start, end) = self.client().bounds(&name, partition).await;
        let span = u32::try_from(end - log_start).expect("a short log");
        let before = log_start + i64::from(self.dice.below(span + 1));
        let begun = self.begin(Phase::Trim);
        let at = partition as usize;
        self.promises.lives[life].partitions[at].trims.push((before, begun));
        self.client().delete_records(&name, partition, before).await;
        let now = self.now();
        let trims = &mut self.promises.lives[life].partitions[at].trims;
        trims.last_mut().expect("just pushed").1.answered = Some(now);
    }

    async fn commit(&mut self, life: usize) {
        let partition = self.partition(life);
        let name = self.promises.lives[life].name.clone();
        let offset = i64::from(self.dice.below(1000));
        let begun = self.begin(Phase::Commit);
        let positions = &mut self.promises.lives[life].positions;
        positions.entry(partition).or_default().push((offset, begun));
        self.client().commit(GROUP, &name, partition, offset).await;
        let now = self.now();
        let positions = self.promises.lives[life].positions.get_mut(&partition);
        positions.and_then(|all| all.last_mut()).expect("just pushed").1.answered = Some(now);
    }

    async fn delete(&mut self, life: usize) {
        let name = self.promises.lives[life].name.clone();
        let begun = self.begin(Phase::Delete);
        self.promises.lives[life].changes.push(begun);
        self.client().delete(&name).await;
        let (now, at) = (self.now(), self.clock.now());
        let life = &mut self.promises.lives[life];
        life.changes.last_mut().expect("just pushed").answered = Some(now);
        life.may_return_since = Some(at);
    }

    /// The last life of a name that nobody has, while its deletion surely waits.
    fn can_return(&self, name: &str) -> Option<usize> {
        let now = self.clock.now();
        self.promises.lives.iter().rposition(|life| {
            life.name == name
                && life.may_return_since.is_some_and(|at| now.millis_since(at) < GRACE_MS / 2)
        })
    }

    async fn undelete(&mut self, life: usize) {
        let begun = self.begin(Phase::Undelete);
        self.promises.lives[life].changes.push(begun);
        self.promises.lives[life].may_return_since = None;
        let id = self.promises.lives[life].id.expect("it was created");
        let broker = Arc::clone(&self.world().broker);
        broker.undelete_topic(id, None).await.expect("its deletion has not begun");
        let now = self.now();
        let changes = &mut self.promises.lives[life].changes;
        changes.last_mut().expect("just pushed").answered = Some(now);
    }

    async fn purge(&mut self) {
        self.begin(Phase::Purge);
        self.world().purge().await;
    }

    /// Stops the broker, cleanly or as a killed process ends, and starts another on the same disk.
    async fn restart(&mut self, cleanly: bool) {
        self.begin(Phase::Stop);
        let world = self.world.take().expect("there is one");
        self.client = None;
        if cleanly {
            world.broker.close().await.expect("a healthy broker closes");
        }
        world.kill();
        self.begin(Phase::Start);
        let world = World::start(&self.disk, &self.clock).await;
        self.client = Some(world.client());
        self.world = Some(world);
    }
}

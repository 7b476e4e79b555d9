//! What a crash left, and the broker that is started on it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use strandline_broker::Environment;
use strandline_engine_file::disk::{Replay, TestDisk};
use strandline_model::{PartitionId, TopicId};
use strandline_storage::{LogStore, MetaStore, Table};

use crate::End;
use crate::client::Client;
use crate::dice::Dice;
use crate::promises::{Life, Promises};
use crate::workload::{GROUP, NAMES};
use crate::world::{Clock, World};

/// Of how many images one is cut again while the broker starts and purges.
const TWICE_ONE_IN: u32 = 4;

/// How long an image may take: all of them take milliseconds.
const STALLED: Duration = Duration::from_mins(2);

/// A crash of the workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image<'a> {
    pub(crate) seed: u64,
    pub(crate) cut: usize,
    pub(crate) end: End,
    pub(crate) promises: &'a Promises,
}

impl Image<'_> {
    /// Starts a broker on `disk` and checks it; sometimes crashes it again before.
    pub(crate) fn check(self, disk: TestDisk, dice: &mut Dice) {
        let _whereabouts = Whereabouts(self);
        let disk = if dice.one_in(TWICE_ONE_IN) { self.crash_again(&disk, dice) } else { disk };
        in_a_runtime(async {
            let world =
                World::start(&disk, &Clock::new(self.seed ^ 1, self.promises.ended_at)).await;
            self.check_world(&disk, &world).await;
            world.kill();
        });
    }

    /// Lets a broker start and purge, and crashes it somewhere on the way: nobody was promised
    /// anything new.
    fn crash_again(self, disk: &TestDisk, dice: &mut Dice) -> TestDisk {
        in_a_runtime(async {
            let world =
                World::start(disk, &Clock::new(self.seed ^ 2, self.promises.ended_at)).await;
            world.reconcile().await;
            world.purge().await;
            world.purge_strangers().await;
            world.kill();
        });
        let mut replay = Replay::of(disk);
        for _ in 0..dice.index(disk.operations() + 1) {
            replay.step();
        }
        End::any(dice).of(&replay)
    }

    async fn check_world(self, disk: &TestDisk, world: &World) {
        // What a topic has again must be served; what none knows is set aside.
        world.reconcile().await;
        let mut client = world.client();
        let mut there = Vec::new();
        for name in NAMES {
            let life = self.check_name(&mut client, name).await;
            if let Some(life) = life {
                self.check_life(&mut client, life).await;
            }
            there.push((name, life));
        }
        world.purge().await;
        world.purge_strangers().await;
        let ids = there.iter().filter_map(|(_, life)| life.and_then(|life| life.id));
        self.check_nothing_else(disk, world, &ids.collect()).await;
        for (name, life) in there {
            self.use_name(world, &mut client, name, life).await;
        }
    }

    /// The life that a name stands for: the one that it must, if it must be there.
    async fn check_name(&self, client: &mut Client, name: &str) -> Option<&Life> {
        let found = client.topic_id(name).await;
        let lives = || self.promises.lives.iter().filter(|life| life.name == name);
        if let Some(must) = lives().find(|life| life.must_be_there(self.cut)) {
            assert_eq!(found, must.id, "{name} must be there");
        }
        let id = found?;
        let life = lives().find(|life| life.id == Some(id) && life.may_be_there(self.cut));
        Some(life.unwrap_or_else(|| panic!("{name} is {id}, which must not be there")))
    }

    /// Records, log starts and positions of a topic.
    async fn check_life(&self, client: &mut Client, life: &Life) {
        for (index, expected) in life.partitions.iter().enumerate() {
            let partition = u32::try_from(index).unwrap();
            let place = format!("{}-{partition}", life.name);
            // A limit that the workload had set for a moment may be in force: retention removes beside this.
            let (log_start, end, found) = loop {
                let (log_start, end) = client.bounds(&life.name, partition).await;
                let read = client.read_unless_trimmed(&life.name, partition, log_start, end);
                if let Some(found) = read.await {
                    break (log_start, end, found);
                }
            };
            let (least, most) = expected.log_start_bounds(self.cut);
            assert!(
                (least..=most).contains(&log_start),
                "{place}: {log_start} of {least}..={most}"
            );
            let (least, most) = expected.end_bounds(self.cut);
            let end_index = usize::try_from(end).unwrap();
            assert!((least..=most).contains(&end_index), "{place}: {end} of {least}..={most}");
            let from = usize::try_from(log_start).unwrap();
            let fault = expected.fault(&found, from, end_index, self.cut);
            assert!(fault.is_none(), "{place}: {} of {found:?}", fault.unwrap_or_default());
            let position = client.position(GROUP, &life.name, partition).await;
            let allowed = life.allowed_positions(partition, self.cut);
            assert!(allowed.contains(&position), "{place}: position {position} of {allowed:?}");
        }
    }

    /// After the purge, disk and metadata know these topics and nothing else.
    async fn check_nothing_else(&self, disk: &TestDisk, world: &World, there: &BTreeSet<TopicId>) {
        let is_known = |id: &PartitionId| there.contains(&id.topic_id);
        let listed = world.engine.list().await.unwrap();
        assert!(listed.iter().all(is_known), "logs without a topic: {listed:?}");
        let names: BTreeSet<_> = there.iter().map(ToString::to_string).collect();
        for path in disk.paths() {
            if let Ok(below) =
                path.strip_prefix("logs").or_else(|_| path.strip_prefix("quarantine"))
                && let Some(topic) = below.components().next()
            {
                let topic = Path::new(topic.as_os_str()).display().to_string();
                assert!(names.contains(&topic), "{} is of no topic", path.display());
            }
        }
        let deletions = world.engine.scan(Table::Deletions, None, 10).await.unwrap().rows;
        assert!(deletions.is_empty(), "{deletions:?}");
        let positions = world.engine.scan(Table::GroupOffsets, None, 1000).await.unwrap().rows;
        for row in positions {
            let is_of = |id: &TopicId| row.key.windows(16).any(|bytes| bytes == id.as_bytes());
            // Nobody deleted a topic whose rows are gone: its positions expire.
            let mut strangers = self
                .promises
                .lives
                .iter()
                .filter(|life| life.estranged.is_some_and(|deed| deed.is_possible(self.cut)));
            let is_strange = strangers.any(|life| life.id.as_ref().is_some_and(is_of));
            assert!(there.iter().any(is_of) || is_strange, "a position in no topic: {row:?}");
        }
    }

    /// A name that is there goes on, and one that is not begins anew.
    async fn use_name(&self, world: &World, client: &mut Client, name: &str, life: Option<&Life>) {
        let now = world.clock.now();
        let from = if life.is_some() {
            client.bounds(name, 0).await.1
        } else {
            client.create(name, 1).await;
            assert_eq!(client.position(GROUP, name, 0).await, -1, "{name} is new");
            0
        };
        let sent = client.produce(name, 0, ("key", Some("new")), now).await;
        assert_eq!(sent, Ok(from), "{name}");
        let found = client.read(name, 0, from, from + 1).await;
        assert_eq!(found, [(from, "key".to_owned(), Some("new".to_owned()))]);
    }
}

/// Everything of the future is gone when this returns: tasks, handles, the threads of the engine.
fn in_a_runtime(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let in_time = async { tokio::time::timeout(STALLED, future).await };
    runtime.block_on(in_time).expect("a broker comes to an end with what it is asked for");
}

/// Says where a failed check was.
struct Whereabouts<'a>(Image<'a>);

impl Drop for Whereabouts<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Image { seed, cut, end, promises } = self.0;
            let phase = promises.phase_at(cut);
            eprintln!("seed {seed}, cut after {cut} operations, in {phase:?}, {end:?}");
        }
    }
}

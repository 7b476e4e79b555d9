//! Runs of a broker that keeps everything in PostgreSQL, and of PostgreSQL by itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::database::Task;
use super::run::{Sample, WARM_BYTES_MIN, account, account_of, one_record_a_request};
use super::upkeep::beside;
use super::workload::{Fate, Many, Side, Volume};
use crate::batch;
use crate::contender::{Contender, Programs, Running};
use crate::drive::batches::{self, Batches};
use crate::drive::fetch::{self, Fetch};
use crate::drive::unbatched::{self, Unbatched};
use crate::drive::{Load, setup};
use crate::postgres::ideal::{self, Single};
use crate::postgres::server::{Database, Server};

/// A new table and a new connection are slow for longer than a new file.
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURE: Duration = Duration::from_secs(5);
/// How long producers are watched that no deletion disturbs: about as long as one takes, so that what the
/// server does by itself meanwhile (new files of its log, checkpoints, vacuum) is in both.
const MEASURE_QUIET: Duration = Duration::from_mins(1);
const FETCH_BYTES: usize = 8 << 20;
/// What producers send that fill a topic.
const BATCH_BYTES: usize = 64 << 10;

/// One run, in a database of its own.
pub(super) fn run(
    programs: &Programs,
    server: &mut Option<Server>,
    side: &Side,
    task: Task,
    topic: &str,
) -> Result<Sample> {
    let server = match server {
        Some(server) => server,
        None => server.insert(Server::start(&programs.scratch).context("start PostgreSQL")?),
    };
    let database = server.database()?;
    let run = Run { programs, server, database: &database, side, topic };
    let sample = run.task(task).with_context(|| side.label.to_owned())?;
    server.drop_database(&database)?;
    Ok(sample)
}

/// Entries of one record of this size.
fn entry_bytes(value_bytes: usize) -> usize {
    batch::plain(1, value_bytes).len()
}

struct Run<'a> {
    programs: &'a Programs,
    server: &'a Server,
    database: &'a Database,
    side: &'a Side,
    topic: &'a str,
}

impl Run<'_> {
    fn task(&self, task: Task) -> Result<Sample> {
        match task {
            Task::Produce { many, value_bytes } => self.produce(many, value_bytes),
            Task::Single { connections, is_one_log, value_bytes } => self.ideal(|| {
                let entry_bytes = entry_bytes(value_bytes);
                let (warm_up, duration) = (WARM_UP, MEASURE);
                let load = Single { connections, is_one_log, entry_bytes, warm_up, duration };
                ideal::single(self.database, &load)
            }),
            Task::CopyIn { bytes, value_bytes } => {
                self.ideal(|| ideal::copy_in(self.database, bytes, entry_bytes(value_bytes)))
            }
            Task::CatchUp(volume) => self.catch_up(volume),
            Task::CopyOut(volume) => {
                drop(self.filled(self.topic, volume)?);
                self.ideal(|| ideal::copy_out(self.database))
            }
            Task::Deletion(many, volume, fate) => self.deletion(many, volume, fate),
        }
    }

    fn ideal(&self, load: impl FnOnce() -> Result<Load>) -> Result<Sample> {
        account_of(&[&self.server.account], self.server.folder(), WARM_BYTES_MIN, load)
    }

    /// A broker that keeps everything in the database.
    fn broker(&self) -> Result<(Programs, Running)> {
        let properties = self.database.properties();
        let programs = Programs { properties, ..self.programs.clone() };
        let mut running = programs.start(Contender::Strandline, self.side.durability)?;
        running.database = Some(Arc::clone(&self.server.account));
        Ok((programs, running))
    }

    /// The same, and it has a topic; what that has left to write is written.
    fn filled(&self, topic: &str, volume: Volume) -> Result<(Programs, Running)> {
        let (programs, running) = self.broker()?;
        setup::create_topic(running.broker, topic, volume.partitions, &[])?;
        batches::run(&Batches {
            broker: running.broker,
            topic: topic.to_owned(),
            partitions: volume.partitions,
            value_bytes: volume.value_bytes,
            batch_bytes: BATCH_BYTES,
            records: volume.records,
        })
        .with_context(|| format!("fill a topic. log=`{}`", running.log_tail()))?;
        self.database.sql("CHECKPOINT")?;
        Ok((programs, running))
    }

    /// Bytes are those of entries, as COPY counts them.
    fn produce(&self, many: Many, value_bytes: usize) -> Result<Sample> {
        let (_programs, running) = self.broker()?;
        setup::create_topic(running.broker, self.topic, many.partitions, &[])?;
        let load = Unbatched {
            value_bytes,
            warm_up: WARM_UP,
            ..one_record_a_request(&running, self.topic, many, MEASURE)
        };
        let mut sample = account(&running, WARM_BYTES_MIN, || unbatched::run(&load))
            .with_context(|| format!("log=`{}`", running.log_tail()))?;
        sample.load.bytes = sample.load.records * entry_bytes(value_bytes) as u64;
        Ok(sample)
    }

    fn catch_up(&self, volume: Volume) -> Result<Sample> {
        let (programs, mut running) = self.filled(self.topic, volume)?;
        running.restart(&programs, Contender::Strandline, self.side.durability)?;
        let (broker, topic) = (running.broker, self.topic.to_owned());
        let load = Fetch { broker, topic, max_bytes: FETCH_BYTES, records: volume.records };
        account(&running, WARM_BYTES_MIN, || fetch::run(&load))
            .with_context(|| format!("log=`{}`", running.log_tail()))
    }

    fn deletion(&self, many: Many, volume: Volume, fate: Fate) -> Result<Sample> {
        let large = format!("{}-large", self.topic);
        let (_programs, running) = self.filled(&large, volume)?;
        setup::create_topic(running.broker, self.topic, many.partitions, &[])?;
        if fate == Fate::Stays {
            let load = one_record_a_request(&running, self.topic, many, MEASURE_QUIET);
            return account(&running, WARM_BYTES_MIN, || unbatched::run(&load));
        }
        let mut deleted = None;
        let mut sample = beside(&running, self.topic, many, MEASURE, || {
            let logs: usize = self.database.sql("SELECT count(*) FROM strandline.logs")?.parse()?;
            let begun = Instant::now();
            setup::delete_topic(running.broker, &large)?;
            deleted = Some(begun.elapsed());
            self.wait_for_logs(logs - volume.partitions)?;
            Ok(begun.elapsed())
        })
        .with_context(|| format!("log=`{}`", running.log_tail()))?;
        sample.deleted = deleted;
        Ok(sample)
    }

    /// Waits on one connection, and holds no snapshot meanwhile that would keep vacuum from its work.
    fn wait_for_logs(&self, count: usize) -> Result<()> {
        self.database.sql(&format!(
            "DO $$ BEGIN
                WHILE (SELECT count(*) FROM strandline.logs) > {count} LOOP
                    COMMIT;
                    PERFORM pg_sleep(0.02);
                END LOOP;
            END $$"
        ))?;
        Ok(())
    }
}

//! What a start says to whoever watches: as it is on a terminal, else in the log.

use std::time::Duration;

use strandline_broker::Broker;
use strandline_model::ByteCount;
use strandline_model::config::{FsyncPolicy, StorageEngine};

use super::banner::Banner;
use super::plan::{Plan, Storage};
use super::status::of_missing_engine;
use crate::console;

/// More settings than these are counted, not named.
const SETTINGS_TOLD_MAX: usize = 3;

/// A disk with less than this free is told of at the start.
const FREE_MIN: ByteCount = ByteCount::gib(1);

/// Says what is worth knowing of the settings, before anything starts.
pub(super) fn tell_notices(plan: &Plan) {
    for notice in plan.settings.notices() {
        let text = notice.to_string();
        warn(&text);
    }
    let without: Vec<&str> = plan.settings.without_effect().map(|(name, _)| name).collect();
    if !without.is_empty() {
        tell(&format!(
            "settings without effect here (strandline config check says why): {}",
            without.join(" ")
        ));
    }
    if plan.is_open_to_others() {
        let warning = "everybody who reaches this machine can read and write: nothing is \
                       authenticated yet; http outside of loopback serves health only";
        warn(warning);
    }
}

/// What the start found, and what a person should look at before records come.
pub(super) fn tell_start(report: Option<&str>, broker: &Broker) {
    for missing in &broker.missing_engines() {
        warn(&of_missing_engine(missing));
    }
    let Some(report) = report else { return };
    let topics = broker.topic_count();
    let s = if topics == 1 { "" } else { "s" };
    tell(&format!("{report}; {topics} topic{s} in all"));
    let Some(free) = free_space(broker) else { return };
    if free < FREE_MIN {
        let warning = match free.get() {
            0 => "the data folder's disk is full: records are refused until there is room",
            _ => "the data folder's disk has less than 1 GiB free",
        };
        warn(warning);
    }
}

/// A line that a person should not overlook.
pub(super) fn warn(warning: &str) {
    if console::stderr_is_terminal() {
        console::say(&format!("warning: {warning}"));
    } else {
        tracing::warn!("{warning}");
    }
}

/// A line that a person should see once: on the terminal as it is, else in the log.
pub(super) fn tell(text: &str) {
    if console::stderr_is_terminal() {
        console::say(text);
    } else {
        tracing::info!("{text}");
    }
}

/// Says where everything is.
pub(super) fn tell_ready(
    plan: &Plan,
    broker: &Broker,
    kafka: &str,
    http: Option<&str>,
    after: Duration,
) {
    let ready_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    if !console::stderr_is_terminal() {
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            cluster_id = broker.cluster_id(),
            node_id = plan.config.node_id.get(),
            kafka,
            http,
            data = %plan.storage,
            fsync = %plan.config.storage_file_fsync,
            ready_ms,
            "ready"
        );
        return;
    }
    let data = match &plan.storage {
        Storage::Folder(folder) => folder.display().to_string(),
        Storage::Memory => "memory".to_owned(),
        Storage::Database(place) => place.clone(),
    };
    let banner = Banner {
        cluster_id: broker.cluster_id(),
        node_id: plan.config.node_id.get(),
        kafka,
        open_to_others: plan.is_open_to_others(),
        http,
        data: &data,
        how: &how_kept(plan, broker),
        config: &how_configured(plan),
        ready_after: after,
    };
    console::say(&banner.render());
}

fn how_kept(plan: &Plan, broker: &Broker) -> String {
    let policy = match (&plan.storage, plan.config.storage_file_fsync) {
        (Storage::Memory, _) => return "gone when the broker stops".to_owned(),
        (Storage::Database(_), _) if plan.config.storage_default == StorageEngine::Memory => {
            return "memory engine, records are gone when the broker stops".to_owned();
        }
        (Storage::Database(_), _) => {
            return "postgres engine, every acknowledged record is committed".to_owned();
        }
        (Storage::Folder(_), FsyncPolicy::Commit) => {
            "file engine, every acknowledged record is on disk (fsync)".to_owned()
        }
        (Storage::Folder(_), policy @ FsyncPolicy::Interval(_)) => {
            format!("file engine, fsync {policy}: power loss takes what is younger")
        }
        (Storage::Folder(_), FsyncPolicy::Never) => {
            "file engine, fsync never: power loss takes recent records".to_owned()
        }
    };
    match free_space(broker) {
        Some(free) => format!("{policy}, {} free", roughly(free)),
        None => policy,
    }
}

/// What the data folder's disk has free for records.
fn free_space(broker: &Broker) -> Option<ByteCount> {
    broker.space().into_iter().find(|(engine, _)| engine == "file")?.1.room()
}

/// Bytes for people.
fn roughly(bytes: ByteCount) -> String {
    let mib = bytes.get() >> 20;
    if mib < 1024 {
        format!("{mib} MiB")
    } else {
        format!("{}.{} GiB", mib >> 10, (mib & 1023) * 10 / 1024)
    }
}

fn how_configured(plan: &Plan) -> String {
    let creation = if plan.config.auto_create_topics_enable {
        "topics are created on first use (auto.create.topics.enable=true)"
    } else {
        "topics are created by command only (auto.create.topics.enable=false)"
    };
    let changed = crate::settings::show(&plan.settings);
    let names: Vec<&str> = changed.iter().map(|setting| setting.name).collect();
    match names.as_slice() {
        [] => format!("defaults; {creation}"),
        few if few.len() <= SETTINGS_TOLD_MAX => format!("{}; {creation}", few.join(", ")),
        many => format!("{} settings; {creation}", many.len()),
    }
}

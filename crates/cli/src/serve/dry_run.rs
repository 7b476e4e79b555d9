//! `serve --dry-run`: what a start would do, and whether it would work. Nothing is changed, nobody is
//! served; ports are taken for a moment to see that they are free.

use crate::check::{self, Check, Purpose, Verdict};
use crate::console;
use crate::failure::Failure;

use super::plan::Plan;
use super::run::try_listeners;
use super::tell::tell_notices;

/// Says what would be done; fails where a start would.
pub(crate) fn dry_run(plan: &Plan) -> Result<(), Failure> {
    tell_notices(plan);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| super::run::cannot_start("start the runtime", &error))?;
    let mut checks: Vec<Check> = try_listeners(plan).into_iter().map(of_listener).collect();
    checks.extend(runtime.block_on(check::storage(plan, Purpose::Start)));
    runtime.shutdown_background();
    for (name, value) in plan.meaning() {
        console::line(&format!("{name:<10} {value}"));
    }
    for topic in &plan.topics {
        let count = topic.partition_count.map_or("num.partitions".to_owned(), |n| n.to_string());
        console::line(&format!(
            "{:<10} {}, partitions: {count}, unless it is there",
            "topic", topic.name
        ));
    }
    console::data(check::table(&checks).render().as_bytes());
    check::outcome(&checks)?;
    let doubts = checks.iter().any(|check| check.verdict == Verdict::Doubtful);
    let doubts = if doubts { ", with what is warned of" } else { "" };
    console::say(&format!("a start would work{doubts}; nothing was changed"));
    Ok(())
}

fn of_listener((listener, tried): (String, Result<(), Failure>)) -> Check {
    match tried {
        Ok(()) => Check::good("listener", "port", format!("{listener} is free")),
        Err(failure) => {
            let remedy = failure.hints.join("; ");
            Check::wrong("listener", "port", failure.message, remedy)
        }
    }
}

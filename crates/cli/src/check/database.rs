//! The database: the engine looks, this says it in the commands' words.

use strandline_engine_postgres as postgres;
use strandline_model::config::PostgresPlace;

use super::{Check, Verdict};
use crate::serve::postgres_config;

const OF: &str = "postgres";

pub(super) async fn checks(place: &PostgresPlace) -> Vec<Check> {
    let postgres::Checked { checks, is_reached } = postgres::check(&postgres_config(place)).await;
    let said = |check: postgres::Check| Check {
        of: OF,
        name: check.name,
        verdict: match check.verdict {
            postgres::Verdict::Good => Verdict::Good,
            postgres::Verdict::Doubtful => Verdict::Doubtful,
            postgres::Verdict::Wrong if is_reached => Verdict::Wrong,
            postgres::Verdict::Wrong => Verdict::Unreached,
        },
        found: check.found,
        remedy: check.remedy,
    };
    checks.into_iter().map(said).collect()
}

//! The report of a sitting: every sample, the spreads, and what holds.

use std::fmt::Write as _;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::run::Sample;
use super::workload::{Bound, Check, Kind, Metric, Workload};
use crate::measure::machine::Machine;
use crate::measure::spread::Spread;

/// More of a core than this makes a run a disturbed one.
const OTHERS_CORES_MAX: f64 = 0.05;

/// A whole sitting.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Where and when.
    pub machine: Machine,
    /// What was run.
    pub workloads: Vec<Outcome>,
}

/// What came of one workload.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Its name.
    pub name: &'static str,
    /// What was run.
    pub what: &'static str,
    /// Per side the samples of all rounds, in the order they were taken.
    pub sides: Vec<SideOutcome>,
    /// What holds.
    pub verdicts: Vec<Verdict>,
    /// Why there are no (more) samples.
    pub error: Option<String>,
}

/// The samples of one side.
#[derive(Debug, Serialize)]
pub struct SideOutcome {
    /// Its name.
    pub label: &'static str,
    /// One per round.
    pub samples: Vec<Sample>,
}

/// A check with its figure.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// How much depends on it.
    pub kind: Kind,
    /// What was compared, for people.
    pub text: String,
    /// The median, or the ratio of two medians; `None` when the runs do not have the figure.
    pub figure: Option<f64>,
    /// Least, middle and greatest of the rounds, each by itself.
    pub rounds: Option<Spread>,
    /// The bound.
    pub bound: Bound,
    /// Whether it holds. A bar without a figure does not.
    pub holds: bool,
}

impl Outcome {
    /// Judges the samples of a workload.
    pub fn judge(workload: &Workload, sides: Vec<SideOutcome>, error: Option<String>) -> Self {
        let verdicts = workload.checks.iter().map(|check| verdict(check, &sides)).collect();
        Self { name: workload.name, what: workload.what, sides, verdicts, error }
    }
}

impl SideOutcome {
    fn figures(&self, metric: Metric) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| sample.figure(metric)).collect()
    }
}

fn verdict(check: &Check, sides: &[SideOutcome]) -> Verdict {
    let figures = |label| {
        sides
            .iter()
            .find(|side| side.label == label)
            .map_or_else(Vec::new, |side| side.figures(check.metric))
    };
    let of = figures(check.of);
    let median = |figures: &[f64]| Spread::of(figures.iter().copied()).map(|spread| spread.median);
    let metric = check.metric.name();
    let (figure, rounds, text) = match check.against {
        None => (median(&of), Spread::of(of.iter().copied()), format!("{metric} of {}", check.of)),
        Some(label) => {
            let against = figures(label);
            (
                median(&of).zip(median(&against)).map(|(of, against)| of / against),
                Spread::of(of.iter().zip(&against).map(|(of, against)| of / against)),
                format!("{metric}, {} / {label}", check.of),
            )
        }
    };
    let holds = match check.bound {
        Bound::Any => true,
        bound => figure.is_some_and(|figure| bound.holds(figure)),
    };
    Verdict { kind: check.kind, text, figure, rounds, bound: check.bound, holds }
}

impl Report {
    /// Whether all bars hold.
    pub fn bars_hold(&self) -> bool {
        self.workloads.iter().all(|outcome| {
            outcome.error.is_none()
                && outcome.verdicts.iter().all(|verdict| verdict.holds || verdict.kind != Kind::Bar)
        })
    }

    /// The report for people, in Markdown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let m = &self.machine;
        let network = if m.own_network { "own namespace" } else { "the machine's, shared" };
        writeln!(
            text,
            "{} · commit {} · Linux {} · {} × {} · network: {network}, {} · memory: {}\n",
            m.date, m.commit, m.kernel, m.cores, m.cpu, m.congestion_control, m.memory,
        )
        .expect("a string takes all");
        writeln!(text, "Figures are min/median/max of the rounds.\n").expect("a string takes all");
        writeln!(text, "{}\n", self.table()).expect("a string takes all");
        for outcome in &self.workloads {
            writeln!(text, "{}: {}", outcome.name, outcome.what).expect("a string takes all");
            for verdict in &outcome.verdicts {
                writeln!(text, "  {}", verdict.line()).expect("a string takes all");
            }
            if let Some(error) = &outcome.error {
                writeln!(text, "  error: {error}").expect("a string takes all");
            }
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN).set_header([
            "workload",
            "side",
            "rounds",
            "k records/s",
            "MB/s",
            "p50 us",
            "p99 us",
            "worst us",
            "CPU ns/record",
            "CPU s/GB",
            "RSS MiB",
            "cache MiB",
            "flushes/1000",
            "records/flush",
            "others' cores",
            "disturbed",
        ]);
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for outcome in &self.workloads {
            for side in &outcome.sides {
                table.add_row(row(outcome.name, side));
            }
        }
        table
    }
}

impl Verdict {
    fn line(&self) -> String {
        let kind = match self.kind {
            Kind::Bar => "bar ",
            Kind::Aim => "aim ",
            Kind::Note => "note",
        };
        let figure = self.figure.map_or("none".to_owned(), short);
        let rounds = self.rounds.map_or_else(String::new, |rounds| {
            format!(
                " (rounds {}/{}/{})",
                short(rounds.min),
                short(rounds.median),
                short(rounds.max)
            )
        });
        let bound = match self.bound {
            Bound::AtLeast(least) if least > 0.0 => format!(", at least {}", short(least)),
            Bound::AtMost(most) if most.is_finite() => format!(", at most {}", short(most)),
            Bound::AtLeast(_) | Bound::AtMost(_) | Bound::Any => String::new(),
        };
        let holds = match self.kind {
            Kind::Note => "",
            Kind::Bar | Kind::Aim if self.holds => ": holds",
            Kind::Bar | Kind::Aim => ": MISSED",
        };
        format!("{kind} {} = {figure}{rounds}{bound}{holds}", self.text)
    }
}

fn row(workload: &str, side: &SideOutcome) -> Vec<String> {
    let of = |figure: &dyn Fn(&Sample) -> Option<f64>| {
        Spread::of(side.samples.iter().filter_map(figure)).map_or_else(String::new, |spread| {
            format!("{}/{}/{}", short(spread.min), short(spread.median), short(spread.max))
        })
    };
    let median = |figure: &dyn Fn(&Sample) -> Option<f64>| {
        Spread::of(side.samples.iter().filter_map(figure))
            .map_or_else(String::new, |spread| short(spread.median))
    };
    let records = |s: &Sample| (s.load.records > 0).then_some(s.load.records as f64);
    let mib = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
    let disturbed = side.samples.iter().filter(|s| s.others_cores > OTHERS_CORES_MAX).count();
    vec![
        workload.to_owned(),
        side.label.to_owned(),
        side.samples.len().to_string(),
        of(&|s| s.figure(Metric::RecordsPerSecond).map(|rate| rate / 1e3)),
        of(&|s| s.figure(Metric::GigabytesPerSecond).map(|rate| rate * 1e3)),
        of(&|s| s.load.latency.map(|latency| latency.p50_us)),
        of(&|s| s.load.latency.map(|latency| latency.p99_us)),
        of(&|s| s.figure(Metric::WorstMicros)),
        of(&|s| s.figure(Metric::CpuNanosPerRecord)),
        median(&|s| s.figure(Metric::CpuSecondsPerGigabyte)),
        median(&|s| s.resident_peak_bytes.map(mib)),
        median(&|s| s.page_cache_bytes.map(mib)),
        median(&|s| Some(s.flushes? as f64 * 1e3 / records(s)?)),
        median(&|s| Some(records(s)? / s.flushes.filter(|&n| n > 0)? as f64)),
        median(&|s| Some(s.others_cores)),
        format!("{disturbed} of {}", side.samples.len()),
    ]
}

/// Three digits that matter.
fn short(figure: f64) -> String {
    match figure.abs() {
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 1.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::drive::Load;

    fn side(label: &'static str, rates: &[u64]) -> SideOutcome {
        let sample = |&records| Sample {
            load: Load { records, elapsed: Duration::from_secs(1), ..Load::default() },
            ..Sample::default()
        };
        SideOutcome { label, samples: rates.iter().map(sample).collect() }
    }

    #[test]
    fn a_ratio_is_that_of_the_medians_and_a_missing_figure_misses_its_bar() {
        let check = |metric| Check {
            kind: Kind::Bar,
            metric,
            of: "ours",
            against: Some("null"),
            bound: Bound::AtLeast(0.8),
        };
        let sides = [side("ours", &[70, 80, 300]), side("null", &[100, 100, 100])];
        let rate = verdict(&check(Metric::RecordsPerSecond), &sides);
        assert_eq!(rate.figure, Some(0.8));
        assert!(rate.holds);
        let p99 = verdict(&check(Metric::P99Micros), &sides);
        assert_eq!(p99.figure, None);
        assert!(!p99.holds);
    }
}

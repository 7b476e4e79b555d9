//! Runs one case on both brokers and compares what they did.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use strandline_wire::{Api, Request};

use crate::broker::{Broker, Outcome, PATIENCE};
use crate::rule::{RULES, Rule};
use crate::socket::Reply;
use crate::tree::Fields;

/// How long Kafka's brokers may take to learn of a change.
const SETTLED: Duration = Duration::from_secs(5);

/// Both brokers, and what was found so far.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) kafka: Broker,
    pub(crate) ours: Broker,
    pub(crate) cases: usize,
    pub(crate) fields: usize,
    /// What no rule covers.
    pub(crate) differences: Vec<Difference>,
    /// How often each rule was needed, in the order of [`RULES`].
    pub(crate) used: [usize; RULES.len()],
}

/// Something that the brokers do differently.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The API's name, or `frame` for bytes that are no request.
    pub(crate) api: &'static str,
    /// Its version; −1 for bytes that are no request.
    pub(crate) version: i16,
    /// The case.
    pub(crate) case: String,
    /// The field, or `outcome`.
    pub(crate) path: String,
    /// What Kafka says.
    pub(crate) kafka: String,
    /// What we say.
    pub(crate) ours: String,
}

/// A field that one side does not have.
pub(crate) const ABSENT: &str = "(absent)";

impl Run {
    pub(crate) fn new(kafka: Broker, ours: Broker) -> Self {
        let used = [0; RULES.len()];
        Self { kafka, ours, cases: 0, fields: 0, differences: Vec::new(), used }
    }

    /// Sends both brokers the request that `request` makes for each and compares the answers.
    pub(crate) fn case<R: Request>(
        &mut self,
        name: &str,
        api: Api,
        request: impl Fn(&Broker) -> R,
    ) {
        self.inspect(name, api, PATIENCE, request, |_, _, _| {});
    }

    /// The same of what only reads, after a change: asked again for a while as long as the answers
    /// differ, because Kafka's brokers learn of changes behind the answers.
    pub(crate) fn settled<R: Request>(
        &mut self,
        name: &str,
        api: Api,
        request: impl Fn(&Broker) -> R,
    ) {
        let deadline = Instant::now() + SETTLED;
        let before = (self.cases, self.fields, self.used, self.differences.len());
        loop {
            self.case(name, api, &request);
            if self.differences.len() == before.3 || Instant::now() > deadline {
                return;
            }
            (self.cases, self.fields, self.used) = (before.0, before.1, before.2);
            self.differences.truncate(before.3);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The same, with a look at each answer.
    pub(crate) fn inspect<R: Request>(
        &mut self,
        name: &str,
        api: Api,
        patience: Duration,
        request: impl Fn(&Broker) -> R,
        look: impl Fn(&mut Broker, &R::Response, &mut Fields) + Sync,
    ) {
        assert_eq!(api.key(), R::KEY, "{name}");
        let (for_kafka, for_ours) = (request(&self.kafka), request(&self.ours));
        let ask = |broker: &mut Broker, request: &R| {
            broker.ask::<R::Response>(api, request, patience, &look)
        };
        let (kafka, ours) =
            both(|| ask(&mut self.kafka, &for_kafka), || ask(&mut self.ours, &for_ours));
        self.compare(api.key().name(), api.version(), name, kafka, ours);
    }

    /// Sends both a body that need not be a message: only whether they answer is compared.
    pub(crate) fn body(&mut self, name: &str, api: Api, body: &[u8], patience: Duration) {
        let (kafka, ours) = both(
            || outcome(self.kafka.provoke(api, body, patience)),
            || outcome(self.ours.provoke(api, body, patience)),
        );
        self.compare(api.key().name(), api.version(), name, kafka, ours);
    }

    /// Sends both bytes that need not be a frame, each on a connection of its own.
    pub(crate) fn raw(
        &mut self,
        name: &str,
        bytes: &[u8],
        patience: Duration,
    ) -> anyhow::Result<()> {
        let kafka = outcome(self.kafka.provoke_raw(bytes, patience)?);
        let ours = outcome(self.ours.provoke_raw(bytes, patience)?);
        self.compare("frame", -1, name, kafka, ours);
        Ok(())
    }

    fn compare(
        &mut self,
        api: &'static str,
        version: i16,
        case: &str,
        kafka: Outcome,
        ours: Outcome,
    ) {
        self.cases += 1;
        let (kafka, ours) = match (kafka, ours) {
            (Outcome::Answer(kafka), Outcome::Answer(ours)) => (kafka, ours),
            (kafka, ours) => (one_field(&kafka), one_field(&ours)),
        };
        let paths: BTreeSet<&String> = kafka.keys().chain(ours.keys()).collect();
        for path in paths {
            self.fields += 1;
            let value = |fields: &Fields| {
                fields.get(path).map_or_else(|| ABSENT.to_owned(), |value| mask(path, value))
            };
            let (kafka, ours) = (value(&kafka), value(&ours));
            if kafka == ours {
                continue;
            }
            let (case, path) = (case.to_owned(), path.clone());
            let difference = Difference { api, version, case, path, kafka, ours };
            match RULES.iter().position(|rule: &Rule| (rule.covers)(&difference)) {
                Some(rule) => self.used[rule] += 1,
                None => self.differences.push(difference),
            }
        }
    }
}

/// Does two things at the same time.
fn both<T: Send>(one: impl FnOnce() -> T + Send, other: impl FnOnce() -> T) -> (T, T) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().expect("the script does not panic"), other)
    })
}

fn outcome(reply: Reply) -> Outcome {
    match reply {
        Reply::Frame(_) => {
            Outcome::Answer(Fields::from([("outcome".to_owned(), "answer".to_owned())]))
        }
        Reply::Closed => Outcome::Closed,
        Reply::Silence => Outcome::Silence,
    }
}

/// What a broker did, for when not both answered.
fn one_field(outcome: &Outcome) -> Fields {
    let what = match outcome {
        Outcome::Answer(_) => "answer",
        Outcome::Garbled(error) => error,
        Outcome::Closed => "closed",
        Outcome::Silence => "silence",
    };
    Fields::from([("outcome".to_owned(), what.to_owned())])
}

/// Values that can't be equal: the time, what a broker makes up, and the words of error texts.
fn mask(path: &str, value: &str) -> String {
    let field = path.rsplit('.').next().unwrap_or(path);
    let number = value.parse::<i64>().unwrap_or(-1);
    let masked = match field {
        "error_message" | "batch_index_error_message" | "documentation"
            if value != "None" && !value.is_empty() =>
        {
            "<words>"
        }
        "log_append_time_ms" | "last_fetch_timestamp" | "last_caught_up_timestamp"
            if number > 0 =>
        {
            "<now>"
        }
        "finalized_features_epoch" if number > 0 => "<epoch>",
        "session_id" if number > 0 => "<session>",
        "producer_id" if number >= 0 => "<producer id>",
        "host" if matches!(value, "127.0.0.1" | "localhost") => "<host>",
        "port" if number > 0 => "<port>",
        _ => value,
    };
    masked.to_owned()
}

//! Settings of retention that can't be read.

use strandline_model::ByteCount;

use super::*;

fn source() -> SettingsSource {
    let layers = BrokerLayers::default();
    let broker = layers.broker_config().unwrap();
    SettingsSource::new(layers, broker, vec!["file".to_owned()])
}

fn texts(set: &[(&str, &str)]) -> Texts {
    set.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// What is limited: a word each.
fn limits(policy: &Policy) -> String {
    let Policy { deletes, compacts, bytes, bytes_are_a_floor, millis, records } = *policy;
    let words = [
        (deletes, "deletes"),
        (compacts, "compacts"),
        (bytes.is_some(), "bytes"),
        (bytes_are_a_floor, "floor"),
        (millis.is_some(), "ms"),
        (records.is_some(), "records"),
    ];
    words.iter().filter(|(is_so, _)| *is_so).map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

/// What the topic keeps, what limits it, and what is told.
type Row = (&'static [(&'static str, &'static str)], &'static str, &'static [&'static str]);

#[test]
fn nothing_goes_by_a_setting_that_cannot_be_read() {
    let rows: &[Row] = &[
        (&[], "deletes ms", &[]),
        (&[("retention.ms", "7 moons")], "deletes", &["retention.ms"]),
        (&[("retention.ms", "-7"), ("retention.bytes", "5")], "deletes bytes", &["retention.ms"]),
        (&[("retention.bytes", "much")], "deletes ms", &["retention.bytes"]),
        (&[("retention.records", "")], "deletes ms", &["retention.records"]),
        (
            &[("retention.bytes", "5"), ("retention.bytes.floor", "perhaps")],
            "deletes bytes floor ms",
            &["retention.bytes.floor"],
        ),
        (&[("cleanup.policy", "burn,delete")], "ms", &["cleanup.policy"]),
        (&[("segment.ms", "soon")], "deletes ms", &[]),
    ];
    for (kept, expected, told) in rows {
        let settings = source().topic(texts(kept));
        assert_eq!(limits(&settings.retention), *expected, "{kept:?}");
        assert_eq!(settings.unreadable.keys().collect::<Vec<_>>(), *told, "{kept:?}");
    }
}

#[test]
fn nor_by_a_default_until_it_is_set_anew() {
    let source = source();
    source.take_kept(DynamicLayer::Default, &texts(&[("log.retention.ms", "7 moons")]));
    assert_eq!(limits(&source.topic(texts(&[])).retention), "deletes");
    let own = texts(&[("retention.ms", "1000")]);
    assert_eq!(limits(&source.topic(own).retention), "deletes ms", "a topic's own is known");
    let anew = texts(&[("log.retention.ms", "5000")]);
    let (layers, broker) = source.with_dynamic(DynamicLayer::Default, &anew).unwrap();
    source.replace(DynamicLayer::Default, layers, broker);
    assert_eq!(source.topic(texts(&[])).retention.millis, Some(5000));
}

#[test]
fn what_would_be_is_told_of_a_topic_that_keeps_what_cannot_be_read() {
    let source = source();
    let kept = source.topic(texts(&[("retention.ms", "7 moons"), ("retention.bytes", "5")]));
    let simulated =
        |key: &str, text: &str| source.topic_with(&kept, &[(key.to_owned(), text.to_owned())]);
    assert_eq!(simulated("retention.bytes", "6").unwrap().retention.bytes, Some(ByteCount::new(6)));
    assert_eq!(limits(&simulated("retention.ms", "9").unwrap().retention), "deletes bytes ms");
    assert!(simulated("retention.ms", "8 moons").is_err());
}

#[test]
fn nothing_is_compacted_by_what_cannot_be_read() {
    let source = source();
    let compacts = |more: &[(&str, &str)]| {
        let kept = [&[("cleanup.policy", "compact")], more].concat();
        source.topic(texts(&kept)).compaction.compacts
    };
    assert!(compacts(&[]));
    assert!(compacts(&[("retention.ms", "7 moons")]), "it says nothing about compaction");
    assert!(!compacts(&[("min.compaction.lag.ms", "7 moons")]));
    assert!(!compacts(&[("delete.retention.ms", "7 moons")]));
    source.take_kept(DynamicLayer::Default, &texts(&[("log.cleanup.policy", "compact")]));
    assert!(source.topic(texts(&[])).compaction.compacts);
    assert!(!source.topic(texts(&[("cleanup.policy", "shrink")])).compaction.compacts);
}

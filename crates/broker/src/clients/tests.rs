//! Clients as their connections show them.

use super::*;

fn endpoint() -> Endpoint {
    Endpoint { host: "kafka".to_owned(), port: 9092 }
}

fn at(seconds: u64) -> Now {
    let monotonic = Duration::from_secs(seconds);
    let millis = i64::try_from(monotonic.as_millis()).expect("a small number");
    Now { wall: Timestamp::from_millis(millis), monotonic }
}

fn open(clients: &Clients, software: &str, seconds: u64) -> ClientEntry {
    let peer = Peer {
        remote: "10.0.0.7:5".parse().expect("an address"),
        local: "10.0.0.1:9092".parse().expect("an address"),
    };
    let entry = clients.open(peer, at(seconds));
    clients.request(&entry, ApiKey::ApiVersions, Some("app"), at(seconds).monotonic);
    Clients::software(&entry, software, "1.0");
    entry
}

fn ask(clients: &Clients, entry: &ClientEntry, seconds: u64) {
    clients.request(entry, ApiKey::Metadata, Some("app"), at(seconds).monotonic);
    clients.asked(entry, MetadataQuestion::TheWay, &endpoint(), at(seconds));
}

fn close(clients: &Clients, entry: &ClientEntry, seconds: u64) {
    clients.close(entry, &endpoint(), at(seconds));
}

fn listed(clients: &Clients, seconds: u64) -> Vec<ClientStatus> {
    clients.list(at(seconds).wall, |_| endpoint())
}

/// Who is (connected, stranded).
fn states(clients: &Clients, seconds: u64) -> Vec<(bool, bool)> {
    listed(clients, seconds).iter().map(|one| (one.is_connected, one.is_stranded)).collect()
}

#[test]
fn who_only_asks_is_stranded_until_it_works() {
    let clients = Clients::default();
    let entry = open(&clients, "KafkaJS", 0);
    (1..=4).for_each(|second| ask(&clients, &entry, second));
    assert_eq!(states(&clients, 5), [(true, false)]);
    ask(&clients, &entry, 5);
    assert_eq!(states(&clients, 5), [(true, true)]);
    assert_eq!(clients.stranded_count(at(5).wall), 1);
    let [one] = &listed(&clients, 5)[..] else { panic!("one client") };
    assert_eq!((one.client_id.as_str(), one.software_name.as_str()), ("app", "KafkaJS"));
    assert_eq!((one.told.as_str(), one.requests), ("kafka:9092", 6));
    assert_eq!(one.last_request, Some(("Metadata".to_owned(), Timestamp::from_millis(5_000))));
    clients.request(&entry, ApiKey::Produce, Some("app"), at(6).monotonic);
    assert_eq!(states(&clients, 6), [(true, false)]);
    assert_eq!(clients.stranded_count(at(6).wall), 0);
}

#[test]
fn who_begins_anew_again_and_again_is_stranded_too() {
    let clients = Clients::default();
    for second in 1..=5 {
        let entry = open(&clients, "librdkafka", second);
        ask(&clients, &entry, second);
        close(&clients, &entry, second);
    }
    assert_eq!(states(&clients, 6), [(false, true)]);
    let entry = open(&clients, "librdkafka", 7);
    assert_eq!(states(&clients, 7), [(true, true)], "one client, shown once");
    clients.request(&entry, ApiKey::Fetch, Some("app"), at(8).monotonic);
    assert_eq!(states(&clients, 8), [(true, false)]);
}

#[test]
fn who_works_on_another_connection_is_not_stranded() {
    let clients = Clients::default();
    let first = open(&clients, "librdkafka", 0);
    let second = open(&clients, "librdkafka", 0);
    clients.request(&second, ApiKey::Fetch, Some("app"), at(1).monotonic);
    (1..=20).for_each(|second| ask(&clients, &first, second));
    assert_eq!(states(&clients, 21), [(true, false); 2]);
}

#[test]
fn who_looks_and_leaves_three_times_is_shown_for_an_hour() {
    let clients = Clients::default();
    for second in [0, 60, 120] {
        let entry = open(&clients, "kafka-python", second);
        ask(&clients, &entry, second);
        assert_eq!(states(&clients, second), [(true, false)]);
        close(&clients, &entry, second + 1);
    }
    assert_eq!(states(&clients, 130), [(false, true)]);
    assert_eq!(states(&clients, 4_000), []);
}

#[test]
fn tools_that_look_once_in_a_while_are_not_lost() {
    let clients = Clients::default();
    for minute in 0..10 {
        for software in ["librdkafka", "strandline"] {
            let entry = open(&clients, software, minute * 60);
            ask(&clients, &entry, minute * 60);
            close(&clients, &entry, minute * 60);
        }
    }
    assert_eq!(states(&clients, 600), []);
}

#[test]
fn who_lists_all_topics_may_do_so_as_often_as_it_likes() {
    let clients = Clients::default();
    for second in 0..20 {
        let first = open(&clients, "librdkafka", second);
        ask(&clients, &first, second);
        close(&clients, &first, second);
        let entry = open(&clients, "librdkafka", second);
        clients.asked(&entry, MetadataQuestion::Everything, &endpoint(), at(second));
        ask(&clients, &entry, second);
        close(&clients, &entry, second);
    }
    assert_eq!(states(&clients, 20), []);
}

#[test]
fn questions_are_told_apart_by_what_they_ask_and_what_is_there() {
    let mut response = metadata::Response::default();
    assert_eq!(MetadataQuestion::of(false, &response), MetadataQuestion::TheWay);
    assert_eq!(MetadataQuestion::of(true, &response), MetadataQuestion::Everything);
    response.topics.push(metadata::MetadataResponseTopic {
        error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get(),
        ..Default::default()
    });
    assert_eq!(MetadataQuestion::of(false, &response), MetadataQuestion::AMissingTopic);
}

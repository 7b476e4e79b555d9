//! The reference brokers under the drivers: what they acknowledge is what a consumer gets.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use strandline_bench::drive::batches::{self, Batches};
use strandline_bench::drive::fetch::{self, Fetch};
use strandline_bench::drive::setup;
use strandline_bench::drive::unbatched::{self, Unbatched};
use strandline_bench::ideal;
use strandline_bench::null::{NullOptions, serve};
use tempfile::TempDir;

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let broker = listener.local_addr().expect("it listens");
    (listener, broker)
}

fn null_broker(sync: bool) -> (TempDir, SocketAddr) {
    let data = tempfile::tempdir().expect("a folder");
    let (listener, broker) = listen();
    let options = NullOptions { data: data.path().to_owned(), partitions: 1, sync };
    std::thread::spawn(move || serve(&listener, options).expect("serves for ever"));
    (data, broker)
}

fn many(broker: SocketAddr, connections: usize) -> Unbatched {
    Unbatched {
        broker,
        topic: "many".to_owned(),
        partitions: 3,
        connections,
        value_bytes: 100,
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(50),
    }
}

#[test]
fn the_null_broker_gives_back_every_record_it_acknowledged() {
    for sync in [false, true] {
        let (_data, broker) = null_broker(sync);
        setup::create_topic(broker, "some", 1, &[]).unwrap();
        let produced = batches::run(&Batches {
            broker,
            topic: "some".to_owned(),
            partitions: 1,
            value_bytes: 100,
            batch_bytes: 50_000,
            records: 20_000,
        })
        .unwrap();
        // Rounded up to whole batches.
        let records = produced.records;
        assert!((20_000..21_000).contains(&records), "{records} records");
        for max_bytes in [1, 70_000, 8 << 20] {
            let topic = "some".to_owned();
            let consumed = fetch::run(&Fetch { broker, topic, max_bytes, records }).unwrap();
            assert_eq!(consumed.records, records, "at most {max_bytes} bytes a request");
        }
    }
}

#[test]
fn the_null_broker_commits_for_many_connections_together() {
    let (_data, broker) = null_broker(true);
    setup::create_topic(broker, "many", 3, &[]).unwrap();
    let load = unbatched::run(&many(broker, 20)).unwrap();
    assert!(load.records >= 20);
    assert!(load.latency.is_some());
}

#[test]
fn the_shared_journal_answers_one_record_a_request() {
    let data = tempfile::tempdir().unwrap();
    let (listener, broker) = listen();
    let folder = data.path().to_owned();
    std::thread::spawn(move || ideal::serve(&listener, &folder, true).unwrap());
    setup::api_versions(broker).unwrap();
    let load = unbatched::run(&many(broker, 20)).unwrap();
    assert!(load.records >= 20);
}

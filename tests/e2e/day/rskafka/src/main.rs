//! A day's work of rskafka: `day BOOTSTRAP TOPIC` (see test_day.py).
//!
//! It has no groups; whoever uses it keeps the offsets. So a day is: produce, read all, come back to a
//! kept offset, seek by offset and by time, and go on where it stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeZone, Utc};
use futures::StreamExt;
use rskafka::client::ClientBuilder;
use rskafka::client::consumer::{StartOffset, StreamConsumerBuilder};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::record::{Record, RecordAndOffset};

const PARTITIONS: i32 = 6;

fn record(number: i64) -> Record {
    Record {
        key: Some(number.to_string().into_bytes()),
        value: Some(number.to_string().into_bytes()),
        headers: BTreeMap::from([("day".to_owned(), b"1".to_vec())]),
        timestamp: time_of(number),
    }
}

fn time_of(number: i64) -> DateTime<Utc> {
    Utc.timestamp_millis_opt(1_700_000_000_000 + number).single().expect("a time there is")
}

/// The numbers in `[first, end)` that belong on a partition.
fn numbers_of(index: i32, first: i64, end: i64) -> Vec<i64> {
    (first..end).filter(|number| number % i64::from(PARTITIONS) == i64::from(index)).collect()
}

/// Produces numbers, in batches of 50.
async fn produce(partition: &PartitionClient, numbers: &[i64]) {
    for batch in numbers.chunks(50) {
        let records = batch.iter().map(|&number| record(number)).collect();
        let offsets =
            partition.produce(records, Compression::NoCompression).await.expect("produce");
        assert_eq!(offsets.len(), batch.len());
    }
}

/// The next `count` records from an offset on.
async fn read(
    partition: &Arc<PartitionClient>,
    from: StartOffset,
    count: usize,
) -> Vec<RecordAndOffset> {
    let mut stream =
        StreamConsumerBuilder::new(Arc::clone(partition), from).with_max_wait_ms(100).build();
    let mut found = Vec::new();
    while found.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
        let (record, _) = next.expect("within 20 s").expect("endless").expect("fetch");
        found.push(record);
    }
    found
}

fn numbers(records: &[RecordAndOffset]) -> Vec<i64> {
    let text =
        |one: &RecordAndOffset| String::from_utf8(one.record.value.clone().expect("a value"));
    records.iter().map(|one| text(one).expect("text").parse().expect("a number")).collect()
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, topic, ..] = arguments.as_slice() else { panic!("day BOOTSTRAP TOPIC") };
    let client = ClientBuilder::new(vec![bootstrap.clone()]).build().await.expect("connect");
    for index in 0..PARTITIONS {
        let partition = client.partition_client(topic, index, UnknownTopicHandling::Retry).await;
        let partition = Arc::new(partition.expect("a partition's client"));
        let expected = numbers_of(index, 0, 1200);

        produce(&partition, &expected).await;
        let all = read(&partition, StartOffset::Earliest, 200).await;
        assert_eq!(numbers(&all), expected);
        assert!(
            all.iter().zip(0..).all(|(one, offset)| one.offset == offset),
            "offsets without gaps"
        );
        let kept = all.last().expect("200 records").offset + 1;
        assert_eq!(partition.get_offset(OffsetAt::Latest).await.expect("latest"), kept);
        assert_eq!(partition.get_offset(OffsetAt::Earliest).await.expect("earliest"), 0);

        let sought = read(&partition, StartOffset::At(50), 1).await;
        assert_eq!((sought[0].offset, numbers(&sought)[0]), (50, expected[50]));
        let at = OffsetAt::Timestamp(time_of(expected[120]));
        assert_eq!(partition.get_offset(at).await.expect("by time"), 120);

        let more = numbers_of(index, 1200, 1260);
        produce(&partition, &more).await;
        let resumed = read(&partition, StartOffset::At(kept), 10).await;
        assert_eq!(numbers(&resumed), more);
    }
}

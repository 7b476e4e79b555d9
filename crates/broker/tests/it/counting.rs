//! Answers are counted by their error codes.

use strandline_wire::{ApiKey, list_offsets};

use crate::harness::{TestBroker, batch, fetch_request, text};

/// What was counted of an API: answers by their first error, and all codes.
fn counted(house: &TestBroker, key: ApiKey) -> [Vec<(&'static str, u64)>; 2] {
    let apis = house.broker.metrics().apis();
    let (_, api) = apis.iter().find(|(known, _)| *known == key).expect("a served API");
    [api.answers.counts().collect(), api.codes.counts().collect()]
}

#[tokio::test]
async fn answers_count_once_and_codes_each() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let partition = |partition_index| list_offsets::ListOffsetsPartition {
        partition_index,
        timestamp: -1,
        ..Default::default()
    };
    let topic = list_offsets::ListOffsetsTopic {
        name: text("t"),
        partitions: vec![partition(0), partition(1), partition(2)],
        ..Default::default()
    };
    let request = list_offsets::Request { topics: vec![topic], ..Default::default() };
    client.ask(5, &request).await;
    let unknown = "UNKNOWN_TOPIC_OR_PARTITION";
    let [answers, codes] = counted(&house, ApiKey::ListOffsets);
    assert_eq!(answers, [(unknown, 1)]);
    assert_eq!(codes, [("NONE", 1), (unknown, 2)]);
}

#[tokio::test]
async fn producing_and_fetching_count_too() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["a"])).await;
    client.produce("missing", batch(&["a"])).await;
    client.ask(12, &fetch_request("t", 0, 0)).await;
    client.ask(12, &fetch_request("t", 7, 0)).await;
    let [answers, codes] = counted(&house, ApiKey::Produce);
    assert_eq!(answers, [("NONE", 1), ("UNKNOWN_TOPIC_OR_PARTITION", 1)]);
    assert_eq!(codes, answers);
    // A Fetch also has a code of its own.
    let [answers, codes] = counted(&house, ApiKey::Fetch);
    assert_eq!(answers, [("NONE", 1), ("OFFSET_OUT_OF_RANGE", 1)]);
    assert_eq!(codes.iter().map(|(_, count)| count).sum::<u64>(), 4);
}

//! Topics: create, delete, grow, trim.

use strandline_model::TopicId;
use strandline_wire::{
    KafkaString, create_partitions, create_topics, delete_records, delete_topics,
    topic_id_from_wire,
};

use crate::client::subject_of;
use crate::offsets::no_answer;
use crate::{Client, ClientError};

/// A topic to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; the broker's default for `None`.
    pub partitions: Option<i32>,
    /// How many replicas each has; the broker's default for `None`.
    pub replication_factor: Option<i16>,
    /// Its configuration: keys and values.
    pub configs: Vec<(String, String)>,
}

/// A topic that was created, or could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// How many partitions it has; −1 when the broker does not say.
    pub partitions: i32,
    /// How many replicas each has; −1 when the broker does not say.
    pub replication_factor: i16,
}

/// How it went with one topic of several.
#[derive(Debug)]
pub struct TopicOutcome<T> {
    /// Which topic.
    pub name: String,
    /// How it went.
    pub result: Result<T, ClientError>,
}

impl Client {
    /// Creates topics, or only checks whether they could be created.
    pub async fn create_topics(
        &mut self,
        topics: &[NewTopic],
        validate_only: bool,
    ) -> Result<Vec<TopicOutcome<CreatedTopic>>, ClientError> {
        let config = |(name, value): &(String, String)| create_topics::CreatableTopicConfig {
            name: KafkaString::from(name.clone()),
            value: Some(KafkaString::from(value.clone())),
            ..Default::default()
        };
        let topic = |topic: &NewTopic| create_topics::CreatableTopic {
            name: KafkaString::from(topic.name.clone()),
            num_partitions: topic.partitions.unwrap_or(-1),
            replication_factor: topic.replication_factor.unwrap_or(-1),
            configs: topic.configs.iter().map(config).collect(),
            ..Default::default()
        };
        let request = create_topics::Request {
            topics: topics.iter().map(topic).collect(),
            timeout_ms: self.timeout_ms(),
            validate_only,
            ..Default::default()
        };
        let response = self.call(&request).await?;
        let outcome = |topic: create_topics::CreatableTopicResult| {
            let message = topic.error_message.as_ref().map(KafkaString::as_str);
            let checked = check_topic(topic.error_code, topic.name.as_str(), message);
            TopicOutcome {
                name: topic.name.to_string(),
                result: checked.map(|()| CreatedTopic {
                    partitions: topic.num_partitions,
                    replication_factor: topic.replication_factor,
                }),
            }
        };
        Ok(response.topics.into_iter().map(outcome).collect())
    }

    /// Deletes topics by name; their ids, zero where the broker does not say.
    pub async fn delete_topics(
        &mut self,
        names: &[&str],
    ) -> Result<Vec<TopicOutcome<TopicId>>, ClientError> {
        let texts: Vec<_> =
            names.iter().map(|name| KafkaString::from((*name).to_owned())).collect();
        // Version 6 names topics in structures, all older ones in a list of names.
        let by_structure = self.version_of(strandline_wire::ApiKey::DeleteTopics).await? >= 6;
        let state = |name: &KafkaString| delete_topics::DeleteTopicState {
            name: Some(name.clone()),
            ..Default::default()
        };
        let request = delete_topics::Request {
            topics: if by_structure { texts.iter().map(state).collect() } else { Vec::new() },
            topic_names: if by_structure { Vec::new() } else { texts },
            timeout_ms: self.timeout_ms(),
            ..Default::default()
        };
        let response = self.call(&request).await?;
        for name in names {
            self.forget(name);
        }
        let outcome = |topic: delete_topics::DeletableTopicResult| {
            let name = topic.name.map(|name| name.to_string()).unwrap_or_default();
            let message = topic.error_message.as_ref().map(KafkaString::as_str);
            let result = check_topic(topic.error_code, &name, message);
            let id = topic_id_from_wire(topic.topic_id);
            TopicOutcome { name, result: result.map(|()| id) }
        };
        Ok(response.responses.into_iter().map(outcome).collect())
    }

    /// Grows a topic to `count` partitions, or only checks whether it could be.
    pub async fn create_partitions(
        &mut self,
        topic: &str,
        count: i32,
        validate_only: bool,
    ) -> Result<(), ClientError> {
        let request = create_partitions::Request {
            topics: vec![create_partitions::CreatePartitionsTopic {
                name: KafkaString::from(topic.to_owned()),
                count,
                ..Default::default()
            }],
            timeout_ms: self.timeout_ms(),
            validate_only,
            ..Default::default()
        };
        let response = self.call(&request).await?;
        self.forget(topic);
        for result in response.results {
            let message = result.error_message.as_ref().map(KafkaString::as_str);
            check_topic(result.error_code, topic, message)?;
        }
        Ok(())
    }

    /// Deletes the records of a partition before an offset; the first offset that is left.
    pub async fn delete_records(
        &mut self,
        topic: &str,
        partition: i32,
        before: i64,
    ) -> Result<i64, ClientError> {
        let name = KafkaString::from(topic.to_owned());
        let timeout_ms = self.timeout_ms();
        let request = |_, _| delete_records::Request {
            topics: vec![delete_records::DeleteRecordsTopic {
                name: name.clone(),
                partitions: vec![delete_records::DeleteRecordsPartition {
                    partition_index: partition,
                    offset: before,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            timeout_ms,
            ..Default::default()
        };
        let answer = |response: delete_records::Response| {
            let partitions = response.topics.first().map(|topic| topic.partitions.as_slice());
            let answer =
                partitions.and_then(<[_]>::first).ok_or_else(|| no_answer(topic, partition))?;
            ClientError::check(answer.error_code, || subject_of(topic, partition), None)?;
            Ok(answer.low_watermark)
        };
        self.call_leader(topic, partition, false, request, answer).await
    }

    /// The call's timeout as requests carry it.
    pub(crate) fn timeout_ms(&self) -> i32 {
        i32::try_from(self.config().request_timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

fn check_topic(code: i16, name: &str, message: Option<&str>) -> Result<(), ClientError> {
    ClientError::check(code, || format!("topic {name}"), message)
}

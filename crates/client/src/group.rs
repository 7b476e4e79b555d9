//! Groups: who is in them and what they committed.

use strandline_wire::{
    ApiKey, ErrorCode, KafkaString, consumer_group_describe, delete_groups, describe_groups,
    list_groups,
};
use tokio::time::sleep;

use crate::assignment::assigned;
use crate::client::{LOOKUP_PAUSE, LOOKUPS_MAX};
use crate::coordinator::waits_for_coordinator;
use crate::{Client, ClientError};

/// A group, as a broker lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedGroup {
    /// Its id.
    pub id: String,
    /// Its type in Kafka's words: `classic`, `consumer`, `share`. Empty from a broker that does not
    /// say.
    pub kind: String,
    /// What its members do: `consumer`, `connect`. Empty for a group that never had any.
    pub protocol_type: String,
    /// Its state in Kafka's words: `Empty`, `Stable`. Empty from a broker that does not say.
    pub state: String,
}

/// Which protocol the members of a group speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// The one where clients assign partitions.
    Classic,
    /// The one where the broker does (KIP-848).
    Consumer,
}

/// A group and its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: String,
    /// Which protocol its members speak.
    pub kind: GroupKind,
    /// Its state in Kafka's words: `Empty`, `Stable`.
    pub state: String,
    /// How partitions are assigned: `range`, `uniform`. Empty for a group without members.
    pub assignor: String,
    /// How often its members or their subscriptions changed; `None` in the classic protocol.
    pub epoch: Option<i32>,
    /// Its members.
    pub members: Vec<GroupMember>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Its id.
    pub id: String,
    /// The name that it keeps over restarts, when it has one.
    pub instance_id: Option<String>,
    /// How its client calls itself.
    pub client_id: String,
    /// Where it connected from, as Kafka writes it: `/10.0.0.7`.
    pub host: String,
    /// The partitions that it reads, by topic.
    pub assigned: Vec<(String, Vec<i32>)>,
}

impl Group {
    /// Whether it has members, so that only they may move its offsets.
    pub fn is_active(&self) -> bool {
        !self.members.is_empty() || !matches!(self.state.as_str(), "Empty" | "Dead")
    }
}

impl Client {
    /// Every group of the cluster, by id.
    pub async fn list_groups(&mut self) -> Result<Vec<ListedGroup>, ClientError> {
        let brokers = self.cluster(Some(&[])).await?.brokers;
        let mut groups = Vec::new();
        for broker in brokers {
            groups.extend(self.groups_of(broker.id).await?);
        }
        groups.sort();
        // While a coordinator moves two brokers may list the same group.
        groups.dedup_by(|a, b| a.id == b.id);
        Ok(groups)
    }

    async fn groups_of(&mut self, node_id: i32) -> Result<Vec<ListedGroup>, ClientError> {
        let mut tries = 0;
        loop {
            let response =
                self.call_node(node_id, i16::MAX, |_| list_groups::Request::default()).await?;
            let subject = || format!("groups of broker {node_id}");
            match ClientError::check(response.error_code, subject, None) {
                Ok(()) => return Ok(response.groups.into_iter().map(listed).collect()),
                Err(error) if waits_for_coordinator(&error) && tries < LOOKUPS_MAX => {
                    tries += 1;
                    sleep(LOOKUP_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A group of the consumer or the classic protocol. [`ErrorCode::GROUP_ID_NOT_FOUND`] when
    /// there is none of that id, or one of another type.
    pub async fn describe_group(&mut self, id: &str) -> Result<Group, ClientError> {
        // Kafka describes a group without a name, as clients that only commit may have it, by the old
        // API only.
        if id.is_empty() {
            return self.describe_classic_group(id).await;
        }
        match self.describe_consumer_group(id).await {
            Err(ClientError::Unsupported { .. }) => self.describe_classic_group(id).await,
            Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => {
                self.describe_classic_group(id).await
            }
            outcome => outcome,
        }
    }

    async fn describe_consumer_group(&mut self, id: &str) -> Result<Group, ClientError> {
        // Asked first: a broker without the API is found out without a coordinator.
        self.version_of(ApiKey::ConsumerGroupDescribe).await?;
        let request = || consumer_group_describe::Request {
            group_ids: vec![KafkaString::from(id.to_owned())],
            ..Default::default()
        };
        let answer = |response: consumer_group_describe::Response| {
            let group = response.groups.into_iter().next().ok_or_else(|| no_answer(id))?;
            let message = group.error_message.as_ref().map(KafkaString::as_str);
            ClientError::check(group.error_code, || subject_of(id), message)?;
            Ok(Group {
                id: id.to_owned(),
                kind: GroupKind::Consumer,
                state: group.group_state.to_string(),
                assignor: group.assignor_name.to_string(),
                epoch: Some(group.group_epoch),
                members: group.members.into_iter().map(consumer_member).collect(),
            })
        };
        self.call_coordinator(id, i16::MAX, |_| request(), answer).await
    }

    async fn describe_classic_group(&mut self, id: &str) -> Result<Group, ClientError> {
        let request = || describe_groups::Request {
            groups: vec![KafkaString::from(id.to_owned())],
            ..Default::default()
        };
        let answer = |response: describe_groups::Response| {
            let group = response.groups.into_iter().next().ok_or_else(|| no_answer(id))?;
            let message = group.error_message.as_ref().map(KafkaString::as_str);
            ClientError::check(group.error_code, || subject_of(id), message)?;
            if group.group_state.as_str() == "Dead" {
                // What versions before 6 say of a group that is not there.
                let not_found = ErrorCode::GROUP_ID_NOT_FOUND.get();
                ClientError::check(not_found, || subject_of(id), None)?;
            }
            Ok(Group {
                id: id.to_owned(),
                kind: GroupKind::Classic,
                state: group.group_state.to_string(),
                assignor: group.protocol_data.to_string(),
                epoch: None,
                members: group.members.into_iter().map(classic_member).collect(),
            })
        };
        self.call_coordinator(id, i16::MAX, |_| request(), answer).await
    }

    /// Deletes a group with all that it committed. [`ErrorCode::NON_EMPTY_GROUP`] when it has
    /// members.
    pub async fn delete_group(&mut self, id: &str) -> Result<(), ClientError> {
        let request = || delete_groups::Request {
            groups_names: vec![KafkaString::from(id.to_owned())],
            ..Default::default()
        };
        let answer = |response: delete_groups::Response| {
            let result = response.results.into_iter().next().ok_or_else(|| no_answer(id))?;
            ClientError::check(result.error_code, || subject_of(id), None)
        };
        self.call_coordinator(id, i16::MAX, |_| request(), answer).await
    }
}

fn listed(group: list_groups::ListedGroup) -> ListedGroup {
    ListedGroup {
        id: group.group_id.to_string(),
        // Brokers disagree on the case.
        kind: group.group_type.to_string().to_lowercase(),
        protocol_type: group.protocol_type.to_string(),
        state: group.group_state.to_string(),
    }
}

fn consumer_member(member: consumer_group_describe::Member) -> GroupMember {
    let topic = |topic: consumer_group_describe::TopicPartitions| {
        (topic.topic_name.to_string(), topic.partitions)
    };
    GroupMember {
        id: member.member_id.to_string(),
        instance_id: member.instance_id.map(|id| id.to_string()),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        assigned: member.assignment.topic_partitions.into_iter().map(topic).collect(),
    }
}

fn classic_member(member: describe_groups::DescribedGroupMember) -> GroupMember {
    GroupMember {
        id: member.member_id.to_string(),
        instance_id: member.group_instance_id.map(|id| id.to_string()),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        // Members of other protocols (Connect) have assignments of their own form.
        assigned: assigned(member.member_assignment).unwrap_or_default(),
    }
}

/// What an answer about a group is about.
pub(crate) fn subject_of(id: &str) -> String {
    if id.is_empty() { "group \"\"".to_owned() } else { format!("group {id}") }
}

/// The response says nothing about the group that it was asked about.
pub(crate) fn no_answer(id: &str) -> ClientError {
    ClientError::Broker {
        subject: subject_of(id),
        code: ErrorCode::UNKNOWN_SERVER_ERROR,
        message: Some("the response does not mention the group".to_owned()),
    }
}

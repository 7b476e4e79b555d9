//! Where a seek moves each partition of a group, decided before anything is changed.

use std::collections::BTreeMap;

use strandline_client::{Client, ClientError, CommittedOffset};
use strandline_model::OffsetPoint;
use strandline_wire::ErrorCode;

use crate::command::place::{Borders, TopicPartitions, borders, offsets_at};

/// Where to.
#[derive(Clone, Debug)]
pub(super) enum Aim {
    /// The same place in each partition.
    To(OffsetPoint),
    /// So many records further, or back.
    By(i64),
    /// Where another group is.
    Like(Vec<CommittedOffset>),
}

/// What happens to one partition.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) topic: String,
    pub(super) partition: i32,
    /// What is committed now.
    pub(super) before: Option<i64>,
    /// What will be, or why that can't be known.
    pub(super) after: Result<i64, ClientError>,
    /// The wish, when it lay outside the partition.
    pub(super) wished: Option<i64>,
    /// The partition's borders, where they are known.
    pub(super) borders: Option<Borders>,
    /// Whether it was committed.
    pub(super) done: bool,
}

impl Move {
    /// Whether anything changes.
    pub(super) fn changes(&self) -> bool {
        self.after.as_ref().is_ok_and(|after| Some(*after) != self.before)
    }

    /// Records that are read again, and records that are not read: what was removed is neither.
    pub(super) fn passes(&self) -> (u64, u64) {
        let (Some(before), Some(borders), Ok(after)) = (self.before, self.borders, &self.after)
        else {
            return (0, 0);
        };
        let further = after - borders.clamp(before);
        (
            0_u64.saturating_add_signed((-further).max(0)),
            0_u64.saturating_add_signed(further.max(0)),
        )
    }
}

/// The partitions that a seek is about: those named, or else all that the group committed (and all
/// that the other one did).
pub(super) async fn partitions(
    client: &mut Client,
    committed: &[CommittedOffset],
    aim: &Aim,
    named: &[TopicPartitions],
) -> Result<Vec<(String, i32)>, ClientError> {
    let of = |offsets: &[CommittedOffset]| -> Vec<(String, i32)> {
        offsets.iter().map(|offset| (offset.topic.clone(), offset.partition)).collect()
    };
    let mut all = match aim {
        Aim::Like(other) => of(other),
        Aim::By(_) => of(committed),
        Aim::To(_) if named.is_empty() => of(committed),
        // Named topics need not have been read before.
        Aim::To(_) => named_partitions(client, named).await?,
    };
    all.retain(|(topic, partition)| {
        named.is_empty() || named.iter().any(|one| one.includes(topic, *partition))
    });
    all.sort();
    all.dedup();
    Ok(all)
}

/// Every partition that is named. An unknown topic or partition is an error.
pub(super) async fn named_partitions(
    client: &mut Client,
    named: &[TopicPartitions],
) -> Result<Vec<(String, i32)>, ClientError> {
    let mut all = Vec::new();
    for one in named {
        let unknown = |subject: String| ClientError::Broker {
            subject,
            code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            message: None,
        };
        let topics = client.cluster(Some(&[&one.topic])).await?.topics;
        let topic = topics.into_iter().find(|topic| topic.name == one.topic);
        let topic = topic.filter(|topic| topic.error.is_none());
        let topic = topic.ok_or_else(|| unknown(format!("topic {}", one.topic)))?;
        let known: Vec<i32> = topic.partitions.iter().map(|partition| partition.index).collect();
        if let Some(missing) = one.partitions.iter().find(|index| !known.contains(index)) {
            return Err(unknown(format!("{}-{missing}", one.topic)));
        }
        let wanted = if one.partitions.is_empty() { known } else { one.partitions.clone() };
        all.extend(wanted.into_iter().map(|partition| (one.topic.clone(), partition)));
    }
    Ok(all)
}

/// What happens to each of these partitions.
pub(super) async fn moves(
    client: &mut Client,
    committed: &[CommittedOffset],
    partitions: Vec<(String, i32)>,
    aim: &Aim,
) -> Vec<Move> {
    let borders = borders(client, &partitions).await;
    let offset_of = |offsets: &[CommittedOffset]| -> BTreeMap<(String, i32), i64> {
        let pairs = offsets.iter();
        pairs.map(|at| ((at.topic.clone(), at.partition), at.offset)).collect()
    };
    let before = offset_of(committed);
    let mut moves = Vec::new();
    let mut open = Vec::new();
    for (place, borders) in partitions.into_iter().zip(borders) {
        match borders {
            Ok(borders) => open.push((place, borders)),
            Err(error) => moves.push(Move {
                before: before.get(&place).copied(),
                topic: place.0,
                partition: place.1,
                after: Err(error),
                wished: None,
                borders: None,
                done: false,
            }),
        }
    }
    let wishes: Vec<Result<i64, ClientError>> = match aim {
        Aim::To(place) => offsets_at(client, &open, *place).await,
        Aim::By(count) => shifted(&open, &before, *count),
        Aim::Like(other) => {
            let other = offset_of(other);
            open.iter()
                .map(|(place, borders)| Ok(*other.get(place).unwrap_or(&borders.start)))
                .collect()
        }
    };
    for ((place, borders), wish) in open.into_iter().zip(wishes) {
        let inside = wish.map(|wish| (wish, borders.clamp(wish)));
        let wished =
            inside.as_ref().ok().filter(|(wish, inside)| wish != inside).map(|both| both.0);
        moves.push(Move {
            before: before.get(&place).copied(),
            topic: place.0,
            partition: place.1,
            after: inside.map(|(_, inside)| inside),
            wished,
            borders: Some(borders),
            done: false,
        });
    }
    moves.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    moves
}

fn shifted(
    open: &[((String, i32), Borders)],
    before: &BTreeMap<(String, i32), i64>,
    count: i64,
) -> Vec<Result<i64, ClientError>> {
    let from = |place: &(String, i32), borders: &Borders| {
        before.get(place).copied().unwrap_or(borders.start).saturating_add(count)
    };
    open.iter().map(|(place, borders)| Ok(from(place, borders))).collect()
}

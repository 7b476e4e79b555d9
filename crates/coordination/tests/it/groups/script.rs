//! A script's commands, run against a machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strandline_coordination::group::{
    CommitPartition, CommitRequest, CommitTopic, DeleteOffsetsRequest, DeleteTopic, FetchRequest,
    GroupCommand, GroupConfig, GroupEvent, GroupReply, GroupRow, GroupState, Groups, JoinRequest,
    LeaveRequest, LeavingMember, MemberRequest, Offer, SyncRequest,
};
use strandline_coordination::{Effects, Input, Machine, Now, ReplyToken};
use strandline_model::{Timestamp, TopicId};

use super::print;

/// A machine, the rows that were kept, and who waits for what.
pub(super) struct Script {
    config: GroupConfig,
    groups: Groups,
    now_ms: u64,
    kept: BTreeMap<Vec<u8>, GroupRow>,
    waiting: BTreeMap<ReplyToken, String>,
    next_token: u64,
    next_member: u64,
}

/// The words of a command: what has no `=` in order, and the rest by name.
struct Words<'a> {
    plain: Vec<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.named.get(name).copied()
    }

    fn text(&self, name: &str, default: &'a str) -> Arc<str> {
        Arc::from(self.get(name).unwrap_or(default))
    }

    fn number(&self, name: &str, default: i32) -> i32 {
        self.get(name).map_or(default, |text| text.parse().unwrap())
    }
}

impl Script {
    pub(super) fn new() -> Self {
        let config = GroupConfig::default();
        let mut script = Self {
            groups: Groups::new(config.clone()),
            config,
            now_ms: 0,
            kept: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next_token: 0,
            next_member: 0,
        };
        script.restart();
        script
    }

    pub(super) fn run(&mut self, line: &str) -> Vec<String> {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let (named, plain): (Vec<&str>, Vec<&str>) = words.partition(|word| word.contains('='));
        let named = named.into_iter().filter_map(|word| word.split_once('=')).collect();
        let words = Words { plain, named };
        let printed = match verb {
            "config" => {
                self.configure(&words);
                self.restart()
            }
            "at" => self.advance(words.plain[0].parse().unwrap()),
            "restart" => self.restart(),
            _ => {
                let command = self.command(verb, &words);
                self.ask(words.plain[0], command)
            }
        };
        self.check();
        printed
    }

    fn configure(&mut self, words: &Words<'_>) {
        for (name, value) in &words.named {
            let number = value.parse().unwrap();
            match *name {
                "initial-delay" => self.config.initial_rebalance_delay_ms = number,
                "max-size" => self.config.max_size = usize::try_from(number).unwrap(),
                "bytes-max" => self.config.group_bytes_max = usize::try_from(number).unwrap(),
                "offers-max" => self.config.offer_bytes_max = usize::try_from(number).unwrap(),
                "retention" => self.config.offsets_retention_ms = i64::try_from(number).unwrap(),
                "check" => self.config.offsets_retention_check_interval_ms = number,
                "metadata" => self.config.offset_metadata_max = usize::try_from(number).unwrap(),
                other => panic!("no setting {other}"),
            }
        }
    }

    fn now(&self) -> Now {
        Now {
            elapsed: Duration::from_millis(self.now_ms),
            time: Timestamp::from_millis(i64::try_from(self.now_ms).unwrap()),
        }
    }

    /// Time goes on; each deadline comes at its own time.
    fn advance(&mut self, to_ms: u64) -> Vec<String> {
        let mut printed = Vec::new();
        let to = Duration::from_millis(to_ms);
        while let Some(next) = self.groups.next_deadline().filter(|next| *next <= to) {
            self.now_ms = self.now_ms.max(u64::try_from(next.as_millis()).unwrap());
            let at = self.now_ms;
            let caused = self.step(Input::DeadlinePassed);
            printed.extend(caused.into_iter().map(|line| format!("{at}: {line}")));
        }
        self.now_ms = to_ms;
        printed
    }

    fn restart(&mut self) -> Vec<String> {
        self.groups = self.restored();
        self.waiting.clear();
        let mut out = Effects::default();
        self.groups.loaded(self.now(), &mut out);
        self.take(out)
    }

    /// A machine from what is kept, through its bytes.
    fn restored(&self) -> Groups {
        let mut groups = Groups::new(self.config.clone());
        for row in self.kept.values() {
            let value = row.value().unwrap();
            let again = match row {
                GroupRow::Group(..) => GroupRow::decode_group(&row.key(), value).unwrap(),
                GroupRow::Offset(..) => GroupRow::decode_offset(&row.key(), value).unwrap(),
            };
            assert_eq!(&again, row, "a row changed on its way");
            let topic = match row {
                GroupRow::Offset(key, _) => Some(topic_name(key.topic_id)),
                GroupRow::Group(..) => None,
            };
            groups.restore(self.now(), again, topic);
        }
        groups
    }

    fn ask(&mut self, name: &str, command: GroupCommand) -> Vec<String> {
        let token = ReplyToken(self.next_token);
        self.next_token += 1;
        self.waiting.insert(token, name.to_owned());
        self.step(Input::Command(token, command))
    }

    fn step(&mut self, input: Input<GroupCommand>) -> Vec<String> {
        let mut out = Effects::default();
        self.groups.step(self.now(), input, &mut out);
        self.take(out)
    }

    fn take(&mut self, out: Effects<GroupReply, GroupRow, GroupEvent>) -> Vec<String> {
        let mut printed: Vec<String> = out.events.iter().map(print::event).collect();
        for row in out.rows {
            printed.push(print::row(&row));
            let mut key = row.key().to_vec();
            key.insert(0, u8::from(matches!(row, GroupRow::Group(..))));
            match row.value() {
                Some(_) => self.kept.insert(key, row),
                None => self.kept.remove(&key),
            };
        }
        for (token, reply) in out.replies {
            let name = self.waiting.remove(&token).expect("each command is answered once");
            printed.push(format!("{name}: {}", print::reply(&reply)));
        }
        printed
    }

    /// What a crash now would leave is what was answered: positions, and complete generations.
    fn check(&self) {
        let mut live = self.groups.clone();
        let mut restored = self.restored();
        let ask = |groups: &mut Groups, command| {
            let mut out = Effects::default();
            groups.step(self.now(), Input::Command(ReplyToken(0), command), &mut out);
            out.replies.pop().unwrap().1
        };
        let GroupReply::List(listed) = ask(&mut live, GroupCommand::List) else { unreachable!() };
        for listing in listed {
            let all = || {
                let group = Arc::clone(&listing.group);
                GroupCommand::Fetch(FetchRequest { group, topics: None })
            };
            let (GroupReply::Fetch(now), GroupReply::Fetch(kept)) =
                (ask(&mut live, all()), ask(&mut restored, all()))
            else {
                unreachable!()
            };
            assert_eq!(now, kept, "positions of {}", listing.group);
            if listing.state != GroupState::Stable {
                continue;
            }
            let describe = || GroupCommand::Describe(Arc::clone(&listing.group));
            let (GroupReply::Describe(now), GroupReply::Describe(kept)) =
                (ask(&mut live, describe()), ask(&mut restored, describe()))
            else {
                unreachable!()
            };
            assert_eq!(now, kept, "the generation of {}", listing.group);
        }
    }

    fn command(&mut self, verb: &str, words: &Words<'_>) -> GroupCommand {
        let group = words.text("group", "g");
        match verb {
            "join" => GroupCommand::Join(Box::new(self.join(words))),
            "sync" => GroupCommand::Sync(SyncRequest {
                who: member(words),
                protocol_type: words.get("type").map(Arc::from),
                protocol: words.get("protocol").map(Arc::from),
                assignments: (words.get("assign").unwrap_or_default().split(','))
                    .filter_map(|share| share.split_once(':'))
                    .map(|(member, share)| {
                        (Arc::from(member), Bytes::copy_from_slice(share.as_bytes()))
                    })
                    .collect(),
            }),
            "heartbeat" => GroupCommand::Heartbeat(member(words)),
            "leave" => GroupCommand::Leave(LeaveRequest {
                group,
                members: (words.plain[1..].iter())
                    .map(|word| leaving(word, words.text("reason", "")))
                    .collect(),
            }),
            "commit" => GroupCommand::Commit(CommitRequest {
                who: member(words),
                retention_ms: words.get("keep").map(|ms| ms.parse().unwrap()),
                knows_missing_group: words.number("v", 9) >= 9,
                topics: words.plain[1..].iter().map(|word| commit(word, words)).collect(),
            }),
            "fetch" => GroupCommand::Fetch(FetchRequest {
                group,
                topics: (words.plain.len() > 1).then(|| {
                    words.plain[1..]
                        .iter()
                        .map(|word| place(word))
                        .map(|(t, p)| (t, vec![p]))
                        .collect()
                }),
            }),
            "delete-offsets" => GroupCommand::DeleteOffsets(DeleteOffsetsRequest {
                group,
                topics: (words.plain[1..].iter().map(|word| place(word)))
                    .map(|(topic_id, partition)| DeleteTopic {
                        topic_id,
                        name: topic_name(topic_id),
                        partitions: vec![partition],
                    })
                    .collect(),
            }),
            "delete" => GroupCommand::DeleteGroup(group),
            "describe" => GroupCommand::Describe(group),
            "list" => GroupCommand::List,
            "forget" => GroupCommand::ForgetTopic(topic_id(words.plain[1])),
            "name" => GroupCommand::NameTopic(topic_id(words.plain[1]), Arc::from(words.plain[2])),
            other => panic!("no command {other}"),
        }
    }

    fn join(&mut self, words: &Words<'_>) -> JoinRequest {
        let version = words.number("v", 9);
        self.next_member += 1;
        JoinRequest {
            group: words.text("group", "g"),
            member: words.text("member", ""),
            instance: words.get("instance").map(Arc::from),
            new_member: Arc::from(format!("m{}", self.next_member)),
            client_id: Arc::from("client"),
            client_host: Arc::from("/127.0.0.1"),
            session_timeout_ms: words.number("session", 10_000),
            rebalance_timeout_ms: words.number("rebalance", 60_000),
            protocol_type: words.text("type", "consumer"),
            offer: offer(words.get("protocols").unwrap_or("range(t1)")),
            requires_member_id: version >= 4,
            may_skip_assignment: version >= 9,
            reason: words.text("reason", ""),
        }
    }
}

fn member(words: &Words<'_>) -> MemberRequest {
    MemberRequest {
        group: words.text("group", "g"),
        member: words.text("member", ""),
        instance: words.get("instance").map(Arc::from),
        generation: words.number("generation", -1),
    }
}

/// `m1`, `m1[i1]` or `[i1]`.
fn leaving(word: &str, reason: Arc<str>) -> LeavingMember {
    let (member, instance) = word.split_once('[').unwrap_or((word, ""));
    let instance = instance.strip_suffix(']').map(Arc::from);
    LeavingMember { member: Arc::from(member), instance, reason }
}

/// `t1/0:5`, with a note of `note=` letters.
fn commit(word: &str, words: &Words<'_>) -> CommitTopic {
    let (at, offset) = word.split_once(':').unwrap();
    let (topic_id, index) = place(at);
    let note = usize::try_from(words.number("note", 0)).unwrap();
    let partition = CommitPartition {
        index,
        offset: offset.parse().unwrap(),
        leader_epoch: 0,
        metadata: Arc::from("é".repeat(note)),
    };
    CommitTopic { topic_id, name: topic_name(topic_id), partitions: vec![partition] }
}

/// `t1/0`
fn place(word: &str) -> (TopicId, i32) {
    let (topic, partition) = word.split_once('/').unwrap();
    (topic_id(topic), partition.parse().unwrap())
}

/// `t1` has an id that ends with 1.
fn topic_id(name: &str) -> TopicId {
    let mut id = [0; 16];
    id[15] = name.trim_start_matches('t').parse().unwrap();
    TopicId::from_bytes(id)
}

fn topic_name(id: TopicId) -> Arc<str> {
    Arc::from(format!("t{}", id.as_bytes()[15]))
}

/// `range(t1+t2),sticky(t1)`; `-` for none.
fn offer(text: &str) -> Offer {
    let protocols: Vec<(&str, Vec<u8>)> = (text.split(','))
        .filter_map(|protocol| protocol.split_once('('))
        .map(|(name, topics)| (name, subscription(topics.trim_end_matches(')'))))
        .collect();
    let protocols: Vec<_> = protocols.iter().map(|(name, more)| (*name, &**more)).collect();
    Offer::new(&protocols)
}

/// The metadata of a consumer that reads `t1+t2`.
fn subscription(topics: &str) -> Vec<u8> {
    let topics: Vec<&str> = topics.split('+').collect();
    let mut metadata = vec![0, 0];
    metadata.extend(u32::try_from(topics.len()).unwrap().to_be_bytes());
    for topic in topics {
        metadata.extend(u16::try_from(topic.len()).unwrap().to_be_bytes());
        metadata.extend(topic.as_bytes());
    }
    metadata.extend([0xff; 4]);
    metadata
}

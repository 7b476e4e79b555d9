//! A request to a large group costs what the request is, not what the group is: whoever shares the
//! group's owner waits for each step.

use std::sync::Arc;
use std::time::{Duration, Instant};

use strandline_coordination::group::{
    CommitPartition, CommitRequest, CommitTopic, GroupCommand, GroupConfig, GroupEvent, GroupReply,
    GroupRow, Groups, JoinRequest, LeaveRequest, LeavingMember, MemberRequest, Offer, SyncRequest,
};
use strandline_coordination::{Effects, Input, Machine, Now, ReplyToken};
use strandline_model::{Timestamp, TopicId};

/// Generous: a build for tests on a busy machine needs a tenth. When each join walked all members
/// for each of its protocols, this took more than a minute.
const LIMIT: Duration = Duration::from_secs(10);

type EffectsOf = Effects<GroupReply, GroupRow, GroupEvent>;

/// A machine whose clock stands still until it is told.
struct Coordinator {
    groups: Groups,
    now: Now,
    next_token: u64,
    replies: Vec<GroupReply>,
    /// The most rows that one step had.
    rows_of_a_step: usize,
    /// How often rows said that something is gone.
    removed: usize,
    /// How many steps deadlines asked for.
    deadline_steps: usize,
}

impl Coordinator {
    fn new() -> Self {
        let mut groups = Groups::new(GroupConfig::default());
        groups.loaded(Now::default(), &mut Effects::default());
        Self {
            groups,
            now: Now::default(),
            next_token: 0,
            replies: Vec::new(),
            rows_of_a_step: 0,
            removed: 0,
            deadline_steps: 0,
        }
    }

    fn feed(&mut self, input: Input<GroupCommand>) {
        let mut out = EffectsOf::default();
        self.groups.step(self.now, input, &mut out);
        self.rows_of_a_step = self.rows_of_a_step.max(out.rows.len());
        self.removed += out.rows.iter().filter(|row| row.value().is_none()).count();
        self.replies.extend(out.replies.into_iter().map(|(_, reply)| reply));
    }

    fn ask(&mut self, command: GroupCommand) {
        self.next_token += 1;
        self.feed(Input::Command(ReplyToken(self.next_token), command));
    }

    fn pass_deadlines_until(&mut self, elapsed: Duration) {
        while let Some(next) = self.groups.next_deadline().filter(|next| *next <= elapsed) {
            self.now.elapsed = self.now.elapsed.max(next);
            self.deadline_steps += 1;
            self.feed(Input::DeadlinePassed);
        }
        self.now.elapsed = elapsed;
    }
}

fn join(new_member: usize, protocols: &[String]) -> GroupCommand {
    GroupCommand::Join(Box::new(join_request(new_member, protocols)))
}

fn join_request(new_member: usize, protocols: &[String]) -> JoinRequest {
    let offered: Vec<_> = protocols.iter().map(|name| (&**name, &b"meta"[..])).collect();
    JoinRequest {
        group: Arc::from("crowd"),
        member: Arc::default(),
        instance: None,
        new_member: Arc::from(format!("m{new_member}")),
        client_id: Arc::from("client"),
        client_host: Arc::from("/127.0.0.1"),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: Arc::from("consumer"),
        offer: Offer::new(&offered),
        requires_member_id: false,
        may_skip_assignment: false,
        reason: Arc::default(),
    }
}

/// All that `count` members offer, and what everybody has in common comes last.
fn offers() -> Vec<String> {
    let mut names: Vec<String> = (0..99).map(|number| format!("p{number:03}")).collect();
    names.push("common".to_owned());
    names
}

#[test]
fn joins_of_many_protocols_do_not_walk_the_members() {
    let mut coordinator = Coordinator::new();
    let begun = Instant::now();
    coordinator.ask(join(0, &["only".to_owned(), "common".to_owned()]));
    for member in 1..=2_000 {
        coordinator.ask(join(member, &offers()));
    }
    assert_eq!(coordinator.replies.len(), 0, "all wait for the first generation");
    coordinator.pass_deadlines_until(Duration::from_mins(1));
    assert_eq!(coordinator.replies.len(), 2_001, "all are in it");
    assert!(begun.elapsed() < LIMIT, "took {:?}", begun.elapsed());
}

#[test]
fn members_that_expire_together_do_not_walk_each_other() {
    let mut coordinator = Coordinator::new();
    let begun = Instant::now();
    for member in 0..30_000 {
        coordinator.ask(join(member, &["range".to_owned()]));
    }
    coordinator.pass_deadlines_until(Duration::from_mins(1));
    assert_eq!(coordinator.replies.len(), 30_000);
    // Nobody fetches its assignment or sends a heartbeat.
    coordinator.pass_deadlines_until(Duration::from_mins(5));
    coordinator.replies.clear();
    let who = MemberRequest {
        group: Arc::from("crowd"),
        member: Arc::from("m0"),
        instance: None,
        generation: 1,
    };
    coordinator.ask(GroupCommand::Heartbeat(who));
    assert!(matches!(coordinator.replies[..], [GroupReply::Heartbeat(Err(_))]));
    assert!(begun.elapsed() < LIMIT, "took {:?}", begun.elapsed());
}

#[test]
fn a_pass_of_retention_over_many_groups_is_made_of_short_steps() {
    let mut coordinator = Coordinator::new();
    for number in 0..20_000 {
        coordinator.ask(GroupCommand::Commit(CommitRequest {
            who: MemberRequest {
                group: Arc::from(format!("simple-{number}")),
                member: Arc::default(),
                instance: None,
                generation: -1,
            },
            retention_ms: None,
            knows_missing_group: true,
            topics: vec![CommitTopic {
                topic_id: TopicId::from_bytes([1; 16]),
                name: Arc::from("t"),
                partitions: vec![CommitPartition {
                    index: 0,
                    offset: 1,
                    leader_epoch: -1,
                    metadata: Arc::default(),
                }],
            }],
        }));
    }
    let config = GroupConfig::default();
    coordinator.now.time = Timestamp::from_millis(config.offsets_retention_ms);
    coordinator.rows_of_a_step = 0;
    let check = Duration::from_millis(config.offsets_retention_check_interval_ms);
    coordinator.pass_deadlines_until(check);
    assert_eq!(coordinator.removed, 40_000, "each position and each group");
    assert!(coordinator.rows_of_a_step < 5_000, "rows={}", coordinator.rows_of_a_step);
}

#[test]
fn static_members_that_say_to_wait_no_time_and_do_not_come_are_not_looked_for_without_end() {
    let mut coordinator = Coordinator::new();
    let who = |member: &str, instance: &str| MemberRequest {
        group: Arc::from("crowd"),
        member: Arc::from(member),
        instance: Some(Arc::from(instance)),
        generation: 1,
    };
    for (number, instance) in ["i0", "i1"].into_iter().enumerate() {
        let mut request = join_request(number, &["range".to_owned()]);
        request.instance = Some(Arc::from(instance));
        request.rebalance_timeout_ms = 1;
        coordinator.ask(GroupCommand::Join(Box::new(request)));
    }
    coordinator.pass_deadlines_until(Duration::from_secs(3));
    assert_eq!(coordinator.replies.len(), 2, "both are in");
    for (member, instance) in [("m0", "i0"), ("m1", "i1")] {
        coordinator.ask(GroupCommand::Sync(SyncRequest {
            who: who(member, instance),
            protocol_type: None,
            protocol: None,
            assignments: Vec::new(),
        }));
    }
    coordinator.ask(GroupCommand::Leave(LeaveRequest {
        group: Arc::from("crowd"),
        members: vec![LeavingMember {
            member: Arc::from("m0"),
            instance: Some(Arc::from("i0")),
            reason: Arc::default(),
        }],
    }));
    coordinator.deadline_steps = 0;
    coordinator.pass_deadlines_until(Duration::from_secs(12));
    assert!(coordinator.deadline_steps < 20, "steps={}", coordinator.deadline_steps);
}

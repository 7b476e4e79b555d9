//! What a group refuses.

/// A request that the rules of groups refuse. Protocol answers, not failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum GroupError {
    /// The group id is empty, or longer than can be kept.
    #[error("group id is not valid")]
    InvalidGroupId,
    /// There is no such group.
    #[error("group does not exist")]
    GroupNotFound,
    /// The group has members.
    #[error("group is not empty")]
    NonEmptyGroup,
    /// The session timeout is outside the broker's bounds.
    #[error("session timeout is not within the broker's bounds")]
    InvalidSessionTimeout,
    /// The member must come again with the id that it was given (KIP-394).
    #[error("member must join again with its id")]
    MemberIdRequired,
    /// No such member.
    #[error("member is not known")]
    UnknownMember,
    /// Another member has taken the place of this static one (KIP-345).
    #[error("static member was replaced by another one")]
    FencedInstance,
    /// The member is in another generation than the group.
    #[error("generation is not the group's")]
    IllegalGeneration,
    /// The member shares no protocol with the group.
    #[error("no protocol in common with the group")]
    InconsistentProtocol,
    /// The group has as many members as it may have.
    #[error("group has as many members as it may have")]
    GroupFull,
    /// The member offers more protocols than anybody needs.
    #[error("member offers too many protocols")]
    TooManyProtocols,
    /// What the members say and are assigned is more than can be kept.
    #[error("members and assignments are too large")]
    GroupTooLarge,
    /// The member must join again.
    #[error("group is rebalancing")]
    RebalanceInProgress,
}

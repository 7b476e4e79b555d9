//! What a member offers: the protocols that it can use.
//!
//! A member may offer a hundred, and offers the same ones each time that it joins. So they are kept
//! as runs of bytes: two copies to take them in, a comparison of bytes to see that none is new.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

/// What a protocol that a member offers takes beside its name and metadata, at most.
pub(super) const PROTOCOL_BYTES: usize = 64;

/// The protocols that a member can use, best first, with what it tells the leader under each. For
/// consumers: the name of an assignor, and the subscription, opaque but for the topics in it.
///
/// Cheap to clone. Holds bytes of its own, none of the request that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer(Arc<Parts>);

/// Names and metadata one behind the other, with where each ends.
///
/// # Invariants
/// There are as many ends of metadata as of names. Ends don't fall, and the last is the length.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    names: String,
    name_ends: Vec<usize>,
    metadata: Bytes,
    metadata_ends: Vec<usize>,
}

impl Offer {
    /// Copies the protocols, each a name and its metadata.
    pub fn new(protocols: &[(&str, &[u8])]) -> Self {
        let name_bytes = protocols.iter().map(|(name, _)| name.len()).sum();
        let metadata_bytes = protocols.iter().map(|(_, more)| more.len()).sum();
        let mut names = String::with_capacity(name_bytes);
        let mut metadata = BytesMut::with_capacity(metadata_bytes);
        let mut name_ends = Vec::with_capacity(protocols.len());
        let mut metadata_ends = Vec::with_capacity(protocols.len());
        for (name, more) in protocols {
            names.push_str(name);
            name_ends.push(names.len());
            metadata.extend_from_slice(more);
            metadata_ends.push(metadata.len());
        }
        Self(Arc::new(Parts { names, name_ends, metadata: metadata.freeze(), metadata_ends }))
    }

    /// One protocol, with metadata that is kept already.
    pub(super) fn one(name: &str, metadata: Bytes) -> Self {
        let metadata_ends = vec![metadata.len()];
        Self(Arc::new(Parts {
            names: name.to_owned(),
            name_ends: vec![name.len()],
            metadata,
            metadata_ends,
        }))
    }

    /// How many protocols there are; one that is named twice counts twice.
    pub(super) fn len(&self) -> usize {
        self.0.name_ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.name_ends.is_empty()
    }

    /// The names, best first.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let mut begin = 0;
        self.0.name_ends.iter().map(move |&end| {
            let name = &self.0.names[begin..end];
            begin = end;
            name
        })
    }

    /// Whether the other one has the same names, in the same order.
    pub(super) fn has_names_of(&self, other: &Self) -> bool {
        self.0.names == other.0.names && self.0.name_ends == other.0.name_ends
    }

    pub(super) fn contains(&self, protocol: &str) -> bool {
        self.names().any(|name| name == protocol)
    }

    /// What is told under `protocol`: the first, if it is named twice. Shared, not copied.
    pub(super) fn metadata(&self, protocol: &str) -> Option<Bytes> {
        let index = self.names().position(|name| name == protocol)?;
        let ends = &self.0.metadata_ends;
        let begin = index.checked_sub(1).map_or(0, |before| ends[before]);
        Some(self.0.metadata.slice(begin..ends[index]))
    }

    /// What the offer takes, at most.
    pub(super) fn bytes(&self) -> usize {
        self.len() * PROTOCOL_BYTES + self.0.names.len() + self.0.metadata.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    type List = Vec<(String, Vec<u8>)>;

    fn offer(list: &List) -> Offer {
        let borrowed: Vec<_> = list.iter().map(|(name, more)| (&**name, &**more)).collect();
        Offer::new(&borrowed)
    }

    fn list() -> impl Strategy<Value = List> {
        vec(("[ab]{0,2}", vec(0..2_u8, 0..3)), 0..5)
    }

    proptest! {
        #[test]
        fn an_offer_says_what_the_list_of_its_protocols_says(list in list(), name in "[ab]{0,2}") {
            let offer = offer(&list);
            let names: Vec<&str> = list.iter().map(|(name, _)| &**name).collect();
            prop_assert_eq!(offer.names().collect::<Vec<_>>(), names.clone());
            prop_assert_eq!((offer.len(), offer.is_empty()), (list.len(), list.is_empty()));
            prop_assert_eq!(offer.contains(&name), names.contains(&&*name));
            let first = list.iter().find(|(own, _)| *own == name);
            let first = first.map(|(_, metadata)| Bytes::from(metadata.clone()));
            prop_assert_eq!(offer.metadata(&name), first);
            let bytes = |(name, metadata): &(String, Vec<u8>)| {
                PROTOCOL_BYTES + name.len() + metadata.len()
            };
            prop_assert_eq!(offer.bytes(), list.iter().map(bytes).sum::<usize>());
        }

        #[test]
        fn offers_are_the_same_when_their_lists_are(one in list(), other in list()) {
            let names = |list: &List| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            prop_assert_eq!(offer(&one) == offer(&other), one == other);
            prop_assert_eq!(
                offer(&one).has_names_of(&offer(&other)),
                names(&one) == names(&other)
            );
        }
    }

    #[test]
    fn an_offer_of_one_is_that_of_a_list_of_one() {
        let list = vec![("range".to_owned(), b"topics".to_vec())];
        assert_eq!(Offer::one("range", Bytes::from_static(b"topics")), offer(&list));
    }
}

//! Bytes that are no message: every decoder of every version says so, and nothing panics.

use bytes::BytesMut;
use proptest::prelude::*;
use strandline_wire::{Api, ApiKey, DecodeError, Message, fetch, produce, served};

use crate::each_message::each_message;

/// Decodes a request body as the broker does.
pub(crate) fn decode(body: BytesMut, api: Api) -> Result<(), DecodeError> {
    fn generated<M: Message>(body: BytesMut, api: Api) -> Result<(), DecodeError> {
        M::decode(body.freeze(), api.version()).map(drop)
    }
    let decode = each_message!(
        api.key(),
        Request,
        ApiKey::Produce => return produce::Request::decode(body, api).map(drop),
        ApiKey::Fetch => return fetch::Request::decode(body, api).map(drop),
    );
    decode(body, api)
}

fn every_api() -> impl Iterator<Item = Api> {
    served().iter().flat_map(|row| {
        (row.min_version..=row.max_version).map(|version| row.at(version).expect("served"))
    })
}

/// Runs of bytes that lengths are made of, more often than chance would have them.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let run = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        Just(vec![0x7f, 0xff, 0xff, 0xff]),
        Just(vec![0xff, 0xff, 0xff, 0xff, 0x0f]),
        Just(vec![0, 0, 0, 1]),
        prop::collection::vec(0_u8..4, 0..40),
    ];
    prop::collection::vec(run, 0..12).prop_map(|runs| runs.concat())
}

proptest! {
    #[test]
    fn garbage_is_read_or_refused_in_every_version(bytes in bytes()) {
        for api in every_api() {
            // Either verdict is right; a panic or an abort is not.
            drop(decode(BytesMut::from(&bytes[..]), api));
        }
    }
}

#[test]
fn an_empty_body_is_refused_wherever_fields_are_expected() {
    for api in every_api() {
        let without_fields = [ApiKey::ApiVersions, ApiKey::ListGroups];
        let is_empty = without_fields.contains(&api.key()) && api.version() < 3;
        assert_eq!(
            decode(BytesMut::new(), api).is_ok(),
            is_empty,
            "{} v{}",
            api.key(),
            api.version()
        );
    }
}

//! The words of Kafka's errors in JSON: one vocabulary, with our own words.
//!
//! A word is Kafka's name in small letters (`topic_already_exists`), but for some that are said
//! shorter, as the commands say them where they find the same out by themselves.

use std::borrow::Cow;

use strandline_wire::{ErrorCode, ErrorInfo};

/// What is said shorter.
const SHORT: [(ErrorCode, &str); 3] = [
    (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "unknown_topic"),
    (ErrorCode::INVALID_TOPIC_EXCEPTION, "invalid_topic"),
    (ErrorCode::GROUP_ID_NOT_FOUND, "unknown_group"),
];

/// A stable word for a Kafka error.
pub(super) fn error_word(code: ErrorCode) -> Cow<'static, str> {
    if let Some((_, word)) = SHORT.iter().find(|(known, _)| *known == code) {
        return Cow::Borrowed(word);
    }
    match code.info() {
        Some(info) => Cow::Owned(info.name.to_ascii_lowercase()),
        None => Cow::Borrowed("unknown_kafka_error"),
    }
}

/// The error that a short word is for.
pub(super) fn by_short_word(word: &str) -> Option<&'static ErrorInfo> {
    SHORT
        .iter()
        .find(|(_, short)| short.eq_ignore_ascii_case(word))
        .and_then(|(code, _)| code.info())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_error_has_a_word_of_its_own_in_small_letters() {
        let words: Vec<_> = ErrorCode::all().iter().map(|info| error_word(info.code)).collect();
        for word in &words {
            assert!(word.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{word}");
        }
        assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len());
    }

    #[test]
    fn a_word_leads_back_to_its_error() {
        for info in ErrorCode::all() {
            let word = error_word(info.code);
            let found = ErrorCode::by_name(&word).or_else(|| by_short_word(&word));
            assert_eq!(found.map(|found| found.code), Some(info.code), "{word}");
        }
        assert_eq!(error_word(ErrorCode::TOPIC_ALREADY_EXISTS), "topic_already_exists");
        assert_eq!(error_word(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), "unknown_topic");
    }
}

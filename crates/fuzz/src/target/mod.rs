//! What is fuzzed: one file for each reader of foreign bytes.

mod batch;
mod folder;
mod frame;
mod group;
mod state;

use std::fmt::Debug;

use crate::corpus::fnv;

/// A reader of foreign bytes.
#[derive(Debug)]
pub(crate) struct Target {
    /// What it is called on the command line, and its folder in the corpus.
    pub(crate) name: &'static str,
    /// Good inputs to begin with.
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    /// Makes outer lengths and checksums fit again after a change.
    pub(crate) repair: fn(&mut [u8]),
    /// Reads the input and checks what must hold for any; a number for the kind of answer.
    pub(crate) run: fn(&[u8]) -> u64,
}

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    frame::TARGET,
    batch::TARGET,
    state::TARGET,
    group::TARGET,
    folder::journal::TARGET,
    folder::index::TARGET,
    folder::snapshot::TARGET,
    folder::segment::TARGET,
];

/// A number for a kind of answer: that of its text without the digits, which change with each input.
fn kind_of(answer: impl Debug) -> u64 {
    let mut text = format!("{answer:?}");
    text.retain(|letter| !letter.is_ascii_digit());
    fnv(text.as_bytes())
}

/// A coarse word for an amount, without digits: none, 1, 2 or 3, 4 to 7, ….
fn magnitude(amount: usize) -> String {
    "m".repeat((usize::BITS - amount.leading_zeros()) as usize)
}

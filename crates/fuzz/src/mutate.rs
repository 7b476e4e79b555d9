//! Changes to good inputs, of the kinds that break readers: lengths, counts, cuts, repeats, splices.

use crate::random::Random;

/// No input grows beyond this.
pub(crate) const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Changes `input` a few times over; `other` is another good input to take pieces from.
pub(crate) fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    // Mostly one change, sometimes many: a reader that survives one may not survive two together.
    let changes = if random.one_in(4) { 1 + random.below(16) } else { 1 };
    for _ in 0..changes {
        match random.pick(CHANGES) {
            Change::InPlace(change) => change(input, random),
            Change::Length(change) => change(input, other, random),
        }
    }
    input.truncate(INPUT_BYTES_MAX);
}

enum Change {
    /// Overwrites bytes.
    InPlace(fn(&mut [u8], &mut Random)),
    /// Adds or removes bytes, or takes some of another input.
    Length(fn(&mut Vec<u8>, &[u8], &mut Random)),
}

const CHANGES: &[Change] = &[
    Change::InPlace(flip_a_bit),
    Change::InPlace(set_a_byte),
    Change::InPlace(set_a_number),
    Change::InPlace(set_a_number),
    Change::InPlace(nudge_a_number),
    Change::InPlace(nudge_a_number),
    Change::Length(cut_the_end),
    Change::Length(remove_a_range),
    Change::Length(repeat_a_range),
    Change::Length(insert_bytes),
    Change::Length(insert_a_long_varint),
    Change::Length(splice),
];

fn flip_a_bit(input: &mut [u8], random: &mut Random) {
    let at = random.below(input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn set_a_byte(input: &mut [u8], random: &mut Random) {
    let at = random.below(input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte = *random.pick(&[0, 1, 0x7f, 0x80, 0xff]);
    }
}

/// Puts a number of 2, 4 or 8 bytes, in either order of bytes, that readers trip over.
fn set_a_number(input: &mut [u8], random: &mut Random) {
    let length = i64::try_from(input.len()).unwrap_or(i64::MAX);
    let value = *random.pick(&[
        0,
        1,
        -1,
        i64::from(i16::MAX),
        i64::from(i16::MIN),
        i64::from(i32::MAX),
        i64::from(i32::MIN),
        i64::from(i32::MAX) - 11,
        i64::MAX,
        i64::MIN,
        1 << 30,
        length,
        length - 1,
        length + 1,
    ]);
    put_number(input, value, random);
}

fn put_number(input: &mut [u8], value: i64, random: &mut Random) {
    let width = *random.pick(&[2, 4, 8]);
    let at = random.below(input.len());
    let Some(place) = input.get_mut(at..at + width) else { return };
    if random.one_in(2) {
        place.copy_from_slice(&value.to_be_bytes()[8 - width..]);
    } else {
        place.copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// Makes a number that stands there a little larger or smaller: counts and lengths that almost fit.
fn nudge_a_number(input: &mut [u8], random: &mut Random) {
    let at = random.below(input.len());
    if let Some(byte) = input.get_mut(at) {
        let step = u8::try_from(1 + random.below(4)).expect("at most 4");
        *byte = if random.one_in(2) { byte.wrapping_add(step) } else { byte.wrapping_sub(step) };
    }
}

fn cut_the_end(input: &mut Vec<u8>, _: &[u8], random: &mut Random) {
    input.truncate(random.below(input.len()));
}

fn remove_a_range(input: &mut Vec<u8>, _: &[u8], random: &mut Random) {
    let range = range(input.len(), 64, random);
    input.drain(range);
}

fn repeat_a_range(input: &mut Vec<u8>, _: &[u8], random: &mut Random) {
    let range = range(input.len(), 256, random);
    let (piece, end) = (input[range.clone()].to_vec(), range.end);
    let times = if random.one_in(8) { 1 + random.below(64) } else { 1 };
    input.splice(end..end, piece.repeat(times));
}

fn insert_bytes(input: &mut Vec<u8>, _: &[u8], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let count = 1 + random.below(16);
    let bytes: Vec<u8> = (0..count).map(|_| random.next().to_le_bytes()[0]).collect();
    input.splice(at..at, bytes);
}

fn insert_a_long_varint(input: &mut Vec<u8>, _: &[u8], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let mut bytes = vec![0xff; 1 + random.below(10)];
    bytes.push(*random.pick(&[0x00, 0x01, 0x0f, 0x7f]));
    // Over the bytes that stand there, so that what follows stays in its place.
    let end = input.len().min(at + bytes.len());
    input.splice(at..end, bytes);
}

fn splice(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let from = range(other.len(), other.len(), random);
    let at = random.below(input.len() + 1);
    let end = if random.one_in(2) { at } else { input.len().min(at + from.len()) };
    input.splice(at..end, other[from].iter().copied());
}

/// A range within `length`, of at most `longest`.
fn range(length: usize, longest: usize, random: &mut Random) -> std::ops::Range<usize> {
    let start = random.below(length);
    let count = random.below((length - start).min(longest) + 1);
    start..start + count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_changes() {
        let run = |seed| {
            let mut random = Random::new(seed);
            let mut input = b"some good input".to_vec();
            for _ in 0..100 {
                mutate(&mut input, b"another", &mut random);
            }
            input
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn inputs_of_every_length_are_changed_without_a_panic_and_stay_within_the_bound() {
        let mut random = Random::new(7);
        for length in 0..40 {
            let mut input = vec![0; length];
            for _ in 0..2_000 {
                mutate(&mut input, &[1; 30], &mut random);
                assert!(input.len() <= INPUT_BYTES_MAX);
            }
        }
    }
}

//! Sizes and durations as people write them: `512MiB`, `7d`.
//!
//! Only files, the environment and flags speak like this; the wire carries plain numbers, as
//! Kafka's tools send them.

use super::key::{ConfigKey, ConfigType};

/// What a key's number counts, by the end of its name.
enum Counts {
    Bytes,
    /// Spans of this many milliseconds.
    Time(i128),
}

/// `text` as a plain number in the key's unit: `None` when the key counts nothing that has units or
/// the text carries none, so that Kafka's own rules judge it.
pub(super) fn normalize(key: &ConfigKey, text: &str) -> Option<Result<String, String>> {
    let counts = counts(key)?;
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = (text[..unit_at].trim_end(), &text[unit_at..]);
    if number.is_empty() {
        return None;
    }
    let converted = match counts {
        Counts::Bytes => bytes_of(unit).and_then(|factor| scale(number, factor, 1)),
        Counts::Time(per) => millis_of(unit).and_then(|factor| scale(number, factor, per)),
    };
    Some(converted.map(|number| number.to_string()))
}

fn counts(key: &ConfigKey) -> Option<Counts> {
    if !matches!(key.kind, ConfigType::Int | ConfigType::Long) {
        return None;
    }
    match key.name.rsplit('.').next()? {
        "bytes" => Some(Counts::Bytes),
        "ms" => Some(Counts::Time(1)),
        "minutes" => Some(Counts::Time(60_000)),
        "hours" => Some(Counts::Time(3_600_000)),
        _ => None,
    }
}

/// Bytes in a unit. `k` and `KiB` are 1024, as the JVM's flags have it; `kB` is 1000.
fn bytes_of(unit: &str) -> Result<i128, String> {
    Ok(match unit.to_ascii_lowercase().as_str() {
        "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("Unknown unit of size \"{unit}\" (B, KiB, MiB, GiB, TiB, kB, …)")),
    })
}

fn millis_of(unit: &str) -> Result<i128, String> {
    Ok(match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return Err(format!("Unknown unit of time \"{unit}\" (ms, s, m, h, d, w)")),
    })
}

/// `number` × `factor` ÷ `per`, exactly: `1.5h` is 90 minutes, `90s` is no whole number of hours.
fn scale(number: &str, factor: i128, per: i128) -> Result<i128, String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    // Bounds keep every product below within i128.
    if digits.is_empty() || digits.len() > 18 || !is_digits(digits) {
        return Err(format!("Not a number: \"{number}\""));
    }
    if fraction.len() > 9 || !is_digits(fraction) {
        return Err(format!("Not a number with at most nine decimals: \"{number}\""));
    }
    let unscaled: i128 =
        format!("{digits}{fraction}").parse().map_err(|_| format!("Not a number: \"{number}\""))?;
    let divisor = per * 10_i128.pow(u32::try_from(fraction.len()).unwrap_or(9));
    let product = unscaled * factor;
    if product % divisor != 0 {
        return Err("Not a whole number in the key's own unit".to_owned());
    }
    Ok(if whole.starts_with('-') { -(product / divisor) } else { product / divisor })
}

#[cfg(test)]
mod tests {
    use crate::config::{broker_key, topic_key};

    fn read(name: &str, text: &str) -> String {
        let key = topic_key(name).or_else(|| broker_key(name)).expect("a key");
        match key.parse_with_units(text) {
            Ok(value) => value.to_string(),
            Err(invalid) => invalid.to_string(),
        }
    }

    #[test]
    fn sizes_and_durations_become_the_keys_own_unit() {
        for (name, text, answer) in [
            ("segment.bytes", "128MiB", "134217728"),
            ("segment.bytes", "1g", "1073741824"),
            ("segment.bytes", "2 MB", "2000000"),
            ("segment.bytes", "1.5MiB", "1572864"),
            ("retention.bytes", "-1", "-1"),
            ("retention.ms", "7d", "604800000"),
            ("retention.ms", "1.5h", "5400000"),
            ("retention.ms", "90s", "90000"),
            ("retention.ms", "5", "5"),
            ("log.retention.minutes", "2h", "120"),
            ("log.retention.hours", "1w", "168"),
        ] {
            assert_eq!(read(name, text), answer, "{name}={text}");
        }
    }

    #[test]
    fn wrong_units_are_refused_with_the_units_there_are() {
        for (name, text, words) in [
            ("retention.ms", "7days", "Unknown unit of time \"days\" (ms, s, m, h, d, w)"),
            ("segment.bytes", "7d", "Unknown unit of size \"d\""),
            ("log.retention.hours", "90s", "Not a whole number in the key's own unit"),
            ("segment.bytes", "1024GiB", "Not a number of type INT"),
            ("segment.bytes", "1.2.3MiB", "Not a number with at most nine decimals"),
            ("num.partitions", "3k", "Not a number of type INT"),
            ("retention.ms", "ms", "Not a number of type LONG"),
            ("retention.ms", "99999999999999999999d", "Not a number: "),
        ] {
            let answer = read(name, text);
            assert!(answer.contains(words), "{name}={text}: {answer}");
        }
    }
}

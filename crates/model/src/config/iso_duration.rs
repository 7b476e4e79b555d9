//! Spans of time of ISO 8601, as far as Java's `Duration.parse` reads them (`P1DT2H3M4.5S`).

/// Milliseconds of a span; `None` for what is no span or is negative. More than 63 bits of
/// milliseconds are no span either.
pub fn parse_iso_duration_ms(text: &str) -> Option<u64> {
    let text = text.to_ascii_uppercase();
    let (sign, body) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let body = body.strip_prefix('P')?;
    let (date, time) = match body.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (body, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let mut millis = 0_i128;
    let mut rest = date;
    if !rest.is_empty() {
        millis += take_whole(&mut rest, 'D')? * 86_400_000;
    }
    if !rest.is_empty() {
        return None;
    }
    rest = time;
    for (unit, factor) in [('H', 3_600_000), ('M', 60_000)] {
        if rest.contains(unit) {
            millis += take_whole(&mut rest, unit)? * factor;
        }
    }
    if !rest.is_empty() {
        millis += seconds(rest)?;
    }
    u64::try_from(millis * sign).ok().filter(|millis| i64::try_from(*millis).is_ok())
}

/// The number before `unit`, which is taken off with it.
fn take_whole(rest: &mut &str, unit: char) -> Option<i128> {
    let (number, after) = rest.split_once(unit)?;
    *rest = after;
    whole(number)
}

fn whole(text: &str) -> Option<i128> {
    text.parse::<i64>().ok().map(i128::from)
}

/// `12.345S`; what is finer than a millisecond is cut off.
fn seconds(text: &str) -> Option<i128> {
    let number = text.strip_suffix('S')?;
    let (whole_part, fraction) = number.split_once(['.', ',']).unwrap_or((number, ""));
    let digits = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return None;
    }
    let millis: i128 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = whole(whole_part)?;
    let sign = if whole_part.starts_with('-') { -1 } else { 1 };
    Some(seconds * 1_000 + sign * millis)
}

#[cfg(test)]
mod tests {
    use super::parse_iso_duration_ms;

    #[test]
    fn spans_are_read_as_java_reads_them() {
        for (text, millis) in [
            ("PT1H", Some(3_600_000)),
            ("pt1h", Some(3_600_000)),
            ("P1D", Some(86_400_000)),
            ("P1DT1M", Some(86_460_000)),
            ("PT1.5S", Some(1_500)),
            ("PT0.0019S", Some(1)),
            ("PT1H-1M", Some(3_540_000)),
            ("-PT-1H", Some(3_600_000)),
            ("PT0S", Some(0)),
            ("-PT1H", None),
            ("PT-1H", None),
            ("P", None),
            ("PT", None),
            ("P1DT", None),
            ("1H", None),
            ("PT1", None),
            ("PT1D", None),
            ("P1H", None),
            ("PT1M1H", None),
            ("PTxS", None),
            ("", None),
            ("P999999999999999D", None),
        ] {
            assert_eq!(parse_iso_duration_ms(text), millis, "{text}");
        }
    }
}

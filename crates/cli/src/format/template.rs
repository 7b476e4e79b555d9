//! The `%` templates that records are written and read with: kgo's, as rpk and kcl have them.

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Bytes as they are.
    Literal(Vec<u8>),
    /// A part of the record, in an encoding.
    Field(Field, Encoding),
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Topic,
    TopicLength,
    Partition,
    Offset,
    Timestamp,
    Key,
    KeyLength,
    Value,
    ValueLength,
    Headers,
    HeaderCount,
    Index,
}

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Hex,
    Base64,
}

/// The pieces of a template.
pub(super) fn parse(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, &mut literal)?,
            '%' => match rest.next() {
                Some('%') => literal.push(b'%'),
                Some(letter) => {
                    let field = field(letter)?;
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Field(field, encoding(&mut rest)?));
                }
                None => return Err("the template ends in a bare %".to_owned()),
            },
            other => literal.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

fn field(letter: char) -> Result<Field, String> {
    Ok(match letter {
        't' => Field::Topic,
        'T' => Field::TopicLength,
        'p' => Field::Partition,
        'o' => Field::Offset,
        'd' => Field::Timestamp,
        'k' => Field::Key,
        'K' => Field::KeyLength,
        // kcat says %s and %S.
        'v' | 's' => Field::Value,
        'V' | 'S' => Field::ValueLength,
        'h' => Field::Headers,
        'H' => Field::HeaderCount,
        'i' => Field::Index,
        other => return Err(format!("%{other} is no part of a record (t p o d k v h T K V H i)")),
    })
}

fn encoding(rest: &mut std::str::Chars<'_>) -> Result<Encoding, String> {
    let Some(inside) = rest.as_str().strip_prefix('{') else { return Ok(Encoding::Plain) };
    let (name, after) =
        inside.split_once('}').ok_or_else(|| "a { of the template has no }".to_owned())?;
    *rest = after.chars();
    match name {
        "" | "string" => Ok(Encoding::Plain),
        "hex" => Ok(Encoding::Hex),
        "base64" => Ok(Encoding::Base64),
        other => Err(format!("{{{other}}} is no encoding (hex, base64)")),
    }
}

fn escape(rest: &mut std::str::Chars<'_>, literal: &mut Vec<u8>) -> Result<(), String> {
    match rest.next() {
        Some('n') => literal.push(b'\n'),
        Some('t') => literal.push(b'\t'),
        Some('r') => literal.push(b'\r'),
        Some('0') => literal.push(0),
        Some('\\') => literal.push(b'\\'),
        Some('x') => {
            let digits: String = rest.by_ref().take(2).collect();
            let is_hex = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let byte = u8::from_str_radix(&digits, 16).ok().filter(|_| is_hex);
            literal.push(byte.ok_or_else(|| "\\x needs two hexadecimal digits".to_owned())?);
        }
        Some(other) => return Err(format!("\\{other} is no escape (\\n \\t \\r \\0 \\xNN \\\\)")),
        None => return Err("the template ends in a bare \\".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_read() {
        let literal = |text: &str| Piece::Literal(text.as_bytes().to_vec());
        assert_eq!(
            parse(r"%t-%p@%o %k{hex}=%v\n%%\x00").expect("good"),
            [
                Piece::Field(Field::Topic, Encoding::Plain),
                literal("-"),
                Piece::Field(Field::Partition, Encoding::Plain),
                literal("@"),
                Piece::Field(Field::Offset, Encoding::Plain),
                literal(" "),
                Piece::Field(Field::Key, Encoding::Hex),
                literal("="),
                Piece::Field(Field::Value, Encoding::Plain),
                literal("\n%\0"),
            ]
        );
    }

    #[test]
    fn wrong_templates_say_what_is_wrong() {
        for (text, words) in [
            ("%", "bare %"),
            ("%y", "%y is no part of a record"),
            ("\\", "bare \\"),
            ("\\q", "\\q is no escape"),
            ("\\xg0", "two hexadecimal digits"),
            ("%k{", "has no }"),
            ("%k{rot13}", "{rot13} is no encoding"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}

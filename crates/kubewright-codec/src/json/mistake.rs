//! The words of Go's JSON scanner (`encoding/json/scanner.go`).

/// Where a character was found that does not belong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Value,
    Key,
    AfterKey,
    AfterMember,
    AfterItem,
    AfterDocument,
    InString,
    InEscape,
    InUnicodeEscape,
    InNumber,
    AfterPoint,
    InExponent,
    /// In `true`, `false` or `null`, where this character was expected.
    InLiteral(&'static str, char),
    TooDeep,
}

/// The message about a byte in a place. The end of the text (`None`) is read as a space, as Go does: where a space may
/// stand, the text ended too early.
pub(super) fn unexpected(found: Option<u8>, place: Place) -> String {
    let byte = match (found, place) {
        (Some(byte), _) => byte,
        (
            None,
            Place::InEscape
            | Place::InUnicodeEscape
            | Place::InNumber
            | Place::AfterPoint
            | Place::InExponent
            | Place::InLiteral(..),
        ) => b' ',
        (None, _) => return "unexpected end of JSON input".to_owned(),
    };
    let place = match place {
        Place::Value => "looking for beginning of value",
        Place::Key => "looking for beginning of object key string",
        Place::AfterKey => "after object key",
        Place::AfterMember => "after object key:value pair",
        Place::AfterItem => "after array element",
        Place::AfterDocument => "after top-level value",
        Place::InString => "in string literal",
        Place::InEscape => "in string escape code",
        Place::InUnicodeEscape => "in \\u hexadecimal character escape",
        Place::InNumber => "in numeric literal",
        Place::AfterPoint => "after decimal point in numeric literal",
        Place::InExponent => "in exponent of numeric literal",
        Place::InLiteral(word, expected) => {
            return format!("invalid character {} in literal {word} (expecting '{expected}')", quoted(byte));
        }
        Place::TooDeep => "exceeded max depth",
    };
    format!("invalid character {} {place}", quoted(byte))
}

/// A byte as Go quotes the character of its number (`quoteChar`).
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x00..=0x1f | 0x7f => format!(r"'\x{byte:02x}'"),
        // What Unicode has there cannot be printed.
        0x80..=0xa0 | 0xad => format!(r"'\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

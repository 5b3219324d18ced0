//! The values of literals (cel-go's parser/unescape.go for strings).

use std::sync::Arc;

use super::ast::Literal;
use super::grammar::Kind;

/// The value of a literal token, or what is wrong with it.
pub(super) fn read(kind: Kind, negative: bool, text: &str) -> Result<Literal, &'static str> {
    Ok(match kind {
        Kind::True => Literal::Bool(true),
        Kind::False => Literal::Bool(false),
        Kind::Null => Literal::Null,
        Kind::Int => Literal::Int(int(negative, text).ok_or("invalid int literal")?),
        Kind::Uint => Literal::Uint(uint(&text[..text.len() - 1]).ok_or("invalid uint literal")?),
        Kind::Float => Literal::Double(double(negative, text).ok_or("invalid double literal")?),
        Kind::Bytes => Literal::Bytes(unquote(&text[1..], true)?.into()),
        _ => {
            let bytes = unquote(text, false)?;
            Literal::String(String::from_utf8(bytes).map(Arc::from).map_err(|_| UNREADABLE)?)
        }
    })
}

const UNREADABLE: &str = "unable to unescape string";

fn uint(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn int(negative: bool, text: &str) -> Option<i64> {
    let magnitude = i128::from(uint(text)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

fn double(negative: bool, text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(if negative { -value } else { value })
}

fn unquote(text: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (raw, quoted) = match text.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let long = quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""));
    let quote = if long { 3 } else { 1 };
    let content = quoted.get(quote..quoted.len().saturating_sub(quote)).ok_or(UNREADABLE)?;
    if raw || !content.contains('\\') {
        return Ok(content.as_bytes().to_vec());
    }
    unescape(content, bytes)
}

fn unescape(content: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(content.len());
    let mut rest = content.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.extend(character.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let escape = rest.next().ok_or("unable to unescape string, found '\\' as last character")?;
        if let Some(byte) = simple_escape(escape) {
            out.push(byte);
            continue;
        }
        let (digits, radix) = match escape {
            'x' | 'X' => (2, 16),
            'u' if !bytes => (4, 16),
            'U' if !bytes => (8, 16),
            '0'..='3' => (2, 8),
            _ => return Err(UNREADABLE),
        };
        let mut value = if radix == 8 { escape.to_digit(8).unwrap_or(0) } else { 0 };
        for _ in 0..digits {
            let digit = rest.next().and_then(|digit| digit.to_digit(radix)).ok_or(UNREADABLE)?;
            value = value.wrapping_mul(radix).wrapping_add(digit);
        }
        if bytes {
            out.extend(u8::try_from(value));
        } else {
            let character = char::from_u32(value).ok_or("invalid unicode code point")?;
            out.extend(character.encode_utf8(&mut [0; 4]).bytes());
        }
    }
    Ok(out)
}

/// What a backslash and one character stand for.
fn simple_escape(character: char) -> Option<u8> {
    Some(match character {
        'a' => 7,
        'b' => 8,
        't' => b'\t',
        'n' => b'\n',
        'v' => 11,
        'f' => 12,
        'r' => b'\r',
        '\\' => b'\\',
        '\'' => b'\'',
        '"' => b'"',
        '`' => b'`',
        '?' => b'?',
        _ => return None,
    })
}

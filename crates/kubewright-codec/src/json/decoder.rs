//! A recursive decoder from bytes to values.

use serde_json::{Map, Number, Value};

use super::mistake::{Place, unexpected};
use super::{Earlier, LEVELS, TOLD};

type Result<T> = std::result::Result<T, String>;

/// Decodes one text; `visit` is told of every member of every object before its value is read.
pub(super) struct Decoder<'a, V> {
    bytes: &'a [u8],
    at: usize,
    place: Vec<Step>,
    visit: V,
    earlier: Vec<Earlier>,
}

/// One step from the document to a value: the member whose key is at these bytes (quotes included), or an item.
#[derive(Clone, Copy)]
enum Step {
    Member { start: usize, end: usize },
    Item(usize),
}

/// A member of an object.
pub(super) struct Visited<'a> {
    bytes: &'a [u8],
    place: &'a [Step],
    /// Whether the object had a member of this name before.
    pub(super) again: bool,
}

impl Visited<'_> {
    /// Where it is, as strict validation names it: `spec.containers[0].name`.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for (at, step) in self.place.iter().enumerate() {
            match *step {
                Step::Item(index) => path.push_str(&format!("[{index}]")),
                Step::Member { start, end } => {
                    if at > 0 {
                        path.push('.');
                    }
                    let mut key = Decoder::new(&self.bytes[start..end], |_: Visited<'_>| {});
                    path.push_str(&key.string().unwrap_or_default());
                }
            }
        }
        path
    }

    /// Where it is, as a JSON pointer: `/spec/containers/0/name`.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in self.place {
            pointer.push('/');
            match *step {
                Step::Item(index) => pointer.push_str(&index.to_string()),
                Step::Member { start, end } => {
                    let mut key = Decoder::new(&self.bytes[start..end], |_: Visited<'_>| {});
                    let key = key.string().unwrap_or_default();
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
            }
        }
        pointer
    }
}

impl<'a, V: FnMut(Visited<'_>)> Decoder<'a, V> {
    pub(super) fn new(bytes: &'a [u8], visit: V) -> Self {
        Self { bytes, at: 0, place: Vec::new(), visit, earlier: Vec::new() }
    }

    /// The one value of the text, and the values of members that stood there before others of the same name.
    pub(super) fn document(mut self) -> Result<(Value, Vec<Earlier>)> {
        let value = self.value()?;
        match self.skip_space() {
            None => Ok((value, self.earlier)),
            found => Err(unexpected(found, Place::AfterDocument)),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next byte that is no space.
    fn skip_space(&mut self) -> Option<u8> {
        while let Some(byte) = self.peek() {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    fn value(&mut self) -> Result<Value> {
        match self.skip_space() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            found => Err(unexpected(found, Place::Value)),
        }
    }

    /// Steps over an opening bracket.
    fn enter(&mut self) -> Result<()> {
        if self.place.len() >= LEVELS {
            return Err(unexpected(self.peek(), Place::TooDeep));
        }
        self.at += 1;
        Ok(())
    }

    fn object(&mut self) -> Result<Value> {
        self.enter()?;
        let mut map = Map::new();
        if self.skip_space() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            let start = match self.skip_space() {
                Some(b'"') => self.at,
                found => return Err(unexpected(found, Place::Key)),
            };
            let key = self.string()?;
            self.place.push(Step::Member { start, end: self.at });
            let again = map.contains_key(&key);
            (self.visit)(Visited { bytes: self.bytes, place: &self.place, again });
            match self.skip_space() {
                Some(b':') => self.at += 1,
                found => return Err(unexpected(found, Place::AfterKey)),
            }
            let value = self.value()?;
            if let Some(earlier) = map.insert(key, value)
                && self.earlier.len() < TOLD
            {
                let pointer = Visited { bytes: self.bytes, place: &self.place, again }.pointer();
                self.earlier.push(Earlier { pointer, value: earlier });
            }
            self.place.pop();
            match self.skip_space() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                found => return Err(unexpected(found, Place::AfterMember)),
            }
        }
    }

    fn array(&mut self) -> Result<Value> {
        self.enter()?;
        let mut list = Vec::new();
        if self.skip_space() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(list));
        }
        loop {
            self.place.push(Step::Item(list.len()));
            list.push(self.value()?);
            self.place.pop();
            match self.skip_space() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(list));
                }
                found => return Err(unexpected(found, Place::AfterItem)),
            }
        }
    }

    fn literal(&mut self, word: &'static str, value: Value) -> Result<Value> {
        for expected in word.chars() {
            match self.peek() {
                Some(found) if char::from(found) == expected => self.at += 1,
                found => return Err(unexpected(found, Place::InLiteral(word, expected))),
            }
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            found => return Err(unexpected(found, Place::InNumber)),
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.some_digits(Place::AfterPoint)?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.some_digits(Place::InExponent)?;
        }
        // All of it is ASCII.
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        number(text, whole)
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, place: Place) -> Result<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(unexpected(self.peek(), place));
        }
        self.digits();
        Ok(())
    }

    /// A string literal, from its opening quote to behind its closing one.
    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            while matches!(self.peek(), Some(byte) if byte >= b' ' && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            push_utf8(&mut text, &self.bytes[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                found => return Err(unexpected(found, Place::InString)),
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Result<char> {
        let found = self.peek();
        self.at += 1;
        Ok(match found {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let unit = self.unicode_escape()?;
                self.code_point(unit)
            }
            found => return Err(unexpected(found, Place::InEscape)),
        })
    }

    fn unicode_escape(&mut self) -> Result<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Err(unexpected(self.peek(), Place::InUnicodeEscape)) };
            self.at += 1;
            unit = unit << 4 | digit;
        }
        Ok(unit)
    }

    /// The character of a code unit, with the second half of its pair where it has one.
    fn code_point(&mut self, unit: u32) -> char {
        if let Some(character) = char::from_u32(unit) {
            return character;
        }
        let before = self.at;
        if unit < 0xdc00 && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            if let Ok(low @ 0xdc00..=0xdfff) = self.unicode_escape() {
                let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
        }
        self.at = before;
        char::REPLACEMENT_CHARACTER
    }
}

/// Whole numbers stay whole as far as 64 bits go.
fn number(text: &str, whole: bool) -> Result<Value> {
    if whole {
        if let Ok(number) = text.parse::<i64>() {
            return Ok(number.into());
        }
        if let Ok(number) = text.parse::<u64>() {
            return Ok(number.into());
        }
    }
    let float = text.parse().ok().and_then(Number::from_f64);
    float
        .map(Value::Number)
        .ok_or_else(|| format!("json: cannot unmarshal number {text} into Go value of type float64"))
}

/// Appends bytes of a string; each one that is no UTF-8 becomes U+FFFD.
fn push_utf8(text: &mut String, bytes: &[u8]) {
    if let Ok(valid) = std::str::from_utf8(bytes) {
        return text.push_str(valid);
    }
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

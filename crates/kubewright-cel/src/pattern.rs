//! Go's syntax of regular expressions (`regexp/syntax`, `Perl` flags), read and said again for the `regex` crate: that of expressions
//! and of schemas.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use regex::Regex;

/// Classes that are known to be some: finding that out takes longer than reading a pattern.
static CLASSES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// How many of them are kept, and how long their names are at most: a class has more names than anybody needs.
const MOST_CLASSES: usize = 1000;
const LONGEST_CLASS: usize = 40;

/// The most that a repetition may repeat.
const MOST_REPEATS: u32 = 1000;
/// The deepest that groups may nest.
const DEEPEST: usize = 1000;

/// The expression as the `regex` crate understands it.
///
/// # Errors
/// What Go's parser says is wrong with it: `error parsing regexp: ...`.
pub fn translated(pattern: &str) -> Result<String, String> {
    let mut parser = Parser { whole: pattern, rest: pattern, out: String::new(), groups: 0 };
    parser.parse().map_err(|why| format!("error parsing regexp: {why}"))?;
    Ok(parser.out)
}

struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    groups: usize,
}

/// What stands before a repetition operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before<'a> {
    /// Nothing that can be repeated.
    Nothing,
    /// Something.
    Something,
    /// Something that is repeated already, by what begins here.
    Repeated(&'a str),
}

impl<'a> Parser<'a> {
    fn parse(&mut self) -> Result<(), String> {
        let mut before = Before::Nothing;
        while let Some(next) = self.rest.chars().next() {
            before = match next {
                '(' => self.open(before)?,
                ')' => self.close()?,
                '|' => {
                    self.take(1);
                    self.out.push('|');
                    Before::Nothing
                }
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    let start = self.rest;
                    self.take(1);
                    self.repeat(before, start, &next.to_string())?
                }
                '{' => self.counted(before)?,
                '\\' => self.escape()?,
                '^' | '$' | '.' => {
                    self.take(1);
                    self.out.push(next);
                    Before::Something
                }
                literal => {
                    self.take(literal.len_utf8());
                    self.literal(literal);
                    Before::Something
                }
            };
        }
        if self.groups > 0 { Err(format!("missing closing ): `{}`", self.whole)) } else { Ok(()) }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// What was read since `start`.
    fn since(&self, start: &'a str) -> &'a str {
        &start[..start.len() - self.rest.len()]
    }

    fn literal(&mut self, one: char) {
        self.out.push_str(&regex::escape(one.encode_utf8(&mut [0; 4])));
    }

    fn open(&mut self, before: Before<'a>) -> Result<Before<'a>, String> {
        self.groups += 1;
        if self.groups > DEEPEST {
            return Err(format!("expression nests too deeply: `{}`", self.whole));
        }
        if !self.rest.starts_with("(?") {
            self.take(1);
            self.out.push('(');
            return Ok(Before::Nothing);
        }
        let name = self.rest.strip_prefix("(?P<").or_else(|| self.rest.strip_prefix("(?<"));
        match name {
            Some(name) => self.named(name),
            None => self.flags(before),
        }
    }

    fn named(&mut self, name: &'a str) -> Result<Before<'a>, String> {
        let begin = self.rest.len() - name.len();
        let Some(end) = name.find('>') else {
            return Err(format!("invalid named capture: `{}`", self.rest));
        };
        let group = self.take(begin + end + 1);
        let name = &name[..end];
        let plain = !name.is_empty() && name.chars().all(|one| one == '_' || one.is_ascii_alphanumeric());
        if !plain {
            return Err(format!("invalid named capture: `{group}`"));
        }
        // Nobody asks for what has a name, and several may have the same.
        self.out.push('(');
        Ok(Before::Nothing)
    }

    fn flags(&mut self, before: Before<'a>) -> Result<Before<'a>, String> {
        let start = self.rest;
        self.take(2);
        let (mut negated, mut said) = (false, false);
        while let Some(one) = self.rest.chars().next() {
            self.take(one.len_utf8());
            match one {
                'i' | 'm' | 's' | 'U' => said = true,
                '-' if !negated => (negated, said) = (true, false),
                ':' | ')' if !negated || said => {
                    let group = self.since(start);
                    if one == ')' {
                        self.groups -= 1;
                    }
                    // Go takes `(?)` for nothing: what stands before it can be repeated after it, and once more.
                    if group == "(?)" {
                        let is_some = before != Before::Nothing;
                        return Ok(if is_some { Before::Something } else { Before::Nothing });
                    }
                    self.out.push_str(group);
                    return Ok(Before::Nothing);
                }
                _ => return Err(format!("invalid or unsupported Perl syntax: `{}`", self.since(start))),
            }
        }
        Err(format!("missing closing ): `{}`", self.whole))
    }

    fn close(&mut self) -> Result<Before<'a>, String> {
        if self.groups == 0 {
            return Err(format!("unexpected ): `{}`", self.whole));
        }
        self.groups -= 1;
        self.take(1);
        self.out.push(')');
        Ok(Before::Something)
    }

    /// A repetition operator was read, which began at `start`.
    fn repeat(&mut self, before: Before<'a>, start: &'a str, operator: &str) -> Result<Before<'a>, String> {
        let lazy = self.rest.starts_with('?');
        if lazy {
            self.take(1);
        }
        match before {
            Before::Nothing => {
                Err(format!("missing argument to repetition operator: `{}`", self.since(start)))
            }
            Before::Repeated(first) => {
                Err(format!("invalid nested repetition operator: `{}`", self.since(first)))
            }
            Before::Something => {
                self.out.push_str(operator);
                if lazy {
                    self.out.push('?');
                }
                Ok(Before::Repeated(start))
            }
        }
    }

    fn counted(&mut self, before: Before<'a>) -> Result<Before<'a>, String> {
        let start = self.rest;
        let inside = start[1..].split_once('}').map(|(inside, _)| inside);
        let Some((least, most)) = inside.and_then(counts) else {
            self.take(1);
            self.literal('{');
            return Ok(Before::Something);
        };
        let operator = self.take(inside.map_or(0, str::len) + 2);
        let fits = |count: u32| count <= MOST_REPEATS;
        if !fits(least) || most.is_some_and(|most| !fits(most) || most < least) {
            return Err(format!("invalid repeat count: `{operator}`"));
        }
        self.repeat(before, start, operator)
    }

    fn escape(&mut self) -> Result<Before<'a>, String> {
        let start = self.rest;
        let known = match start[1..].chars().next() {
            Some('A') => "\\A",
            Some('z') => "\\z",
            Some('b') => "(?-u:\\b)",
            Some('B') => "(?-u:\\B)",
            Some('C') => return Err("invalid escape sequence: `\\C`".to_owned()),
            Some('Q') => {
                self.take(2);
                let quoted = self.rest.split("\\E").next().unwrap_or_default();
                let whole = quoted.len() + if quoted.len() < self.rest.len() { 2 } else { 0 };
                self.take(whole);
                quoted.chars().for_each(|one| self.literal(one));
                return Ok(if quoted.is_empty() { Before::Nothing } else { Before::Something });
            }
            _ => {
                if !self.named_class(false)? {
                    let one = self.escaped()?;
                    self.literal(one);
                }
                return Ok(Before::Something);
            }
        };
        self.take(2);
        self.out.push_str(known);
        Ok(Before::Something)
    }

    /// `\d` and its kin, or `\p{...}`, when that is what comes.
    fn named_class(&mut self, in_brackets: bool) -> Result<bool, String> {
        let start = self.rest;
        let (class, negated) = match start[1..].chars().next() {
            Some('d' | 'D') => ("0-9", 'D'),
            Some('w' | 'W') => ("0-9A-Za-z_", 'W'),
            Some('s' | 'S') => ("\\t\\n\\f\\r ", 'S'),
            Some('p' | 'P') => return self.unicode_class().map(|()| true),
            _ => return Ok(false),
        };
        let taken = self.take(2);
        let text = match (taken.ends_with(negated), in_brackets) {
            (false, true) => class.to_owned(),
            (false, false) => format!("[{class}]"),
            (true, _) => format!("[^{class}]"),
        };
        self.out.push_str(&text);
        Ok(true)
    }

    fn unicode_class(&mut self) -> Result<(), String> {
        let start = self.rest;
        let mut negated = self.take(2).ends_with('P');
        let name = if let Some(inside) = self.rest.strip_prefix('{') {
            let Some(end) = inside.find('}') else {
                return Err(format!("invalid character class range: `{start}`"));
            };
            self.take(end + 2);
            &inside[..end]
        } else {
            let length = self.rest.chars().next().map_or(0, char::len_utf8);
            self.take(length)
        };
        let bare = name.strip_prefix('^').unwrap_or(name);
        negated ^= bare.len() < name.len();
        let class = format!("\\{}{{{bare}}}", if negated { 'P' } else { 'p' });
        if !bare.chars().all(|one| one == '_' || one.is_ascii_alphanumeric()) || !is_class(&class) {
            return Err(format!("invalid character class range: `{}`", self.since(start)));
        }
        self.out.push_str(&class);
        Ok(())
    }

    /// The character that an escape means.
    fn escaped(&mut self) -> Result<char, String> {
        let start = self.rest;
        self.take(1);
        let Some(one) = self.rest.chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        self.take(one.len_utf8());
        let found = match one {
            '0'..='7' if one == '0' || self.rest.starts_with(|next| ('0'..='7').contains(&next)) => {
                let more = self.rest.bytes().take(2).take_while(|next| (b'0'..=b'7').contains(next)).count();
                let digits = format!("{one}{}", self.take(more));
                u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32)
            }
            'x' => self.hexadecimal(),
            'a' => Some('\x07'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\x0b'),
            sign if sign.is_ascii() && !sign.is_ascii_alphanumeric() => Some(sign),
            _ => None,
        };
        found.ok_or_else(|| format!("invalid escape sequence: `{}`", self.since(start)))
    }

    fn hexadecimal(&mut self) -> Option<char> {
        let digits = if self.rest.starts_with('{') {
            let end = self.rest.find('}')?;
            let inside = self.take(end + 1);
            &inside[1..end]
        } else {
            let length = self.rest.bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
            Some(self.take(length)).filter(|digits| digits.len() == 2)?
        };
        u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
    }

    fn class(&mut self) -> Result<Before<'a>, String> {
        let start = self.rest;
        self.take(1);
        self.out.push('[');
        if self.rest.starts_with('^') {
            self.take(1);
            self.out.push('^');
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            if self.rest.starts_with("[:")
                && let Some(end) = self.rest.find(":]")
            {
                self.posix_class(end)?;
            } else if !(self.rest.starts_with('\\') && self.named_class(true)?) {
                self.range(start)?;
            }
        }
        self.take(1);
        self.out.push(']');
        Ok(Before::Something)
    }

    fn posix_class(&mut self, end: usize) -> Result<(), String> {
        let class = self.take(end + 2);
        if !is_class(&format!("[{class}]")) {
            return Err(format!("invalid character class range: `{class}`"));
        }
        self.out.push_str(class);
        Ok(())
    }

    fn range(&mut self, class: &str) -> Result<(), String> {
        let start = self.rest;
        let low = self.class_character(class)?;
        self.class_literal(low);
        let ranges = self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.rest.len() > 1;
        if ranges {
            self.take(1);
            let high = self.class_character(class)?;
            if high < low {
                return Err(format!("invalid character class range: `{}`", self.since(start)));
            }
            self.out.push('-');
            self.class_literal(high);
        }
        Ok(())
    }

    fn class_character(&mut self, class: &str) -> Result<char, String> {
        match self.rest.chars().next() {
            None => Err(format!("missing closing ]: `{class}`")),
            Some('\\') => self.escaped(),
            Some(one) => {
                self.take(one.len_utf8());
                Ok(one)
            }
        }
    }

    fn class_literal(&mut self, one: char) {
        self.out.push_str(&format!("\\x{{{:X}}}", u32::from(one)));
    }
}

/// Whether a class is one.
fn is_class(class: &str) -> bool {
    let known = || CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    if known().contains(class) {
        return true;
    }
    let is_class = Regex::new(class).is_ok();
    let mut known = known();
    if is_class && class.len() <= LONGEST_CLASS && known.len() < MOST_CLASSES {
        known.insert(class.to_owned());
    }
    is_class
}

/// The counts of `{n}`, `{n,}` and `{n,m}`; nothing else counts.
fn counts(inside: &str) -> Option<(u32, Option<u32>)> {
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|one| one.is_ascii_digit());
        let counts = plain && (digits == "0" || !digits.starts_with('0'));
        counts.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    match inside.split_once(',') {
        None => number(inside).map(|exactly| (exactly, Some(exactly))),
        Some((least, "")) => number(least).map(|least| (least, None)),
        Some((least, most)) => Some((number(least)?, Some(number(most)?))),
    }
}

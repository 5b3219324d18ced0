//! The file of `--token-auth-file`: a line for each token, in CSV
//! (`k8s.io/apiserver/pkg/authentication/token/tokenfile`, and Go's `encoding/csv`).

use std::collections::BTreeMap;

use super::{Secret, User};

/// Why a file tells no tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    /// A line of too few columns.
    #[error("token file '{path}' must have at least 3 columns (token, user name, user uid), found {found}")]
    Columns {
        /// The file.
        path: String,
        /// How many columns there are.
        found: usize,
    },
    /// A quote where none may stand.
    #[error("parse error on line {line}, column {column}: bare \" in non-quoted-field")]
    BareQuote {
        /// From 1 on.
        line: usize,
        /// In bytes, from 1 on.
        column: usize,
    },
    /// A quoted column goes on after its end, or has none.
    #[error("{}parse error on line {line}, column {column}: extraneous or missing \" in quoted-field", record_on(*.record, *.line))]
    Quote {
        /// Where the record began.
        record: usize,
        /// From 1 on.
        line: usize,
        /// In bytes, from 1 on.
        column: usize,
    },
}

fn record_on(record: usize, line: usize) -> String {
    if record == line { String::new() } else { format!("record on line {record}; ") }
}

/// The tokens in a text: `token,user,uid` and, if there are any, `"group1,group2"`. Records without a token are skipped;
/// of several for one token the last one counts. `path` is for the error.
///
/// # Errors
/// When it is no CSV, or a record has less than three columns.
pub fn parse(text: &str, path: &str) -> Result<Vec<(Secret, User)>, TokenFileError> {
    let mut tokens: BTreeMap<String, User> = BTreeMap::new();
    let mut reader = Reader { lines: text.split_inclusive('\n').enumerate() };
    while let Some(record) = reader.record() {
        let record = record?;
        let [token, name, uid, more @ ..] = record.as_slice() else {
            return Err(TokenFileError::Columns { path: path.to_owned(), found: record.len() });
        };
        if token.is_empty() {
            tracing::warn!(path, "a record of the token file has an empty token");
            continue;
        }
        let groups = more.first().map(|groups| groups.split(',')).into_iter().flatten();
        let user = User { uid: uid.clone(), ..User::new(name, groups) };
        if tokens.insert(token.clone(), user).is_some() {
            tracing::warn!(path, "a token is in the token file more than once");
        }
    }
    Ok(tokens.into_iter().map(|(token, user)| (Secret::of(token), user)).collect())
}

/// Reads records of CSV as Go does.
struct Reader<'a, L: Iterator<Item = (usize, &'a str)>> {
    lines: L,
}

impl<'a, L: Iterator<Item = (usize, &'a str)>> Reader<'a, L> {
    fn line(&mut self) -> Option<(usize, String)> {
        let (index, line) = self.lines.next()?;
        // A line's end is a line feed, whatever the file has.
        let line = line.strip_suffix("\r\n").map_or_else(|| line.to_owned(), |line| format!("{line}\n"));
        Some((index + 1, line))
    }

    fn record(&mut self) -> Option<Result<Vec<String>, TokenFileError>> {
        loop {
            let (number, line) = self.line()?;
            if line != "\n" {
                return Some(self.fields(number, line));
            }
        }
    }

    fn fields(&mut self, record: usize, mut line: String) -> Result<Vec<String>, TokenFileError> {
        let mut fields = Vec::new();
        let (mut number, mut at) = (record, 0);
        loop {
            let rest = &line[at..];
            if !rest.starts_with('"') {
                let end = rest.find(',').unwrap_or(rest.len());
                let field = rest[..end].trim_end_matches('\n');
                if let Some(quote) = field.find('"') {
                    return Err(TokenFileError::BareQuote { line: number, column: at + quote + 1 });
                }
                fields.push(field.to_owned());
                if end == rest.len() {
                    return Ok(fields);
                }
                at += end + 1;
                continue;
            }
            at += 1;
            let mut field = String::new();
            loop {
                let rest = &line[at..];
                let Some(quote) = rest.find('"') else {
                    field.push_str(rest);
                    match self.line() {
                        Some(next) => (number, line) = next,
                        None => {
                            let column = line.len() + 1;
                            return Err(TokenFileError::Quote { record, line: number, column });
                        }
                    }
                    at = 0;
                    continue;
                };
                field.push_str(&rest[..quote]);
                at += quote + 1;
                match line.as_bytes().get(at) {
                    Some(b'"') => field.push('"'),
                    Some(b',') => break,
                    None | Some(b'\n') => {
                        fields.push(field);
                        return Ok(fields);
                    }
                    Some(_) => return Err(TokenFileError::Quote { record, line: number, column: at }),
                }
                at += 1;
            }
            fields.push(field);
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests;

//! What is expected next, and how to go on after an error: as ANTLR's default error strategy does it, since its messages are
//! what a client sees.
//!
//! A rule of the grammar that fails reports one error, skips to something that may follow one of the rules around it, and
//! returns. Until a token fits again nothing more is reported.

use super::ast::Offset;
use super::grammar::{Kind, Set};
use super::lexer::{Source, Token, Unknown, escape_white_space};
use crate::error::Issue;

/// How often the parser tries to go on.
const RECOVERY_ATTEMPTS: u32 = 30;
/// How many syntax errors are reported.
const REPORTED_ERRORS: u32 = 100;
/// How many characters that are in no token are reported: as many as are shown.
const MOST_UNKNOWN: usize = 100;

/// The tokens, and what the rules that are under way allow next.
pub(crate) struct Cursor<'s> {
    pub(crate) source: &'s Source,
    issues: Vec<Issue>,
    tokens: Vec<Token>,
    /// What is no token.
    unknown: Vec<Unknown>,
    position: usize,
    /// What may follow each rule that is under way, within the rule that called it.
    follow: Vec<Set>,
    recovering: bool,
    attempts: u32,
    reported: u32,
    /// Where the last error was, and in which places of the grammar: the same one again must make progress.
    last_error: Option<(usize, u64)>,
    /// Parsing has ended for good.
    pub(crate) stopped: bool,
}

/// A rule cannot go on; it is about to recover.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed;

/// A place in the grammar where an error can be found.
pub(crate) type Place = u8;

impl<'s> Cursor<'s> {
    pub(crate) fn new(source: &'s Source, tokens: Vec<Token>, unknown: Vec<Unknown>) -> Self {
        Self {
            source,
            issues: Vec::new(),
            tokens,
            unknown,
            position: 0,
            follow: Vec::new(),
            recovering: false,
            attempts: 0,
            reported: 0,
            last_error: None,
            stopped: false,
        }
    }

    /// All that was found wrong.
    pub(crate) fn issues(self) -> Vec<Issue> {
        let mut issues: Vec<Issue> =
            self.unknown.into_iter().map(|(_, issue)| issue).take(MOST_UNKNOWN).collect();
        issues.extend(self.issues);
        issues
    }

    pub(crate) fn peek(&self) -> Kind {
        self.ahead(0).kind
    }

    /// The token that stands so many behind the current one; the last is the end.
    pub(crate) fn ahead(&self, distance: usize) -> Token {
        let index = (self.position + distance).min(self.tokens.len() - 1);
        self.tokens[index]
    }

    pub(crate) fn offset(&self) -> Offset {
        self.ahead(0).start
    }

    fn consume(&mut self) -> Token {
        let token = self.ahead(0);
        if token.kind != Kind::Eof {
            self.position += 1;
        }
        token
    }

    /// Calls a rule, behind which `follow` may stand.
    pub(crate) fn enter(&mut self, follow: Set) {
        self.follow.push(follow);
    }

    pub(crate) fn leave(&mut self) {
        self.follow.pop();
    }

    /// Takes the token; it is known to fit.
    pub(crate) fn take(&mut self) -> Token {
        self.recovering = false;
        self.last_error = None;
        self.consume()
    }

    /// Takes a token of this kind. One that is too many is skipped, one that is missing is made up, if that helps: `after` is
    /// what may stand behind it.
    pub(crate) fn expect(&mut self, kind: Kind, after: Set) -> Result<Token, Failed> {
        if self.peek() == kind {
            return Ok(self.take());
        }
        self.count_attempt()?;
        let expected = self.expected(Set::of(&[kind]));
        if expected.has(self.ahead(1).kind) {
            self.report_unwanted(expected);
            self.consume();
            return Ok(self.take());
        }
        if self.expected(after).has(self.peek()) {
            let message = format!("missing {expected} at {}", self.display(self.ahead(0)));
            self.report(self.offset(), &message);
            let here = self.offset();
            return Ok(Token { kind, start: here, end: here });
        }
        self.report_mismatch(expected);
        Err(Failed)
    }

    /// Looks whether what comes fits before a choice. A token that is too many is skipped.
    pub(crate) fn sync(&mut self, possible: Set) -> Result<(), Failed> {
        if self.recovering || self.stopped || possible.can_end() || possible.has(self.peek()) {
            return Ok(());
        }
        let expected = self.expected(possible);
        if expected.has(self.ahead(1).kind) {
            self.report_unwanted(expected);
            self.consume();
            self.recovering = false;
            self.last_error = None;
            return Ok(());
        }
        self.report_mismatch(expected);
        Err(Failed)
    }

    /// Looks whether what comes fits behind a round of a loop; if not, skips to what does.
    pub(crate) fn sync_loop(&mut self, possible: Set) {
        if self.recovering || self.stopped || possible.can_end() || possible.has(self.peek()) {
            return;
        }
        let expected = self.expected(possible);
        self.report_unwanted(expected);
        self.skip_to(expected.or(self.recovery_set()));
    }

    /// No alternative fits what stands between the current token and the one `distance` behind it.
    pub(crate) fn no_alternative(&mut self, distance: usize) -> Failed {
        let first = self.ahead(0);
        let offending = self.ahead(distance);
        let text = match first.kind {
            Kind::Eof => "<EOF>".to_owned(),
            _ => self.text(first.start, offending.end),
        };
        let mut behind_first = text.chars();
        behind_first.next();
        let message = match behind_first.as_str() {
            word @ ("true" | "false" | "null") => format!("mismatched input '{word}' expecting IDENTIFIER"),
            _ => format!("no viable alternative at input '{}'", escape_white_space(&text)),
        };
        self.report(offending.start, &message);
        Failed
    }

    /// The text of the tokens in a range, and what white space is between them.
    fn text(&self, start: Offset, end: Offset) -> String {
        let mut text = String::new();
        let mut from = start;
        for (unknown, _) in
            self.unknown.iter().filter(|(unknown, _)| unknown.start >= start && unknown.end <= end)
        {
            text.push_str(&self.source.slice(from, unknown.start));
            from = unknown.end;
        }
        text + &self.source.slice(from, end)
    }

    /// Goes on after a rule failed at `place`: skips to what may follow.
    pub(crate) fn recover(&mut self, place: Place) {
        if self.count_attempt().is_err() {
            return;
        }
        let bit = 1_u64 << (place % 64);
        let places = match self.last_error {
            Some((position, places)) if position == self.position => {
                if places & bit != 0 {
                    self.consume();
                }
                places
            }
            Some((_, places)) => places,
            None => 0,
        };
        self.last_error = Some((self.position, places | bit));
        self.skip_to(self.recovery_set());
    }

    /// Ends parsing with an error that has no place.
    pub(crate) fn stop(&mut self, message: String) {
        if !self.stopped {
            self.issues.push(Issue { line: -1, column: -1, message });
        }
        self.give_up();
    }

    fn give_up(&mut self) {
        // What stands behind the next token has not been looked at.
        let horizon = self.ahead(1).start;
        self.unknown.retain(|(at, _)| at.start < horizon);
        self.stopped = true;
        self.recovering = true;
        self.position = self.tokens.len() - 1;
    }

    fn count_attempt(&mut self) -> Result<(), Failed> {
        if self.stopped {
            return Err(Failed);
        }
        if self.attempts == RECOVERY_ATTEMPTS {
            let message = format!("error recovery attempt limit exceeded: {RECOVERY_ATTEMPTS}");
            self.notify(self.offset(), &message);
            self.give_up();
            return Err(Failed);
        }
        self.attempts += 1;
        Ok(())
    }

    /// What may come: `possible`, and where the rule may end there, what may follow it.
    fn expected(&self, possible: Set) -> Set {
        let mut expected = possible;
        for follow in self.follow.iter().rev() {
            if !expected.can_end() {
                return expected;
            }
            expected = expected.without_end().or(*follow);
        }
        expected.without_end()
    }

    /// What may follow any of the rules that are under way.
    fn recovery_set(&self) -> Set {
        self.follow.iter().fold(Set::NONE, |all, follow| all.or(*follow)).without_end()
    }

    fn skip_to(&mut self, set: Set) {
        while self.peek() != Kind::Eof && !set.has(self.peek()) {
            self.consume();
        }
    }

    fn display(&self, token: Token) -> String {
        match token.kind {
            Kind::Eof => "'<EOF>'".to_owned(),
            _ => format!("'{}'", escape_white_space(&self.source.slice(token.start, token.end))),
        }
    }

    fn report_unwanted(&mut self, expected: Set) {
        let message = format!("extraneous input {} expecting {expected}", self.display(self.ahead(0)));
        self.report(self.offset(), &message);
    }

    fn report_mismatch(&mut self, expected: Set) {
        let message = format!("mismatched input {} expecting {expected}", self.display(self.ahead(0)));
        self.report(self.offset(), &message);
    }

    fn report(&mut self, at: Offset, message: &str) {
        if !self.recovering && !self.stopped {
            self.recovering = true;
            self.notify(at, message);
        }
    }

    fn notify(&mut self, at: Offset, message: &str) {
        if self.reported >= REPORTED_ERRORS {
            let message = format!("Syntax error: More than {REPORTED_ERRORS} syntax errors");
            self.issues.push(self.source.issue(at, message));
            self.give_up();
            return;
        }
        self.reported += 1;
        self.issues.push(self.source.issue(at, format!("Syntax error: {message}")));
    }
}

//! The scripts of a shell that can be understood without running one: commands that wait, print, write files and end, in
//! sequences of `;`, `&&` and `||`, and `while true; do …; done`. Whatever else a script has, such as variables, pipes and
//! patterns, makes it unknown as a whole.

use std::iter::Peekable;
use std::str::Chars;
use std::time::Duration;

use super::{Cycle, Printed, Program, Stop};

/// Programs end at this depth of loops in loops.
const DEEPEST: usize = 8;
/// `sleep infinity`, and what is as good as it.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What a script does; `None` where it cannot be known.
pub(super) fn run(script: &str, stops_at_error: bool, message_path: &str) -> Option<Program> {
    let tokens = tokens(script)?;
    let mut parser = Parser { tokens: &tokens, depth: 0 };
    let list = parser.list(false)?;
    if !parser.tokens.is_empty() || list.is_empty() {
        return None;
    }
    let mut shell = Shell { stops_at_error, ..Shell::new(message_path) };
    let flow = shell.list(&list)?;
    Some(shell.finish(flow))
}

/// What one command does that is started without a shell.
pub(super) fn command(name: &str, args: &[&str], message_path: &str) -> Option<Program> {
    // These two are of the shell itself.
    if matches!(name, "exit" | ":") {
        return None;
    }
    let words = std::iter::once(name).chain(args.iter().copied()).map(str::to_owned).collect();
    let mut shell = Shell::new(message_path);
    let flow = shell.simple(&Simple { words, redirections: Vec::new() })?;
    Some(shell.finish(flow))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A word, and whether it was written without quotes, as words of the grammar are.
    Word(String, bool),
    Separator,
    And,
    Or,
    /// `>` or `>>`: of which output, and whether it adds.
    Redirect {
        output: u8,
        adds: bool,
    },
}

/// The words and signs of a script; `None` when it has one that is not understood.
fn tokens(script: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut word: Option<(String, bool)> = None;
    let mut letters = script.chars().peekable();
    let end = |word: &mut Option<(String, bool)>, tokens: &mut Vec<Token>| {
        tokens.extend(word.take().map(|(text, is_plain)| Token::Word(text, is_plain)));
    };
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\r' => end(&mut word, &mut tokens),
            ';' | '\n' => {
                end(&mut word, &mut tokens);
                tokens.push(Token::Separator);
            }
            '&' if letters.next_if_eq(&'&').is_some() => {
                end(&mut word, &mut tokens);
                tokens.push(Token::And);
            }
            '|' if letters.next_if_eq(&'|').is_some() => {
                end(&mut word, &mut tokens);
                tokens.push(Token::Or);
            }
            '>' => {
                let output = match word.take() {
                    Some((number, true)) if number == "1" || number == "2" => number.parse().ok()?,
                    other => {
                        word = other;
                        end(&mut word, &mut tokens);
                        1
                    }
                };
                let adds = letters.next_if_eq(&'>').is_some();
                tokens.push(Token::Redirect { output, adds });
                if letters.next_if_eq(&'&').is_some() {
                    word = Some(("&".to_owned(), true));
                }
            }
            '#' if word.is_none() => while letters.next_if(|letter| *letter != '\n').is_some() {},
            '\'' | '"' | '\\' => {
                if letter == '\\' && letters.next_if_eq(&'\n').is_some() {
                    continue;
                }
                let (text, is_plain) = word.get_or_insert_with(|| (String::new(), false));
                *is_plain = false;
                quoted(letter, &mut letters, text)?;
            }
            '$' | '`' | '|' | '&' | '<' | '(' | ')' | '{' | '}' | '*' | '?' | '[' | ']' | '!' | '~' => {
                return None;
            }
            letter => word.get_or_insert_with(|| (String::new(), true)).0.push(letter),
        }
    }
    end(&mut word, &mut tokens);
    Some(tokens)
}

/// Adds what is quoted to a word: up to the quote's end, or one letter after a backslash.
fn quoted(quote: char, letters: &mut Peekable<Chars<'_>>, text: &mut String) -> Option<()> {
    if quote == '\\' {
        text.push(letters.next()?);
        return Some(());
    }
    loop {
        match letters.next()? {
            end if end == quote => return Some(()),
            letter if quote == '\'' => text.push(letter),
            '$' | '`' => return None,
            '\\' => match letters.next()? {
                '\n' => {}
                letter @ ('$' | '`' | '"' | '\\') => text.push(letter),
                letter => text.extend(['\\', letter]),
            },
            letter => text.push(letter),
        }
    }
}

/// When a command of a list is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    AfterSuccess,
    AfterFailure,
}

#[derive(Debug)]
enum Command {
    Simple(Simple),
    /// `while true; do …; done`
    Forever(Vec<(When, Command)>),
}

#[derive(Debug)]
struct Simple {
    words: Vec<String>,
    redirections: Vec<Redirection>,
}

#[derive(Debug)]
struct Redirection {
    output: u8,
    adds: bool,
    to: String,
}

struct Parser<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Parser<'_> {
    fn next_is(&self, keyword: &str) -> bool {
        matches!(self.tokens.first(), Some(Token::Word(word, true)) if word == keyword)
    }

    fn expect(&mut self, keyword: &str) -> Option<()> {
        self.next_is(keyword).then(|| self.tokens = &self.tokens[1..])
    }

    fn skip_separators(&mut self) {
        while let [Token::Separator, rest @ ..] = self.tokens {
            self.tokens = rest;
        }
    }

    /// Commands up to the end, or up to the `done` of the loop that they are in.
    fn list(&mut self, in_loop: bool) -> Option<Vec<(When, Command)>> {
        let mut list = Vec::new();
        let mut when = When::Always;
        loop {
            self.skip_separators();
            if self.tokens.is_empty() || (in_loop && self.next_is("done")) {
                return (when == When::Always).then_some(list);
            }
            list.push((when, self.command()?));
            when = match self.tokens.first() {
                Some(Token::And) => When::AfterSuccess,
                Some(Token::Or) => When::AfterFailure,
                Some(Token::Separator) => When::Always,
                Some(_) => return None,
                None => return Some(list),
            };
            self.tokens = &self.tokens[1..];
        }
    }

    fn command(&mut self) -> Option<Command> {
        if self.next_is("while") {
            return self.forever();
        }
        let (mut words, mut redirections) = (Vec::new(), Vec::new());
        loop {
            match self.tokens {
                [Token::Redirect { output, adds }, Token::Word(to, _), rest @ ..] => {
                    redirections.push(Redirection { output: *output, adds: *adds, to: to.clone() });
                    self.tokens = rest;
                }
                [Token::Redirect { .. }, ..] => return None,
                [Token::Word(word, _), rest @ ..] => {
                    words.push(word.clone());
                    self.tokens = rest;
                }
                _ => break,
            }
        }
        (!words.is_empty()).then_some(Command::Simple(Simple { words, redirections }))
    }

    fn forever(&mut self) -> Option<Command> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        self.expect("while")?;
        self.expect("true").or_else(|| self.expect(":"))?;
        self.skip_separators();
        self.expect("do")?;
        let body = self.list(true)?;
        self.expect("done")?;
        self.depth -= 1;
        (!body.is_empty()).then_some(Command::Forever(body))
    }
}

/// How it goes on after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// With the next one; the last one ended with this code.
    Next(i32),
    /// The shell has ended.
    Ended(i32),
    /// Never: it is in a loop or asleep for good.
    Never,
}

/// A shell that is at some moment of its script.
struct Shell<'a> {
    message_path: &'a str,
    stops_at_error: bool,
    now: Duration,
    output: Vec<Printed>,
    cycle: Option<Cycle>,
    message: String,
}

impl<'a> Shell<'a> {
    fn new(message_path: &'a str) -> Self {
        Self {
            message_path,
            stops_at_error: false,
            now: Duration::ZERO,
            output: Vec::new(),
            cycle: None,
            message: String::new(),
        }
    }

    fn finish(self, flow: Flow) -> Program {
        let end = match flow {
            Flow::Next(code) | Flow::Ended(code) => Some((self.now, code)),
            Flow::Never => None,
        };
        Program {
            output: Some(self.output),
            cycle: self.cycle,
            end,
            message: self.message,
            stop: Stop::GoesOn,
        }
    }

    fn list(&mut self, list: &[(When, Command)]) -> Option<Flow> {
        let mut code = 0;
        for (index, (when, command)) in list.iter().enumerate() {
            let is_run = match when {
                When::Always => true,
                When::AfterSuccess => code == 0,
                When::AfterFailure => code != 0,
            };
            if !is_run {
                continue;
            }
            let flow = match command {
                Command::Simple(simple) => self.simple(simple)?,
                Command::Forever(body) => self.forever(body)?,
            };
            let Flow::Next(ended) = flow else { return Some(flow) };
            code = ended;
            // What is looked at by `&&` or `||` may fail.
            let is_last = list.get(index + 1).is_none_or(|(next, _)| *next == When::Always);
            if self.stops_at_error && code != 0 && is_last {
                return Some(Flow::Ended(code));
            }
        }
        Some(Flow::Next(code))
    }

    fn forever(&mut self, body: &[(When, Command)]) -> Option<Flow> {
        let from = self.now;
        match self.list(body)? {
            // One that never waits would print without end.
            Flow::Next(_) if self.now == from => None,
            Flow::Next(_) => {
                self.cycle = Some(Cycle { from, every: self.now.saturating_sub(from) });
                Some(Flow::Never)
            }
            other => Some(other),
        }
    }

    fn simple(&mut self, simple: &Simple) -> Option<Flow> {
        let words: Vec<&str> = simple.words.iter().map(String::as_str).collect();
        let (name, args) = words.split_first()?;
        let name = name.rsplit('/').next()?;
        let printed = match (name, args) {
            ("true" | ":", _) => return self.quiet(simple, 0),
            ("false", _) => return self.quiet(simple, 1),
            ("touch" | "mkdir", _) => return self.quiet(simple, 0),
            ("exit", []) => return Some(Flow::Ended(0)),
            ("exit", [code]) => return Some(Flow::Ended(i32::from(code.parse::<u8>().ok()?))),
            ("sleep", times) if !times.is_empty() => return self.sleep(times),
            ("echo", args) => echo(args),
            ("printf", [format]) if !format.contains('%') => unescaped(format)?,
            _ => return None,
        };
        self.print(printed, &simple.redirections)?;
        Some(Flow::Next(0))
    }

    /// A command that prints nothing; what it is sent to is made empty.
    fn quiet(&mut self, simple: &Simple, code: i32) -> Option<Flow> {
        self.print(String::new(), &simple.redirections)?;
        Some(Flow::Next(code))
    }

    fn sleep(&mut self, times: &[&str]) -> Option<Flow> {
        let mut sum = Duration::ZERO;
        for time in times {
            sum = sum.saturating_add(seconds(time)?);
        }
        if sum >= FOR_EVER {
            return Some(Flow::Never);
        }
        self.now = self.now.saturating_add(sum);
        Some(Flow::Next(0))
    }

    /// Prints to where the command's output goes.
    fn print(&mut self, text: String, redirections: &[Redirection]) -> Option<()> {
        let mut file = None;
        for redirection in redirections {
            match (redirection.output, redirection.to.as_str()) {
                (1, "&1" | "&2") | (2, _) => {}
                (1, path) => file = Some((path, redirection.adds)),
                _ => return None,
            }
        }
        match file {
            Some((path, adds)) if path == self.message_path => {
                if !adds {
                    self.message.clear();
                }
                self.message.push_str(&text);
            }
            Some(("/dev/stdout" | "/dev/stderr", _)) | None if !text.is_empty() => {
                self.output.push(Printed { after: self.now, text });
            }
            _ => {}
        }
        Some(())
    }
}

fn echo(args: &[&str]) -> String {
    match args {
        ["-n", rest @ ..] => rest.join(" "),
        args => args.join(" ") + "\n",
    }
}

/// The text with its escapes put in place; `None` when it has others.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                't' => '\t',
                '\\' => '\\',
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(plain)
}

/// A time of `sleep`: `5`, `0.5`, `2m`, `infinity`.
fn seconds(text: &str) -> Option<Duration> {
    if matches!(text, "infinity" | "inf") {
        return Some(FOR_EVER);
    }
    let (number, unit) = match text.char_indices().last()? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        (at, 'd') => (&text[..at], 86_400.0),
        _ => (text, 1.0),
    };
    if !number.chars().all(|letter| letter.is_ascii_digit() || letter == '.') {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * unit;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(FOR_EVER).min(FOR_EVER))
}

//! What of a log somebody gets to see.

use std::io;

use jiff::Timestamp;

use super::{LONGEST_LINE, Options, Stream};

/// The longest line of a file that can be an entry, with room for other writers' times and tags.
const LONGEST_ENTRY: usize = 64 * LONGEST_LINE;

/// Turns what is in log files into what is shown; pure, in pieces of any size.
pub(super) struct Filter {
    options: Options,
    remaining: u64,
    /// How many entries are still to be shown, where that is limited.
    entries: Option<u64>,
    at_line_start: bool,
    incomplete: Vec<u8>,
}

/// An entry of a log file, with the end of its line where it has one.
struct Entry<'a> {
    at: Timestamp,
    stream: Stream,
    content: &'a [u8],
}

impl Filter {
    pub(super) fn new(options: Options) -> Self {
        Self {
            remaining: options.limit.unwrap_or(u64::MAX),
            entries: options.tail.filter(|_| !options.follow),
            at_line_start: true,
            incomplete: Vec::new(),
            options,
        }
    }

    /// Whether nothing more is to be shown, whatever comes.
    pub(super) fn is_done(&self) -> bool {
        self.remaining == 0 || self.entries == Some(0)
    }

    /// Shows what is new in `bytes`.
    pub(super) fn feed(&mut self, bytes: &[u8], shown: &mut Vec<u8>) -> io::Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_done() {
                return Ok(());
            }
            if self.incomplete.len() + line.len() > LONGEST_ENTRY {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "unsupported log format"));
            }
            if !line.ends_with(b"\n") {
                self.incomplete.extend_from_slice(line);
            } else if self.incomplete.is_empty() {
                self.show(line, shown);
            } else {
                let mut whole = std::mem::take(&mut self.incomplete);
                whole.extend_from_slice(line);
                self.show(&whole, shown);
            }
        }
        Ok(())
    }

    /// Shows a last line that nobody ended.
    pub(super) fn finish(&mut self, shown: &mut Vec<u8>) {
        let rest = std::mem::take(&mut self.incomplete);
        if !rest.is_empty() && !self.is_done() {
            self.show(&rest, shown);
        }
    }

    fn show(&mut self, line: &[u8], shown: &mut Vec<u8>) {
        // What is no entry is passed over, as the kubelet does.
        let Some(entry) = parse(line) else { return };
        let wanted = self.options.stream.is_none_or(|stream| stream == entry.stream);
        if wanted && self.options.since.is_none_or(|since| entry.at >= since) {
            let from = shown.len();
            if self.options.timestamps && self.at_line_start {
                shown.extend_from_slice(format!("{:.9} ", entry.at).as_bytes());
            }
            shown.extend_from_slice(entry.content);
            let most = usize::try_from(self.remaining).unwrap_or(usize::MAX);
            shown.truncate(from.saturating_add(most));
            self.remaining -= (shown.len() - from) as u64;
        }
        if let Some(entries) = &mut self.entries {
            *entries -= 1;
        }
        self.at_line_start = entry.content.last().is_none_or(|last| *last == b'\n');
    }
}

/// Reads `<time> <stream> <tags> <content>`.
fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let mut fields = line.splitn(4, |byte| *byte == b' ');
    let at = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let stream = match fields.next()? {
        b"stdout" => Stream::Stdout,
        b"stderr" => Stream::Stderr,
        _ => return None,
    };
    let tags = fields.next()?;
    let partial = tags.split(|byte| *byte == b':').next() == Some(b"P");
    let content = fields.next()?;
    let content = if partial { content.strip_suffix(b"\n").unwrap_or(content) } else { content };
    Some(Entry { at, stream, content })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOG: &str = "2026-01-01T00:00:01Z stdout F one\n\
        2026-01-01T00:00:02.5Z stderr F oops\n\
        2026-01-01T00:00:03Z stdout P tw\n\
        2026-01-01T00:00:03.000000007Z stdout F o\n\
        what is that\n\
        2026-01-01T00:00:04+01:00 stdout F:x old\n\
        2026-01-01T00:00:05Z stdout P end";

    fn shown(options: Options, chunks: &[&[u8]]) -> String {
        let mut filter = Filter::new(options);
        let mut shown = Vec::new();
        for chunk in chunks {
            filter.feed(chunk, &mut shown).unwrap();
        }
        filter.finish(&mut shown);
        String::from_utf8(shown).unwrap()
    }

    fn all(options: Options) -> String {
        shown(options, &[LOG.as_bytes()])
    }

    #[test]
    fn a_log_is_shown_as_the_kubelet_shows_it() {
        assert_eq!(all(Options::default()), "one\noops\ntwo\nold\nend");
        let stderr = Options { stream: Some(Stream::Stderr), ..Options::default() };
        assert_eq!(all(stderr), "oops\n");
        let timestamps = Options { timestamps: true, stream: Some(Stream::Stdout), ..Options::default() };
        assert_eq!(
            all(timestamps),
            "2026-01-01T00:00:01.000000000Z one\n2026-01-01T00:00:03.000000000Z two\n\
             2025-12-31T23:00:04.000000000Z old\n2026-01-01T00:00:05.000000000Z end"
        );
        let since = Options { since: "2026-01-01T00:00:03Z".parse().ok(), ..Options::default() };
        assert_eq!(all(since), "two\nend");
    }

    #[test]
    fn limits_count_bytes_that_are_shown_and_entries_that_are_read() {
        assert_eq!(all(Options { limit: Some(6), ..Options::default() }), "one\noo");
        assert_eq!(all(Options { limit: Some(0), ..Options::default() }), "");
        let stderr = Options { limit: Some(2), stream: Some(Stream::Stderr), ..Options::default() };
        assert_eq!(all(stderr), "oo");
        assert_eq!(all(Options { tail: Some(2), ..Options::default() }), "one\noops\n");
        assert_eq!(all(Options { tail: Some(0), ..Options::default() }), "");
        let follow = Options { tail: Some(1), follow: true, ..Options::default() };
        assert_eq!(all(follow), "one\noops\ntwo\nold\nend");
    }

    #[test]
    fn a_line_without_end_is_an_error_and_not_memory() {
        let mut filter = Filter::new(Options::default());
        let mut shown = Vec::new();
        let chunk = [b'x'; 1 << 16];
        assert!((0..64).any(|_| filter.feed(&chunk, &mut shown).is_err()));
    }

    proptest! {
        #[test]
        fn any_chunking_shows_the_same(
            cuts in proptest::collection::vec(0..LOG.len(), 0..10),
            timestamps: bool,
            tail in proptest::option::of(0u64..8),
            limit in proptest::option::of(0u64..30),
            follow: bool,
        ) {
            let options = Options { timestamps, tail, limit, follow, ..Options::default() };
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&LOG.as_bytes()[from..cut]);
                from = cut;
            }
            chunks.push(&LOG.as_bytes()[from..]);
            prop_assert_eq!(shown(options, &chunks), all(options));
        }
    }
}

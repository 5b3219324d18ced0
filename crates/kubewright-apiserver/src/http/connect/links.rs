//! Links in what is answered behind the proxy: those that lead to the same place are led through the proxy again
//! (`Transport` of `k8s.io/apimachinery/pkg/util/proxy`).

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::{DeflateDecoder, GzDecoder};
use flate2::write::{DeflateEncoder, GzEncoder};
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// Which attributes of which elements are links.
const LINKS: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// The way through the proxy.
pub(super) struct Through<'a> {
    /// What stands before a path behind the proxy, without a slash at its end.
    pub(super) before: &'a str,
    /// Who answers, as a host of URLs.
    pub(super) behind: &'a str,
    /// Who was asked, as the client calls it.
    pub(super) asked: &'a str,
}

impl Through<'_> {
    /// The same link through the proxy; `None` where it leads elsewhere, starts from where the client is, or goes through
    /// already.
    pub(super) fn link(&self, link: &str) -> Option<String> {
        let Link { scheme, host, path } = Link::read(link)?;
        if !path.starts_with('/') || host.is_some_and(|host| host != self.behind && host != self.asked) {
            return None;
        }
        let before = if path.starts_with(self.before) { "" } else { self.before };
        Some(match host {
            Some(host) if host == self.asked => format!("{scheme}//{host}{before}{path}"),
            _ => format!("{before}{path}"),
        })
    }

    /// A page with its links led through the proxy; nothing else of it changes.
    pub(super) fn page(&self, page: &[u8]) -> Vec<u8> {
        let mut rewritten = Vec::with_capacity(page.len());
        let mut copied = 0;
        for (span, link) in links(page) {
            let Some(through) = std::str::from_utf8(&link).ok().and_then(|link| self.link(link)) else {
                continue;
            };
            let Some(between) = page.get(copied..span.start) else { continue };
            rewritten.extend_from_slice(between);
            rewritten.extend_from_slice(escaped(&through).as_bytes());
            copied = span.end;
        }
        rewritten.extend_from_slice(page.get(copied..).unwrap_or_default());
        rewritten
    }

    /// The same of a page that may be compressed; `None` where it is in a way that is not known here, or not as it says, or is
    /// longer than `longest`.
    pub(super) fn encoded_page(&self, encoding: &str, page: &[u8], longest: u64) -> Option<Vec<u8>> {
        let plain = |reader: &mut dyn Read| -> Option<Vec<u8>> {
            let mut plain = Vec::new();
            let read = reader.take(longest + 1).read_to_end(&mut plain).ok()?;
            (u64::try_from(read).ok()? <= longest).then(|| self.page(&plain))
        };
        let packed: io::Result<Vec<u8>> = match encoding {
            "" => return plain(&mut &page[..]),
            "gzip" => {
                let plain = plain(&mut GzDecoder::new(page))?;
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&plain).and_then(|()| encoder.finish())
            }
            "deflate" => {
                let plain = plain(&mut DeflateDecoder::new(page))?;
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&plain).and_then(|()| encoder.finish())
            }
            _ => return None,
        };
        packed.ok()
    }
}

/// What there is to know of a link.
struct Link<'a> {
    /// With its colon; may be empty.
    scheme: &'a str,
    host: Option<&'a str>,
    /// All that follows.
    path: &'a str,
}

impl<'a> Link<'a> {
    fn read(link: &'a str) -> Option<Self> {
        if link.chars().any(char::is_control) {
            return None;
        }
        let has_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
        };
        let colon = link.find(':').filter(|colon| has_scheme(&link[..*colon]));
        let (scheme, rest) = link.split_at(colon.map_or(0, |colon| colon + 1));
        let Some(rest) = rest.strip_prefix("//") else {
            return Some(Self { scheme, host: None, path: rest });
        };
        let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        Some(Self { scheme, host: Some(host), path })
    }
}

/// The links of a page, in their order: where each is written, and what it says.
fn links(page: &[u8]) -> Vec<(Span<usize>, Vec<u8>)> {
    let (mut attributes, mut is_link): (&[&str], bool) = (&[], false);
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, span: Span<usize>| {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                let known = LINKS.iter().find(|(element, _)| element.as_bytes() == name);
                attributes = known.map_or(&[], |(_, attributes)| attributes);
            }
            CallbackEvent::AttributeName { name } => {
                is_link = attributes.iter().any(|attribute| attribute.as_bytes() == name);
            }
            CallbackEvent::AttributeValue { value } if is_link => return Some((span, value.to_vec())),
            // Attributes of an end tag are none of the element.
            CallbackEvent::CloseStartTag { .. } => attributes = &[],
            _ => {}
        }
        None
    });
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(page, emitter).map_while(Result::ok).collect()
}

/// A value between quotes of either kind, or between none.
fn escaped(link: &str) -> String {
    let mut escaped = String::with_capacity(link.len());
    for letter in link.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            ' ' => escaped.push_str("&#32;"),
            '`' => escaped.push_str("&#96;"),
            '=' => escaped.push_str("&#61;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const THROUGH: Through<'_> =
        Through { before: "/api/v1/x/proxy", behind: "10.0.0.1:80", asked: "localhost:8001" };

    fn page(page: &str) -> String {
        String::from_utf8(THROUGH.page(page.as_bytes())).expect("text")
    }

    #[test]
    fn a_link_to_the_same_place_goes_through_the_proxy() {
        for (link, through) in [
            ("/home?a=b#c", Some("/api/v1/x/proxy/home?a=b#c")),
            ("/", Some("/api/v1/x/proxy/")),
            ("http://10.0.0.1:80/home", Some("/api/v1/x/proxy/home")),
            ("//10.0.0.1:80/home/", Some("/api/v1/x/proxy/home/")),
            ("http://localhost:8001/home", Some("http://localhost:8001/api/v1/x/proxy/home")),
            ("http://localhost:8001/api/v1/x/proxy/home", Some("http://localhost:8001/api/v1/x/proxy/home")),
            ("/api/v1/x/proxy/home", Some("/api/v1/x/proxy/home")),
            ("home", None),
            ("../home", None),
            ("?a=/b", None),
            ("", None),
            ("http://10.0.0.1:80", None),
            ("https://example.com/", None),
            ("//example.com/", None),
            ("mailto:a@b", None),
            ("/a\nb", None),
        ] {
            assert_eq!(THROUGH.link(link).as_deref(), through, "{link}");
        }
    }

    #[test]
    fn links_of_a_page_are_those_of_its_elements_and_all_else_stays() {
        for (before, after) in [
            (r#"<a href="/x">/x</a>"#, r#"<a href="/api/v1/x/proxy/x">/x</a>"#),
            ("<A class=b HREF=/x >y", "<A class=b HREF=/api/v1/x/proxy/x >y"),
            ("<img alt='/x' src='/a&amp;b'/>", "<img alt='/x' src='/api/v1/x/proxy/a&amp;b'/>"),
            (
                "<video poster=/p src=/s></video href=/x>",
                "<video poster=/api/v1/x/proxy/p src=/api/v1/x/proxy/s></video href=/x>",
            ),
            ("<!-- <a href='/x'> -->", "<!-- <a href='/x'> -->"),
            (
                "<script src='/s'>'<a href=\"/x\">'</script><a href=/y>",
                "<script src='/api/v1/x/proxy/s'>'<a href=\"/x\">'</script><a href=/api/v1/x/proxy/y>",
            ),
            ("<div href='/x'>", "<div href='/x'>"),
            ("<a name='' href='' id=/x>", "<a name='' href='' id=/x>"),
            ("<a href='x'><a href='/x", "<a href='x'><a href='/x"),
            ("Grüße, <q cite='/ß'>", "Grüße, <q cite='/api/v1/x/proxy/ß'>"),
        ] {
            assert_eq!(page(before), after);
        }
        let bytes = b"\xff<a href='/x'>\xfe";
        assert_eq!(THROUGH.page(bytes), b"\xff<a href='/api/v1/x/proxy/x'>\xfe");
    }

    #[test]
    fn a_compressed_page_stays_compressed() {
        let text = b"<a href=/x>";
        let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
        zipped.write_all(text).expect("it is memory");
        let zipped = zipped.finish().expect("it is memory");
        let mut through = String::new();
        let rewritten = THROUGH.encoded_page("gzip", &zipped, 100).expect("a page");
        GzDecoder::new(&rewritten[..]).read_to_string(&mut through).expect("gzip");
        assert_eq!(through, "<a href=/api/v1/x/proxy/x>");
        assert_eq!(THROUGH.encoded_page("gzip", &zipped, 10), None, "it is too long");
        assert_eq!(THROUGH.encoded_page("gzip", text, 100), None, "it is none");
        assert_eq!(THROUGH.encoded_page("br", text, 100), None);
    }
}

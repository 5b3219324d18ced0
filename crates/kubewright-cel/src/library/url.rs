//! URLs (k8s.io/apiserver/pkg/cel/library/urls.go), read as Go's `net/url` reads those of requests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Implementation, net};
use crate::error::EvaluationError;
use crate::value::{Key, List, Map, Opaque, Text, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

/// A URL: absolute, or an absolute path.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Url {
    scheme: String,
    /// What stands behind the scheme, if that is no path.
    opaque: String,
    user: Option<String>,
    host: String,
    /// Without a host, and without the slashes that one would stand behind.
    no_authority: bool,
    escaped_path: String,
    query: Option<String>,
    fragment: String,
}

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "string_to_url" => |args| {
            let [Value::String(text)] = args else { return Err(EvaluationError::no_such_overload()) };
            let url = parse_request_uri(text).and_then(|_| parse_reference(text));
            match url {
                Ok(url) => Ok(Value::Opaque(Opaque::Url(Arc::new(url)))),
                Err(why) => {
                    Err(EvaluationError::new(format!("URL parse error during conversion from string: {why}")))
                }
            }
        },
        "is_url_string" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_request_uri(text).is_ok())),
            _ => Err(EvaluationError::no_such_overload()),
        },
        "url_get_scheme" => |args| part(args, |url| url.scheme.clone()),
        "url_get_host" => |args| part(args, |url| url.host.clone()),
        "url_get_hostname" => |args| part(args, |url| url.host_and_port().0.to_owned()),
        "url_get_port" => |args| part(args, |url| url.host_and_port().1.to_owned()),
        "url_get_escaped_path" => |args| part(args, |url| url.escaped_path.clone()),
        "url_get_query" => query,
        _ => return None,
    })
}

fn part<'a>(args: &[Value<'a>], pick: fn(&Url) -> String) -> Outcome<'a> {
    match args {
        [Value::Opaque(Opaque::Url(url))] => Ok(Value::from(pick(url))),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn query<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Opaque(Opaque::Url(url))] = args else { return Err(EvaluationError::no_such_overload()) };
    let mut values: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
    let pairs = url.query.as_deref().unwrap_or_default().split('&');
    for pair in pairs.filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query)) {
            values.entry(key).or_default().push(Value::from(value));
        }
    }
    let entries = values
        .into_iter()
        .map(|(key, values)| (Key::String(Text::from(key)), Value::List(List::new(values))));
    Ok(Value::Map(Map::new(entries.collect())))
}

impl Url {
    /// Reads an absolute or relative URL (`net/url`, `Parse`).
    ///
    /// # Errors
    /// Why it is none, as Go prints it.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse_reference(text)
    }

    /// Whether a text is a URL that requests are sent to (`net/url`, `ParseRequestURI`): absolute, or an absolute path.
    #[must_use]
    pub fn is_of_request(text: &str) -> bool {
        parse_request_uri(text).is_ok()
    }

    /// Its scheme, in small letters; empty where it has none.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Who stands before the host, and maybe a password.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Its host, with a port where it has one; empty where it has none.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What stands behind `?`; empty where there is nothing.
    #[must_use]
    pub fn query(&self) -> &str {
        self.query.as_deref().unwrap_or_default()
    }

    /// What stands behind `#`, escaped; empty where there is nothing.
    #[must_use]
    pub fn fragment(&self) -> &str {
        &self.fragment
    }

    fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(colon) if is_port(&self.host[colon..]) => (&self.host[..colon], &self.host[colon + 1..]),
            _ => (self.host.as_str(), ""),
        };
        (host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            if !self.no_authority && (!self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some())
            {
                if !self.host.is_empty() || !self.escaped_path.is_empty() || self.user.is_some() {
                    f.write_str("//")?;
                }
                if let Some(user) = &self.user {
                    write!(f, "{user}@")?;
                }
                f.write_str(&self.host)?;
            }
            f.write_str(&self.escaped_path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", self.fragment)?;
        }
        Ok(())
    }
}

/// Reads what stands in the first line of a request. The error is as Go prints it.
pub(super) fn parse_request_uri(text: &str) -> Result<Url, String> {
    parse(text, true).map_err(|why| format!("parse {text:?}: {why}"))
}

/// Reads a URL with a fragment.
fn parse_reference(text: &str) -> Result<Url, String> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = parse(rest, false).map_err(|why| format!("parse {rest:?}: {why}"))?;
    if !fragment.is_empty() {
        unescape(fragment, Part::Path).map_err(|why| format!("parse {text:?}: {why}"))?;
        url.fragment = escape_path(fragment);
    }
    Ok(url)
}

fn parse(text: &str, of_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && of_request {
        return Err("empty url".to_owned());
    }
    if text == "*" {
        return Ok(Url { escaped_path: "*".to_owned(), ..Url::default() });
    }
    let (scheme, rest) = split_scheme(text)?;
    let mut url = Url { scheme: scheme.to_lowercase(), ..Url::default() };
    let rest = match rest.split_once('?') {
        Some((rest, query)) => {
            url.query = Some(query.to_owned());
            rest
        }
        None => rest,
    };
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if of_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let path = match rest.strip_prefix("//") {
        Some(behind) if !url.scheme.is_empty() || (!of_request && !rest.starts_with("///")) => {
            let (authority, path) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
            (url.user, url.host) = parse_authority(&url.scheme, authority)?;
            path
        }
        _ => {
            url.no_authority = !url.scheme.is_empty() && rest.starts_with('/');
            rest
        }
    };
    unescape(path, Part::Path)?;
    url.escaped_path = escape_path(path);
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(scheme: &str, authority: &str) -> Result<(Option<String>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, parse_host(scheme, authority)?));
    };
    let host = parse_host(scheme, host)?;
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    unescape(user, Part::User)?;
    Ok((Some(user.to_owned()), host))
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    if let Some(inner) = host.strip_prefix('[').filter(|inner| !inner.contains('[')) {
        let (address, port) = inner.rsplit_once(']').ok_or("missing ']' in host")?;
        if !is_port(port) {
            return Err(format!("invalid port {port:?} after host"));
        }
        let address = unescape(address, Part::Host)?;
        return match net::parse_address(&address) {
            Err(why) => Err(format!("invalid host: {why}")),
            Ok((address, _)) if address.is_ipv4() => Err("invalid IP-literal".to_owned()),
            Ok(_) => Ok(format!("[{address}]{port}")),
        };
    }
    if host.contains('[') {
        return Err("invalid IP-literal".to_owned());
    }
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    if let Some(port) = colon.map(|colon| &host[colon..]).filter(|port| !is_port(port)) {
        return Err(format!("invalid port {port:?} after host"));
    }
    unescape(host, Part::Host)
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The part of a URL that something is escaped in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Path,
    Query,
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'%' => {
                let code = text
                    .get(index + 1..index + 3)
                    .filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
                let value = code.and_then(|code| u8::from_str_radix(code, 16).ok());
                let allowed = |value: &u8| part != Part::Host || *value >= 0x80 || *value == b'%';
                let Some(value) = value.filter(allowed) else {
                    let end = (index + 3).min(bytes.len());
                    let shown = String::from_utf8_lossy(&bytes[index..end]);
                    return Err(format!("invalid URL escape {shown:?}"));
                };
                plain.push(value);
                index += 2;
            }
            b'+' if part == Part::Query => plain.push(b' '),
            byte if part == Part::Host && byte.is_ascii() && !is_host_byte(*byte) => {
                return Err(format!("invalid character {:?} in host name", char::from(*byte).to_string()));
            }
            byte => plain.push(*byte),
        }
        index += 1;
    }
    Ok(String::from_utf8_lossy(&plain).into_owned())
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// The path as it is written, with what may not stand there escaped.
fn escape_path(path: &str) -> String {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@/[]%".contains(&byte);
    if path.bytes().all(valid) {
        return path.to_owned();
    }
    let plain = unescape(path, Part::Path).unwrap_or_else(|_| path.to_owned());
    let mut escaped = String::with_capacity(plain.len());
    for byte in plain.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

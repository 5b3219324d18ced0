//! The formats that schemas of custom resources may name (`kube-openapi/pkg/validation/strfmt`).

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use jiff::civil::Date;
use kubewright_cel::Url;
use kubewright_meta::text::{is_dns_label, is_dns_subdomain};
use regex::Regex;

use super::node::Type;

/// The formats of text, without hyphens.
const TEXT: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether a schema of that type may name the format. Others are ignored (and the author is warned).
pub fn is_known(kind: Option<Type>, format: &str) -> bool {
    match kind {
        None | Some(Type::String) => TEXT.contains(&normal(format).as_str()),
        Some(Type::Integer) => matches!(format, "int32" | "int64"),
        Some(Type::Number) => matches!(format, "float" | "double"),
        Some(Type::Object | Type::Array | Type::Boolean) => false,
    }
}

/// Whether the text is of that format; formats that are not of text are of no account.
pub fn holds(format: &str, text: &str) -> bool {
    match normal(format).as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|one| one.is_ascii_hexdigit()),
        "byte" => is_base64(text),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => HEX_COLOR.is_match(text),
        "hostname" => {
            HOST_NAME.is_match(text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
        }
        "ipv4" => text.contains('.') && without_leading_zeros(text).parse::<IpAddr>().is_ok(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => is_dns_subdomain(text),
        "k8sshortname" => is_dns_label(text),
        "mac" => is_mac(text),
        "rgbcolor" => RGB_COLOR.is_match(text),
        "ssn" => text.len() == 11 && SSN.is_match(text),
        "uri" => Url::is_of_request(text),
        "uuid" => is_uuid(text, &[], false),
        "uuid3" => is_uuid(text, b"3", false),
        "uuid4" => is_uuid(text, b"4", true),
        "uuid5" => is_uuid(text, b"5", true),
        _ => true,
    }
}

/// `date-time` and `datetime` are one format.
fn normal(format: &str) -> String {
    format.replace('-', "")
}

/// A pattern of this file. They all compile, as the tests show.
fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|_| unreachable!("{pattern} is an expression"))
}

static HOST_NAME: LazyLock<Regex> = LazyLock::new(|| {
    expression(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    )
});
static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| expression("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    const PART: &str = r"\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*";
    expression(&format!(r"^rgb\({PART},{PART},{PART}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| expression("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| expression(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"));
static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    expression(concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ))
});
static GO_DURATION: LazyLock<Regex> =
    LazyLock::new(|| expression(r"^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"));
static WORDS_OF_DURATION: LazyLock<Regex> = LazyLock::new(|| expression(r"([0-9]+)\s*([A-Za-zµ]+)"));

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(|one| one.is_ascii_alphanumeric() || matches!(one, b'+' | b'/'))
}

/// Numbers of an IPv4 address may begin with zeros (`k8s.io/utils/net`, `ParseIPSloppy`).
fn without_leading_zeros(text: &str) -> Cow<'_, str> {
    let plain = |part: &str| part == "0" || !part.starts_with('0');
    if text.contains(':') || text.split('.').all(plain) {
        return Cow::Borrowed(text);
    }
    let shorter = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    Cow::Owned(text.split('.').map(shorter).collect::<Vec<_>>().join("."))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match (without_leading_zeros(address).parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(_), _) => 32,
        (_, Ok(_)) => 128,
        _ => return false,
    };
    bits.bytes().all(|one| one.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = |(index, digit): (usize, u8)| match u32::from(digit - b'0') {
        digit if index % 2 == 0 => digit,
        digit if digit < 5 => digit * 2,
        digit => digit * 2 - 9,
    };
    CREDIT_CARD.is_match(&digits) && digits.bytes().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, one)| if at == 4 || at == 7 { *one == b'-' } else { one.is_ascii_digit() });
    shape && text.parse::<Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date)
        && TIME
            .captures(time)
            .is_some_and(|parts| &parts[1] <= "23" && &parts[2] <= "59" && &parts[3] <= "59")
}

/// A duration of Go, or else words such as `2 hours`.
fn is_duration(text: &str) -> bool {
    const EXACT: [&str; 13] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "nano", "micro"];
    const STEMS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    GO_DURATION.is_match(text)
        || WORDS_OF_DURATION.captures_iter(text).any(|parts| {
            let unit = parts[2].to_lowercase();
            EXACT.contains(&unit.as_str()) || STEMS.iter().any(|stem| unit.starts_with(stem))
        })
}

/// `a@example.com`, also with a name: `A <a@example.com>`.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        None => text,
        Some(rest) => match rest.rsplit_once('<') {
            Some((name, address)) if is_phrase(name) => address,
            _ => return false,
        },
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_of_atoms);
    let inside = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_odd = |one: char| one == '"' || one.is_control() && one != '\t';
    let quoted =
        inside.is_some_and(|inside| !inside.is_empty() && !inside.replace("\\\"", "").contains(is_odd));
    let literal = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    (quoted || local.split('.').all(atom))
        && literal.map_or_else(|| domain.split('.').all(atom), |inner| inner.parse::<IpAddr>().is_ok())
}

/// What stands in words of addresses without quotes.
fn is_of_atoms(one: char) -> bool {
    one.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(one)
}

/// Whether a text may stand before an address: words with dots, or in quotes.
fn is_phrase(text: &str) -> bool {
    let mut parts = text.split('"').enumerate().peekable();
    while let Some((at, part)) = parts.next() {
        let is_quoted = at % 2 == 1;
        let is_open = is_quoted && parts.peek().is_none();
        if is_open
            || !is_quoted && !part.chars().all(|one| is_of_atoms(one) || one == '.' || one.is_whitespace())
        {
            return false;
        }
    }
    true
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let value = |digit: u8| if digit == b'X' { 10 } else { u32::from(digit - b'0') };
    let shape = digits.len() == 10
        && digits.iter().enumerate().all(|(at, digit)| digit.is_ascii_digit() || (at == 9 && *digit == b'X'));
    shape && (1..).zip(&digits).map(|(weight, digit)| weight * value(*digit)).sum::<u32>() % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    let weighed = |(at, digit): (usize, &u8)| u32::from(digit - b'0') * if at % 2 == 0 { 1 } else { 3 };
    digits.len() == 13
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().enumerate().map(weighed).sum::<u32>() % 10 == 0
}

fn isbn_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|one| *one != b'-' && !one.is_ascii_whitespace()).collect()
}

/// Six, eight or twenty bytes, written `00:00:5e:..`, `00-00-5e-..`, `0000.5e00.5301`, or without marks since Go 1.26.
fn is_mac(text: &str) -> bool {
    let bytes = |mark: char, digits: usize| {
        let parts: Vec<_> = text.split(mark).collect();
        let shape =
            parts.iter().all(|part| part.len() == digits && part.bytes().all(|one| one.is_ascii_hexdigit()));
        (shape && parts.len() > 1).then(|| parts.len() * digits / 2)
    };
    let plain = || {
        let is_hex = text.bytes().all(|one| one.is_ascii_hexdigit());
        (is_hex && text.len().is_multiple_of(2)).then_some(text.len() / 2)
    };
    let length = bytes(':', 2).or_else(|| bytes('-', 2)).or_else(|| bytes('.', 4)).or_else(plain);
    matches!(length, Some(6 | 8 | 20))
}

/// 32 digits with optional hyphens between the groups; the version and the variant may be asked for.
fn is_uuid(text: &str, version: &[u8], variant: bool) -> bool {
    let mut rest = text.as_bytes();
    let mut digits = Vec::with_capacity(32);
    for group in [8, 4, 4, 4, 12] {
        if !digits.is_empty() {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((taken, after)) = rest.split_at_checked(group) else { return false };
        digits.extend_from_slice(taken);
        rest = after;
    }
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && (version.is_empty() || version == &digits[12..13])
        && (!variant || b"89abAB".contains(&digits[16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: &[(&str, &[&str], &[&str])] = &[
        ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["", "507f1f77bcf86cd79943901g"]),
        ("byte", &["aGk=", "AAAA"], &["***", "", "aGk", "a==="]),
        (
            "cidr",
            &["192.0.2.0/24", "2001:db8::/32", "01.2.3.4/08"],
            &["1.2.3.4", "1.2.3.4/33", "1.2.3.4/+8", "x/1"],
        ),
        ("creditcard", &["4012-8888-8888-1881"], &["4012888888881882", "1"]),
        ("date", &["2024-02-29"], &["2024-13-01", "2024-2-9", "2023-02-29", "20240229"]),
        (
            "date-time",
            &["2024-02-29T12:00:00Z", "2024-02-29t12:00:00.5+02:00"],
            &["yesterday", "2024-02-29T24:00:00Z", "2024-02-29T12:00:00"],
        ),
        ("duration", &["1h30m", "0", "-1.5s", "2 hours", "3d"], &["soon", "1", ""]),
        ("email", &["a@example.com", "A B <a.b@example.com>"], &["nobody", "a@", "@b", "a..b@c"]),
        ("hexcolor", &["#fff", "00FF00"], &["#ffff"]),
        ("hostname", &["example.com", "a"], &["-x-", ""]),
        ("ipv4", &["192.0.2.1", "01.02.000.1"], &["300.1.1.1", "::1", "1..2.3"]),
        ("ipv6", &["2001:db8::1", "::ffff:1.2.3.4"], &["x", "1.2.3.4"]),
        ("isbn", &["0321751043", "978-0321751041"], &["0321751044"]),
        ("isbn10", &["0321751043"], &["978-0321751041"]),
        ("isbn13", &["978-0321751041"], &["978-0321751042"]),
        ("k8s-long-name", &["a.b-c"], &["a..b", "A"]),
        ("k8s-short-name", &["a-b"], &["a.b", "-a"]),
        (
            "mac",
            &["00:00:5e:00:53:01", "0000.5e00.5301", "00-00-5e-00-53-01", "00005e005301"],
            &["zz", "00:00", "00:00:5e:00:53:0", "00005e00530"],
        ),
        ("password", &["anything"], &[]),
        ("rgbcolor", &["rgb(0, 10,255)"], &["rgb(256,0,0)"]),
        ("ssn", &["123-45-6789"], &["123456789"]),
        (
            "uri",
            &["https://example.com/x", "/x", "mailto:a", "http://[::1]:80/"],
            &["::not a uri", "x", "", "http://a b/", "http://a:x/", "/%zz"],
        ),
        (
            "uuid",
            &["123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"],
            &["1234", "123e4567-e89b-12d3-a456-42661417400g"],
        ),
        ("uuid3", &["123e4567-e89b-32d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
        ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-42d3-c456-426614174000"]),
        ("uuid5", &["123e4567-e89b-52d3-a456-426614174000"], &["123e4567-e89b-42d3-a456-426614174000"]),
    ];

    #[test]
    fn every_format_of_text_tells_right_from_wrong() {
        let mut seen: Vec<String> = Vec::new();
        for (format, right, wrong) in CASES {
            assert!(is_known(Some(Type::String), format), "{format}");
            seen.push(normal(format));
            for text in *right {
                assert!(holds(format, text), "{format}: {text:?} is one");
            }
            for text in *wrong {
                assert!(!holds(format, text), "{format}: {text:?} is none");
            }
        }
        seen.sort();
        assert_eq!(seen, TEXT, "each format has its cases");
    }

    #[test]
    fn a_format_belongs_to_a_type() {
        assert!(is_known(Some(Type::Integer), "int32") && !is_known(Some(Type::String), "int32"));
        assert!(is_known(None, "ipv4") && !is_known(Some(Type::Number), "ipv4"));
        assert!(!is_known(Some(Type::String), "made-up") && !is_known(Some(Type::Object), "date"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_answer(text in ".*") {
            for format in TEXT {
                let _ = holds(format, &text);
            }
        }
    }
}

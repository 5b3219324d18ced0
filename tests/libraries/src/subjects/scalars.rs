//! Texts that are one value: quantities, durations, times, names, selectors, schedules, patterns, formats.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubewright_meta::quantity::{Quantity, canonical_text};
use kubewright_meta::selector::LabelSelector;
use kubewright_meta::{duration as durations, text as rules};
use kubewright_schedule::Schedule;
use kubewright_schema::pattern::{Pattern, Patterns};
use kubewright_schema::{format as formats, time as seconds};
use serde_json::{Value, json};

use super::{text, texts};
use crate::dice::Dice;

/// Pieces of texts of all sorts.
const PIECES: &[&str] = &[
    "a", "b", "Z", "0", "1", "9", "-", ".", "_", "/", ":", "%", " ", "é", "x", "%41", "\u{7f}", "=", ",", "+",
];

fn refused(why: impl std::fmt::Display) -> Value {
    json!({"error": why.to_string()})
}

pub(super) fn quantity(dice: &mut Dice) -> Value {
    const DIGITS: &[&str] =
        &["0", "1", "2", "5", "9", "00", "1023", "999999999", "000000001", "18446744073709551616"];
    const SUFFIXES: &[&str] = &[
        "", "", "m", "u", "n", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3",
        "e10", "e-9", "E+2", "K", "i", "ki", "e", "mi",
    ];
    let mut made = dice.word(&["", "", "", "-", "+"]);
    made += &dice.text(3, DIGITS);
    if dice.chance(40) {
        made += ".";
        made += &dice.text(3, DIGITS);
    }
    made += dice.one(SUFFIXES);
    if dice.chance(10) {
        made = dice.spoiled(&made, PIECES);
    }
    json!({"text": made})
}

pub(super) fn quantity_of(case: &Value) -> Value {
    let canonical = match canonical_text(text(case, "text")) {
        Ok(canonical) => canonical,
        Err(why) => return refused(why),
    };
    let Some(read) = Quantity::parse(text(case, "text").trim()) else { return refused("not read") };
    json!({"text": canonical, "sign": read.sign() as i8})
}

pub(super) fn duration(dice: &mut Dice) -> Value {
    const PARTS: &[&str] = &[
        "1",
        "0",
        "2.5",
        ".5",
        "1.",
        "9223372036854775807",
        "0.000000001",
        "h",
        "m",
        "s",
        "ms",
        "us",
        "µs",
        "μs",
        "ns",
        "d",
        "-",
        "+",
        " ",
        "1h",
        "30m",
        "10s",
    ];
    let made = dice.text(6, PARTS);
    json!({"text": if dice.chance(10) { dice.spoiled(&made, PIECES) } else { made }})
}

pub(super) fn duration_of(case: &Value) -> Value {
    match durations::nanoseconds(text(case, "text")) {
        Ok(nanoseconds) => json!({"nanoseconds": nanoseconds}),
        Err(why) => refused(format!("time: {why}")),
    }
}

pub(super) fn time(dice: &mut Dice) -> Value {
    let year = dice.word(&["2024", "2025", "0001", "9999", "9999", "1969", "2023", "12345", "0000"]);
    let month = dice.word(&["01", "02", "12", "6", "13", "00"]);
    let day = dice.word(&["01", "28", "29", "30", "31", "5", "00", "32"]);
    let hour = dice.word(&["00", "12", "23", "7", "24"]);
    let minute = dice.word(&["00", "59", "60", "5"]);
    let second = dice.word(&["00", "59", "60", "61", "3"]);
    let fraction = dice.word(&["", "", ".5", ".123456789", ".1234567891", ".", ",5"]);
    let zone = dice.word(&["Z", "Z", "z", "+02:00", "-23:59", "+24:00", "+0200", "", "+14:30", "-00:00"]);
    let made = format!(
        "{year}-{month}-{day}{}{hour}:{minute}:{second}{fraction}{zone}",
        dice.word(&["T", "T", "T", "t", " "])
    );
    json!({"text": if dice.chance(10) { dice.spoiled(&made, PIECES) } else { made }})
}

pub(super) fn time_of(case: &Value) -> Value {
    match seconds(text(case, "text")) {
        Ok(time) if time == "0001-01-01T00:00:00Z" => json!({"zero": true}),
        Ok(time) => json!({"time": time}),
        Err(why) => refused(why),
    }
}

type TextRule = fn(&str) -> Vec<String>;

/// The rules for names, as Go knows them.
const NAMES: &[(&str, TextRule)] = &[
    ("label", rules::label),
    ("label-1035", rules::label_1035),
    ("subdomain", rules::subdomain),
    ("wildcard", rules::wildcard_subdomain),
    ("key", rules::label_key),
    ("value", rules::label_value),
    ("port", rules::port_name),
    ("environment", rules::env_name),
    ("configuration-key", rules::config_key),
    ("header", rules::header_name),
    ("percent", rules::percent),
];

pub(super) fn name(dice: &mut Dice) -> Value {
    const PARTS: &[&str] = &[
        "a",
        "b",
        "web",
        "Z",
        "0",
        "9",
        "-",
        ".",
        "_",
        "/",
        "*.",
        "example.com",
        "%",
        " ",
        "é",
        "..",
        "100",
        "C_ID",
        "https",
    ];
    let mut made = dice.text(5, PARTS);
    if dice.chance(5) {
        made += &"x".repeat(dice.below(260));
    }
    if dice.chance(3) {
        made = "abcdefgh.".repeat(30) + &made;
    }
    json!({"rule": NAMES[dice.below(NAMES.len())].0, "text": made})
}

pub(super) fn name_of(case: &Value) -> Value {
    let rule = NAMES.iter().find(|(name, _)| *name == text(case, "rule"));
    json!({"errors": rule.map_or_else(Vec::new, |(_, rule)| rule(text(case, "text")))})
}

pub(super) fn selector(dice: &mut Dice) -> Value {
    const PARTS: &[&str] = &[
        "app",
        "tier",
        "a.b/c",
        "=",
        "==",
        "!=",
        " in ",
        " notin ",
        "(",
        ")",
        "a",
        "b",
        ",",
        "!",
        " ",
        ">",
        "<",
        "1",
        "10",
        "x_y",
        "",
        "in",
        "notin",
        "A",
        "é",
        "a=b",
        "app in (a,b)",
        "!tier",
        "app>1",
        "=a",
    ];
    let made = dice.text(7, PARTS);
    let sets = json!([{}, {"app": "a"}, {"app": "b", "tier": "10"}, {"a.b/c": "", "app": "1"}, {"tier": "x_y", "in": "a"}]);
    json!({"text": made, "labels": sets})
}

pub(super) fn selector_of(case: &Value) -> Value {
    let selector = match LabelSelector::parse(text(case, "text")) {
        Ok(selector) => selector,
        Err(why) => return refused(why),
    };
    let label = |set: &Value| {
        let labels = set.as_object().into_iter().flatten();
        let labels =
            labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        selector.matches(&labels)
    };
    json!({"matches": case["labels"].as_array().into_iter().flatten().map(label).collect::<Vec<_>>()})
}

pub(super) fn cron(dice: &mut Dice) -> Value {
    const FIELDS: &[&str] = &[
        "*", "0", "5", "*/15", "1-5", "1,2,3", "59", "60", "?", "10/3", "31", "30", "29", "2", "JAN", "mon",
        "SUN", "7", "1-31/7", "L", "5-1", "*/0", "0-59", "Feb", "sat-sun", "mon-fri", "12",
    ];
    const WORDS: &[&str] = &[
        "@hourly",
        "@daily",
        "@midnight",
        "@weekly",
        "@monthly",
        "@yearly",
        "@annually",
        "@every 1h",
        "@every 90s",
        "@every 1ns",
        "@reboot",
        "@",
        "@every",
        "@every x",
        "@Daily",
    ];
    let mut made = if dice.chance(20) {
        dice.word(WORDS)
    } else {
        let fields: Vec<String> =
            (0..if dice.chance(90) { 5 } else { dice.below(8) }).map(|_| dice.word(FIELDS)).collect();
        fields.join(" ")
    };
    if dice.chance(15) {
        made = format!(
            "{}{made}",
            dice.word(&[
                "TZ=UTC ",
                "CRON_TZ=Europe/Berlin ",
                "TZ=Asia/Tokyo ",
                "TZ=Nowhere ",
                "TZ= ",
                "TZ=America/New_York "
            ])
        );
    }
    if dice.chance(5) {
        made = dice.spoiled(&made, PIECES);
    }
    json!({"text": made, "after": ["2024-01-31T10:00:00Z", "2025-03-30T00:59:30Z", "2024-10-27T00:30:00Z", "2024-02-28T23:59:59Z"]})
}

pub(super) fn cron_of(case: &Value) -> Value {
    let schedule = match Schedule::parse(text(case, "text")) {
        Ok(schedule) => schedule,
        Err(why) => return refused(why),
    };
    let next = |after: &str| {
        let after: Timestamp = after.parse().expect("cases have good times");
        let next = schedule.next(after, &TimeZone::UTC);
        next.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    json!({"next": texts(case, "after").map(next).collect::<Vec<_>>()})
}

pub(super) fn pattern(dice: &mut Dice) -> Value {
    const PARTS: &[&str] = &[
        "a",
        "b",
        "[a-z]",
        "[^0-9]",
        "\\d",
        "\\w",
        "\\s",
        ".",
        "*",
        "+",
        "?",
        "{2}",
        "{1,3}",
        "{,2}",
        "{0}",
        "(",
        ")",
        "|",
        "^",
        "$",
        "(?i)",
        "(?:a|b)",
        "\\.",
        "[[:alpha:]]",
        "\\pL",
        "\\x41",
        "-",
        "\\b",
        "[a-",
        "*?",
        "(?P<n>x)",
        "\\Q.\\E",
        "\\z",
        "é",
        "[\\d-x]",
        "(?s)",
        "\\",
        "]",
        "{",
        "}",
        "(a*)*",
        "\\1",
        "\\C",
        "(?=a)",
    ];
    let made = dice.text(6, PARTS);
    json!({"pattern": made, "texts": ["", "a", "ab", "A1", "é", "a.b", "b\na", "xx-yy"]})
}

pub(super) fn pattern_of(case: &Value) -> Value {
    let pattern = text(case, "pattern");
    if let Some(why) = Patterns::default().mistake(pattern) {
        return refused(why);
    }
    let compiled = Pattern::new(pattern);
    json!({"matches": texts(case, "texts").map(|text| compiled.matches(text)).collect::<Vec<_>>()})
}

/// Formats that are checked, with texts that are near to one.
const FORMATS: &[(&str, &[&str])] = &[
    ("bsonobjectid", &["507f1f77bcf86cd799439011", "507f1f77"]),
    ("uri", &["http://example.com/a?b#c", "a:b", "//x", "http://[::1]:80/", "%zz"]),
    ("email", &["a@b.c", "A <a@b.c>", "a", "\"a b\"@c"]),
    ("hostname", &["example.com", "a_b", "-a", "1.2.3", "é.com"]),
    ("ipv4", &["1.2.3.4", "01.2.3.4", "1.2.3", "::ffff:1.2.3.4"]),
    ("ipv6", &["::1", "fe80::1%eth0", "1.2.3.4", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8"]),
    ("cidr", &["10.0.0.0/8", "10.0.0.1/33", "::/0", "10.0.0.0/08"]),
    ("mac", &["00:00:5e:00:53:01", "0000.5e00.5301", "00-00-5e-00-53-01", "00:00:5e:00:53"]),
    ("uuid", &["123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"]),
    ("uuid3", &["123e4567-e89b-32d3-a456-426614174000"]),
    ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"]),
    ("uuid5", &["123e4567-e89b-52d3-a456-426614174000"]),
    ("isbn", &["978-0-306-40615-7", "0306406152", "0-306-40615-2"]),
    ("isbn10", &["0306406152", "0-306-40615-X"]),
    ("isbn13", &["9780306406157", "978-0-306-40615-7"]),
    ("creditcard", &["4111 1111 1111 1111", "4111111111111111", "378282246310005"]),
    ("ssn", &["123-45-6789", "123 45 6789", "123456789"]),
    ("hexcolor", &["#fff", "ffffff", "#ffff"]),
    ("rgbcolor", &["rgb(1,2,3)", "rgb(256,2,3)", "rgb( 1, 2 ,3 )"]),
    ("byte", &["YQ==", "YQ", "Y Q==", "YQ==\n", "_-=="]),
    ("password", &["x"]),
    ("date", &["2024-02-29", "2023-02-29", "2024-2-9"]),
    ("duration", &["1h", "3 days", "1.5h", "90 DAY", "P1D", "1w"]),
    (
        "date-time",
        &[
            "9999-12-31T23:59:59Z",
            "2024-02-29T10:00:00Z",
            "2024-02-29T10:00:00.5+01:00",
            "2024-02-29t10:00:00z",
            "2024-02-29 10:00:00Z",
        ],
    ),
];

pub(super) fn format(dice: &mut Dice) -> Value {
    let (format, near) = FORMATS[dice.below(FORMATS.len())];
    let text = dice.word(near);
    json!({"format": format, "text": dice.spoiled(&text, PIECES)})
}

pub(super) fn format_of(case: &Value) -> Value {
    json!({text(case, "format"): formats::holds(text(case, "format"), text(case, "text"))})
}

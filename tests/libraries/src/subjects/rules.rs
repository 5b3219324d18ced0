//! Expressions in CEL, grown out of templates by type.

use crate::dice::Dice;

/// What an expression may begin with, by type: what the variables of its environment have.
pub(super) type Leaves = [(char, &'static [&'static str])];

/// What has a type. A letter in braces is an expression of that type: `b`ool, `i`nt, `d`ouble, `s`tring, `l`ist of ints, list of
/// s`t`rings, `m`ap, `p`attern, d`u`ration, `T`imestamp, `q`uantity, b`y`tes, `o`ptional of an int, anything (`x`).
const GRAMMAR: &[(char, &[&str])] = &[
    (
        'b',
        &[
            "true",
            "false",
            "{b} && {b}",
            "{b} || {b}",
            "!{b}",
            "{i} == {i}",
            "{i} < {i}",
            "{s} == {s}",
            "{s} != {s}",
            "{d} >= {d}",
            "{i} in {l}",
            "{s} in {t}",
            "{s}.startsWith({s})",
            "{s}.endsWith({s})",
            "{s}.contains({s})",
            "{s}.matches({p})",
            "{s}.matches({p})",
            "{s}.matches({s})",
            "{l}.all(v, v > {i})",
            "{t}.exists(v, v == {s})",
            "{l}.exists_one(v, v == {i})",
            "{l}.isSorted()",
            "isQuantity({s})",
            "{q}.isGreaterThan({q})",
            "{q}.isInteger()",
            "{o}.hasValue()",
            "isIP({s})",
            "isCIDR({s})",
            "isURL({s})",
            "isSemver({s})",
            "{x} == {x}",
            "{u} < {u}",
            "{T} > {T}",
            "{m}.all(k, k != {s})",
            "{y} == {y}",
            "type({x}) == int",
            "{b} ? {b} : {b}",
            "{l} == {l}",
            "{d} == {i}",
            "{x} in {l}",
            "has({m}.a)",
            "ip('10.0.0.1').isLoopback()",
            "cidr('10.0.0.0/8').containsIP({s})",
            "ip.isCanonical({s})",
            "format.named('dns1123Label').hasValue()",
            "format.dns1123Subdomain().validate({s}).hasValue()",
            "semver('1.2.3').isLessThan(semver('1.2.4'))",
            "sets.contains({l}, {l})",
            "sets.equivalent({t}, {t})",
            "sets.intersects({l}, {l})",
            "{m}.exists(k, v, k == {s})",
            "{t}.all(i, v, i < {i})",
            "bool({s})",
            "{l}.existsOne(i, v, v == {i})",
        ],
    ),
    (
        'i',
        &[
            "0",
            "1",
            "-3",
            "7",
            "9223372036854775807",
            "{i} + {i}",
            "{i} - {i}",
            "{i} * {i}",
            "{i} / {i}",
            "{i} % {i}",
            "-{i}",
            "size({s})",
            "{s}.size()",
            "size({l})",
            "{t}.size()",
            "size({m})",
            "int({d})",
            "int({s})",
            "int({T})",
            "{b} ? {i} : {i}",
            "{l}[{i}]",
            "{s}.indexOf({s})",
            "{s}.lastIndexOf({s})",
            "{l}.sum()",
            "{l}.max()",
            "{l}.min()",
            "{l}.indexOf({i})",
            "{t}.lastIndexOf({s})",
            "{u}.getHours()",
            "{u}.getMinutes()",
            "{T}.getFullYear()",
            "{T}.getDayOfWeek()",
            "{T}.getHours('+02:00')",
            "{o}.orValue({i})",
            "{o}.value()",
            "{q}.compareTo({q})",
            "{q}.asInteger()",
            "{q}.sign()",
            "size({y})",
            "cidr('10.0.0.0/8').prefixLength()",
            "ip({s}).family()",
            "semver('1.2.3-a').minor()",
            "int(2u)",
            "{l}.filter(v, v > {i}).size()",
            "int({s} + '1')",
        ],
    ),
    (
        'd',
        &[
            "0.0",
            "1.5",
            "-2.5e3",
            "1e308",
            "{d} + {d}",
            "{d} * {d}",
            "{d} / {d}",
            "-{d}",
            "double({i})",
            "double({s})",
            "{q}.asApproximateFloat()",
            "{b} ? {d} : {d}",
        ],
    ),
    (
        's',
        &[
            "''",
            "'a'",
            "'Hello'",
            "'10Mi'",
            "'1.2.3.4'",
            "'é\\n'",
            "r'\\d+'",
            "'https://a.b/c?d=e'",
            "{s} + {s}",
            "string({i})",
            "string({d})",
            "string({b})",
            "string({u})",
            "string({T})",
            "string({y})",
            "{s}.lowerAscii()",
            "{s}.upperAscii()",
            "{s}.trim()",
            "{s}.replace({s}, {s})",
            "{s}.replace({s}, {s}, {i})",
            "{s}.substring({i})",
            "{s}.substring({i}, {i})",
            "{s}.charAt({i})",
            "{t}.join()",
            "{t}.join({s})",
            "{t}[{i}]",
            "{s}.find({p})",
            "{b} ? {s} : {s}",
            "'%s %d'.format([{s}, {i}])",
            "'%.2f %e'.format([{d}, {d}])",
            "'%x %b'.format([{i}, {i}])",
            "'%s'.format([{x}])",
            "'%s'.format([{m}])",
            "strings.quote({s})",
            "{s}.reverse()",
            "url('https://a.b:80/c?d=e').getHost()",
            "string(ip('::1'))",
            "string(cidr('10.0.0.0/8').masked())",
            "'%X'.format([{s}])",
        ],
    ),
    (
        'p',
        &[
            "'^[a-z]+$'",
            "r'\\d+'",
            "'[[:alpha:]]'",
            "'{{}}'",
            "'(?i)HELLO'",
            "r'\\Qa.b\\E'",
            "'^.{{1,3}}$'",
            "'[^a-c]'",
            "r'\\w\\b'",
            "'('",
            "'[a'",
            "'*'",
            "'a**'",
            "'(?P<n>a)(?P<n>b)'",
            "r'\\pL+'",
            "'a{{,2}}'",
            "'[a&&b]'",
            "'(?=a)'",
            "r'[\\w-]'",
            "'x{{1001}}'",
            "'' + {s}",
        ],
    ),
    (
        'l',
        &[
            "[]",
            "[1, 2, 3]",
            "[{i}, {i}]",
            "{l} + {l}",
            "{l}.map(v, v + {i})",
            "{l}.filter(v, v < {i})",
            "{t}.map(v, size(v))",
            "[?{o}, {i}]",
            "{l}.transformList(i, v, i + v)",
            "{b} ? {l} : {l}",
            "{l}.map(v, v > {i}, v * 2)",
        ],
    ),
    (
        't',
        &[
            "['a', 'b']",
            "[{s}, {s}]",
            "{s}.split({s})",
            "{s}.split({s}, {i})",
            "{t} + {t}",
            "{t}.filter(v, v != {s})",
            "{s}.findAll({p})",
            "{l}.map(v, string(v))",
            "{t}.map(v, v + {s})",
            "{s}.findAll('[a-z]', {i})",
        ],
    ),
    (
        'm',
        &[
            "{{}}",
            "{{'a': {i}}}",
            "{{'a': {i}, 'b': {s}}}",
            "{{?'a': {o}}}",
            "{l}.transformMap(i, v, v)",
            "{m}.transformMap(k, v, v)",
            "{t}.transformMapEntry(i, v, {{v: i}})",
        ],
    ),
    (
        'u',
        &[
            "duration('1h')",
            "duration('90s')",
            "duration('-1.5m')",
            "duration({s})",
            "{u} + {u}",
            "{T} - {T}",
            "{u} - {u}",
        ],
    ),
    (
        'T',
        &[
            "timestamp('2024-02-29T12:00:00Z')",
            "timestamp('9999-12-31T23:59:59Z')",
            "timestamp('0001-01-01T00:00:00Z')",
            "timestamp('1970-01-01T00:00:00.5+01:00')",
            "timestamp({i})",
            "timestamp({s})",
            "{T} + {u}",
            "{T} - {u}",
        ],
    ),
    (
        'q',
        &[
            "quantity('1')",
            "quantity('1.5Gi')",
            "quantity('-200m')",
            "quantity({s})",
            "{q}.add({q})",
            "{q}.sub({q})",
            "{q}.add({i})",
        ],
    ),
    ('y', &["b''", "b'abc'", "bytes({s})", "{y} + {y}", "base64.decode('YQ==')"]),
    (
        'o',
        &[
            "optional.none()",
            "optional.of({i})",
            "optional.ofNonZeroValue({i})",
            "{o}.or({o})",
            "{o}.optMap(v, v + {i})",
            "{l}[?{i}]",
            "{l}.first()",
            "{l}.last()",
            "{o}.optFlatMap(v, optional.of(v))",
        ],
    ),
    (
        'x',
        &[
            "null",
            "{i}",
            "{s}",
            "{d}",
            "{b}",
            "{l}",
            "{m}",
            "dyn({x})",
            "{m}.a",
            "{m}['b']",
            "[{x}, {x}]",
            "1u",
            "{u}",
            "{T}",
            "type({x})",
            "{o}",
            "{y}",
            "[{x}][0]",
            "dyn({s}) + {s}",
            "{x}.a",
            "{x}[0]",
        ],
    ),
];

/// An expression of a type, of at most so many levels.
pub(super) fn grow(dice: &mut Dice, kind: char, depth: usize, leaves: &Leaves) -> String {
    let of = |table: &'static [(char, &'static [&'static str])]| {
        table.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, templates)| templates)
    };
    let own = leaves.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, leaves)| leaves);
    let templates = of(GRAMMAR);
    let template = if depth == 0 || dice.chance(15) {
        let plain: Vec<&str> = templates.iter().copied().filter(|template| !is_open(template)).collect();
        let of_own = !own.is_empty() && (plain.is_empty() || dice.chance(60));
        match (of_own, plain.is_empty()) {
            (true, _) => dice.one(own),
            (false, false) => dice.one(&plain),
            // Of a type with no beginning but others.
            (false, true) => dice.one(templates),
        }
    } else {
        dice.one(templates)
    };
    fill(dice, template, depth.saturating_sub(1), leaves)
}

/// Whether an expression has others in it.
fn is_open(template: &str) -> bool {
    template.replace("{{", "").contains('{')
}

/// A template with expressions in its places.
fn fill(dice: &mut Dice, template: &str, depth: usize, leaves: &Leaves) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        let after = &rest[at + 1..];
        if after.starts_with(brace) {
            out.push_str(brace);
            rest = &after[1..];
        } else if let Some(kind) = after.chars().next().filter(|_| brace == "{") {
            let part = grow(dice, kind, depth, leaves);
            let needs = part.contains(' ') && !part.starts_with(['(', '[', '{', '\'']);
            out.push_str(&if needs { format!("({part})") } else { part });
            rest = &after[2..];
        } else {
            out.push_str(brace);
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_to_their_depth() {
        for seed in 0..500 {
            let dice = &mut Dice::of("grow", seed);
            for (kind, _) in GRAMMAR {
                let made = grow(dice, *kind, 2, &[('i', &["self.n"])]);
                assert!(
                    !made.is_empty()
                        && !GRAMMAR.iter().any(|(kind, _)| made.contains(&format!("{{{kind}}}"))),
                    "{made}"
                );
            }
        }
    }
}

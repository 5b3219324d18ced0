//! The words of `go.yaml.in/yaml/v2` for what its scanner and parser find wrong.

use granit_parser::{ErrorKind, Marker};

/// The message about a mistake at a place. Go tells no line for a mistake in the first one, and counts the lines of the
/// parser from zero (`decode.go`, `fail`).
pub(super) fn describe(kind: &ErrorKind, at: &Marker, text: &str) -> String {
    if *kind == ErrorKind::UnknownAnchor {
        return format!("yaml: unknown anchor '{}' referenced", anchor(at, text));
    }
    let (scanner, words) = match wants_node(kind, at, text) {
        true => (false, NO_NODE),
        false => words(kind),
    };
    let line = match kind {
        // Go finds it where the text ends, behind a line break that may only be meant.
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping => text.lines().count(),
        _ => at.line().saturating_sub(1),
    };
    match line {
        0 => format!("yaml: {words}"),
        line => format!("yaml: line {}: {words}", line + usize::from(scanner)),
    }
}

const NO_NODE: &str = "did not find expected node content";

/// Whether a flow collection ends, or is broken off, right where something of it has to stand: Go misses that first.
fn wants_node(kind: &ErrorKind, at: &Marker, text: &str) -> bool {
    let before = match kind {
        ErrorKind::MismatchedFlowCollectionEnd { .. } => {
            at.byte_offset().and_then(|offset| text.get(..offset)).unwrap_or_default()
        }
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping => text,
        _ => return false,
    };
    before.trim_end().ends_with(['[', '{', ',', ':'])
}

/// A document is nested too deep.
pub(super) fn too_deep() -> String {
    "yaml: exceeded max depth of 10000".to_owned()
}

/// The name behind the `*` at a place.
fn anchor<'a>(at: &Marker, text: &'a str) -> &'a str {
    let rest = at.byte_offset().and_then(|offset| text.get(offset..)).unwrap_or_default();
    let name = rest.trim_start_matches('*');
    name.split(|character: char| !(character.is_alphanumeric() || "-_".contains(character)))
        .next()
        .unwrap_or_default()
}

/// Whether the scanner finds it, and how it says so.
fn words(kind: &ErrorKind) -> (bool, &'static str) {
    use ErrorKind as Kind;
    match kind {
        Kind::UnexpectedEofFlowSequence | Kind::ExpectedFlowSequenceSeparator => {
            (false, "did not find expected ',' or ']'")
        }
        Kind::UnexpectedEofFlowMapping
        | Kind::UnexpectedEofImplicitFlowMapping
        | Kind::ExpectedFlowMappingSeparator => (false, "did not find expected ',' or '}'"),
        Kind::UnclosedFlowCollection { open: '{' } => (false, "did not find expected ',' or '}'"),
        Kind::UnclosedFlowCollection { .. } => (false, "did not find expected ',' or ']'"),
        Kind::MismatchedFlowCollectionEnd { open: '{', .. } => (false, "did not find expected ',' or '}'"),
        Kind::MismatchedFlowCollectionEnd { .. } => (false, "did not find expected ',' or ']'"),
        Kind::UnexpectedEofBlockMapping | Kind::ExpectedBlockMappingKey | Kind::InvalidIndentation => {
            (false, "did not find expected key")
        }
        Kind::UnexpectedEofBlockSequence | Kind::ExpectedBlockSequenceEntry => {
            (false, "did not find expected '-' indicator")
        }
        Kind::ExpectedDocumentStart | Kind::MissingDocumentEndBeforeDirective => {
            (false, "did not find expected <document start>")
        }
        Kind::ExpectedNodeContent | Kind::MisplacedFlowCollectionEnd => (false, NO_NODE),
        Kind::DuplicateVersionDirective => (false, "found duplicate %YAML directive"),
        Kind::UnsupportedYamlMajorVersion => (false, "found incompatible YAML document"),
        Kind::DuplicateTagDirective => (false, "found duplicate %TAG directive"),
        Kind::UndeclaredTagHandle => (false, "found undefined tag handle"),
        Kind::UnexpectedCharacter { .. }
        | Kind::TabNotAllowed
        | Kind::TabInBlockIndentation
        | Kind::TabInIndentation => (true, "found character that cannot start any token"),
        Kind::TabInPlainScalar => (true, "found a tab character that violates indentation"),
        Kind::TabAtBlockScalarStart => (true, "found a tab character where an indentation space is expected"),
        Kind::SimpleKeyExpected | Kind::InvalidSimpleKey => (true, "could not find expected ':'"),
        Kind::MappingKeyNotAllowed => (true, "mapping keys are not allowed in this context"),
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement => {
            (true, "mapping values are not allowed in this context")
        }
        Kind::BlockSequenceEntryNotAllowed | Kind::BlockEntryInFlowCollection => {
            (true, "block sequence entries are not allowed in this context")
        }
        Kind::MissingAnchorOrAliasName => (true, "did not find expected alphabetic or numeric character"),
        Kind::UnclosedQuotedScalar | Kind::UnexpectedEof => (true, "found unexpected end of stream"),
        Kind::DocumentIndicatorInQuotedScalar => (true, "found unexpected document indicator"),
        Kind::UnknownQuotedScalarEscape => (true, "found unknown escape character"),
        Kind::InvalidQuotedScalarHexEscape => (true, "did not find expected hexdecimal number"),
        Kind::InvalidUnicodeEscape
        | Kind::InvalidLowSurrogate
        | Kind::MissingLowSurrogate
        | Kind::UnpairedLowSurrogate => (true, "found invalid Unicode character escape code"),
        Kind::ZeroBlockScalarIndent => (true, "found an indentation indicator equal to 0"),
        Kind::InvalidBlockScalarHeader | Kind::InvalidDirectiveTerminator => {
            (true, "did not find expected comment or line break")
        }
        Kind::RecursionLimitExceeded => (true, "exceeded max depth of 10000"),
        _ => (true, "could not parse the YAML content"),
    }
}

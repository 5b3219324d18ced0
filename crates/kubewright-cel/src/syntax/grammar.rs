//! The kinds of tokens, and what may stand where in the grammar (cel-go's CEL.g4).

/// The kind of a token, in the order in which messages list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Eof,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
}

/// The names of the kinds in messages.
const NAMES: [(Kind, &str); 36] = [
    (Kind::Eof, "<EOF>"),
    (Kind::Equals, "'=='"),
    (Kind::NotEquals, "'!='"),
    (Kind::In, "'in'"),
    (Kind::Less, "'<'"),
    (Kind::LessEquals, "'<='"),
    (Kind::GreaterEquals, "'>='"),
    (Kind::Greater, "'>'"),
    (Kind::And, "'&&'"),
    (Kind::Or, "'||'"),
    (Kind::LeftBracket, "'['"),
    (Kind::RightBracket, "']'"),
    (Kind::LeftBrace, "'{'"),
    (Kind::RightBrace, "'}'"),
    (Kind::LeftParen, "'('"),
    (Kind::RightParen, "')'"),
    (Kind::Dot, "'.'"),
    (Kind::Comma, "','"),
    (Kind::Minus, "'-'"),
    (Kind::Exclamation, "'!'"),
    (Kind::Question, "'?'"),
    (Kind::Colon, "':'"),
    (Kind::Plus, "'+'"),
    (Kind::Star, "'*'"),
    (Kind::Slash, "'/'"),
    (Kind::Percent, "'%'"),
    (Kind::True, "'true'"),
    (Kind::False, "'false'"),
    (Kind::Null, "'null'"),
    (Kind::Float, "NUM_FLOAT"),
    (Kind::Int, "NUM_INT"),
    (Kind::Uint, "NUM_UINT"),
    (Kind::String, "STRING"),
    (Kind::Bytes, "BYTES"),
    (Kind::Identifier, "IDENTIFIER"),
    (Kind::EscapedIdentifier, "ESC_IDENTIFIER"),
];

/// A set of kinds; and whether the rule may end there instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set(u64);

impl Set {
    /// The rule may end.
    pub(crate) const END: Set = Set(1 << 63);
    pub(crate) const NONE: Set = Set(0);

    pub(crate) const fn of(kinds: &[Kind]) -> Set {
        let mut bits = 0;
        let mut index = 0;
        while index < kinds.len() {
            bits |= 1 << (kinds[index] as u8);
            index += 1;
        }
        Set(bits)
    }

    pub(crate) const fn or(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    pub(crate) const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << (kind as u8)) != 0
    }

    pub(crate) const fn can_end(self) -> bool {
        self.0 & Self::END.0 != 0
    }

    pub(crate) const fn without_end(self) -> Set {
        Set(self.0 & !Self::END.0)
    }
}

impl std::fmt::Display for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> =
            NAMES.iter().filter(|(kind, _)| self.has(*kind)).map(|(_, name)| *name).collect();
        match names.as_slice() {
            [one] => f.write_str(one),
            more => write!(f, "{{{}}}", more.join(", ")),
        }
    }
}

/// What a literal begins with.
const LITERAL: Set = Set::of(&[
    Kind::Minus,
    Kind::True,
    Kind::False,
    Kind::Null,
    Kind::Float,
    Kind::Int,
    Kind::Uint,
    Kind::String,
    Kind::Bytes,
]);
/// What a primary begins with.
pub(crate) const PRIMARY: Set =
    LITERAL.or(Set::of(&[Kind::LeftBracket, Kind::LeftBrace, Kind::LeftParen, Kind::Dot, Kind::Identifier]));
/// What an expression begins with.
pub(crate) const EXPRESSION: Set = PRIMARY.or(Set::of(&[Kind::Exclamation]));
/// What an element of a list or the index of an optional begins with.
pub(crate) const OPTIONAL_EXPRESSION: Set = EXPRESSION.or(Set::of(&[Kind::Question]));
/// What the name of a field may be.
pub(crate) const FIELD_NAME: Set = Set::of(&[Kind::Identifier, Kind::EscapedIdentifier]);
/// What a field that is set begins with.
pub(crate) const OPTIONAL_FIELD: Set = FIELD_NAME.or(Set::of(&[Kind::Question]));
pub(crate) const RELATIONS: Set = Set::of(&[
    Kind::Equals,
    Kind::NotEquals,
    Kind::In,
    Kind::Less,
    Kind::LessEquals,
    Kind::GreaterEquals,
    Kind::Greater,
]);
pub(crate) const PRODUCTS: Set = Set::of(&[Kind::Star, Kind::Slash, Kind::Percent]);
pub(crate) const SUMS: Set = Set::of(&[Kind::Plus, Kind::Minus]);
/// What goes on with a member.
pub(crate) const MEMBER: Set = Set::of(&[Kind::Dot, Kind::LeftBracket]);

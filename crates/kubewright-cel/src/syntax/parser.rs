//! The rules of the grammar (cel-go's CEL.g4) by recursive descent. Errors are found and passed over in the places where the
//! parser that ANTLR makes of that grammar does it (`recovery.rs`).
//!
//! The depth of the recursion is bounded as in cel-go: [`MAX_DEPTH`] of one rule inside itself.

use std::sync::Arc;

use super::ast::{Ast, Element, Expr, Id, MapEntry, Offset, StructField, operators};
use super::balance::Chain;
use super::grammar::{
    EXPRESSION, FIELD_NAME, Kind, MEMBER, OPTIONAL_EXPRESSION, OPTIONAL_FIELD, PRIMARY, PRODUCTS, RELATIONS,
    SUMS, Set,
};
use super::lexer::{self, Source, Token};
use super::recovery::{Cursor, Failed, Place};
use super::{literals, macros};
use crate::error::{CompileErrors, Issue};
use crate::escaping::is_reserved;
use crate::limits::MAX_EXPRESSION_CODE_POINTS;

/// How deep one rule may be inside itself (`maxRecursionDepth`, cel-go's parser/parser.go).
const MAX_DEPTH: u32 = 250;

/// How deep a tree may get once macros are written out. cel-go has no such limit; what it takes, the recursion of the checker
/// and of the evaluation takes from the stack.
pub(super) const MAX_HEIGHT: u32 = 300;

/// How many nodes a tree may have. Some macros copy what they stand on, so that nested ones grow by powers of two.
pub(super) const MAX_NODES: usize = 300_000;

/// A tree, its root, and the text that it is of.
pub(crate) struct Parsed {
    pub(crate) ast: Ast,
    pub(crate) root: Id,
    pub(crate) source: Source,
}

pub(super) struct Parser<'s> {
    pub(super) cursor: Cursor<'s>,
    pub(super) ast: Ast,
    /// What was found wrong while making the tree; shown behind syntax errors of the same place.
    issues: Vec<Issue>,
    /// What was read of the rule that failed.
    partial: Option<Id>,
    expressions: u32,
    relations: u32,
    calculations: u32,
    /// Whether `cel.bind` is a macro.
    pub(super) bindings: bool,
}

/// Parses an expression, in which `cel.bind` is a macro or not.
pub(crate) fn parse(text: &str, bindings: bool) -> Result<Parsed, CompileErrors> {
    let source = Source::new(text);
    let fail = |source: &Source, mut issues: Vec<Issue>| {
        issues.sort_by_key(|issue| (issue.line, issue.column));
        CompileErrors::Issues { source: Arc::clone(&source.text), issues }
    };
    if source.len() > MAX_EXPRESSION_CODE_POINTS {
        let message = format!(
            "expression code point size exceeds limit: size: {}, limit {MAX_EXPRESSION_CODE_POINTS}",
            source.len()
        );
        return Err(fail(&source, vec![Issue { line: -1, column: -1, message }]));
    }
    let (tokens, unknown) = lexer::tokens(&source);
    let mut parser = Parser {
        cursor: Cursor::new(&source, tokens, unknown),
        ast: Ast::default(),
        issues: Vec::new(),
        partial: None,
        expressions: 0,
        relations: 0,
        calculations: 0,
        bindings,
    };
    let root = parser.start();
    let Parser { cursor, ast, issues: found, .. } = parser;
    let mut issues = cursor.issues();
    issues.extend(found);
    if issues.is_empty() && (ast.counted(root) > MAX_DEPTH || ast.height(root) > MAX_HEIGHT) {
        issues.push(Issue { line: -1, column: -1, message: "max recursion depth exceeded".to_owned() });
    }
    if issues.is_empty() { Ok(Parsed { ast, root, source }) } else { Err(fail(&source, issues)) }
}

/// The end of the rule, or what goes on with a sum, a product, a comparison.
const PRODUCT_LOOP: Set = PRODUCTS.or(SUMS).or(Set::END);
const RELATION_LOOP: Set = RELATIONS.or(Set::END);
const AND_LOOP: Set = Set::of(&[Kind::And]).or(Set::END);
const OR_LOOP: Set = Set::of(&[Kind::Or]).or(Set::END);
const COMMA_LOOP: Set = Set::of(&[Kind::Comma]).or(Set::END);
const QUESTION_OR_END: Set = Set::of(&[Kind::Question]).or(Set::END);
const COLON: Set = Set::of(&[Kind::Colon]);
const RIGHT_PAREN: Set = Set::of(&[Kind::RightParen]);
const RIGHT_BRACKET: Set = Set::of(&[Kind::RightBracket]);
const MEMBER_LOOP: Set = MEMBER.or(Set::END);

impl Parser<'_> {
    /// An issue about the tree.
    pub(super) fn issue(&mut self, at: Offset, message: impl Into<String>) -> Id {
        let issue = self.cursor.source.issue(at, message);
        self.issues.push(issue);
        self.ast.add(at, Expr::Missing)
    }

    fn missing(&mut self) -> Id {
        let at = self.cursor.offset();
        self.ast.add(at, Expr::Missing)
    }

    /// Ends a rule: one that failed is passed over.
    fn recovered(&mut self, result: Result<Id, Failed>, place: Place) -> Id {
        result.unwrap_or_else(|Failed| {
            let partial = self.partial.take();
            self.cursor.recover(place);
            partial.unwrap_or_else(|| self.missing())
        })
    }

    /// The end of what was read: if it is not there, what was read is kept.
    fn closed(&mut self, id: Id, closed: Result<(), Failed>) -> Result<Id, Failed> {
        if closed.is_err() {
            self.partial = Some(id);
        }
        closed.map(|()| id)
    }

    fn start(&mut self) -> Id {
        let root = self.expression(Set::of(&[Kind::Eof]));
        if self.cursor.expect(Kind::Eof, Set::NONE).is_err() {
            self.cursor.recover(0);
        }
        root
    }

    fn too_deep(&mut self, depth: u32) -> bool {
        if depth > MAX_DEPTH {
            self.cursor.stop(format!("expression recursion limit exceeded: {MAX_DEPTH}"));
        }
        self.cursor.stopped
    }

    /// `a ? b : c`, or less.
    pub(super) fn expression(&mut self, follow: Set) -> Id {
        self.expressions += 1;
        if self.too_deep(self.expressions) {
            self.expressions -= 1;
            return self.missing();
        }
        self.cursor.enter(follow);
        let mut id = self.disjunction(QUESTION_OR_END);
        if self.cursor.peek() == Kind::Question {
            let result = self.conditional(id);
            id = self.recovered(result, 1);
        }
        self.cursor.leave();
        self.expressions -= 1;
        id
    }

    fn conditional(&mut self, condition: Id) -> Result<Id, Failed> {
        let at = self.cursor.take().start;
        let positive = self.disjunction(COLON);
        if let Err(Failed) = self.cursor.expect(Kind::Colon, EXPRESSION) {
            let id = self.operator(at, operators::CONDITIONAL, vec![condition, positive]);
            return self.closed(id, Err(Failed));
        }
        let negative = self.expression(Set::END);
        let id = self.operator(at, operators::CONDITIONAL, vec![condition, positive, negative]);
        self.ast.count(id);
        Ok(id)
    }

    fn disjunction(&mut self, follow: Set) -> Id {
        self.cursor.enter(follow);
        let mut chain = Chain::new(self.conjunction(OR_LOOP));
        while self.cursor.peek() == Kind::Or {
            let at = self.cursor.take().start;
            chain.add(at, self.conjunction(OR_LOOP));
        }
        self.cursor.leave();
        chain.balanced(&mut self.ast, operators::OR)
    }

    fn conjunction(&mut self, follow: Set) -> Id {
        self.cursor.enter(follow);
        let mut chain = Chain::new(self.relation(AND_LOOP, false));
        while self.cursor.peek() == Kind::And {
            let at = self.cursor.take().start;
            chain.add(at, self.relation(AND_LOOP, false));
        }
        self.cursor.leave();
        chain.balanced(&mut self.ast, operators::AND)
    }

    /// Comparisons, from left to right; behind an operator only one operand.
    fn relation(&mut self, follow: Set, operand_only: bool) -> Id {
        self.relations += 1;
        if self.too_deep(self.relations) {
            self.relations -= 1;
            return self.missing();
        }
        self.cursor.enter(follow);
        let mut left = self.calculation(RELATION_LOOP, 1);
        while !operand_only && RELATIONS.has(self.cursor.peek()) {
            let token = self.cursor.take();
            let right = self.relation(RELATION_LOOP, true);
            left = self.binary(token, left, right);
        }
        self.cursor.leave();
        self.relations -= 1;
        left
    }

    /// Sums (precedence 1) and products (2), from left to right.
    fn calculation(&mut self, follow: Set, precedence: u8) -> Id {
        self.calculations += 1;
        if self.too_deep(self.calculations) {
            self.calculations -= 1;
            return self.missing();
        }
        self.cursor.enter(follow);
        let mut left = self.unary(PRODUCT_LOOP);
        loop {
            let next = match self.cursor.peek() {
                kind if PRODUCTS.has(kind) && precedence <= 2 => 3,
                kind if SUMS.has(kind) && precedence <= 1 => 2,
                _ => break,
            };
            let token = self.cursor.take();
            let right = self.calculation(PRODUCT_LOOP, next);
            left = self.binary(token, left, right);
        }
        self.cursor.leave();
        self.calculations -= 1;
        left
    }

    fn binary(&mut self, operator: Token, left: Id, right: Id) -> Id {
        let function = match operator.kind {
            Kind::Equals => operators::EQUALS,
            Kind::NotEquals => "_!=_",
            Kind::In => "@in",
            Kind::Less => "_<_",
            Kind::LessEquals => "_<=_",
            Kind::GreaterEquals => "_>=_",
            Kind::Greater => "_>_",
            Kind::Plus => operators::ADD,
            Kind::Minus => "_-_",
            Kind::Star => "_*_",
            Kind::Slash => "_/_",
            _ => "_%_",
        };
        let id = self.operator(operator.start, function, vec![left, right]);
        self.ast.count(id);
        id
    }

    fn unary(&mut self, follow: Set) -> Id {
        self.cursor.enter(follow);
        let result = self.unary_alternatives();
        let id = self.recovered(result, 2);
        self.cursor.leave();
        id
    }

    fn unary_alternatives(&mut self) -> Result<Id, Failed> {
        self.cursor.sync(EXPRESSION)?;
        let (operator, function) = match self.cursor.peek() {
            Kind::Exclamation => (Kind::Exclamation, operators::NOT),
            Kind::Minus if !self.is_negative_number() => (Kind::Minus, operators::NEGATE),
            kind if PRIMARY.has(kind) => return Ok(self.member(Set::END)),
            _ => return Err(self.cursor.no_alternative(0)),
        };
        if operator == Kind::Minus && !PRIMARY.has(self.cursor.ahead(1).kind) {
            return Err(self.cursor.no_alternative(1));
        }
        let at = self.cursor.offset();
        let mut count = 0;
        while self.cursor.peek() == operator {
            if operator == Kind::Minus && count > 0 && self.cursor.ahead(1).kind == Kind::Eof {
                break;
            }
            self.cursor.take();
            count += 1;
            self.cursor.sync_loop(if operator == Kind::Minus { PRIMARY } else { EXPRESSION });
        }
        let operand = self.member(Set::END);
        if count % 2 == 0 {
            return Ok(operand);
        }
        Ok(self.operator(at, function, vec![operand]))
    }

    fn operator(&mut self, at: Offset, function: &str, args: Vec<Id>) -> Id {
        self.ast.add(at, Expr::Call { function: function.into(), target: None, args })
    }

    /// Whether the minus belongs to a number.
    fn is_negative_number(&self) -> bool {
        matches!(self.cursor.ahead(1).kind, Kind::Int | Kind::Float)
    }

    /// A primary and what is picked from it.
    fn member(&mut self, follow: Set) -> Id {
        self.cursor.enter(follow);
        let result = self.member_chain();
        let id = self.recovered(result, 3);
        self.cursor.leave();
        id
    }

    fn member_chain(&mut self) -> Result<Id, Failed> {
        let mut id = self.primary(MEMBER_LOOP);
        loop {
            id = match self.cursor.peek() {
                Kind::Dot => self.selection(id)?,
                Kind::LeftBracket => self.index(id)?,
                _ => return Ok(id),
            };
            self.ast.count(id);
        }
    }

    fn selection(&mut self, operand: Id) -> Result<Id, Failed> {
        if self.cursor.ahead(1).kind == Kind::Question {
            return Ok(self.optional_selection(operand));
        }
        if !FIELD_NAME.has(self.cursor.ahead(1).kind) {
            return Err(self.cursor.no_alternative(1));
        }
        let dot = self.cursor.take();
        let token = self.cursor.take();
        let text = self.text(token);
        if token.kind == Kind::Identifier && self.cursor.peek() == Kind::LeftParen {
            let open = self.cursor.take();
            let (args, closed) = self.arguments();
            let id = macros::call(self, open.start, &text, Some(operand), args);
            return self.closed(id, closed);
        }
        if token.kind == Kind::EscapedIdentifier {
            self.issue(token.start, "unsupported syntax: '`'");
        }
        Ok(self.ast.add(dot.start, Expr::Select { operand, field: text, test_only: false }))
    }

    /// `operand.?name`
    fn optional_selection(&mut self, operand: Id) -> Id {
        let dot = self.cursor.take();
        self.cursor.take();
        self.cursor.enter(MEMBER_LOOP);
        let at = self.cursor.offset();
        let mut name: Arc<str> = "".into();
        if self.cursor.sync(FIELD_NAME).is_ok() && FIELD_NAME.has(self.cursor.peek()) {
            let token = self.cursor.take();
            name = self.text(token);
            if token.kind == Kind::EscapedIdentifier {
                self.issue(token.start, "unsupported syntax: '`'");
            }
        } else {
            self.cursor.recover(8);
            self.issue(at, "unsupported ident kind");
        }
        self.cursor.leave();
        let name = self.ast.add(at, Expr::Literal(super::ast::Literal::String(name)));
        self.operator(dot.start, operators::OPTIONAL_SELECT, vec![operand, name])
    }

    fn index(&mut self, operand: Id) -> Result<Id, Failed> {
        let open = self.cursor.take();
        self.cursor.sync(OPTIONAL_EXPRESSION)?;
        let optional = self.cursor.peek() == Kind::Question;
        if optional {
            self.cursor.take();
        }
        let index = self.expression(RIGHT_BRACKET);
        let closed = self.cursor.expect(Kind::RightBracket, MEMBER_LOOP).map(|_| ());
        let function = if optional { operators::OPTIONAL_INDEX } else { operators::INDEX };
        let id = self.operator(open.start, function, vec![operand, index]);
        self.closed(id, closed)
    }

    /// The arguments of a call, behind the parenthesis; and whether they ended.
    fn arguments(&mut self) -> (Vec<Id>, Result<(), Failed>) {
        let mut args = Vec::new();
        if let Err(Failed) = self.cursor.sync(EXPRESSION.or(RIGHT_PAREN)) {
            return (args, Err(Failed));
        }
        if EXPRESSION.has(self.cursor.peek()) {
            self.cursor.enter(RIGHT_PAREN);
            args.push(self.expression(COMMA_LOOP));
            while self.cursor.peek() == Kind::Comma {
                self.cursor.take();
                args.push(self.expression(COMMA_LOOP));
            }
            self.cursor.leave();
        }
        let closed = self.cursor.expect(Kind::RightParen, MEMBER_LOOP).map(|_| ());
        (args, closed)
    }

    fn primary(&mut self, follow: Set) -> Id {
        self.cursor.enter(follow);
        let result = self.primary_alternatives();
        let id = self.recovered(result, 4);
        self.cursor.leave();
        id
    }

    fn primary_alternatives(&mut self) -> Result<Id, Failed> {
        self.cursor.sync(PRIMARY)?;
        match self.cursor.peek() {
            Kind::LeftParen => {
                self.cursor.take();
                let id = self.expression(RIGHT_PAREN);
                let closed = self.cursor.expect(Kind::RightParen, Set::END).map(|_| ());
                self.closed(id, closed)
            }
            Kind::LeftBracket => self.list(),
            Kind::LeftBrace => self.map(),
            Kind::Identifier => self.named(0),
            Kind::Dot if self.cursor.ahead(1).kind == Kind::Identifier => self.named(1),
            Kind::Dot => Err(self.cursor.no_alternative(1)),
            Kind::Minus if !self.is_negative_number() => Err(self.cursor.no_alternative(1)),
            kind if PRIMARY.has(kind) => Ok(self.literal()),
            _ => Err(self.cursor.no_alternative(0)),
        }
    }

    fn literal(&mut self) -> Id {
        let mut token = self.cursor.take();
        let at = token.start;
        let negative = token.kind == Kind::Minus;
        if negative {
            token = self.cursor.take();
        }
        match literals::read(token.kind, negative, &self.text(token)) {
            Ok(literal) => self.ast.add(at, Expr::Literal(literal)),
            Err(message) => self.issue(at, message),
        }
    }

    /// What begins with a name: a variable, a call, or an object that is made.
    fn named(&mut self, leading_dots: usize) -> Result<Id, Failed> {
        let mut end = leading_dots + 1;
        while self.cursor.ahead(end).kind == Kind::Dot && self.cursor.ahead(end + 1).kind == Kind::Identifier
        {
            end += 2;
        }
        if self.cursor.ahead(end).kind == Kind::LeftBrace {
            return self.object(end);
        }
        let start = self.cursor.offset();
        if leading_dots > 0 {
            self.cursor.take();
        }
        let token = self.cursor.take();
        let text = self.text(token);
        let name: Arc<str> = if leading_dots > 0 { format!(".{text}").into() } else { Arc::clone(&text) };
        let found = self.issues.len();
        let mut args = None;
        let mut at = token.start;
        let mut closed = Ok(());
        if self.cursor.peek() == Kind::LeftParen {
            at = self.cursor.take().start;
            let given;
            (given, closed) = self.arguments();
            args = Some(given);
        }
        if is_reserved(&text) {
            self.issues.truncate(found);
            let id = self.issue(start, format!("reserved identifier: {text}"));
            return self.closed(id, closed);
        }
        let id = match args {
            Some(args) => macros::call(self, at, &name, None, args),
            None => self.ast.add(at, Expr::Ident(name)),
        };
        self.closed(id, closed)
    }

    fn object(&mut self, name_length: usize) -> Result<Id, Failed> {
        let mut name = String::new();
        for _ in 0..name_length {
            let token = self.cursor.take();
            name.push_str(&self.text(token));
        }
        let at = self.cursor.take().start;
        let closing = Set::of(&[Kind::Comma, Kind::RightBrace]);
        self.cursor.sync(OPTIONAL_FIELD.or(closing))?;
        let mut fields = Vec::new();
        if OPTIONAL_FIELD.has(self.cursor.peek()) {
            self.cursor.enter(closing);
            let result = self.fields(&mut fields);
            if let Err(Failed) = result {
                self.cursor.recover(5);
            }
            self.cursor.leave();
        }
        let closed = self.close(Kind::RightBrace);
        let id = self.ast.add(at, Expr::Struct { name: name.into(), fields });
        self.closed(id, closed)
    }

    fn fields(&mut self, fields: &mut Vec<StructField>) -> Result<(), Failed> {
        loop {
            self.cursor.sync(OPTIONAL_FIELD)?;
            let optional = self.cursor.peek() == Kind::Question;
            if optional {
                self.cursor.take();
                self.cursor.sync(FIELD_NAME)?;
            }
            if !FIELD_NAME.has(self.cursor.peek()) {
                return Err(self.cursor.no_alternative(0));
            }
            let token = self.cursor.take();
            if token.kind == Kind::EscapedIdentifier {
                self.issue(token.start, "unsupported syntax: '`'");
            }
            let colon = self.cursor.expect(Kind::Colon, EXPRESSION)?;
            let id = self.ast.add(colon.start, Expr::Missing);
            let value = self.expression(COMMA_LOOP);
            fields.push(StructField { id, name: self.text(token), value, optional });
            if !self.another(OPTIONAL_FIELD) {
                return Ok(());
            }
        }
    }

    /// Whether a comma and a further element follow; takes the comma.
    fn another(&mut self, first: Set) -> bool {
        let more = self.cursor.peek() == Kind::Comma && first.has(self.cursor.ahead(1).kind);
        if more {
            self.cursor.take();
        }
        more
    }

    /// The comma that may stand before the end of a list or map, and the end.
    fn close(&mut self, kind: Kind) -> Result<(), Failed> {
        self.cursor.sync(Set::of(&[Kind::Comma, kind]))?;
        if self.cursor.peek() == Kind::Comma {
            self.cursor.take();
        }
        self.cursor.expect(kind, Set::END)?;
        Ok(())
    }

    fn list(&mut self) -> Result<Id, Failed> {
        let at = self.cursor.take().start;
        let closing = Set::of(&[Kind::Comma, Kind::RightBracket]);
        self.cursor.sync(OPTIONAL_EXPRESSION.or(closing))?;
        let mut elements = Vec::new();
        if OPTIONAL_EXPRESSION.has(self.cursor.peek()) {
            self.cursor.enter(closing);
            loop {
                let (value, optional) = self.optional_expression(COMMA_LOOP);
                elements.push(Element { value, optional });
                if !self.another(OPTIONAL_EXPRESSION) {
                    break;
                }
            }
            self.cursor.leave();
        }
        let closed = self.close(Kind::RightBracket);
        let id = self.ast.add(at, Expr::List(elements));
        self.closed(id, closed)
    }

    fn map(&mut self) -> Result<Id, Failed> {
        let at = self.cursor.take().start;
        let closing = Set::of(&[Kind::Comma, Kind::RightBrace]);
        self.cursor.sync(OPTIONAL_EXPRESSION.or(closing))?;
        let mut entries = Vec::new();
        if OPTIONAL_EXPRESSION.has(self.cursor.peek()) {
            self.cursor.enter(closing);
            if let Err(Failed) = self.entries(&mut entries) {
                self.cursor.recover(6);
            }
            self.cursor.leave();
        }
        let closed = self.close(Kind::RightBrace);
        let id = self.ast.add(at, Expr::Map(entries));
        self.closed(id, closed)
    }

    fn entries(&mut self, entries: &mut Vec<MapEntry>) -> Result<(), Failed> {
        loop {
            let (key, optional) = self.optional_expression(COLON);
            self.cursor.expect(Kind::Colon, EXPRESSION)?;
            let value = self.expression(COMMA_LOOP);
            entries.push(MapEntry { key, value, optional });
            if !self.another(OPTIONAL_EXPRESSION) {
                return Ok(());
            }
        }
    }

    /// An expression, or a question mark and one.
    fn optional_expression(&mut self, follow: Set) -> (Id, bool) {
        self.cursor.enter(follow);
        if self.cursor.sync(OPTIONAL_EXPRESSION).is_err() {
            self.cursor.recover(7);
            self.cursor.leave();
            return (self.missing(), false);
        }
        let optional = self.cursor.peek() == Kind::Question;
        if optional {
            self.cursor.take();
        }
        let id = self.expression(Set::END);
        self.cursor.leave();
        (id, optional)
    }

    fn text(&self, token: Token) -> Arc<str> {
        self.cursor.source.slice(token.start, token.end).into()
    }
}

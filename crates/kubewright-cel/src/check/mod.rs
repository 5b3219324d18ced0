//! The type checker (cel-go's checker/checker.go): finds out the type of every node, what names refer to and which overloads
//! a call may mean, and reports what cannot be right.

mod literals;
mod structs;
mod unify;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::unify::{Substitutions, most_general};
use crate::declaration::DeclType;
use crate::environment::Declarations;
use crate::error::Issue;
use crate::library::{self, Function};
use crate::syntax::Parsed;
use crate::syntax::ast::{Comprehension, Element, Expr, Id, Literal, MapEntry, operators};
use crate::types::{Fields, ObjectType, Param, Type, names};

/// A tree in which everything is known.
pub(crate) struct Checked {
    pub(crate) parsed: Parsed,
    /// By node.
    pub(crate) types: Vec<Type>,
    /// By node.
    pub(crate) references: Vec<Reference>,
}

/// What a node refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Reference {
    #[default]
    None,
    /// A variable of the environment; selections that spell a name with dots are one too.
    Variable,
    /// A variable of a loop.
    Local,
    /// The name of a type.
    Type(Type),
    /// A call: the overloads that it may mean.
    Call(Call),
}

/// The meaning of a call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: &'static Function,
    /// Indexes into the overloads of the function.
    pub(crate) overloads: Vec<usize>,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.function, other.function) && self.overloads == other.overloads
    }
}

pub(super) struct Checker<'e> {
    declarations: &'e Declarations,
    parsed: Parsed,
    types: Vec<Option<Type>>,
    references: Vec<Reference>,
    substitutions: Substitutions,
    fresh: u32,
    /// Variables of loops, innermost last.
    scopes: Vec<BTreeMap<Arc<str>, Type>>,
    issues: Vec<Issue>,
}

/// Checks a tree against declarations.
pub(crate) fn check(declarations: &Declarations, parsed: Parsed) -> Result<Checked, Vec<Issue>> {
    let root = parsed.root;
    let count = parsed.ast.len();
    let mut checker = Checker {
        declarations,
        parsed,
        types: vec![None; count],
        references: vec![Reference::None; count],
        substitutions: Substitutions::default(),
        fresh: 0,
        scopes: Vec::new(),
        issues: Vec::new(),
    };
    checker.check(root);
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    let Checker { parsed, types, references, substitutions, .. } = checker;
    let types =
        types.iter().map(|known| known.as_ref().map_or(Type::Dyn, |known| substitutions.apply(known, true)));
    let checked = Checked { types: types.collect(), parsed, references };
    let issues = literals::check(&checked);
    if issues.is_empty() { Ok(checked) } else { Err(issues) }
}

impl Checked {
    pub(crate) fn expr(&self, id: Id) -> &Expr {
        self.parsed.ast.expr(id)
    }

    pub(crate) fn type_of(&self, id: Id) -> &Type {
        &self.types[id.index()]
    }

    /// The names of the variables of the environment that it names.
    pub(crate) fn variables(&self) -> Vec<Box<str>> {
        let mut names: Vec<Box<str>> = Vec::new();
        for (index, reference) in self.references.iter().enumerate() {
            if let (Reference::Variable, Expr::Ident(name)) = (reference, self.parsed.ast.expr(Id::at(index)))
            {
                names.push((&**name).into());
            }
        }
        names.sort();
        names.dedup();
        names
    }

    pub(crate) fn reference(&self, id: Id) -> &Reference {
        &self.references[id.index()]
    }
}

impl Checker<'_> {
    fn issue(&mut self, id: Id, message: impl Into<String>) {
        let issue = self.parsed.source.issue(self.parsed.ast.offset(id), message);
        self.issues.push(issue);
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.issue(id, format!("undeclared reference to '{name}' (in container '')"));
        self.set(id, Type::Error);
    }

    fn set(&mut self, id: Id, r#type: Type) {
        self.types[id.index()] = Some(r#type);
    }

    /// The type as found so far.
    fn found(&self, id: Id) -> Type {
        self.types[id.index()].clone().unwrap_or(Type::Error)
    }

    /// The type with what is known about its parameters.
    fn known(&self, id: Id) -> Type {
        self.substitutions.apply(&self.found(id), false)
    }

    fn fresh(&mut self) -> Type {
        let param = Param::Fresh(self.fresh);
        self.fresh += 1;
        Type::Param(param)
    }

    fn check(&mut self, id: Id) {
        match self.parsed.ast.expr(id).clone() {
            Expr::Missing => self.set(id, Type::Error),
            Expr::Literal(literal) => self.set(id, literal_type(&literal)),
            Expr::Ident(name) => self.check_ident(id, &name),
            Expr::Select { operand, field, test_only } => self.check_select(id, operand, &field, test_only),
            Expr::Call { function, target, args } => self.check_call(id, &function, target, &args),
            Expr::List(elements) => self.check_list(id, &elements),
            Expr::Map(entries) => self.check_map(id, &entries),
            Expr::Struct { name, fields } => self.check_struct(id, &name, &fields),
            Expr::Comprehension(fold) => self.check_fold(id, &fold),
        }
    }

    /// What a name means: a variable of a loop, of the environment, or a type.
    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(local) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return Some((local.clone(), Reference::Local));
        }
        if let Some(declaration) = self.declarations.variables.get(name) {
            return Some((declaration.cel_type(), Reference::Variable));
        }
        let named = self.named_type(name)?;
        Some((Type::Type(Some(Arc::new(named.clone()))), Reference::Type(named)))
    }

    /// The type that a name stands for.
    fn named_type(&self, name: &str) -> Option<Type> {
        let param = |letter| Type::Param(Param::Declared(letter));
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "string" => Type::String,
            "null_type" => Type::Null,
            "type" => Type::Type(None),
            "list" => Type::list(param('A')),
            "map" => Type::map(param('A'), param('B')),
            "optional_type" => Type::optional(param('V')),
            // Known where there are declared types, though no program can be made with them.
            "duration" if self.has_declared_types() => Type::Duration,
            "timestamp" if self.has_declared_types() => Type::Timestamp,
            "google.protobuf.Duration" => Type::Duration,
            "google.protobuf.Timestamp" => Type::Timestamp,
            names::IP => Type::Opaque(names::IP),
            names::CIDR => Type::Opaque(names::CIDR),
            names::JSON_PATCH if self.declarations.patch_types => Type::json_patch(),
            _ if self.declarations.patch_types && is_object_name(name) => Type::any_fields(name),
            _ => return self.declared_object(name),
        })
    }

    fn has_declared_types(&self) -> bool {
        self.declarations.variables.values().any(DeclType::is_of_schema)
    }

    /// The object type of that name in the types of variables.
    fn declared_object(&self, name: &str) -> Option<Type> {
        self.declarations.variables.values().find_map(|declaration| declaration.find_object(name))
    }

    fn check_ident(&mut self, id: Id, name: &str) {
        match self.lookup(name) {
            Some((r#type, reference)) => {
                self.set(id, r#type);
                self.references[id.index()] = reference;
                if let Some(plain) = name.strip_prefix('.') {
                    self.parsed.ast.replace(id, Expr::Ident(plain.into()));
                }
            }
            None => self.undeclared(id, name),
        }
    }

    fn check_select(&mut self, id: Id, operand: Id, field: &str, test_only: bool) {
        if !test_only
            && let Some(name) = self.qualified_name(id)
            && let Some((r#type, reference)) = self.lookup(&name)
        {
            self.set(id, r#type);
            self.references[id.index()] = reference;
            self.parsed.ast.replace(id, Expr::Ident(name.trim_start_matches('.').into()));
            return;
        }
        let result = self.check_field(id, operand, field, false);
        let result = if test_only { Type::Bool } else { result };
        let known = self.substitutions.apply(&result, false);
        self.set(id, known);
    }

    /// `a.b.c` of names only, as one name.
    fn qualified_name(&self, id: Id) -> Option<String> {
        match self.parsed.ast.expr(id) {
            Expr::Ident(name) => Some(name.to_string()),
            Expr::Select { operand, field, test_only: false } => {
                Some(format!("{}.{field}", self.qualified_name(*operand)?))
            }
            _ => None,
        }
    }

    /// The type of a field of the operand.
    fn check_field(&mut self, id: Id, operand: Id, field: &str, optional: bool) -> Type {
        self.check(operand);
        let (target, was_optional) = unwrap_optional(self.known(operand));
        let result = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => self.field_type(id, object, field).unwrap_or(Type::Error),
            Type::Param(_) => {
                self.substitutions.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            _ => {
                if !target.is_dyn_or_error() {
                    self.issue(id, format!("type '{target}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(result) } else { result }
    }

    fn field_type(&mut self, id: Id, object: &ObjectType, field: &str) -> Option<Type> {
        let known = match &object.fields {
            Fields::Any => Some(Type::Dyn),
            Fields::Hidden => None,
            Fields::Declared(declaration) => {
                declaration.field(field).map(super::declaration::DeclType::cel_type)
            }
            Fields::JsonPatch => match field {
                "value" => Some(Type::Dyn),
                "op" | "path" | "from" => Some(Type::String),
                _ => Some(Type::Opaque("")),
            },
        };
        match (&known, &object.fields) {
            (Some(_), _) => {}
            (None, Fields::Hidden) => {
                self.issue(id, format!("unexpected failed resolution of '{}'", object.name));
            }
            (None, _) => self.issue(id, format!("undefined field '{field}'")),
        }
        known
    }

    fn check_call(&mut self, id: Id, name: &str, target: Option<Id>, args: &[Id]) {
        if name == operators::OPTIONAL_SELECT && target.is_none() {
            self.check_optional_select(id, args);
            return;
        }
        for arg in args {
            self.check(*arg);
        }
        let Some(target) = target else {
            match self.function(name) {
                Some(function) => self.resolve(id, function, None, args),
                None => self.undeclared(id, name),
            }
            return;
        };
        if let Some(function) =
            self.qualified_name(target).and_then(|prefix| self.function(&format!("{prefix}.{name}")))
        {
            self.parsed.ast.replace(
                id,
                Expr::Call { function: function.name.into(), target: None, args: args.to_vec() },
            );
            self.resolve(id, function, None, args);
            return;
        }
        self.check(target);
        match self.function(name) {
            Some(function) => self.resolve(id, function, Some(target), args),
            None => self.undeclared(id, name),
        }
    }

    fn function(&self, name: &str) -> Option<&'static Function> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let function = library::function(name)?;
        (self.declarations.patch_types || !name.starts_with("jsonpatch.")).then_some(function)
    }

    fn check_optional_select(&mut self, id: Id, args: &[Id]) {
        let [operand, field] = args else { return };
        let Expr::Literal(Literal::String(field)) = self.parsed.ast.expr(*field).clone() else { return };
        let result = self.check_field(id, *operand, &field, true);
        let known = self.substitutions.apply(&result, false);
        self.set(id, known);
        if let Some(function) = self.function(operators::OPTIONAL_SELECT) {
            self.references[id.index()] = Reference::Call(Call { function, overloads: vec![0] });
        }
    }

    /// Finds the overloads that the call may mean; the first decides the type, unless another differs.
    fn resolve(&mut self, id: Id, function: &'static Function, target: Option<Id>, args: &[Id]) {
        let mut arguments: Vec<Type> = target.iter().chain(args).map(|arg| self.found(*arg)).collect();
        if matches!(function.name, operators::AND | operators::OR) {
            self.resolve_logic(id, function, args, &arguments);
            return;
        }
        let mut result: Option<Type> = None;
        let mut overloads = Vec::new();
        for (index, overload) in function.overloads.iter().enumerate() {
            if overload.member != target.is_some() {
                continue;
            }
            let (parameters, returns) = self.instantiate(&overload.parameters, &overload.result);
            if !self.substitutions.assign_all(&arguments, &parameters) {
                continue;
            }
            overloads.push(index);
            let returns = self.substitutions.apply(&returns, false);
            result = Some(match result {
                Some(first) if !first.is_dyn() && returns != first => Type::Dyn,
                Some(first) => first,
                None => returns,
            });
        }
        let Some(result) = result else {
            for argument in &mut arguments {
                *argument = self.substitutions.apply(argument, true);
            }
            self.no_overload(id, function.name, &arguments, target.is_some());
            return;
        };
        self.set(id, result);
        self.references[id.index()] = Reference::Call(Call { function, overloads });
    }

    fn no_overload(&mut self, id: Id, function: &str, arguments: &[Type], member: bool) {
        let mut shown = String::new();
        let mut rest = arguments;
        if let (true, [target, others @ ..]) = (member, arguments) {
            shown = format!("{target}.");
            rest = others;
        }
        let list: Vec<String> = rest.iter().map(ToString::to_string).collect();
        self.issue(
            id,
            format!("found no matching overload for '{function}' applied to '{shown}({})'", list.join(", ")),
        );
        self.set(id, Type::Error);
    }

    fn resolve_logic(&mut self, id: Id, function: &'static Function, args: &[Id], arguments: &[Type]) {
        let mut failed = false;
        for (arg, argument) in args.iter().zip(arguments) {
            if !self.substitutions.assign(argument, &Type::Bool) {
                self.issue(*arg, format!("expected type 'bool' but found '{argument}'"));
                failed = true;
            }
        }
        self.set(id, if failed { Type::Error } else { Type::Bool });
        self.references[id.index()] = Reference::Call(Call { function, overloads: vec![0] });
    }

    /// The types of an overload with parameters of its own.
    fn instantiate(&mut self, parameters: &[Type], result: &Type) -> (Vec<Type>, Type) {
        let mut own = Substitutions::default();
        let mut declared = Vec::new();
        for r#type in parameters.iter().chain([result]) {
            collect_params(r#type, &mut declared);
        }
        for param in declared {
            let fresh = self.fresh();
            own.set(param, fresh);
        }
        (parameters.iter().map(|parameter| own.apply(parameter, false)).collect(), own.apply(result, false))
    }

    fn check_list(&mut self, id: Id, elements: &[Element]) {
        let mut joined = None;
        for element in elements {
            self.check(element.value);
            let found = self.optional_value(element.value, element.optional);
            joined = Some(self.join(joined, found));
        }
        let element = joined.unwrap_or_else(|| self.fresh());
        self.set(id, Type::list(element));
    }

    fn check_map(&mut self, id: Id, entries: &[MapEntry]) {
        let mut keys = None;
        let mut values = None;
        for entry in entries {
            self.check(entry.key);
            let key = self.found(entry.key);
            keys = Some(self.join(keys, key));
            self.check(entry.value);
            let value = self.optional_value(entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.fresh());
        let value = values.unwrap_or_else(|| self.fresh());
        self.set(id, Type::map(key, value));
    }

    /// The type of a value; for an optional one (`?value`) of what is in it.
    fn optional_value(&mut self, id: Id, optional: bool) -> Type {
        let found = self.found(id);
        if !optional {
            return found;
        }
        let (inner, was_optional) = unwrap_optional(found);
        if !was_optional && !inner.is_dyn() {
            self.issue(id, format!("expected type 'optional_type({inner})' but found '{inner}'"));
        }
        inner
    }

    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.substitutions.assign(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        // Whether that may be is looked at when all types are known.
        Type::Dyn
    }

    fn check_fold(&mut self, id: Id, fold: &Comprehension) {
        self.check(fold.range);
        self.check(fold.init);
        let range = self.known(fold.range);
        let accumulator = self.found(fold.init);
        self.scopes.push(BTreeMap::from([(Arc::clone(&fold.accumulator), accumulator.clone())]));
        let (first, second) = self.loop_types(fold.range, &range, fold.second_variable.is_some());
        let mut variables = BTreeMap::from([(Arc::clone(&fold.variable), first)]);
        variables.extend(fold.second_variable.iter().map(|name| (Arc::clone(name), second.clone())));
        self.scopes.push(variables);
        self.check(fold.condition);
        self.expect(fold.condition, &Type::Bool);
        self.check(fold.step);
        self.expect(fold.step, &accumulator);
        self.scopes.pop();
        self.check(fold.result);
        self.scopes.pop();
        let result = self.known(fold.result);
        self.set(id, result);
    }

    /// The types of the variables of a loop over `range`.
    fn loop_types(&mut self, id: Id, range: &Type, two: bool) -> (Type, Type) {
        match range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.substitutions.assign(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(id, message);
                (Type::Error, Type::Error)
            }
        }
    }

    fn expect(&mut self, id: Id, expected: &Type) {
        let found = self.found(id);
        if !self.substitutions.assign(expected, &found) {
            self.issue(id, format!("expected type '{expected}' but found '{found}'"));
        }
    }
}

/// Whether it is a name of an object type of mutating policies: `Object`, `Object.spec`.
fn is_object_name(name: &str) -> bool {
    name.strip_prefix(names::OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn unwrap_optional(r#type: Type) -> (Type, bool) {
    match r#type {
        Type::Optional(inner) => ((*inner).clone(), true),
        other => (other, false),
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

fn collect_params(r#type: &Type, params: &mut Vec<Param>) {
    match r#type {
        Type::Param(param) if !params.contains(param) => params.push(*param),
        Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => collect_params(inner, params),
        Type::Map(key, value) => {
            collect_params(key, params);
            collect_params(value, params);
        }
        _ => {}
    }
}

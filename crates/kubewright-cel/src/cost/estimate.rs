//! What an expression costs at least and at most, by what is declared about the variables (cel-go's checker/cost.go).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::functions;
use super::runtime::LIST;
use super::sizes::{CostEstimate, Size};
use crate::check::{Checked, Reference};
use crate::declaration::{DeclType, Shape};
use crate::environment::Declarations;
use crate::syntax::ast::{Comprehension, Element, Expr, Id, Literal, MapEntry, operators};
use crate::types::Type;

const MAP: u64 = 30;
const STRUCT: u64 = 40;

/// Estimates an expression. Sizes are those of the variable `self`, which is the root for whatever else there is
/// (`sizeEstimator` in k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go); of selectors of devices those of
/// `device` (k8s.io/dynamic-resource-allocation/cel/compile.go).
pub(crate) fn estimate(declarations: &Declarations, checked: &Checked) -> CostEstimate {
    let mut estimator = Estimator {
        checked,
        root: declarations.variables.get("self").or_else(|| declarations.variables.get("device")),
        paths: vec![Path::default(); checked.types.len()],
        sizes: vec![None; checked.types.len()],
        entries: vec![None; checked.types.len()],
        locals: BTreeMap::new(),
    };
    estimator.cost(checked.parsed.root)
}

/// The way from a variable to a node: empty, or what is declared there, if anything is.
#[derive(Clone, Debug, Default)]
pub(super) struct Path(Option<Option<DeclType>>);

/// The sizes of what is in a list or map.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    key: Size,
    value: Size,
}

#[derive(Clone, Debug)]
struct Local {
    path: Path,
    size: Option<Size>,
    entries: Option<Entries>,
}

struct Estimator<'c> {
    checked: &'c Checked,
    root: Option<&'c DeclType>,
    /// By node, as are the next two.
    paths: Vec<Path>,
    sizes: Vec<Option<Size>>,
    entries: Vec<Option<Entries>>,
    locals: BTreeMap<Arc<str>, Vec<Local>>,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub(super) struct Argument<'c> {
    pub(super) path: Path,
    pub(super) r#type: &'c Type,
    pub(super) literal: Option<&'c Literal>,
    /// What is known about its size, but for what is declared.
    pub(super) computed: Option<Size>,
    pub(super) cost: CostEstimate,
}

/// What a call costs, and how large its result is.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallEstimate {
    pub(super) cost: CostEstimate,
    pub(super) size: Option<Size>,
}

impl Path {
    /// What is declared there about the size.
    pub(super) fn size(&self) -> Option<Size> {
        let declared = self.0.as_ref()?.as_ref()?;
        Some(Size { min: 0, max: declared.max_elements() })
    }

    /// The items of a list here; nothing if there is no path.
    pub(super) fn items(&self) -> Self {
        match &self.0 {
            Some(declared) => {
                Self(Some(declared.as_ref().and_then(|declared| inner(declared, Inner::Items))))
            }
            None => Self(None),
        }
    }
}

#[derive(Clone, Copy)]
enum Inner<'n> {
    /// Items of a list, values of a map.
    Items,
    Keys,
    /// There is nothing declared about them.
    Indices,
    Field(&'n str),
}

fn inner(declared: &DeclType, step: Inner<'_>) -> Option<DeclType> {
    match (declared.shape(), step) {
        (Shape::List(inner, _) | Shape::Map(inner), Inner::Items) => Some(inner.clone()),
        (Shape::Map(_), Inner::Keys) => Some(DeclType::string_enum(declared.max_key())),
        // All attributes of a device are as large, whatever they are called.
        (Shape::Map(inner), Inner::Field(_)) if matches!(inner.shape(), Shape::Any) => Some(inner.clone()),
        (Shape::Object(object), Inner::Field(name)) => {
            let mut fields = object.fields.values();
            let field =
                fields.find(|field| field.escaped() == Some(name) && field.declaration().is_exposed());
            field.map(|field| field.declaration().clone())
        }
        _ => None,
    }
}

impl<'c> Estimator<'c> {
    /// The path one step on. One that begins with a step begins at the root.
    fn step(&self, path: &Path, step: Inner<'_>) -> Path {
        Path(Some(match &path.0 {
            None => self.root.cloned(),
            Some(declared) => declared.as_ref().and_then(|declared| inner(declared, step)),
        }))
    }

    fn path(&self, id: Id) -> Path {
        if let Expr::Ident(name) = self.checked.expr(id)
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths[id.index()].clone()
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name)?.last()
    }

    fn push(&mut self, name: &Arc<str>, local: Local) {
        self.locals.entry(Arc::clone(name)).or_default().push(local);
    }

    fn pop(&mut self, name: &Arc<str>) {
        if let Some(locals) = self.locals.get_mut(name) {
            locals.pop();
        }
    }

    /// The size of what a node gives, where it is known.
    fn size(&mut self, id: Id) -> Option<Size> {
        if let Some(size) = self.sizes[id.index()] {
            return Some(size);
        }
        let literal = match self.checked.expr(id) {
            Expr::Literal(Literal::String(text)) => Some(text.chars().count()),
            Expr::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Expr::Literal(_) => Some(1),
            Expr::List(elements) => Some(elements.len()),
            Expr::Map(entries) => Some(entries.len()),
            _ => None,
        };
        if let Some(size) = literal {
            return Some(Size::fixed(size as u64));
        }
        if let Some(size) = self.path(id).size() {
            self.sizes[id.index()] = Some(size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(id)) {
            return Some(Size::fixed(1));
        }
        match self.checked.expr(id) {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, id: Id) -> Size {
        self.size(id).unwrap_or(Size::UNKNOWN)
    }

    fn entries(&self, id: Id) -> Option<Entries> {
        self.entries[id.index()].or_else(|| match self.checked.expr(id) {
            Expr::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        })
    }

    fn cost(&mut self, id: Id) -> CostEstimate {
        let checked = self.checked;
        match checked.expr(id) {
            Expr::Missing | Expr::Literal(_) => CostEstimate::fixed(0),
            Expr::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => self.step(&Path(None), Inner::Field(name)),
                };
                self.paths[id.index()] = path;
                CostEstimate::fixed(1)
            }
            Expr::Select { operand, field, test_only } => self.select(id, *operand, field, *test_only),
            Expr::Call { function, target, args } => self.call(id, function, *target, args),
            Expr::List(elements) => self.list(id, elements),
            Expr::Map(entries) => self.map(id, entries),
            Expr::Struct { fields, .. } => {
                let fields = fields.iter().map(|field| self.cost(field.value));
                fields.fold(CostEstimate::fixed(STRUCT), CostEstimate::add)
            }
            Expr::Comprehension(fold) => self.fold(id, fold),
        }
    }

    fn select(&mut self, id: Id, operand: Id, field: &str, test_only: bool) -> CostEstimate {
        let cost = self.cost(operand);
        if test_only {
            return cost;
        }
        let path = self.path(operand);
        self.paths[id.index()] = self.step(&path, Inner::Field(field));
        let counts =
            matches!(self.checked.type_of(operand), Type::Map(..) | Type::Object(_) | Type::Param(_));
        cost.add(CostEstimate::fixed(u64::from(counts)))
    }

    fn list(&mut self, id: Id, elements: &[Element]) -> CostEstimate {
        let mut cost = CostEstimate::fixed(LIST);
        let mut size: Option<Size> = None;
        for element in elements {
            cost = cost.add(self.cost(element.value));
            let element = self.size_or_unknown(element.value);
            size = Some(size.map_or(element, |size| size.union(element)));
        }
        let value = size.unwrap_or_default();
        self.entries[id.index()] = Some(Entries { is_list: true, key: Size::fixed(1), value });
        cost
    }

    fn map(&mut self, id: Id, entries: &[MapEntry]) -> CostEstimate {
        let mut cost = CostEstimate::fixed(MAP);
        let mut sizes: Option<(Size, Size)> = None;
        for entry in entries {
            cost = cost.add(self.cost(entry.key)).add(self.cost(entry.value));
            let (key, value) = (self.size_or_unknown(entry.key), self.size_or_unknown(entry.value));
            sizes = Some(sizes.map_or((key, value), |(keys, values)| (keys.union(key), values.union(value))));
        }
        let (key, value) = sizes.unwrap_or_default();
        self.entries[id.index()] = Some(Entries { is_list: false, key, value });
        cost
    }

    fn call(&mut self, id: Id, function: &str, target: Option<Id>, args: &[Id]) -> CostEstimate {
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.cost(*arg);
            self.copy_sizes(id, *arg);
            return cost.add(CostEstimate::fixed(1));
        }
        let arguments: Vec<Argument<'c>> = args.iter().map(|arg| self.argument(*arg)).collect();
        let target = target.map(|target| self.argument(target));
        let checked = self.checked;
        let Reference::Call(resolved) = checked.reference(id) else { return CostEstimate::fixed(0) };
        let mut cost: Option<CostEstimate> = None;
        let mut size: Option<Size> = None;
        for index in &resolved.overloads {
            let overload = resolved.function.overloads[*index].id;
            let estimate = self.overload(id, function, overload, target.as_ref(), args, &arguments);
            cost = Some(cost.map_or(estimate.cost, |cost| cost.union(estimate.cost)));
            if let Some(result) = estimate.size {
                size = Some(size.map_or(result, |size| size.union(result)));
            }
            if let ("index_list" | "index_map", [container, ..]) = (overload, args) {
                size = self.entries(*container).map(|entries| entries.value);
                let path = self.path(*container);
                self.paths[id.index()] = self.step(&path, Inner::Items);
            }
            if size.is_none() {
                size = self.size(id);
            }
        }
        if size.is_some() {
            self.sizes[id.index()] = size;
        }
        cost.unwrap_or_default().add(target.map_or(CostEstimate::default(), |target| target.cost))
    }

    fn argument(&mut self, id: Id) -> Argument<'c> {
        let cost = self.cost(id);
        let literal = match self.checked.expr(id) {
            Expr::Literal(literal) => Some(literal),
            _ => None,
        };
        Argument {
            path: self.path(id),
            r#type: self.checked.type_of(id),
            literal,
            computed: self.size(id),
            cost,
        }
    }

    fn overload(
        &mut self,
        id: Id,
        function: &str,
        overload: &str,
        target: Option<&Argument<'c>>,
        args: &[Id],
        arguments: &[Argument<'c>],
    ) -> CallEstimate {
        let of_arguments =
            arguments.iter().fold(CostEstimate::default(), |sum, argument| sum.add(argument.cost));
        match (function, args) {
            (operators::AND | operators::OR, [_, _]) => {
                let cost = CostEstimate { min: arguments[0].cost.min, max: of_arguments.max };
                return CallEstimate { cost, size: None };
            }
            (operators::CONDITIONAL, [_, positive, negative]) => {
                if let (Some(left), Some(right)) = (self.entries(*positive), self.entries(*negative)) {
                    self.entries[id.index()] = Some(left.union(right));
                }
                let size = arguments[1].size_or_unknown().union(arguments[2].size_or_unknown());
                let cost = arguments[0].cost.add(arguments[1].cost.union(arguments[2].cost));
                return CallEstimate { cost, size: Some(size) };
            }
            (operators::ADD, [left, right])
                if matches!(overload, "add_string" | "add_bytes" | "add_list") =>
            {
                if let (Some(left), Some(right)) = (self.entries(*left), self.entries(*right)) {
                    self.entries[id.index()] = Some(left.union(right));
                }
            }
            _ => {}
        }
        let mut estimate = functions::estimate(function, overload, target, arguments);
        estimate.cost = estimate.cost.add(of_arguments);
        estimate
    }

    fn copy_sizes(&mut self, to: Id, from: Id) {
        if let Some(size) = self.size(from) {
            self.sizes[to.index()] = Some(size);
        }
        if let Some(entries) = self.entries(from) {
            self.entries[to.index()] = Some(entries);
        }
    }

    fn fold(&mut self, id: Id, fold: &Comprehension) -> CostEstimate {
        let cost = self.cost(fold.range).add(self.cost(fold.init));
        let accumulator = Local {
            path: self.path(fold.init),
            size: self.size(fold.init),
            entries: self.entries(fold.init),
        };
        self.push(&fold.accumulator, accumulator);
        if self.is_binding(fold) {
            let cost = cost.add(self.cost(fold.result));
            self.pop(&fold.accumulator);
            self.copy_sizes(id, fold.result);
            return cost;
        }
        self.push_variables(fold);
        let round = self.cost(fold.condition).add(self.cost(fold.step));
        self.pop(&fold.variable);
        fold.second_variable.iter().for_each(|name| self.pop(name));
        let cost = cost.add(self.cost(fold.result));
        self.pop(&fold.accumulator);
        let rounds = self.size_or_unknown(fold.range);
        match self.checked.expr(fold.init) {
            Expr::Literal(_) => self.sizes[id.index()] = self.size(fold.init),
            Expr::List(_) | Expr::Map(_) => {
                self.sizes[id.index()] = Some(rounds);
                if let Some(entries) = self.entries(fold.step) {
                    self.entries[id.index()] = Some(entries);
                }
            }
            _ => {}
        }
        cost.add(rounds.multiply(round))
    }

    /// Whether the loop has no rounds, and only gives something a name.
    fn is_binding(&self, fold: &Comprehension) -> bool {
        let empty = matches!(self.checked.expr(fold.range), Expr::List(elements) if elements.is_empty());
        empty && matches!(self.checked.expr(fold.condition), Expr::Literal(Literal::Bool(false)))
    }

    fn push_variables(&mut self, fold: &Comprehension) {
        let entries = self.entries(fold.range);
        let is_list = entries
            .map_or(matches!(self.checked.type_of(fold.range), Type::List(_)), |entries| entries.is_list);
        let path = self.path(fold.range);
        let key_size = entries.map(|entries| entries.key);
        let value_size = entries.map(|entries| entries.value);
        let key_step = if is_list { Inner::Indices } else { Inner::Keys };
        let key = Local { path: self.step(&path, key_step), size: key_size, entries: None };
        let value = Local { path: self.step(&path, Inner::Items), size: value_size, entries: None };
        match &fold.second_variable {
            Some(second) => {
                self.push(&fold.variable, key);
                self.push(second, value);
            }
            None if is_list => self.push(&fold.variable, value),
            None => self.push(&fold.variable, key),
        }
    }
}

impl Entries {
    fn union(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.union(other.key), value: self.value.union(other.value) }
    }
}

impl Argument<'_> {
    /// The size as far as the checker of cel-go knows it.
    pub(super) fn size_or_unknown(&self) -> Size {
        self.computed.unwrap_or(Size::UNKNOWN)
    }
}

fn is_scalar(r#type: &Type) -> bool {
    match r#type {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(value) => is_scalar(value),
        _ => false,
    }
}

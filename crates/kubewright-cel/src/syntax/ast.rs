//! The syntax tree: nodes in one vector, known by their index. So a deep tree is built and dropped without recursion, and
//! what is found out about a node later (its type, what it refers to) stands in vectors of the same length.

use std::sync::Arc;

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(u32);

impl Id {
    /// The node with an index.
    pub(crate) fn at(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The index in the vectors that go with a tree.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// What could not be read; there is an error about it.
    Missing,
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: Id,
        field: Arc<str>,
        test_only: bool,
    },
    Call {
        function: Arc<str>,
        target: Option<Id>,
        args: Vec<Id>,
    },
    List(Vec<Element>),
    Map(Vec<MapEntry>),
    Struct {
        name: Arc<str>,
        fields: Vec<StructField>,
    },
    Comprehension(Box<Comprehension>),
}

/// An element of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    pub(crate) value: Id,
    /// `?value`: left out if it is an empty optional.
    pub(crate) optional: bool,
}

/// An entry of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapEntry {
    pub(crate) key: Id,
    pub(crate) value: Id,
    pub(crate) optional: bool,
}

/// A field of an object that is made.
#[derive(Clone, Debug)]
pub(crate) struct StructField {
    /// Stands for the field in errors.
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) value: Id,
    pub(crate) optional: bool,
}

/// A loop over a list or a map: what all macros but `has` become.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Id,
    pub(crate) variable: Arc<str>,
    pub(crate) second_variable: Option<Arc<str>>,
    pub(crate) accumulator: Arc<str>,
    pub(crate) init: Id,
    pub(crate) condition: Id,
    pub(crate) step: Id,
    pub(crate) result: Id,
}

/// Where something is: the offset in code points.
pub(crate) type Offset = u32;

#[derive(Debug, Default)]
pub(crate) struct Ast {
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    expr: Expr,
    offset: Offset,
    /// How deep the tree below is.
    height: u32,
    /// How deep it is in the eyes of cel-go's parser, which counts operators, selections and calls of members.
    counted: u32,
}

impl Ast {
    /// Adds a node.
    pub(crate) fn add(&mut self, offset: Offset, expr: Expr) -> Id {
        let mut height = 0;
        let mut counted = 0;
        expr.for_children(|child| {
            if let Some(node) = self.nodes.get(child.index()) {
                height = height.max(node.height);
                counted = counted.max(node.counted);
            }
        });
        let id = Id::at(self.nodes.len());
        self.nodes.push(Node { expr, offset, height: height + 1, counted });
        id
    }

    /// Counts the node as one that cel-go's parser visits by recursion.
    pub(crate) fn count(&mut self, id: Id) {
        self.nodes[id.index()].counted += 1;
    }

    pub(crate) fn counted(&self, id: Id) -> u32 {
        self.nodes[id.index()].counted
    }

    pub(crate) fn height(&self, id: Id) -> u32 {
        self.nodes[id.index()].height
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn expr(&self, id: Id) -> &Expr {
        &self.nodes[id.index()].expr
    }

    pub(crate) fn offset(&self, id: Id) -> Offset {
        self.nodes[id.index()].offset
    }

    /// Replaces a node by what it turned out to be.
    pub(crate) fn replace(&mut self, id: Id, expr: Expr) {
        self.nodes[id.index()].expr = expr;
    }
}

impl Expr {
    /// Calls `visit` with each node right below.
    pub(crate) fn for_children(&self, mut visit: impl FnMut(Id)) {
        match self {
            Expr::Missing | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => visit(*operand),
            Expr::Call { target, args, .. } => target.iter().chain(args).for_each(|id| visit(*id)),
            Expr::List(elements) => elements.iter().for_each(|element| visit(element.value)),
            Expr::Map(entries) => entries.iter().for_each(|entry| {
                visit(entry.key);
                visit(entry.value);
            }),
            Expr::Struct { fields, .. } => fields.iter().for_each(|field| visit(field.value)),
            Expr::Comprehension(fold) => {
                [fold.range, fold.init, fold.condition, fold.step, fold.result].into_iter().for_each(visit);
            }
        }
    }
}

impl Expr {
    /// Calls `visit` with each reference to a node right below.
    pub(crate) fn for_children_mut(&mut self, mut visit: impl FnMut(&mut Id)) {
        match self {
            Expr::Missing | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => visit(operand),
            Expr::Call { target, args, .. } => target.iter_mut().chain(args).for_each(visit),
            Expr::List(elements) => elements.iter_mut().for_each(|element| visit(&mut element.value)),
            Expr::Map(entries) => entries.iter_mut().for_each(|entry| {
                visit(&mut entry.key);
                visit(&mut entry.value);
            }),
            Expr::Struct { fields, .. } => fields.iter_mut().for_each(|field| visit(&mut field.value)),
            Expr::Comprehension(fold) => {
                let Comprehension { range, init, condition, step, result, .. } = &mut **fold;
                [range, init, condition, step, result].into_iter().for_each(visit);
            }
        }
    }
}

/// The names that operators have as functions.
pub(crate) mod operators {
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const AND: &str = "_&&_";
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const NOT: &str = "!_";
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub(crate) const OPTIONAL_INDEX: &str = "_[?_]";
    pub(crate) const OPTIONAL_SELECT: &str = "_?._";
    pub(crate) const OR: &str = "_||_";
    pub(crate) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";
}

/// The name of the variable in which a macro gathers its result; no expression can name it.
pub(crate) const ACCUMULATOR: &str = "@result";

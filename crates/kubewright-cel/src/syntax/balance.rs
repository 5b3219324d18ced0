//! `a && b && c` as a balanced tree, so that long chains are not deep.

use std::sync::Arc;

use super::ast::{Ast, Expr, Id, Offset};

/// Terms, and the operators between them.
pub(super) struct Chain {
    terms: Vec<Id>,
    operators: Vec<Offset>,
}

impl Chain {
    pub(super) fn new(first: Id) -> Self {
        Self { terms: vec![first], operators: Vec::new() }
    }

    pub(super) fn add(&mut self, operator: Offset, term: Id) {
        self.operators.push(operator);
        self.terms.push(term);
    }

    /// The tree; its halves differ by one term at most.
    pub(super) fn balanced(&self, ast: &mut Ast, function: &str) -> Id {
        if self.operators.is_empty() {
            return self.terms[0];
        }
        self.subtree(ast, &function.into(), 0, self.operators.len() - 1)
    }

    fn subtree(&self, ast: &mut Ast, function: &Arc<str>, low: usize, high: usize) -> Id {
        let middle = (low + high).div_ceil(2);
        let left =
            if middle == low { self.terms[middle] } else { self.subtree(ast, function, low, middle - 1) };
        let right = if middle == high {
            self.terms[middle + 1]
        } else {
            self.subtree(ast, function, middle + 1, high)
        };
        let call = Expr::Call { function: Arc::clone(function), target: None, args: vec![left, right] };
        ast.add(self.operators[middle], call)
    }
}

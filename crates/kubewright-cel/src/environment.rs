//! What an expression may use: variables, types, functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::declaration::{DeclField, DeclType};
use crate::error::CompileErrors;
use crate::program::Program;
use crate::types::{Type, names};

/// Declarations that expressions are compiled against. It has all of kube-apiserver v1.36's functions and macros
/// (k8s.io/apiserver/pkg/cel/environment/base.go); variables are added by whoever compiles. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Environment(Arc<Declarations>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) variables: BTreeMap<Box<str>, DeclType>,
    /// Whether `Object{...}`, `JSONPatch{...}` and `jsonpatch.escapeKey` are there.
    pub(crate) patch_types: bool,
    /// Whether `cel.bind` is there.
    pub(crate) bindings: bool,
}

impl Environment {
    /// The functions, and no variable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a variable. A name may have dots in it (`authorizer.requestResource`).
    #[must_use]
    pub fn variable(self, name: &str, declaration: DeclType) -> Self {
        let mut declarations = Arc::unwrap_or_clone(self.0);
        declarations.variables.insert(name.into(), declaration);
        Self(Arc::new(declarations))
    }

    /// The same with the field `name` in the variable `variables`, of a type that was found out by compiling what it stands
    /// for. What that is, [`Bindings::define`](crate::Bindings::define) says.
    ///
    /// Source: k8s.io/apiserver/pkg/admission/plugin/cel/composition.go.
    #[must_use]
    pub fn lazy_variable(self, name: &str, r#type: Type) -> Self {
        let field = DeclField::new(name, DeclType::of(r#type), true);
        let mut fields = self.0.variables.get("variables").map(DeclType::fields).unwrap_or_default();
        fields.retain(|known| known.name() != name);
        fields.push(field);
        self.variable("variables", DeclType::object(fields).named(names::VARIABLES))
    }

    /// The same with the types of mutating policies: `Object{...}`, `JSONPatch{...}`, and the function
    /// `jsonpatch.escapeKey`.
    #[must_use]
    pub fn patch_types(self) -> Self {
        let mut declarations = Arc::unwrap_or_clone(self.0);
        declarations.patch_types = true;
        Self(Arc::new(declarations))
    }

    /// The same with the macro `cel.bind(name, value, result)` (cel-go's ext/bindings.go).
    #[must_use]
    pub fn bindings(self) -> Self {
        let mut declarations = Arc::unwrap_or_clone(self.0);
        declarations.bindings = true;
        Self(Arc::new(declarations))
    }

    /// Parses and checks an expression.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, in the words of kube-apiserver.
    pub fn compile(&self, expression: &str) -> Result<Program, CompileErrors> {
        crate::compile::compile(&self.0, expression)
    }
}

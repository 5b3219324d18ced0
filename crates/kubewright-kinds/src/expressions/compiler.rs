//! Compiling expressions that may use variables of the policy (`k8s.io/apiserver/pkg/admission/plugin/cel`,
//! `compile.go` and `composition.go`).

use std::sync::Arc;

use kubewright_cel::{CompileErrors, DeclField, DeclType, Environment, Program, Type};

use super::environment::{Names, environment, typed};

/// The type of `variables`.
const VARIABLES: &str = "kubernetes.variables";

/// A compiled expression, and its text for messages.
#[derive(Clone, Debug)]
pub struct Expression {
    /// Its text.
    pub text: String,
    /// What it was compiled to.
    pub program: Arc<Program>,
}

/// The types that an expression may have.
#[derive(Clone, Debug)]
pub enum Returns {
    /// Any.
    Anything,
    /// One of these.
    OneOf(Vec<Type>),
}

impl Returns {
    /// A condition.
    pub fn bool() -> Self {
        Self::OneOf(vec![Type::Bool])
    }

    /// A text.
    pub fn string() -> Self {
        Self::OneOf(vec![Type::String])
    }

    /// Of an audit annotation.
    pub fn string_or_null() -> Self {
        Self::OneOf(vec![Type::String, Type::Null])
    }

    /// Of a mutation by JSON patch.
    pub fn json_patch() -> Self {
        Self::OneOf(vec![Type::list(Type::json_patch())])
    }

    /// Of a mutation by apply configuration.
    pub fn apply_configuration() -> Self {
        Self::OneOf(vec![Type::apply_configuration()])
    }

    fn check(&self, found: &Type) -> Result<(), String> {
        let Self::OneOf(wanted) = self else { return Ok(()) };
        if wanted.contains(found) {
            return Ok(());
        }
        let name = |one: &Type| if *one == Type::Null { "null_type".to_owned() } else { one.to_string() };
        let found = name(found);
        match wanted.as_slice() {
            [one] => Err(format!("must evaluate to {} but got {found}", name(one))),
            many => {
                let many: Vec<String> = many.iter().map(name).collect();
                Err(format!("must evaluate to one of [{}] but got {found}", many.join(" ")))
            }
        }
    }
}

/// Compiles the expressions of one policy or webhook. Variables are added one by one: each may use those before it.
pub struct Compiler {
    object: DeclType,
    params: DeclType,
    /// `None` where expressions cannot speak of variables at all.
    variables: Option<Vec<(String, Type)>>,
}

impl Compiler {
    /// For expressions that cannot speak of variables.
    pub fn without_variables() -> Self {
        Self { object: DeclType::dynamic(), params: DeclType::dynamic(), variables: None }
    }

    /// For expressions that can.
    pub fn with_variables() -> Self {
        Self { variables: Some(Vec::new()), ..Self::without_variables() }
    }

    /// For a check against the types of the objects that a policy is about.
    pub fn with_types(object: DeclType, params: DeclType) -> Self {
        Self { object, params, variables: Some(Vec::new()) }
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it, in kube-apiserver's words.
    pub fn compile(&self, text: &str, names: Names, returns: &Returns) -> Result<Expression, String> {
        let program = self.check(text, names).map_err(|errors| format!("compilation failed: {errors}"))?;
        returns.check(program.output_type())?;
        Ok(Expression { text: text.to_owned(), program: Arc::new(program) })
    }

    /// Compiles an expression of any type.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, text: &str, names: Names) -> Result<Program, CompileErrors> {
        self.environment(names).compile(text)
    }

    /// Compiles a variable, which later expressions may use. One that does not compile can be of any type.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn add_variable(&mut self, name: &str, text: &str, names: Names) -> Result<Expression, String> {
        let compiled = self.compile(text, names, &Returns::Anything);
        let found =
            compiled.as_ref().map_or(Type::Dyn, |expression| expression.program.output_type().clone());
        if let Some(variables) = &mut self.variables {
            variables.push((name.to_owned(), found));
        }
        compiled
    }

    fn environment(&self, names: Names) -> Environment {
        let environment = if self.object.cel_type() == Type::Dyn && self.params.cel_type() == Type::Dyn {
            environment(names)
        } else {
            typed(names, self.object.clone(), self.params.clone())
        };
        let Some(variables) = &self.variables else { return environment };
        let fields = variables.iter().map(|(name, found)| DeclField::new(name, declared(found), true));
        environment.variable("variables", DeclType::object(fields).named(VARIABLES))
    }
}

/// What later expressions know of a variable's type: of objects, nothing (`convertCelTypeToDeclType`).
fn declared(found: &Type) -> DeclType {
    DeclType::of(known(found))
}

fn known(found: &Type) -> Type {
    match found {
        Type::List(items) => Type::list(known(items)),
        Type::Map(keys, values) => Type::map(known(keys), known(values)),
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => found.clone(),
        _ => Type::Dyn,
    }
}

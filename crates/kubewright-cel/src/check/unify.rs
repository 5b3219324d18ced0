//! Which types go together (cel-go's checker/types.go).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::{Param, Type};

/// What is known about type parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Substitutions(BTreeMap<Param, Type>);

impl Substitutions {
    pub(super) fn set(&mut self, param: Param, to: Type) {
        self.0.insert(param, to);
    }

    /// The type with all known parameters replaced, and the others by `dyn` if so wanted.
    pub(super) fn apply(&self, r#type: &Type, unknown_to_dyn: bool) -> Type {
        let inner = |inner: &Arc<Type>| Arc::new(self.apply(inner, unknown_to_dyn));
        match r#type {
            Type::Param(param) => match self.0.get(param) {
                Some(known) => self.apply(known, unknown_to_dyn),
                None if unknown_to_dyn => Type::Dyn,
                None => r#type.clone(),
            },
            Type::List(element) => Type::List(inner(element)),
            Type::Map(key, value) => Type::Map(inner(key), inner(value)),
            Type::Optional(value) => Type::Optional(inner(value)),
            Type::Type(Some(of)) => Type::Type(Some(inner(of))),
            _ => r#type.clone(),
        }
    }

    /// Whether all types on the left go with those on the right; if so, what that says about parameters is kept.
    pub(super) fn assign_all(&mut self, left: &[Type], right: &[Type]) -> bool {
        let mut attempt = self.clone();
        let fits = left.len() == right.len()
            && left.iter().zip(right).all(|(left, right)| attempt.assignable(left, right));
        if fits {
            *self = attempt;
        }
        fits
    }

    /// Whether the type on the left goes with the one on the right; if so, what that says about parameters is kept.
    pub(super) fn assign(&mut self, left: &Type, right: &Type) -> bool {
        let mut attempt = self.clone();
        let fits = attempt.assignable(left, right);
        if fits {
            *self = attempt;
        }
        fits
    }

    fn assignable(&mut self, left: &Type, right: &Type) -> bool {
        if let Type::Param(param) = right {
            let (valid, known) = self.substitution_fits(left, right, *param);
            if valid || known {
                return valid;
            }
        }
        if let Type::Param(param) = left {
            return self.substitution_fits(right, left, *param).0;
        }
        match (left, right) {
            (Type::Dyn | Type::Any | Type::Error, _) | (_, Type::Dyn | Type::Any | Type::Error) => true,
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => {
                self.assignable(left, right)
            }
            (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
                self.assignable(left_key, right_key) && self.assignable(left_value, right_value)
            }
            _ => left == right,
        }
    }

    /// Whether the parameter may stand for the type, and whether it stood for one before.
    fn substitution_fits(&mut self, r#type: &Type, as_type: &Type, param: Param) -> (bool, bool) {
        if r#type == as_type {
            return (true, true);
        }
        let Some(known) = self.0.get(&param).cloned() else {
            let fits = self.does_not_occur(param, r#type);
            if fits {
                self.set(param, r#type.clone());
            }
            return (fits, false);
        };
        if *r#type == known {
            return (true, true);
        }
        if !self.assignable(r#type, &known) {
            return (false, true);
        }
        let general = most_general(r#type, &known).clone();
        if self.does_not_occur(param, &general) {
            self.set(param, general);
        }
        (true, true)
    }

    fn does_not_occur(&self, param: Param, within: &Type) -> bool {
        match within {
            Type::Param(other) if *other == param => false,
            Type::Param(other) => self.0.get(other).is_none_or(|known| self.does_not_occur(param, known)),
            Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => {
                self.does_not_occur(param, inner)
            }
            Type::Map(key, value) => self.does_not_occur(param, key) && self.does_not_occur(param, value),
            _ => true,
        }
    }
}

/// Whether `null` is a value of the type in the eyes of the checker.
fn is_nullable(r#type: &Type) -> bool {
    matches!(
        r#type,
        Type::Null | Type::Optional(_) | Type::Opaque(_) | Type::Object(_) | Type::Duration | Type::Timestamp
    )
}

/// The one of two types that go together that says less.
pub(super) fn most_general<'t>(left: &'t Type, right: &'t Type) -> &'t Type {
    if says_no_more(left, right) { left } else { right }
}

fn says_no_more(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Dyn | Type::Any | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Any | Type::Param(_)) => false,
        (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => {
            says_no_more(left, right)
        }
        (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
            says_no_more(left_key, right_key) && says_no_more(left_value, right_value)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => left == right,
    }
}

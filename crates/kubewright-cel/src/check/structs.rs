//! Checking objects that are made (`Object.spec{replicas: 3}`).

use super::{Checker, Reference, unwrap_optional};
use crate::syntax::ast::{Id, StructField};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn check_struct(&mut self, id: Id, name: &str, fields: &[StructField]) {
        let Some((named, _)) = self.lookup(name) else {
            self.undeclared(id, name);
            return;
        };
        let made = match named {
            Type::Type(Some(of)) if matches!(*of, Type::Object(_)) => (*of).clone(),
            Type::Type(of) => {
                let shown = of.map_or_else(|| "type".to_owned(), |of| of.name().to_owned());
                self.issue(id, format!("'{shown}' is not a message type"));
                Type::Error
            }
            other => {
                self.issue(id, format!("'{}' is not a type", other.name()));
                Type::Error
            }
        };
        self.references[id.index()] = Reference::Type(made.clone());
        self.set(id, made.clone());
        for field in fields {
            self.check_struct_field(&made, field);
        }
    }

    fn check_struct_field(&mut self, made: &Type, field: &StructField) {
        self.check(field.value);
        let expected = match made {
            Type::Object(object) => self.field_type(field.id, object, &field.name).unwrap_or(Type::Error),
            _ => Type::Error,
        };
        let mut found = self.found(field.value);
        if field.optional {
            let (inner, was_optional) = unwrap_optional(found);
            if !was_optional && !inner.is_dyn() {
                self.issue(
                    field.value,
                    format!("expected type 'optional_type({inner})' but found '{inner}'"),
                );
            }
            found = inner;
        }
        if !self.substitutions.assign(&expected, &found) {
            let message = format!(
                "expected type of field '{}' is '{expected}' but provided type is '{found}'",
                field.name
            );
            self.issue(field.id, message);
        }
    }
}

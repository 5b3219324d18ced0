//! Values as errors show them where Kubernetes prints a struct of Go: with its own names and order of fields, and as Go writes JSON.

use std::fmt::Write;

use serde_json::Value;

/// The fields of a struct: the name that Go has for each, and that of JSON.
pub(super) type Fields = &'static [(&'static str, &'static str, Shape)];

/// What a struct of Go is made of.
pub(super) enum Shape {
    /// A value that is printed as it is; this text where there is none.
    Plain(&'static str),
    /// A struct.
    Struct(Fields),
    /// A pointer to a struct.
    Pointer(Fields),
    /// A list of structs.
    List(Fields),
}

use Shape::{List, Plain, Pointer, Struct};

impl Shape {
    /// A value of that shape as text.
    pub(super) fn of(&self, value: &Value) -> String {
        let mut out = String::new();
        print(&mut out, value, self);
        // Go writes JSON that could stand in HTML.
        out.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    }
}

fn print(out: &mut String, value: &Value, shape: &Shape) {
    match (shape, value) {
        (Plain(absent), Value::Null) => out.push_str(absent),
        (Pointer(_) | List(_), Value::Null) => out.push_str("null"),
        (Plain(_), value) => {
            let _ = write!(out, "{value}");
        }
        (Struct(fields) | Pointer(fields), value) => print_fields(out, value, fields),
        (List(fields), value) => {
            out.push('[');
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                print_fields(out, item, fields);
            }
            out.push(']');
        }
    }
}

fn print_fields(out: &mut String, value: &Value, fields: &[(&str, &str, Shape)]) {
    out.push('{');
    for (index, (name, key, shape)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let _ = write!(out, "\"{name}\":");
        print(out, value.get(key).unwrap_or(&Value::Null), shape);
    }
    out.push('}');
}

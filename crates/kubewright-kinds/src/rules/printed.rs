//! Values as errors show them where Kubernetes prints a struct of Go: with its own names and order of fields, and as Go writes JSON.

use std::fmt::Write;

use kubewright_meta::go::in_html;
use kubewright_spec::{Version, fields_of};
use serde_json::Value;

use super::at::At;

/// A value of a type (`resource/v1.DeviceRequest`) as Go writes it as JSON: fields in their order, what is empty by their tags. One of
/// no type of the API, such as a text, stays as it is.
pub(super) fn of_type(version: Version, name: &str, value: &Value) -> String {
    in_html(&plain_of_type(version, name, value)).into_owned()
}

/// The same, of a value that stands within another which is made fit for HTML as a whole.
pub(super) fn plain_of_type(version: Version, name: &str, value: &Value) -> String {
    let mut out = String::new();
    print_as(&mut out, version, name, Some(value));
    out
}

/// What Go writes as JSON where nobody set a field of a type that is no struct.
pub(super) fn zero(of: &str) -> &'static str {
    match of {
        "string" => "\"\"",
        "bool" => "false",
        "int32" | "int64" | "double" | "intstr" => "0",
        "quantity" => "\"0\"",
        _ => "null",
    }
}

fn print_as(out: &mut String, version: Version, of: &str, value: Option<&Value>) {
    let present = value.filter(|value| !value.is_null());
    match (of.strip_prefix("[]"), of.strip_prefix("{}"), present) {
        (None, None, _) if fields_of(version, of).next().is_some() => {
            out.push('{');
            print_members(out, version, of, present, &mut true);
            out.push('}');
        }
        (Some(of), _, Some(Value::Array(items))) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(out, &mut (index == 0));
                print_as(out, version, of, Some(item));
            }
            out.push(']');
        }
        (_, Some(of), Some(Value::Object(entries))) => {
            out.push('{');
            for (index, (key, entry)) in entries.iter().enumerate() {
                separate(out, &mut (index == 0));
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                print_as(out, version, of, Some(entry));
            }
            out.push('}');
        }
        (_, _, Some(value)) => {
            let _ = write!(out, "{value}");
        }
        (None, None, None) => out.push_str(zero(of)),
        (_, _, None) => out.push_str("null"),
    }
}

fn print_members(out: &mut String, version: Version, of: &str, object: Option<&Value>, is_first: &mut bool) {
    let home = of.rsplit_once('.').map_or("", |(home, _)| home);
    for field in fields_of(version, of) {
        let (marks, bare) = field.of.split_at(field.of.rfind([']', '}']).map_or(0, |end| end + 1));
        let local = format!("{marks}{home}.{bare}");
        let of = if fields_of(version, &local[marks.len()..]).next().is_some() { &*local } else { field.of };
        if field.name == "." {
            print_members(out, version, of, object, is_first);
            continue;
        }
        let value = object.and_then(|object| object.get(field.name)).filter(|value| !value.is_null());
        if !field.is_always_written && value.is_none_or(|value| is_empty(value, of, field.is_pointer)) {
            continue;
        }
        separate(out, is_first);
        let _ = write!(out, "\"{}\":", field.name);
        if value.is_none() && field.is_pointer {
            out.push_str("null");
        } else {
            print_as(out, version, of, value);
        }
    }
}

/// Whether Go leaves out a value of a field that says `omitempty`.
fn is_empty(value: &Value, of: &str, is_pointer: bool) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => of.starts_with("{}") && entries.is_empty(),
        Value::String(text) => !is_pointer && text.is_empty(),
        Value::Number(number) => !is_pointer && number.as_f64() == Some(0.0),
        Value::Bool(is_true) => !is_pointer && !is_true,
        Value::Null => true,
    }
}

fn separate(out: &mut String, is_first: &mut bool) {
    if !std::mem::take(is_first) {
        out.push(',');
    }
}

/// A label selector as Go writes it as JSON.
pub(super) fn selector(selector: &Value) -> String {
    if selector.is_null() {
        return "null".to_owned();
    }
    let parts = ["matchLabels", "matchExpressions"].into_iter().filter_map(|key| {
        let value = selector.get(key)?;
        let is_empty = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty)
            || value.is_null();
        (!is_empty).then(|| {
            format!("\"{key}\":{}", if key == "matchLabels" { value.to_string() } else { expressions(value) })
        })
    });
    in_html(&format!("{{{}}}", parts.collect::<Vec<_>>().join(","))).into_owned()
}

fn expressions(list: &Value) -> String {
    let items = list.as_array().into_iter().flatten().map(|item| {
        let text =
            |key: &str| item.get(key).cloned().filter(|value| !value.is_null()).unwrap_or_else(|| "".into());
        let values =
            item.get("values").filter(|values| values.as_array().is_some_and(|list| !list.is_empty()));
        let values = values.map_or_else(String::new, |values| format!(",\"values\":{values}"));
        format!("{{\"key\":{},\"operator\":{}{values}}}", text("key"), text("operator"))
    });
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

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
        in_html(&out).into_owned()
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

/// A time as it is written: rules see the parts of a second that it was sent with.
pub(super) fn time(time: &At<'_>) -> Value {
    kubewright_schema::time(time.text()).map_or(Value::Null, Value::from)
}

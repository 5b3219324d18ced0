//! Decoding of built-in types as Go does it (`sigs.k8s.io/json` into the types of `k8s.io/api`).
//!
//! What comes out is what Kubernetes would work on: unknown fields are gone (and told), `null` is as good as absent, and values
//! that Go reads into types of its own (quantities, times, bytes) are in canonical form. Lists without entries stay until they
//! are encoded (room `empties`), and so do labels and annotations; other maps without entries are gone, but for those in lists that
//! are one value, and for kinds that keep them.

use kubewright_codec::json::is_zero;
use kubewright_meta::cost;
use kubewright_spec::Version;
use serde_json::{Map, Number, Value, json};

use super::as_sent;
use super::empties::{Empties, is_empty};
use super::fields::printed;
use super::node::{Additional, Coding, Node, Other, Type};
use super::scalar::{self, Precision};
use super::zeros::Zeros;

/// Decodes an object in place. Returns the paths of its unknown fields, each after `prefix`.
///
/// # Errors
/// In the words of Go's decoder: the first value that a type's own decoder refuses (a time, a quantity), which ends the decoding; else
/// the first value of a wrong type, after which Go reads on.
pub(crate) fn decode(
    node: &Node,
    value: &mut Value,
    prefix: &str,
    reading: Reading,
) -> Result<Vec<String>, String> {
    let mut decoder = Decoder::new(reading, prefix);
    let mut found = decoder.value(node, value);
    if reading.converts && found.is_err() {
        // It converts field by field of Go's structs: once more in that order, for the first that is wrong there.
        decoder = Decoder { in_order_of_structs: true, ..Decoder::new(reading, prefix) };
        found = decoder.value(node, value);
    }
    let translates = reading.converts && !decoder.was_within;
    found.map_err(|why| if translates { printed::converted(&why) } else { why })?;
    decoder.wrong.map_or(Ok(decoder.unknown), Err)
}

/// How values are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// What becomes of lists and maps without entries.
    pub(crate) empties: Empties,
    /// By `k8s.io/apimachinery/pkg/runtime/converter.go`, which makes typed objects of what patches and configurations make: it
    /// cuts numbers that are too large, and has words of its own.
    pub(crate) converts: bool,
    /// Whether quantities in lists that are one value stay as they were sent.
    pub(crate) as_sent: bool,
}

impl Reading {
    /// As good as absent, decoded, in canonical form.
    pub(crate) const PLAIN: Self = Self { empties: Empties::Dropped, converts: false, as_sent: false };
}

struct Decoder {
    reading: Reading,
    unknown: Vec<String>,
    /// The first value of a wrong type.
    wrong: Option<String>,
    /// Where it is, as strict decoding says it: `spec.containers[0].name`.
    path: String,
    /// Where it is, as Go's type errors say it: `spec.containers.name`.
    fields: String,
    /// The Go type of the struct it is in: `Container`.
    owner: String,
    /// The struct that has the field whose type has a decoder of its own, where this one is within that: Go names it for all below.
    around: Option<String>,
    /// Whether what is wrong was found by a decoder within what converts an object: its words are those of JSON.
    was_within: bool,
    /// Whether it is within a list that is one value.
    in_one_value: bool,
    /// Whether fields are read in the order of Go's structs, and not in that of their names.
    in_order_of_structs: bool,
}

impl Decoder {
    fn new(reading: Reading, prefix: &str) -> Self {
        Self {
            reading,
            unknown: Vec::new(),
            wrong: None,
            path: prefix.to_owned(),
            fields: String::new(),
            owner: String::new(),
            around: None,
            was_within: false,
            in_one_value: false,
            in_order_of_structs: false,
        }
    }

    fn value(&mut self, node: &Node, value: &mut Value) -> Result<(), String> {
        cost::step();
        let node = node.target();
        match node.coding {
            Coding::Plain => self.plain(node, value),
            Coding::Raw => Ok(()),
            Coding::Quantity => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let canonical = kubewright_meta::quantity::canonical_text(&text)?;
                let is_kept = self.reading.as_sent && self.in_one_value;
                *value = if is_kept { text } else { canonical }.into();
                Ok(())
            }
            Coding::IntOrString if value.is_string() => Ok(()),
            // A decoder of its own, whatever the object is made of.
            Coding::IntOrString if self.reading.converts => match (value.as_f64(), &*value) {
                (Some(number), _) if number.fract() == 0.0 && number.abs() < 2_147_483_648.0 => {
                    self.integer(Some("int32"), value)
                }
                (Some(_), number) => {
                    Err(format!("json: cannot unmarshal number {number} into Go value of type int32"))
                }
                (None, other) => Err(format!(
                    "json: cannot unmarshal {} into Go value of type int32",
                    kubewright_codec::json::type_name(other)
                )),
            },
            Coding::IntOrString => self.integer(Some("int32"), value),
            Coding::Time => self.time(self.precision(), value),
            Coding::MicroTime => self.time(Precision::Micros, value),
            Coding::SchemaOr(other) if self.reading.converts => {
                let mut within = Self::new(Reading { converts: false, ..self.reading }, &self.path);
                let found = within.schema_or(other, node, value);
                let found = found.and_then(|()| within.wrong.map_or(Ok(()), Err));
                self.was_within = found.is_err();
                found
            }
            Coding::SchemaOr(other) => {
                // A decoder within the decoder: what it finds wrong ends this one.
                let before = self.wrong.take();
                let is_first = self.around.is_none();
                if is_first {
                    self.around = Some(self.owner.clone());
                }
                self.schema_or(other, node, value)?;
                if is_first {
                    self.around = None;
                }
                self.wrong.take().map_or(Ok(()), Err)?;
                self.wrong = before;
                Ok(())
            }
        }
    }

    /// Keeps what is wrong for the end, as Go's decoder reads on. What converts an object stops at once.
    fn remember(&mut self, found: Result<(), String>) -> Result<(), String> {
        if self.reading.converts {
            return found;
        }
        if let (Err(wrong), None) = (found, &self.wrong) {
            self.wrong = Some(wrong);
        }
        Ok(())
    }

    fn plain(&mut self, node: &Node, value: &mut Value) -> Result<(), String> {
        match (node.kind, &mut *value) {
            (None, _) | (Some(Type::Boolean), Value::Bool(_)) | (Some(Type::Number), Value::Number(_)) => {
                Ok(())
            }
            (Some(Type::String), Value::String(text)) => {
                if node.format.as_deref() == Some("byte") {
                    match scalar::base64(text) {
                        Ok(canonical) => *text = canonical,
                        Err(wrong) => self.remember(Err(wrong))?,
                    }
                }
                Ok(())
            }
            (Some(Type::String), Value::Array(items)) if node.format.as_deref() == Some("byte") => {
                match self.bytes(items) {
                    Ok(bytes) => {
                        *value = scalar::base64_of(&bytes).into();
                        Ok(())
                    }
                    Err(wrong) => self.remember(Err(wrong)),
                }
            }
            (Some(Type::Integer), Value::Number(_)) => {
                let found = self.integer(node.format.as_deref(), value);
                self.remember(found)
            }
            (Some(Type::Object), Value::Object(object)) => self.object(node, object),
            (Some(Type::Array), Value::Array(list)) => self.list(node, list),
            _ => {
                let named = if self.reading.converts { node.named } else { None };
                let of = match named {
                    Some(named) => format!("{} {named}", go_type(&Node { named: None, ..node.clone() })),
                    None => go_type(node),
                };
                let found = Err(self.mismatch(value, &of));
                self.remember(found)
            }
        }
    }

    fn object(&mut self, node: &Node, object: &mut Map<String, Value>) -> Result<(), String> {
        match &node.additional {
            Additional::Of(values) => self.map(values, object),
            Additional::Any => Ok(()),
            Additional::Unsaid | Additional::Never => self.fields(node, object),
        }
    }

    fn fields(&mut self, node: &Node, object: &mut Map<String, Value>) -> Result<(), String> {
        let owner =
            node.name.as_deref().map_or_else(|| self.owner.clone(), |name| short_name(name).to_owned());
        let outer = std::mem::replace(&mut self.owner, owner);
        let mut gone = Vec::new();
        if self.in_order_of_structs {
            let names = node.name.as_deref().map(|name| Zeros::of(Version::DEFAULT, name).names());
            for name in names.unwrap_or_default() {
                if let Some(value) = object.get_mut(name) {
                    self.field(node, name, value)?;
                }
            }
        }
        for (name, value) in object.iter_mut() {
            if self.field(node, name, value)? {
                gone.push(name.clone());
            }
        }
        for name in gone {
            object.remove(&name);
        }
        show_zeros(node, object);
        self.owner = outer;
        Ok(())
    }

    /// Decodes a field of a struct. Returns whether it goes: nobody knows it, or it says nothing.
    fn field(&mut self, node: &Node, name: &str, value: &mut Value) -> Result<bool, String> {
        let (path, fields) = (self.path.len(), self.fields.len());
        append(&mut self.path, name);
        let goes = match node.properties.get(name) {
            None => {
                self.unknown.push(self.path.clone());
                true
            }
            Some(_) if value.is_null() => true,
            Some(field) => {
                if let Some(by) = &field.inlined {
                    append(&mut self.fields, by);
                }
                append(&mut self.fields, name);
                self.value(field, value)?;
                self.fields.truncate(fields);
                self.is_nothing(field, value)
            }
        };
        self.path.truncate(path);
        Ok(goes)
    }

    /// Whether the value of a field says as much as none.
    fn is_nothing(&self, field: &Node, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(_) => self.reading.empties == Empties::Dropped && is_empty(field, value),
            Value::Object(_) if field.is_told_from_none => {
                self.reading.empties == Empties::Dropped && is_empty(field, value)
            }
            Value::Object(_) => !self.keeps_maps() && is_empty(field, value),
            Value::String(_) if field.format.as_deref() == Some("byte") => {
                self.reading.empties == Empties::Dropped && is_empty(field, value)
            }
            Value::String(time) if field.target().coding.is_time() => {
                field.omits_zero && scalar::is_zero_time(time)
            }
            scalar => field.omits_zero && is_zero(scalar),
        }
    }

    /// Whether maps without entries stay where it is.
    fn keeps_maps(&self) -> bool {
        match self.reading.empties {
            Empties::Dropped => false,
            // Owners of fields compare such lists as they are in memory.
            Empties::Lists => self.reading.as_sent && self.in_one_value,
            Empties::All => true,
        }
    }

    fn map(&mut self, values: &Node, object: &mut Map<String, Value>) -> Result<(), String> {
        let path = self.path.len();
        for (name, value) in object.iter_mut() {
            // The converter does not tell under which key.
            if !self.reading.converts {
                append(&mut self.path, name);
            }
            if !(value.is_null() && self.tells_bytes_from_none(values)) {
                self.element(values, value)?;
            }
            self.path.truncate(path);
        }
        Ok(())
    }

    /// Whether `null` among the values of a map stays: bytes without contents are not none until they are stored.
    fn tells_bytes_from_none(&self, values: &Node) -> bool {
        self.reading.empties != Empties::Dropped && values.format.as_deref() == Some("byte")
    }

    fn list(&mut self, node: &Node, list: &mut [Value]) -> Result<(), String> {
        let Some(items) = &node.items else { return Ok(()) };
        let path = self.path.len();
        let around = self.in_one_value;
        self.in_one_value |= as_sent::is_one_value(node);
        for (index, value) in list.iter_mut().enumerate() {
            self.path.push_str(&format!("[{index}]"));
            self.element(items, value)?;
            self.path.truncate(path);
        }
        self.in_one_value = around;
        Ok(())
    }

    /// A value of a map or list: there `null` is Go's zero value.
    fn element(&mut self, node: &Node, value: &mut Value) -> Result<(), String> {
        if value.is_null() {
            *value = zero(node.target());
            if let Value::Object(object) = value {
                show_zeros(node.target(), object);
            }
            return Ok(());
        }
        self.value(node, value)
    }

    fn integer(&self, format: Option<&str>, value: &mut Value) -> Result<(), String> {
        if self.reading.converts
            && let Value::Number(number) = value
            && let Some(whole) = whole(number)
        {
            #[expect(clippy::cast_possible_truncation, reason = "as Go cuts it")]
            let cut = if format == Some("int32") { i64::from(whole as i32) } else { whole };
            *value = cut.into();
            return Ok(());
        }
        let go_type = if format == Some("int32") { "int32" } else { "int64" };
        let fits = |number: i64| go_type == "int64" || i32::try_from(number).is_ok();
        match value {
            Value::Number(number) if !number.as_i64().is_some_and(fits) => {
                Err(self.mistake(&format!("number {number}"), go_type))
            }
            Value::Number(_) => Ok(()),
            _ => Err(self.mismatch(value, go_type)),
        }
    }

    /// How fine times are until they are written: rules compare them as Go has them in memory.
    fn precision(&self) -> Precision {
        if self.reading.converts || self.reading.as_sent { Precision::Exact } else { Precision::Seconds }
    }

    fn time(&self, precision: Precision, value: &mut Value) -> Result<(), String> {
        let Value::String(text) = value else {
            // A decoder of its own, whatever the object is made of.
            return Err(if self.reading.converts {
                let found = kubewright_codec::json::type_name(value);
                format!("json: cannot unmarshal {found} into Go value of type string")
            } else {
                self.mismatch(value, "string")
            });
        };
        *text = scalar::time(text, precision)?;
        Ok(())
    }

    /// Go reads these with decoders of their own, which do not tell unknown fields.
    fn schema_or(&mut self, other: Other, node: &Node, value: &mut Value) -> Result<(), String> {
        let Some(schema) = &node.items else { return Ok(()) };
        let told = self.unknown.len();
        match (other, &mut *value) {
            (_, Value::Object(_)) => self.value(schema, value)?,
            (Other::Schemas, Value::Array(list)) => {
                for one in list {
                    self.element(schema, one)?;
                }
            }
            (Other::Bool, Value::Bool(_)) => {}
            (Other::Bool, _) => return Err("boolean or JSON schema expected".to_owned()),
            (Other::Texts, Value::Array(list)) => {
                if let Some(wrong) = list.iter().find(|one| !one.is_string() && !one.is_null()) {
                    return Err(self.mismatch(wrong, "string"));
                }
            }
            // It is there, and says nothing.
            (Other::Schemas, _) => *value = Value::Array(Vec::new()),
            (Other::Texts, _) => *value = Value::Null,
        }
        self.unknown.truncate(told);
        Ok(())
    }

    /// Go reads a list of numbers as bytes, too, and none as zero. What converts an object takes the lowest byte of any whole number.
    fn bytes(&self, items: &[Value]) -> Result<Vec<u8>, String> {
        let byte = |item: &Value| match item {
            Value::Null => Ok(0),
            Value::Number(number) if self.reading.converts && number.is_i64() => {
                Ok(number.as_i64().unwrap_or_default().to_le_bytes()[0])
            }
            Value::Number(number) if !self.reading.converts => {
                let byte = number.as_u64().and_then(|one| u8::try_from(one).ok());
                byte.ok_or_else(|| self.mistake(&format!("number {number}"), "uint8"))
            }
            other => Err(self.mismatch(other, "uint8")),
        };
        items.iter().map(byte).collect()
    }

    fn mismatch(&self, value: &Value, go_type: &str) -> String {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(number) if self.reading.converts => {
                if number.is_f64() {
                    "float64"
                } else {
                    "int64"
                }
            }
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.mistake(found, go_type)
    }

    fn mistake(&self, found: &str, go_type: &str) -> String {
        let Self { owner, around, fields, .. } = self;
        let owner = around.as_ref().unwrap_or(owner);
        let place =
            if fields.is_empty() { "value".to_owned() } else { format!("struct field {owner}.{fields}") };
        format!("json: cannot unmarshal {found} into Go {place} of type {go_type}")
    }
}

/// The whole number that a number is.
fn whole(number: &Number) -> Option<i64> {
    // What is too great for 64 bits is the least number there: so processors of Go's amd64 convert.
    const IN_64_BITS: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction, and is in range")]
    let cut = |float: f64| if IN_64_BITS.contains(&float) { float as i64 } else { i64::MIN };
    let of_float = || number.as_f64().filter(|float| float.fract() == 0.0).map(cut);
    number.as_i64().or_else(of_float)
}

fn append(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// Writes the fields that Go writes although nobody gave them a value.
fn show_zeros(node: &Node, object: &mut Map<String, Value>) {
    for (name, zero) in &node.shown {
        if !object.contains_key(&**name) {
            let mut zero = zero.clone();
            if let (Value::Object(inner), Some(field)) = (&mut zero, node.properties.get(name)) {
                show_zeros(field.target(), inner);
            }
            object.insert(name.to_string(), zero);
        }
    }
}

/// Go's zero value, as JSON.
fn zero(node: &Node) -> Value {
    match (node.coding, node.kind) {
        (Coding::Quantity, _) => json!("0"),
        (Coding::IntOrString, _) | (Coding::Plain, Some(Type::Integer | Type::Number)) => json!(0),
        (Coding::Plain, Some(Type::String)) if matches!(node.format.as_deref(), None | Some("byte")) => {
            json!("")
        }
        (Coding::Plain, Some(Type::Boolean)) => json!(false),
        (Coding::Plain, Some(Type::Object)) if matches!(node.additional, Additional::Unsaid) => json!({}),
        _ => Value::Null,
    }
}

/// `io.k8s.api.apps.v1.DeploymentSpec` is `DeploymentSpec`.
fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The type as Go's messages name it.
fn go_type(node: &Node) -> String {
    let node = node.target();
    if let Some(named) = node.named {
        return named.to_owned();
    }
    if let Some(name) = &node.name {
        let mut parts = name.rsplit('.');
        let (short, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return format!("{package}.{short}");
    }
    match (node.kind, node.format.as_deref()) {
        (Some(Type::Boolean), _) => "bool".to_owned(),
        (Some(Type::Integer), Some("int32")) => "int32".to_owned(),
        (Some(Type::Integer), _) => "int64".to_owned(),
        (Some(Type::Number), _) => "float64".to_owned(),
        (Some(Type::String), Some("byte")) => "[]uint8".to_owned(),
        (Some(Type::String), _) => "string".to_owned(),
        (Some(Type::Array), _) => {
            format!(
                "[]{}",
                node.items.as_ref().map_or_else(|| "interface {}".to_owned(), |items| go_type(items))
            )
        }
        (Some(Type::Object), _) => match &node.additional {
            Additional::Of(values) => format!("map[string]{}", go_type(values)),
            Additional::Any | Additional::Unsaid | Additional::Never => "struct {}".to_owned(),
        },
        (None, _) => "interface {}".to_owned(),
    }
}

#[cfg(test)]
mod tests;

//! RFC 6902 JSON patches with the habits of `gopkg.in/evanphx/json-patch.v4`, which Kubernetes' clients rely on:
//! a missing member reads as null (so `test` for null holds on it, `replace` makes it, `copy` of it gives null), an
//! absent `value` is null, indices may be negative and count from the end, and what stands before the first slash of
//! a path is ignored.

use std::collections::BTreeSet;
use std::fmt;

use http::StatusCode;
use kubewright_meta::ApiError;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::document::{Node, depth};
use super::pointer::{self, Pointer};
use super::{decode, type_name, undecodable, written};

/// The most operations a patch may have (`maxJSONPatchOperations` of the API server).
const MAX_OPERATIONS: usize = 10_000;
/// The most bytes that all `copy` operations of a patch may add (`JSONPatchMaxCopyBytes` of the API server).
const MAX_COPIED: usize = 3 * 1024 * 1024;
/// The deepest nesting of a result: what our JSON reader takes.
const MAX_DEPTH: usize = 127;
/// The deepest nesting on the way to a result. Values this deep can be walked and dropped on any stack.
const MAX_PASSING_DEPTH: usize = pointer::MAX_STEPS;
/// The most values that are looked at to find out how deep a document is nested that may be nested too deeply.
const MAX_MEASURED: usize = 20_000_000;

/// What strict decoding has against a patch: members of operations that stand twice, or that no operation has.
pub(super) fn complaints(body: &[u8]) -> Vec<String> {
    let Ok(operations) = serde_json::from_slice::<Vec<Members>>(body) else { return Vec::new() };
    let mut complaints = Vec::new();
    for (at, Members(names)) in operations.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for name in names {
            let path = format!("[{at}].{name}");
            if !seen.insert(name) {
                complaints.push(format!("json patch duplicate field {path:?}"));
            } else if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                complaints.push(format!("json patch unknown field {path:?}"));
            }
        }
    }
    complaints
}

/// The names of the members of an object, in their order.
struct Members(Vec<String>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an operation")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Members(names))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

/// Operations that are applied one after the other, all or none.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPatch(Vec<Operation>);

/// What is done to a document.
#[derive(Clone, Debug, PartialEq)]
enum Operation {
    Add {
        path: Pointer,
        value: Value,
    },
    Remove {
        path: Pointer,
    },
    Replace {
        path: Pointer,
        value: Value,
    },
    Move {
        from: Pointer,
        path: Pointer,
    },
    Copy {
        from: Pointer,
        path: Pointer,
    },
    Test {
        path: Pointer,
        value: Value,
        /// Whether its texts are written as Go writes them in a document.
        as_written: bool,
    },
    /// An operation that fails when it is its turn: an unknown `op`, or a part is missing.
    Broken,
}

/// Why a patch cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The operation is unknown or lacks a part.
    #[error("the operation is unknown or incomplete")]
    Broken,
    /// There is nothing at the path.
    #[error("the path does not exist")]
    Missing,
    /// A list is addressed with something that is not one of its indices.
    #[error("the index is not one of the list's")]
    Index,
    /// A value is not what the test says.
    #[error("the test does not hold")]
    Test,
    /// The whole document would become a scalar.
    #[error("a document must be an object or a list")]
    Scalar,
    /// The copies would add too many bytes.
    #[error("the copies add too much")]
    TooMuchCopied,
    /// The result would be nested too deeply.
    #[error("the result is nested too deeply")]
    TooDeep,
}

impl JsonPatch {
    /// Decodes a patch.
    ///
    /// # Errors
    /// 400 for a body that is not a list of operations, 413 for too many of them. An operation of an unknown kind is
    /// found only when it is applied.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let items = match decode(body).map_err(|why| undecodable(&why))?.0 {
            Value::Array(items) => items,
            Value::Null => Vec::new(),
            other => return Err(wrong_type(&other, "Go value of type []handlers.jsonPatchOp")),
        };
        let count = items.len();
        let mut operations = items.into_iter().map(Operation::parse).collect::<Result<Vec<_>, _>>()?;
        if count > MAX_OPERATIONS {
            return Err(ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                format!(
                    "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
                ),
            ));
        }
        for (operation, is_as_written) in operations.iter_mut().zip(written::tests(body)) {
            if let Operation::Test { as_written, .. } = operation {
                *as_written = is_as_written;
            }
        }
        Ok(Self(operations))
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The document that comes out.
    ///
    /// # Errors
    /// The first operation that fails.
    pub fn apply(&self, document: &Value) -> Result<Value, Failure> {
        let mut target = Target {
            document: Node::from(document.clone()),
            depth: depth(document, &mut 0),
            measured: 0,
            copied: 0,
            has_given: false,
        };
        for operation in &self.0 {
            target.apply(operation)?;
        }
        if target.depth > MAX_DEPTH && target.document.depth(&mut 0) > MAX_DEPTH {
            return Err(Failure::TooDeep);
        }
        Ok(target.document.into_value())
    }
}

impl Operation {
    fn parse(item: Value) -> Result<Self, ApiError> {
        let mut members = match item {
            Value::Object(members) => members,
            Value::Null => return Ok(Self::Broken),
            other => return Err(wrong_type(&other, "Go value of type handlers.jsonPatchOp")),
        };
        let mut text = |name: &str| match members.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                Err(wrong_type(&other, &format!("Go struct field jsonPatchOp.{name} of type string")))
            }
        };
        let (op, path, from) = (text("op")?, text("path")?, text("from")?);
        let value = members.remove("value").unwrap_or_default();
        let (Some(op), Some(path)) = (op, path.as_deref().map(Pointer::parse)) else {
            return Ok(Self::Broken);
        };
        let from = from.as_deref().map(Pointer::parse);
        Ok(match (op.as_str(), from) {
            ("add", _) => Self::Add { path, value },
            ("remove", _) => Self::Remove { path },
            ("replace", _) => Self::Replace { path, value },
            ("test", _) => Self::Test { path, value, as_written: true },
            ("move", Some(from)) => Self::Move { from, path },
            ("copy", Some(from)) => Self::Copy { from, path },
            _ => Self::Broken,
        })
    }
}

fn wrong_type(value: &Value, wanted: &str) -> ApiError {
    undecodable(&format!("json: cannot unmarshal {} into {wanted}", type_name(value)))
}

/// A document while it is patched.
struct Target {
    document: Node,
    /// How deep the document is nested at most.
    depth: usize,
    /// How many values were looked at to know that better.
    measured: usize,
    /// How many bytes were copied so far.
    copied: usize,
    /// Whether something of the patch is in it, which is there as it was sent.
    has_given: bool,
}

impl Target {
    fn apply(&mut self, operation: &Operation) -> Result<(), Failure> {
        self.has_given |= matches!(operation, Operation::Add { .. } | Operation::Replace { .. });
        match operation {
            Operation::Add { path, value } => self.add(path, value.clone().into(), depth(value, &mut 0)),
            Operation::Remove { path } => path.place_in(&mut self.document)?.remove().map(drop),
            Operation::Replace { path: Pointer::Root, value } => self.replace_all(value),
            Operation::Replace { path, value } => {
                let value = Node::from(value.clone());
                self.grow(path, &value, value.depth(&mut 0))?;
                path.place_in(&mut self.document)?.replace(value)
            }
            Operation::Move { from, path } => {
                let value = from.place_in(&mut self.document)?.remove()?;
                self.add(path, value, self.depth.saturating_sub(from.len()))
            }
            Operation::Copy { from, path } => {
                let value = from.place_in(&mut self.document)?.get()?.cloned().unwrap_or_default();
                let value = value.into_value();
                self.copied += value.to_string().len();
                if self.copied > MAX_COPIED {
                    return Err(Failure::TooMuchCopied);
                }
                self.add(path, value.into(), self.depth.saturating_sub(from.len()))
            }
            // Bytes are compared there: those of the patch, and those that Go has made of the object.
            Operation::Test { as_written: false, .. } if !self.has_given => Err(Failure::Test),
            Operation::Test { path, value, .. } => {
                let holds = match path {
                    Pointer::Root => self.document.is(value),
                    _ => {
                        let found = path.place_in(&mut self.document)?.get()?;
                        found.map_or(value.is_null(), |found| found.is(value))
                    }
                };
                if holds { Ok(()) } else { Err(Failure::Test) }
            }
            Operation::Broken => Err(Failure::Broken),
        }
    }

    /// Adds a value that is nested `at_most` deep.
    fn add(&mut self, path: &Pointer, value: Node, at_most: usize) -> Result<(), Failure> {
        self.grow(path, &value, at_most)?;
        path.place_in(&mut self.document)?.add(value)
    }

    fn replace_all(&mut self, value: &Value) -> Result<(), Failure> {
        if !value.is_object() && !value.is_array() {
            return Err(Failure::Scalar);
        }
        self.document = value.clone().into();
        self.depth = depth(value, &mut 0);
        Ok(())
    }

    /// Notes how deep the document is nested with that value in it. The note is an upper bound, which is made exact
    /// only when it says too much: walking the document for each operation would be slow.
    fn grow(&mut self, path: &Pointer, value: &Node, at_most: usize) -> Result<(), Failure> {
        self.depth = self.depth.max(path.len() + at_most);
        if self.depth > MAX_PASSING_DEPTH && self.measured < MAX_MEASURED {
            let measured = &mut self.measured;
            self.depth = self.document.depth(measured).max(path.len() + value.depth(measured));
        }
        if self.depth > MAX_PASSING_DEPTH { Err(Failure::TooDeep) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn applied(document: impl Into<Value>, patch: impl Into<Value>) -> Result<Value, Failure> {
        let patch = patch.into().to_string();
        JsonPatch::parse(patch.as_bytes()).expect("a patch").apply(&document.into())
    }

    fn refused(patch: &str) -> (u16, String) {
        let error = JsonPatch::parse(patch.as_bytes()).expect_err("must be refused");
        (error.code.as_u16(), error.message)
    }

    /// As kube-apiserver v1.36.3 answers.
    #[test]
    fn a_test_compares_texts_as_go_writes_them_and_what_the_patch_gave_as_it_was_sent() {
        let document = json!({"a": "x>y"});
        let applied =
            |body: &str| JsonPatch::parse(body.as_bytes()).expect("a patch").apply(&document).map(drop);
        let raw = r#"{"op":"test","path":"/a","value":"x>y"}"#;
        assert_eq!(applied(&format!("[{raw}]")), Err(Failure::Test));
        assert_eq!(applied(r#"[{"op":"test","path":"/a","value":"x\u003ey"}]"#), Ok(()));
        let copied = r#"{"op":"copy","from":"/a","path":"/b"}"#;
        assert_eq!(applied(&format!("[{copied},{raw}]")), Err(Failure::Test));
        let given = r#"{"op":"add","path":"/a","value":"x>y"}"#;
        assert_eq!(applied(&format!("[{given},{raw}]")), Ok(()));
    }

    #[test]
    fn operations_do_what_the_standard_says() {
        let patch = json!([
            {"op": "add", "path": "/data/l", "value": "w"},
            {"op": "copy", "from": "/data/k", "path": "/data/m"},
            {"op": "move", "from": "/data/k", "path": "/data/n"},
            {"op": "replace", "path": "/labels/a~1b", "value": "d"},
            {"op": "remove", "path": "/data/l"},
            {"op": "test", "path": "/data/m", "value": "v"},
        ]);
        let document = json!({"data": {"k": "v"}, "labels": {"a/b": "c"}});
        assert_eq!(
            applied(document, patch),
            Ok(json!({"data": {"m": "v", "n": "v"}, "labels": {"a/b": "d"}}))
        );
    }

    #[test]
    fn list_items_are_inserted_appended_and_removed() {
        let patch = json!([
            {"op": "add", "path": "/0", "value": "first"},
            {"op": "add", "path": "/-", "value": "last"},
            {"op": "add", "path": "/-2", "value": "last but one"},
            {"op": "remove", "path": "/1"},
        ]);
        assert_eq!(applied(json!(["a", "b"]), patch), Ok(json!(["first", "b", "last but one", "last"])));
    }

    #[test]
    fn a_missing_member_reads_as_null() {
        assert_eq!(applied(json!({}), json!([{"op": "test", "path": "/a", "value": null}])), Ok(json!({})));
        assert_eq!(applied(json!({}), json!([{"op": "test", "path": "/a"}])), Ok(json!({})));
        assert_eq!(
            applied(json!({"a": null}), json!([{"op": "test", "path": "/a"}])),
            Ok(json!({"a": null}))
        );
        assert_eq!(applied(json!({}), json!([{"op": "test", "path": "/a", "value": 1}])), Err(Failure::Test));
        assert_eq!(
            applied(json!({}), json!([{"op": "test", "path": "/a/b", "value": null}])),
            Err(Failure::Missing)
        );
        assert_eq!(
            applied(json!({}), json!([{"op": "replace", "path": "/a", "value": 1}])),
            Ok(json!({"a": 1}))
        );
        assert_eq!(
            applied(json!({}), json!([{"op": "copy", "from": "/a", "path": "/b"}])),
            Ok(json!({"b": null}))
        );
        assert_eq!(
            applied(json!({}), json!([{"op": "move", "from": "/a", "path": "/b"}])),
            Err(Failure::Missing)
        );
    }

    #[test]
    fn what_is_not_there_fails() {
        let far = "/a".repeat(100_000);
        assert_eq!(applied(json!({"a": {}}), json!([{"op": "add", "path": far}])), Err(Failure::Missing));
        for path in ["/a/9", "/a/-9", "/a/x", "/a/-"] {
            let patch = json!([{"op": "replace", "path": path, "value": 1}]);
            assert_eq!(applied(json!({"a": [1]}), patch), Err(Failure::Index), "{path}");
        }
        assert_eq!(applied(json!({"a": [1]}), json!([{"op": "add", "path": "/a/2"}])), Err(Failure::Index));
        assert_eq!(applied(json!({"a": 1}), json!([{"op": "add", "path": "/a/b"}])), Err(Failure::Missing));
        assert_eq!(applied(json!({}), json!([{"op": "remove", "path": "/a"}])), Err(Failure::Missing));
        assert_eq!(applied(json!({}), json!([{"op": "add", "path": ""}])), Err(Failure::Missing));
        assert_eq!(applied(json!({}), json!([{"op": "frob", "path": "/a"}])), Err(Failure::Broken));
        assert_eq!(applied(json!({}), json!([{"op": "move", "path": "/a"}])), Err(Failure::Broken));
        assert_eq!(applied(json!({}), json!([null])), Err(Failure::Broken));
    }

    #[test]
    fn the_root_is_replaced_by_objects_and_lists_only() {
        let whole =
            |value: Value| applied(json!({"a": 1}), json!([{"op": "replace", "path": "", "value": value}]));
        assert_eq!(whole(json!({"b": 1})), Ok(json!({"b": 1})));
        assert_eq!(whole(json!(3)), Err(Failure::Scalar));
    }

    #[test]
    fn a_body_that_is_no_patch_is_undecodable() {
        assert_eq!(refused("[").0, 400);
        assert_eq!(
            refused("{}").1,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        );
        assert_eq!(
            refused(r#"[{"op":"add","path":1}]"#).1,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string"
        );
    }

    #[test]
    fn more_than_ten_thousand_operations_are_too_many() {
        let patch = |count: usize| Value::Array(vec![json!({"op": "test", "path": "/a"}); count]).to_string();
        assert!(JsonPatch::parse(patch(10_000).as_bytes()).is_ok());
        let (code, message) = refused(&patch(10_001));
        assert_eq!(code, 413);
        assert_eq!(
            message,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }

    #[test]
    fn copies_that_double_a_document_end_early() {
        let mut operations = vec![json!({"op": "add", "path": "/a", "value": ["0123456789"]})];
        operations.extend((0..1000).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})));
        assert_eq!(applied(json!({}), Value::Array(operations)), Err(Failure::TooMuchCopied));
    }

    #[test]
    fn moves_that_nest_ever_deeper_end_early() {
        let wrap = [
            json!({"op": "add", "path": "/w", "value": {"x": {"x": {"x": {}}}}}),
            json!({"op": "move", "from": "/a", "path": "/w/x/x/x/a"}),
            json!({"op": "move", "from": "/w", "path": "/a"}),
        ];
        let rounds = |count: usize| Value::Array(wrap.iter().cloned().cycle().take(3 * count).collect());
        assert!(applied(json!({"a": 1}), rounds(20)).is_ok());
        assert_eq!(applied(json!({"a": 1}), rounds(60)), Err(Failure::TooDeep));
        assert_eq!(applied(json!({"a": 1}), rounds(3000)), Err(Failure::TooDeep));
    }

    #[test]
    fn many_moves_of_shallow_values_are_no_nesting() {
        let there_and_back = [
            json!({"op": "move", "from": "/a", "path": "/b/c/d"}),
            json!({"op": "move", "from": "/b/c/d", "path": "/a"}),
        ];
        let patch = Value::Array(there_and_back.iter().cloned().cycle().take(9_000).collect());
        let document = json!({"a": {"x": 1}, "b": {"c": {}}});
        assert_eq!(applied(document.clone(), patch), Ok(document));
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3u8).prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn operation() -> impl Strategy<Value = Value> {
        let path =
            || prop::collection::vec("[a-c]|[0-2]|-", 1..4).prop_map(|steps| format!("/{}", steps.join("/")));
        let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
        (op, path(), path(), document()).prop_map(|(op, path, from, value)| match op {
            "move" | "copy" => json!({"op": op, "path": path, "from": from}),
            "remove" => json!({"op": op, "path": path}),
            _ => json!({"op": op, "path": path, "value": value}),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// What the `json-patch` crate can apply, we apply alike; we can apply more (missing members read as null).
        #[test]
        fn we_agree_with_the_standard_where_it_succeeds(
            members in prop::collection::btree_map("[a-c]", document(), 0..4),
            operations in prop::collection::vec(operation(), 1..4),
        ) {
            let document = Value::Object(members.into_iter().collect());
            let patch = Value::Array(operations);
            let standard: json_patch::Patch = serde_json::from_value(patch.clone()).expect("a patch");
            let mut expected = document.clone();
            // The variant without a roll-back, which panics where it cannot be done.
            if json_patch::patch_unsafe(&mut expected, &standard).is_ok() {
                prop_assert_eq!(applied(document, patch), Ok(expected));
            }
        }
    }
}

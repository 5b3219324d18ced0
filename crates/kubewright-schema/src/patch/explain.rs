//! Why a JSON patch cannot be applied, in the words of `gopkg.in/evanphx/json-patch.v4`. Admission shows them to clients;
//! a PATCH request hides them.

use serde_json::Value;

use super::json::{Failure, JsonPatch};

/// Why `patch`, which does not apply to `document`, does not. The operations are applied again, one by one.
#[must_use]
pub fn explain(patch: &[u8], document: &Value) -> String {
    let operations: Vec<Value> = serde_json::from_slice(patch).unwrap_or_default();
    let mut document = document.clone();
    for operation in &operations {
        let one = Value::Array(vec![operation.clone()]).to_string();
        match JsonPatch::parse(one.as_bytes()).map(|patch| patch.apply(&document)) {
            Ok(Ok(next)) => document = next,
            Ok(Err(failure)) => return words(operation, &document, failure),
            Err(error) => return error.message,
        }
    }
    Failure::TooDeep.to_string()
}

fn words(operation: &Value, document: &Value, failure: Failure) -> String {
    let text = |field: &str| operation[field].as_str().unwrap_or_default();
    let (op, path, from) = (text("op"), text("path"), text("from"));
    match (op, failure) {
        (_, Failure::Scalar | Failure::TooMuchCopied | Failure::TooDeep) => failure.to_string(),
        ("test", Failure::Test) => format!("testing value {path} failed: test failed"),
        ("add" | "remove", _) => match Place::find(document, path) {
            None => format!("{op} operation does not apply: doc is missing path: \"{path}\": missing value"),
            Some(place) => format!("error in {op} for path: '{path}': {}", place.complaint(op)),
        },
        ("replace", _) => match Place::find(document, path) {
            None => format!("replace operation does not apply: doc is missing path: {path}: missing value"),
            Some(_) => format!("replace operation does not apply: doc is missing key: {path}: missing value"),
        },
        ("test", _) => match Place::find(document, path) {
            None => format!("test operation does not apply: is missing path: {path}: missing value"),
            Some(place) => format!("error in test for path: '{path}': {}", place.complaint(op)),
        },
        ("move" | "copy", _) => transfer(op, from, path, document),
        _ => format!("Unexpected kind: {}", if op.is_empty() { "unknown" } else { op }),
    }
}

fn transfer(op: &str, from: &str, path: &str, document: &Value) -> String {
    let Some(source) = Place::find(document, from) else {
        return format!("{op} operation does not apply: doc is missing from path: {from}: missing value");
    };
    if !source.exists() {
        return match op {
            "move" => format!("error in move for path: '{}': {}", source.key, source.complaint("remove")),
            _ => format!("error in copy for from: '{from}': {}", source.complaint("get")),
        };
    }
    match (Place::find(document, path), op) {
        (None, _) => {
            format!("{op} operation does not apply: doc is missing destination path: {path}: missing value")
        }
        (Some(place), "move") => format!("error in move for path: '{path}': {}", place.complaint("add")),
        (Some(place), _) => format!("error while adding value during copy: {}", place.complaint("add")),
    }
}

/// What holds the value at a path, and the last step to it.
struct Place<'a> {
    container: &'a Value,
    key: String,
}

impl<'a> Place<'a> {
    fn find(document: &'a Value, path: &str) -> Option<Self> {
        let (parents, key) = path.rsplit_once('/')?;
        let container = document.pointer(parents)?;
        let key = key.replace("~1", "/").replace("~0", "~");
        (container.is_object() || container.is_array()).then_some(Self { container, key })
    }

    fn exists(&self) -> bool {
        match self.container {
            Value::Array(items) => self.key.parse::<usize>().is_ok_and(|index| index < items.len()),
            container => container.get(&self.key).is_some(),
        }
    }

    /// What its container has against an operation there.
    fn complaint(&self, op: &str) -> String {
        if self.container.is_object() {
            return format!("Unable to remove nonexistent key: {}: missing value", self.key);
        }
        match self.key.parse::<i64>() {
            Ok(index) => format!("Unable to access invalid index: {index}: invalid index referenced"),
            Err(_) => {
                let wrong = format!("strconv.Atoi: parsing {:?}: invalid syntax", self.key);
                if op == "add" {
                    format!("value was not a proper array index: '{}': {wrong}", self.key)
                } else {
                    wrong
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each answer was asked of kube-apiserver v1.36, or read in the library that it uses.
    #[test]
    fn a_patch_that_does_not_apply_says_why_as_in_kubernetes() {
        let document = json!({"metadata": {"name": "x"}, "list": [1]});
        for (operation, why) in [
            (
                json!({"op": "replace", "path": "/data/x/y", "value": 1}),
                "replace operation does not apply: doc is missing path: /data/x/y: missing value",
            ),
            (
                json!({"op": "remove", "path": "/data"}),
                "error in remove for path: '/data': Unable to remove nonexistent key: data: missing value",
            ),
            (
                json!({"op": "add", "path": "/metadata/labels/x", "value": "y"}),
                "add operation does not apply: doc is missing path: \"/metadata/labels/x\": missing value",
            ),
            (
                json!({"op": "test", "path": "/metadata/name", "value": "y"}),
                "testing value /metadata/name failed: test failed",
            ),
            (json!({"op": "frob", "path": "/metadata/name"}), "Unexpected kind: frob"),
            (
                json!({"op": "add", "path": "/list/7", "value": 1}),
                "error in add for path: '/list/7': Unable to access invalid index: 7: invalid index referenced",
            ),
            (
                json!({"op": "remove", "path": "/list/x"}),
                "error in remove for path: '/list/x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                json!({"op": "move", "from": "/a/b", "path": "/c"}),
                "move operation does not apply: doc is missing from path: /a/b: missing value",
            ),
        ] {
            let patch = json!([{"op": "add", "path": "/before", "value": 1}, operation]).to_string();
            let applied = JsonPatch::parse(patch.as_bytes()).expect("a patch").apply(&document);
            assert!(applied.is_err());
            assert_eq!(explain(patch.as_bytes(), &document), why);
        }
    }
}

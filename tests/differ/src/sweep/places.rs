//! The places of an object: what stands in it, and the fields of its schema that it does not have.

use serde_json::Value;

use crate::edit::Step;
use crate::schema::Served;

/// A place: the way there, what stands there if anything does, and what the schema says of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot<'a> {
    pub(crate) path: Vec<Step>,
    pub(crate) value: Option<&'a Value>,
    pub(crate) schema: &'a Value,
}

impl Spot<'_> {
    /// The field that it is in.
    pub(crate) fn field(&self) -> &str {
        let key = |step: &'_ Step| matches!(step, Step::Key(_));
        match self.path.iter().rev().find(|step| key(step)) {
            Some(Step::Key(key)) => key,
            _ => "",
        }
    }
}

/// A way without indices: `spec.containers.ports`.
pub(crate) fn name_of(path: &[Step]) -> String {
    let keys: Vec<&str> = path
        .iter()
        .filter_map(|step| if let Step::Key(key) = step { Some(key.as_str()) } else { None })
        .collect();
    keys.join(".")
}

/// All places below a way, that one among them; of a way without a step those of the whole object, but for its type.
pub(crate) fn below<'a>(
    served: &'a Served,
    schema: &'a Value,
    object: &'a Value,
    way: &[Step],
) -> Vec<Spot<'a>> {
    let mut found = Vec::new();
    walk(served, &mut Vec::new(), Some(object), schema, &mut found);
    let typed = |spot: &Spot<'_>| {
        matches!(spot.path.as_slice(), [] | [Step::Key(_)])
            && ["", "apiVersion", "kind"].contains(&spot.field())
    };
    found.retain(|spot| !typed(spot) && spot.path.starts_with(way));
    found
}

fn walk<'a>(
    served: &'a Served,
    path: &mut Vec<Step>,
    value: Option<&'a Value>,
    schema: &'a Value,
    found: &mut Vec<Spot<'a>>,
) {
    let schema = served.resolve(schema);
    found.push(Spot { path: path.clone(), value, schema });
    match value {
        Some(Value::Object(members)) => {
            let properties = schema["properties"].as_object();
            for (key, value) in members {
                let inner =
                    properties.and_then(|all| all.get(key)).unwrap_or(&schema["additionalProperties"]);
                path.push(Step::Key(key.clone()));
                walk(served, path, Some(value), inner, found);
                path.pop();
            }
            for (key, inner) in
                properties.into_iter().flatten().filter(|(key, _)| !members.contains_key(*key))
            {
                path.push(Step::Key(key.clone()));
                walk(served, path, None, inner, found);
                path.pop();
            }
        }
        Some(Value::Array(items)) => {
            for (index, value) in items.iter().enumerate() {
                path.push(Step::Index(index));
                walk(served, path, Some(value), &schema["items"], found);
                path.pop();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(way: &[Step]) -> Vec<String> {
        let schema = json!({"properties": {
            "kind": {"type": "string"},
            "spec": {"properties": {
                "items": {"type": "array", "items": {"properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}},
                "other": {"type": "boolean"}}}}});
        let object = json!({"kind": "Thing", "spec": {"items": [{"name": "a"}, {"name": "b"}]}});
        let served = Served::default();
        below(&served, &schema, &object, way).iter().map(|spot| name_of(&spot.path)).collect()
    }

    #[test]
    fn places_are_what_stands_in_the_object_and_what_its_schema_has_beside_but_no_type() {
        assert_eq!(
            names(&[]),
            [
                "spec",
                "spec.items",
                "spec.items",
                "spec.items.name",
                "spec.items.size",
                "spec.items",
                "spec.items.name",
                "spec.items.size",
                "spec.other",
            ]
        );
    }

    #[test]
    fn places_below_a_way_are_no_others() {
        assert_eq!(names(&[Step::Key("spec".into()), Step::Key("other".into())]), ["spec.other"]);
    }
}

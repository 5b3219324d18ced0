//! What an object has of the fields that a manager owns by server-side apply.
//!
//! The fields are those of an entry of `managedFields`, in the form `FieldsV1`: an object whose members are steps (`f:` and the name
//! of a field, `k:` and the keys of an item of a list, `v:` and an item of a set, `i:` and an index; `.` is the place itself). A
//! step without any below it is owned as a whole.

use serde_json::{Map, Value};

use crate::subset::is_subset;

/// The values that `object` has at `fields`, in their shape; null where it has nothing. Of what `wanted` asks for as an empty object
/// or an empty list it only counts whether it is there: what is in it is others'.
#[must_use]
pub fn values(fields: &Value, wanted: &Value, object: &Value) -> Value {
    let Some(steps) = steps(fields) else {
        return if is_empty(wanted) { Value::Bool(true) } else { object.clone() };
    };
    let value = |(step, below): (&String, &Value)| {
        let wanted = at(wanted, step).unwrap_or(&Value::Null);
        let value = at(object, step).map_or(Value::Null, |object| values(below, wanted, object));
        (step.clone(), value)
    };
    steps.iter().filter(|(step, _)| *step != ".").map(value).collect::<Map<_, _>>().into()
}

/// Whether an apply of `wanted` by who owns `fields` of `object` finds all as it is: it names these fields and no others, and each has
/// this value. What a server writes in another way than it is asked for, it takes for another value.
#[must_use]
pub fn is_applied(fields: &Value, wanted: &Value, object: &Value) -> bool {
    let Some(steps) = steps(fields) else {
        return is_empty(wanted) && is_alike(wanted, object)
            || is_subset(wanted, object) && is_subset(object, wanted);
    };
    let inside = || steps.iter().filter(|(step, _)| *step != ".");
    let asked = match wanted {
        _ if !is_alike(wanted, object) => return false,
        Value::Object(fields) => fields.values().filter(|value| !value.is_null()).count(),
        Value::Array(items) => items.len(),
        _ => return false,
    };
    asked == inside().count()
        && inside().all(|(step, below)| match (at(wanted, step), at(object, step)) {
            (Some(wanted), Some(object)) => is_applied(below, wanted, object),
            _ => false,
        })
}

/// The steps below a place; none where it is owned as a whole.
fn steps(fields: &Value) -> Option<&Map<String, Value>> {
    fields.as_object().filter(|steps| !steps.is_empty())
}

/// Whether both are objects, or both lists.
fn is_alike(one: &Value, other: &Value) -> bool {
    one.is_object() && other.is_object() || one.is_array() && other.is_array()
}

fn is_empty(wanted: &Value) -> bool {
    match wanted {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// What is one step further.
fn at<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    let Some((kind, name)) = step.split_once(':') else {
        return (step == ".").then_some(value);
    };
    match kind {
        "f" => value.get(name),
        "i" => value.get(name.parse::<usize>().ok()?),
        "v" => {
            let item: Value = serde_json::from_str(name).ok()?;
            value.as_array()?.iter().find(|other| **other == item)
        }
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(name).ok()?;
            let has_keys = |item: &&Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
            value.as_array()?.iter().find(has_keys)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fields() -> Value {
        json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {".": {}, "v:\"a/b\"": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:volumes": {"k:{\"name\":\"data\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
                "f:containers": {"k:{\"name\":\"web\"}": {
                    ".": {}, "f:name": {}, "f:image": {}, "f:command": {},
                    "f:resources": {"f:limits": {"f:cpu": {}}},
                }},
            },
        })
    }

    fn wanted() -> Value {
        json!({
            "metadata": {"labels": {"app": "web"}, "finalizers": ["a/b"]},
            "spec": {
                "replicas": 2,
                "volumes": [{"name": "data", "emptyDir": {}}],
                "containers": [{
                    "name": "web", "image": "nginx", "command": ["run"], "resources": {"limits": {"cpu": "1"}},
                }],
            },
        })
    }

    /// As the server has it: with defaults, and what others added.
    fn stored() -> Value {
        json!({
            "metadata": {"name": "a", "labels": {"app": "web", "theirs": "x"}, "finalizers": ["c", "a/b"]},
            "spec": {
                "replicas": 2, "paused": false,
                "volumes": [{"name": "token"}, {"name": "data", "emptyDir": {"medium": ""}}],
                "containers": [
                    {"name": "proxy", "image": "envoy"},
                    {
                        "name": "web", "image": "nginx", "command": ["run"], "imagePullPolicy": "Always",
                        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                    },
                ],
            },
            "status": {"replicas": 1},
        })
    }

    fn both(change: impl Fn(&mut Value)) -> (bool, bool) {
        let mut changed = stored();
        change(&mut changed);
        let is_same = values(&fields(), &wanted(), &changed) == values(&fields(), &wanted(), &stored());
        (is_same, is_applied(&fields(), &wanted(), &changed))
    }

    #[test]
    fn what_others_own_does_not_count() {
        assert_eq!(both(|_| ()), (true, true));
        assert_eq!(both(|stored| stored["spec"]["containers"][0]["image"] = json!("envoy:2")), (true, true));
        assert_eq!(both(|stored| stored["metadata"]["labels"]["theirs"] = json!("y")), (true, true));
        assert_eq!(both(|stored| stored["spec"]["paused"] = json!(true)), (true, true));
        assert_eq!(
            both(|stored| stored["spec"]["volumes"][1]["emptyDir"]["medium"] = json!("Memory")),
            (true, true)
        );
    }

    #[test]
    fn each_owned_field_counts_as_it_is_and_whether_it_is_there() {
        assert_eq!(both(|stored| stored["spec"]["replicas"] = json!(3)), (false, false));
        assert_eq!(
            both(|stored| stored["spec"]["containers"][1]["command"] = json!(["run", "x"])),
            (false, false)
        );
        assert_eq!(both(|stored| stored["spec"]["containers"][1]["name"] = json!("other")), (false, false));
        assert_eq!(both(|stored| stored["metadata"]["finalizers"] = json!(["c"])), (false, false));
        let gone = |stored: &mut Value| {
            stored["spec"]["volumes"][1].as_object_mut().and_then(|volume| volume.remove("emptyDir"));
        };
        assert_eq!(both(gone), (false, false));
    }

    #[test]
    fn an_apply_of_more_or_of_less_than_is_owned_is_another_one() {
        let is_applied = |change: &dyn Fn(&mut Value)| {
            let mut wanted = wanted();
            change(&mut wanted);
            is_applied(&fields(), &wanted, &stored())
        };
        assert!(is_applied(&|_| ()));
        assert!(is_applied(&|wanted| wanted["spec"]["selector"] = Value::Null));
        assert!(!is_applied(&|wanted| wanted["metadata"]["labels"]["theirs"] = json!("x")));
        assert!(!is_applied(&|wanted| wanted["spec"]["paused"] = json!(false)));
        assert!(!is_applied(&|wanted| wanted["spec"]["containers"][0]["image"] = Value::Null));
        assert!(!is_applied(&|wanted| wanted["metadata"]["finalizers"] = json!([])));
        assert!(!is_applied(
            &|wanted| wanted["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}, {"name": "x"}])
        ));
        let limit = |limit: &str| json!({"limits": {"cpu": limit}});
        assert!(!is_applied(&|wanted| wanted["spec"]["containers"][0]["resources"] = limit("1000m")));
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![(0..3).prop_map(Value::from), "[ab]".prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop::collection::btree_map("[a-c]", inner, 1..4)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        })
    }

    /// The fields of a value in which each object is a map.
    fn fields_of(value: &Value) -> Value {
        let below = value.as_object().into_iter().flatten();
        below.map(|(field, value)| (format!("f:{field}"), fields_of(value))).collect::<Map<_, _>>().into()
    }

    /// Gives an object more fields.
    fn extended(value: &Value) -> Value {
        let Value::Object(fields) = value else { return value.clone() };
        let mut more: Map<_, _> =
            fields.iter().map(|(field, value)| (field.clone(), extended(value))).collect();
        more.insert("z".to_owned(), json!({"theirs": 1}));
        more.into()
    }

    proptest! {
        #[test]
        fn only_the_same_value_is_applied_and_additions_do_not_matter(one in tree(), other in tree()) {
            let fields = fields_of(&one);
            prop_assert!(is_applied(&fields, &one, &extended(&one)));
            prop_assert_eq!(values(&fields, &one, &extended(&one)), values(&fields, &one, &one));
            if one != other {
                prop_assert!(!is_applied(&fields, &other, &one));
            }
        }

        #[test]
        fn no_steps_make_it_panic(step in "[fkvi.]:?.{0,8}", one in tree()) {
            let mut fields = Map::new();
            fields.insert(step, json!({"k:{": {}, "v:": {}, "i:-1": {}}));
            let fields = Value::Object(fields);
            prop_assert!(values(&fields, &json!([one.clone()]), &json!([one.clone()])).is_object());
            let (nothing, number) = (json!({}), json!(0));
            let _ = is_applied(&fields, &nothing, &one);
            prop_assert!(!is_applied(&fields, &nothing, &number));
        }
    }
}

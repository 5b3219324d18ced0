//! Members that stand in their object twice, in built-in types: Go decodes the second value into what the first has left, so that structs
//! are merged, and so are the items of lists that both have; entries of maps are replaced (`encoding/json`, of which `sigs.k8s.io/json` is
//! a copy: `decodeState.object`, `decodeState.array`).

use serde_json::{Map, Value};

use super::node::{Additional, Coding, Node};

/// Puts what stood at a place before into what stands there now. `pointer`: the place, as a JSON pointer.
pub(crate) fn put_under(root: &Node, object: &mut Value, pointer: &str, earlier: Value) {
    let (mut node, mut here) = (root.target(), object);
    let mut names =
        pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).peekable();
    while let Some(name) = names.next() {
        let below = match here {
            Value::Object(members) => match &node.additional {
                // An entry of a map begins anew.
                Additional::Of(_) | Additional::Any if names.peek().is_none() => return,
                Additional::Of(values) => Some((&**values, members.get_mut(&name))),
                _ if names.peek().is_none() => return put_member(node, members, &name, earlier),
                _ => node.properties.get(name.as_str()).map(|field| (&**field, members.get_mut(&name))),
            },
            Value::Array(items) => {
                let item = name.parse::<usize>().ok().and_then(|at| items.get_mut(at));
                node.items.as_deref().map(|node| (node, item))
            }
            _ => return,
        };
        let Some((field, Some(value))) = below else { return };
        (node, here) = (field.target(), value);
        if node.coding != Coding::Plain {
            return;
        }
    }
}

/// Puts an earlier member of a struct under what it has there now.
fn put_member(node: &Node, members: &mut Map<String, Value>, name: &str, earlier: Value) {
    match (members.get_mut(name), node.properties.get(name)) {
        (None, _) => {
            members.insert(name.to_owned(), earlier);
        }
        (Some(now @ Value::Null), Some(field)) => {
            // What is no pointer cannot be none: `null` says nothing of it.
            let is_struct = node.shown.iter().any(|(shown, zero)| **shown == *name && zero.is_object());
            if field.omits_zero || is_struct {
                *now = earlier;
            }
        }
        (Some(now), Some(field)) => merge(field, now, earlier),
        (Some(_), None) => {}
    }
}

fn merge(node: &Node, now: &mut Value, earlier: Value) {
    let node = node.target();
    match (now, earlier) {
        _ if node.coding != Coding::Plain => {}
        (Value::Object(now), Value::Object(earlier)) => {
            let is_map = matches!(node.additional, Additional::Of(_) | Additional::Any);
            for (name, value) in earlier {
                if !is_map {
                    put_member(node, now, &name, value);
                } else if !now.contains_key(&name) {
                    now.insert(name, value);
                }
            }
        }
        (Value::Array(now), Value::Array(earlier)) => {
            let Some(items) = &node.items else { return };
            for (now, earlier) in now.iter_mut().zip(earlier) {
                merge(items, now, earlier);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Schema;
    use super::*;

    /// What a pod says that has `now`, and had `earlier` at a place before.
    fn pod(now: Value, pointer: &str, earlier: Value) -> Value {
        let mut pod = now;
        Schema::built_in("io.k8s.api.core.v1.Pod").put_under(&mut pod, pointer, earlier);
        pod
    }

    #[test]
    fn structs_that_stand_twice_are_merged() {
        let now = json!({"spec": {"nodeName": "b", "securityContext": {"runAsUser": 1}}});
        let earlier = json!({"nodeName": "a", "hostname": "h", "securityContext": {"runAsGroup": 2}});
        let both = json!({"spec": {"nodeName": "b", "hostname": "h", "securityContext": {"runAsUser": 1, "runAsGroup": 2}}});
        assert_eq!(pod(now, "/spec", earlier), both);
    }

    #[test]
    fn entries_of_maps_that_stand_twice_are_replaced() {
        let now = json!({"metadata": {"labels": {"b": "2"}}});
        let merged = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
        assert_eq!(pod(now, "/metadata/labels", json!({"a": "1", "b": "1"})), merged);
        let now = json!({"metadata": {"labels": {"b": "2"}}});
        assert_eq!(pod(now.clone(), "/metadata/labels/b", json!("1")), now);
    }

    #[test]
    fn items_of_lists_that_stand_twice_are_merged_by_their_place() {
        let now = json!({"spec": {"containers": [{"name": "b"}], "nodeSelector": null}});
        let earlier = json!([{"name": "a", "image": "i"}, {"name": "c"}]);
        let merged = json!({"spec": {"containers": [{"name": "b", "image": "i"}], "nodeSelector": null}});
        assert_eq!(pod(now, "/spec/containers", earlier), merged);
    }

    #[test]
    fn null_says_nothing_of_what_is_no_pointer() {
        let now = || json!({"spec": {"nodeName": null, "hostNetwork": null, "nodeSelector": null}});
        assert_eq!(pod(now(), "/spec/nodeName", json!("a"))["spec"]["nodeName"], "a");
        assert_eq!(pod(now(), "/spec/nodeSelector", json!({"a": "b"}))["spec"]["nodeSelector"], Value::Null);
        assert_eq!(pod(json!({"spec": null}), "/spec", json!({"nodeName": "a"}))["spec"]["nodeName"], "a");
    }
}

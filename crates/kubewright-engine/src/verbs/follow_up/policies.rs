//! What happens around validating policies: a new one, and one with new expressions, gets its status
//! (`k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus`; here the server does it, which has the types).

use kubewright_kinds::{Kind, encode};
use kubewright_meta::object;
use kubewright_store::{Change, Expect, Name};
use serde_json::json;

use crate::admission::type_checking;
use crate::engine::Engine;

/// After a commit of a policy: its status tells what is wrong with the types of its expressions.
pub(super) async fn changed(engine: &Engine, kind: &Kind, name: &str) {
    let key: Name = name.into();
    let epoch = engine.epoch();
    while let Some(entry) = engine.snapshot().get(&kind.collection, &key).cloned() {
        let mut policy = encode::value(kind, &entry);
        let generation = object::generation(&policy);
        if policy["status"]["observedGeneration"].as_i64().unwrap_or_default() >= generation {
            break;
        }
        let checked = type_checking(&engine.kinds(), &policy);
        let status = object::member_mut(&mut policy, "status");
        status.insert("observedGeneration".to_owned(), json!(generation));
        let had_warnings = status.get("typeChecking").is_some_and(|told| told != &json!({}));
        if had_warnings && checked == json!({}) {
            // Applying an empty object where there were warnings leaves none.
            status.remove("typeChecking");
        } else {
            status.insert("typeChecking".to_owned(), checked);
        }
        let change = Change::Put(encode::draft(kind, policy));
        if !matches!(engine.commit(epoch, kind, &key, Expect::At(entry.revision), change).await, Ok(None)) {
            break;
        }
    }
}

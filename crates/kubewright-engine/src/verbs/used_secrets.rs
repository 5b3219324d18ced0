//! Secrets whose tokens were used get a label that says when.

use kubewright_identity::authn::{LAST_USED, Used};
use kubewright_kinds::built_in::core::secret::SECRET;
use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::{Part, edit};
use crate::engine::{Engine, SERVER};
use crate::request::Call;

/// Labels Secrets with the day on which their tokens were used. One that is gone or replaced is left alone.
pub async fn label_used(engine: &Engine, used: Vec<Used>) {
    let kinds = engine.kinds();
    let Some(kind) = kinds.find(&SECRET).filter(|_| !used.is_empty()) else { return };
    for Used { namespace, name, uid, day } in used {
        let label = |secret: &mut Value| {
            if object::uid(secret) != uid {
                return Err(ApiError::not_found(kind, &name));
            }
            let meta = object::meta_mut(secret);
            let labels = meta.entry("labels").or_insert_with(|| Value::Object(serde_json::Map::new()));
            object::as_map(labels).insert(LAST_USED.to_owned(), day.clone().into());
            Ok(())
        };
        let call = Call { kind, namespace: &namespace, name: &name, user: &SERVER };
        if let Err(error) = Box::pin(edit(engine, call, Part::Main, false, &label)).await {
            tracing::debug!(%error, namespace, name, "a used token was not labelled");
        }
    }
}

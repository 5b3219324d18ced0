//! Fields that an apply would take from others: the answer to it
//! (`k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go`).

use http::StatusCode;
use kubewright_meta::ApiError;
use serde_json::{Value, json};

use super::element::Element;
use super::managed::{Manager, Operation};
use super::set::Set;

/// A field that somebody else manages.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    /// Who manages it.
    pub(super) manager: Manager,
    /// Which.
    pub(super) path: Vec<Element>,
}

impl Conflict {
    /// The conflicts over fields of a manager.
    pub(super) fn over(manager: &Manager, fields: &Set) -> Vec<Self> {
        fields.paths().into_iter().map(|path| Self { manager: manager.clone(), path }).collect()
    }

    fn field(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }
}

/// 409 for an apply that is not forced.
#[must_use]
pub(super) fn refuse(conflicts: &[Conflict]) -> ApiError {
    let cause = |conflict: &Conflict| {
        json!({
            "reason": "FieldManagerConflict",
            "message": format!("conflict with {}", shown(&conflict.manager)),
            "field": conflict.field(),
        })
    };
    let causes: Vec<Value> = conflicts.iter().map(cause).collect();
    ApiError::new(StatusCode::CONFLICT, "Conflict", message(conflicts))
        .with_details(json!({"causes": causes}))
}

fn message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            shown(&one.manager),
            one.field()
        );
    }
    let mut sorted: Vec<&Conflict> = conflicts.iter().collect();
    sorted.sort_by_cached_key(|conflict| conflict.manager.identifier());
    let mut lines = Vec::new();
    let mut last: Option<&Manager> = None;
    for conflict in sorted {
        if last != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", shown(&conflict.manager)));
            last = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.field()));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

fn shown(manager: &Manager) -> String {
    let mut text = format!("{:?}", manager.name);
    if !manager.subresource.is_empty() {
        text += &format!(" with subresource {:?}", manager.subresource);
    }
    if manager.operation == Operation::Update {
        text += &format!(" using {}", manager.api_version);
    }
    text
}

//! CustomResourceDefinitions.

use crate::cause::Cause;
use crate::causes::Around;
use crate::causes::services::unserved;
use crate::report::Finding;
use crate::text::one_line;

pub(super) fn find(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    let mut found = Vec::new();
    if let Some(names) = object.condition_is("NamesAccepted", "False") {
        let message = format!("its names are taken: {}", one_line(names.message));
        let next = "rename it (spec.names), or delete the other definition: kubectl get crds";
        found.push(Finding::new(Cause::NamesNotAccepted, message, next).evidence(names.line()));
    } else if object.condition_is("Established", "True").is_none() && !object.is_deleting() {
        let condition = object.condition("Established");
        let said =
            condition.map_or_else(|| "it says nothing of itself".to_owned(), |one| one_line(one.message));
        let message = format!("its kind is not served: {said}");
        let finding = Finding::new(
            Cause::DefinitionNotEstablished,
            message,
            "see its other conditions: kubectl describe crd",
        );
        found.push(finding.all(condition.map(|one| one.line())));
    }
    if let Some(schema) = object.condition_is("NonStructuralSchema", "True") {
        let message = format!("its schema is not structural: {}", one_line(schema.message));
        found.push(
            Finding::new(Cause::SchemaInvalid, message, "correct the schema as the message says")
                .evidence(schema.line()),
        );
    }
    let service = object.at("/spec/conversion/webhook/clientConfig/service");
    if object.text("/spec/conversion/strategy") == "Webhook"
        && let Some(why) = unserved(picture, service)
    {
        let message = format!("its objects cannot be converted between versions: {why}");
        let next = "start the program that serves the conversion: until then its objects can neither be read in other versions nor listed";
        found.push(Finding::new(Cause::ConversionUnreachable, message, next));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::{Id, Object};
    use crate::picture::Picture;

    /// The API server of Kubewright accepts no such schema and establishes at once: these are what others say.
    #[test]
    fn a_definition_that_is_not_established_or_not_structural_says_so() {
        let id = Id::new("apiextensions.k8s.io", "CustomResourceDefinition", "", "buckets.example.org");
        let mut picture = Picture::new(jiff::Timestamp::UNIX_EPOCH, id);
        picture.add(Object::new(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "buckets.example.org"},
            "status": {"conditions": [
                {"type": "NamesAccepted", "status": "True"},
                {"type": "Established", "status": "False", "reason": "Installing", "message": "wait"},
                {"type": "NonStructuralSchema", "status": "True", "reason": "Violations", "message": "spec.x: Required value"},
            ]},
        })));
        let report = crate::explain(&picture);
        assert_eq!(report.object.causes(), [Cause::DefinitionNotEstablished, Cause::SchemaInvalid]);
        let [first, second] = report.object.findings.as_slice() else { panic!("two causes") };
        assert_eq!(first.message, "its kind is not served: wait");
        assert!(second.message.ends_with("spec.x: Required value"), "{second:?}");
    }
}

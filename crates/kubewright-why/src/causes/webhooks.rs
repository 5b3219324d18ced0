//! Configurations of admission webhooks.

use crate::cause::Cause;
use crate::causes::Around;
use crate::causes::services::unserved;
use crate::report::Finding;

pub(super) fn find(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    let mut found = Vec::new();
    for webhook in object.list("/webhooks").filter(|webhook| webhook["failurePolicy"] != "Ignore") {
        let Some(why) = unserved(picture, &webhook["clientConfig"]["service"]) else { continue };
        let name = webhook["name"].as_str().unwrap_or_default();
        let message =
            format!("webhook {name} has to be asked (failurePolicy: Fail) and does not answer: {why}");
        let next = format!(
            "start what serves it; as a way out: kubectl delete {} {}",
            object.kind().to_lowercase(),
            object.name()
        );
        let rules = &webhook["rules"];
        found.push(
            Finding::new(Cause::WebhookNoEndpoints, message, next)
                .evidence(format!("it is asked about {rules}")),
        );
    }
    found
}

//! The report as SARIF 2.1.0, which code scanning of forges reads.

use serde_json::{Value, json};

use super::Report;
use crate::finding::Check;

impl Report {
    /// As SARIF. A finding has no line of a source: it is of the operator as a whole, whose manifests stand for it.
    #[must_use]
    pub fn sarif(&self, manifests: &str) -> Value {
        let rules: Vec<Value> = Check::ALL
            .iter()
            .map(|check| json!({"id": check.name(), "shortDescription": {"text": check.promise()}}))
            .collect();
        let results: Vec<Value> = self
            .findings
            .iter()
            .map(|one| {
                let text = format!("{} ({})", one.finding.message, self.again(one));
                json!({
                    "ruleId": one.finding.check.name(),
                    "level": one.severity.name(),
                    "message": {"text": text},
                    "partialFingerprints": {"trial/v1": one.key()},
                    "locations": [{"physicalLocation": {"artifactLocation": {"uri": manifests}}}],
                    "baselineState": if one.is_known { "unchanged" } else { "new" },
                })
            })
            .collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": {"name": "kubewright trial", "rules": rules}}, "results": results}],
        })
    }
}

//! Requests for certificates.

use crate::cause::Cause;
use crate::causes::Around;
use crate::report::Finding;
use crate::text::one_line;

pub(super) fn find(around: &Around<'_>) -> Vec<Finding> {
    let request = around.object;
    let (name, signer) = (request.name(), request.text("/spec/signerName"));
    if let Some(denied) =
        request.condition_is("Denied", "True").or_else(|| request.condition_is("Failed", "True"))
    {
        let how = if denied.kind == "Denied" { "was denied" } else { "failed" };
        let message = format!("it {how}: {}", one_line(denied.message));
        let next = "a request is decided once: create another one, as the message says";
        return vec![Finding::new(Cause::RequestDenied, message, next).evidence(denied.line())];
    }
    if !request.text("/status/certificate").is_empty() {
        return Vec::new();
    }
    if request.condition_is("Approved", "True").is_some() {
        let message = format!("it is approved, and signer {signer} has not signed it");
        let next = format!("is the signer {signer} running, and does it accept the subject and usages?");
        return vec![Finding::new(Cause::RequestNotIssued, message, next)];
    }
    let message = format!("nobody has approved it (signer {signer}, by {})", request.text("/spec/username"));
    vec![Finding::new(Cause::RequestPending, message, format!("kubectl certificate approve {name}"))]
}

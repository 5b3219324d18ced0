//! Deletes requests for certificates of pods some time after they were made, whatever became of them (`cleaner/pcrcleaner.go`).
//! Where kube-controller-manager looks every five minutes, this one looks when it is time.

use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, Preconditions};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};

use crate::newer_kinds::PodCertificateRequest;

/// So long a kubelet and a signer may take.
const LIFETIME: SignedDuration = SignedDuration::from_mins(15);

/// The controller.
pub(crate) fn controller() -> Controller {
    Controller::new("podcertificaterequest-cleaner-controller", Cleaner)
        .for_kind::<PodCertificateRequest>()
        .optional()
}

struct Cleaner;

impl Reconciler for Cleaner {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(request) = ctx.get::<PodCertificateRequest>(key) else { return Ok(Outcome::Done) };
        let Some(left) = left(&request, ctx.world().clock.now()) else { return Ok(Outcome::Done) };
        if let Ok(left) = std::time::Duration::try_from(left)
            && !left.is_zero()
        {
            return Ok(Outcome::RequeueAfter(left));
        }
        let uid = request.metadata.uid.clone();
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        ctx.delete::<PodCertificateRequest>(key, params).await?;
        Ok(Outcome::Done)
    }
}

/// How long until it goes; none for what has no beginning, or goes already.
fn left(request: &PodCertificateRequest, now: Timestamp) -> Option<SignedDuration> {
    let begun = request.metadata.creation_timestamp.as_ref()?.0;
    request.metadata.deletion_timestamp.is_none().then(|| LIFETIME - now.duration_since(begun))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    #[test]
    fn a_request_goes_when_it_is_a_quarter_of_an_hour_old() {
        let mut request = PodCertificateRequest::default();
        assert_eq!(left(&request, NOW), None);
        request.metadata.creation_timestamp = Some(Time(NOW));
        let later = |minutes| NOW + SignedDuration::from_mins(minutes);
        assert_eq!(left(&request, later(5)), Some(SignedDuration::from_mins(10)));
        assert!(left(&request, later(16)).is_some_and(|left| left.is_negative()));
        request.metadata.deletion_timestamp = Some(Time(NOW));
        assert_eq!(left(&request, later(16)), None);
    }
}

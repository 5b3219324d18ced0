//! The rights that a server of webhooks takes.

use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Secret,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};

use super::{Certificates, Registration, Server, Webhooks, declaration::Purpose};
use crate::{
    Object,
    rbac::{Rights, Verb},
};

impl Server {
    /// The rights that it takes: to tell the cluster of the webhooks, to keep its authority, and what handlers read.
    #[must_use]
    pub fn rights(&self) -> Rights {
        let (webhooks, registration, certificates) = self.parts();
        rights(webhooks, registration, certificates)
    }
}

/// The rights to write what `registration` says, and to keep `certificates`: on the objects of these names, and to create
/// what has no name before.
pub(crate) fn rights(webhooks: &Webhooks, registration: Registration, certificates: &Certificates) -> Rights {
    let mut rights = Rights::default();
    if registration != Registration::Nothing {
        let has = |purpose| webhooks.admission.iter().any(|webhook| webhook.purpose == purpose);
        if has(Purpose::Mutating) {
            configure::<MutatingWebhookConfiguration>(&mut rights, registration, &webhooks.mutating_name());
        }
        if has(Purpose::Validating) {
            configure::<ValidatingWebhookConfiguration>(
                &mut rights,
                registration,
                &webhooks.validating_name(),
            );
        }
        for conversion in &webhooks.conversions {
            let verbs = [Verb::List, Verb::Watch, Verb::Patch];
            rights.add_named::<CustomResourceDefinition>(&conversion.definition(), verbs);
        }
    }
    for reading in webhooks.admission.iter().flat_map(|webhook| &webhook.reads) {
        if let Some(attributes) = reading.attributes() {
            rights.imply(attributes, [Verb::List, Verb::Watch]);
        }
    }
    rights.merge(webhooks.rights.clone());
    if let Some(secret) = certificates.secret() {
        let verbs = [Verb::Get, Verb::List, Verb::Watch, Verb::Update];
        rights.add_named::<Secret>(&secret.name, verbs).add::<Secret>([Verb::Create]);
    }
    rights.implied()
}

fn configure<K: Object>(rights: &mut Rights, registration: Registration, name: &str) {
    rights.add_named::<K>(name, [Verb::List, Verb::Watch, Verb::Patch]);
    if registration == Registration::Apply {
        rights.add::<K>([Verb::Create]);
    }
}

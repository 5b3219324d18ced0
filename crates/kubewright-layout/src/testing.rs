//! Operators of this repository as the command has them.

use kubewright_runtime::command::{Installation, Operator, WebhookCertificate};
use serde_json::Value;

use crate::{About, Input, Manifests, RELEASE_NAMESPACE, Sample};

fn printed(operator: &Operator, namespace: Option<&str>, certificate: WebhookCertificate) -> Vec<Value> {
    let installation = Installation {
        install_namespace: namespace.map(str::to_owned),
        webhook_certificate: certificate,
        ..Installation::default()
    };
    let objects = operator.manifests(&installation).expect("manifests");
    objects.iter().map(|object| kubewright_runtime::object::to_value(object).expect("JSON")).collect()
}

fn manifests(operator: &Operator, namespace: Option<&str>) -> Manifests {
    let own = printed(operator, namespace, WebhookCertificate::Own);
    let certified = printed(operator, namespace, WebhookCertificate::CertManager);
    Manifests { certified: (own != certified).then_some(certified), own }
}

fn input(operator: &Operator, version: &str, sample: &str) -> Input {
    let sample = Sample {
        file: "sample.yaml".to_owned(),
        objects: vec![serde_saphyr::from_str(sample).expect("a sample")],
    };
    Input {
        name: operator.name().to_owned(),
        version: version.to_owned(),
        about: About { description: Some("An operator".to_owned()), ..About::default() },
        installed: manifests(operator, None),
        released: manifests(operator, Some(RELEASE_NAMESPACE)),
        samples: vec![sample],
    }
}

/// One without webhooks.
pub(crate) fn whitelist() -> Input {
    input(&kubewright_whitelist::operator(), "0.1.0", kubewright_whitelist::manifests::SAMPLE)
}

/// One with a webhook.
pub(crate) fn police() -> Input {
    input(&kubewright_image_police::operator(), "0.1.0", kubewright_image_police::manifests::SAMPLE)
}

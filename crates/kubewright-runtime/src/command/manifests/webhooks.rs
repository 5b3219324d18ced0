//! What an operator's webhooks take in a cluster.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{WebhookCertificate, dynamic, layout::Layout};
use crate::{
    Error,
    webhook::{self, Certificates, Manifests, Reach, Registration, Trust, Webhooks},
};

/// The port of controller-runtime's webhook server.
pub(super) const PORT: u16 = 9443;
/// Where certificates are mounted (controller-runtime's folder).
const FOLDER: &str = "/tmp/k8s-webhook-server/serving-certs";
const VOLUME: &str = "webhook-certs";

impl Layout {
    fn service_name(&self) -> String {
        self.named("webhook")
    }

    fn authority(&self) -> String {
        self.named("webhook-ca")
    }

    /// The Secret that is mounted.
    fn certificate(&self) -> String {
        self.named("webhook-cert")
    }

    /// Where the API server finds the webhooks.
    pub(super) fn reach(&self) -> Reach {
        Reach::service(&self.home, self.service_name())
    }

    pub(super) fn webhook_manifests(&self, webhooks: Option<&Webhooks>) -> Option<Manifests> {
        let trust = match self.webhooks? {
            WebhookCertificate::CertManager => {
                Trust::CertManager(format!("{}/{}", self.home, self.certificate()))
            }
            WebhookCertificate::Own | WebhookCertificate::Secret => Trust::Later,
        };
        webhooks.map(|webhooks| webhooks.manifests(&self.reach(), trust))
    }

    /// The rights to tell the cluster which authority to trust, and to keep that authority.
    pub(super) fn webhook_roles(&self, webhooks: Option<&Webhooks>) -> Result<Vec<DynamicObject>, Error> {
        let (Some(webhooks), Some(certificate)) = (webhooks, self.webhooks) else { return Ok(Vec::new()) };
        let (registration, source) = match certificate {
            WebhookCertificate::Own => {
                (Registration::CaBundle, Certificates::in_secret(&self.home, self.authority()))
            }
            WebhookCertificate::CertManager => (Registration::Nothing, Certificates::in_folder(FOLDER)),
            WebhookCertificate::Secret => (Registration::CaBundle, Certificates::in_folder(FOLDER)),
        };
        let (inside, outside) = webhook::rights(webhooks, registration, &source).by_scope();
        let (name, mut objects) = (self.named("webhook"), Vec::new());
        if !outside.is_empty() {
            objects.extend(self.cluster_role(&name, outside.rules())?);
        }
        if !inside.is_empty() {
            objects.extend(self.role(&self.home, &name, inside.rules())?);
        }
        Ok(objects)
    }

    /// The Service, and what makes the certificate.
    pub(super) fn webhook_objects(&self, webhooks: Option<&Webhooks>) -> Result<Vec<DynamicObject>, Error> {
        let (Some(_), Some(certificate)) = (webhooks, self.webhooks) else { return Ok(Vec::new()) };
        let mut objects = vec![dynamic(&self.service(&self.service_name(), 443, PORT)?)?];
        if certificate == WebhookCertificate::CertManager {
            let issuer = self.named("webhook-issuer");
            objects.push(dynamic(&json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
                "metadata": self.local(&issuer), "spec": {"selfSigned": {}},
            }))?);
            objects.push(dynamic(&json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                "metadata": self.local(&self.certificate()),
                "spec": {
                    "dnsNames": self.reach().names(),
                    "issuerRef": {"kind": "Issuer", "name": issuer},
                    "secretName": self.certificate(),
                },
            }))?);
        }
        Ok(objects)
    }

    /// The configurations that lead to the webhooks.
    pub(super) fn webhook_configurations(
        &self,
        webhooks: Option<&Webhooks>,
    ) -> Result<Vec<DynamicObject>, Error> {
        let Some(manifests) = self.webhook_manifests(webhooks) else { return Ok(Vec::new()) };
        let mutating = manifests.mutating.as_ref().map(dynamic).transpose()?;
        let validating = manifests.validating.as_ref().map(dynamic).transpose()?;
        let label = |mut object: DynamicObject| {
            object.metadata.labels.get_or_insert_default().extend(self.labels.clone());
            object
        };
        Ok(mutating.into_iter().chain(validating).map(label).collect())
    }

    /// How the program is told of all that.
    pub(super) fn webhook_arguments(&self) -> Vec<String> {
        let Some(certificate) = self.webhooks else { return Vec::new() };
        let mut arguments = vec![
            format!("--webhook-bind-address=:{PORT}"),
            format!("--webhook-service={}/{}", self.home, self.service_name()),
        ];
        let (source, registration) = match certificate {
            WebhookCertificate::Own => {
                (format!("--webhook-secret={}/{}", self.home, self.authority()), "ca-bundle")
            }
            WebhookCertificate::CertManager => (format!("--webhook-cert-path={FOLDER}"), "nothing"),
            WebhookCertificate::Secret => (format!("--webhook-cert-path={FOLDER}"), "ca-bundle"),
        };
        arguments.extend([source, format!("--webhook-registration={registration}")]);
        arguments
    }

    fn is_mounted(&self) -> bool {
        matches!(self.webhooks, Some(WebhookCertificate::CertManager | WebhookCertificate::Secret))
    }

    pub(super) fn webhook_volume(&self) -> Option<Value> {
        let secret = json!({"secretName": self.certificate()});
        self.is_mounted().then(|| json!({"name": VOLUME, "secret": secret}))
    }

    pub(super) fn webhook_mount(&self) -> Option<Value> {
        self.is_mounted().then(|| json!({"name": VOLUME, "mountPath": FOLDER, "readOnly": true}))
    }
}

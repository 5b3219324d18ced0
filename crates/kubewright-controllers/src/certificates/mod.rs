//! The controllers of CertificateSigningRequests: one approves those of kubelets, one signs what is approved, one cleans up
//! (`pkg/controller/certificates`).

mod approver;
mod cleaner;
mod kubelet;
mod pod_requests;
mod signer;
mod trust_bundle;
mod usages;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest as Csr, CertificateSigningRequestCondition as Condition,
};
use kubewright_runtime::Error;
use kubewright_serve::authority::CertificateRequest;

pub(crate) use approver::controller as approver;
pub(crate) use cleaner::controller as cleaner;
pub(crate) use pod_requests::controller as pod_request_cleaner;
pub(crate) use signer::controller as signer;
pub(crate) use trust_bundle::controller as trust_bundle_publisher;

const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";

/// The signer of the client certificates of kubelets.
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";

fn conditions(csr: &Csr) -> &[Condition] {
    csr.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn has(csr: &Csr, kind: &str) -> bool {
    conditions(csr).iter().any(|condition| condition.type_ == kind)
}

/// The certificate; empty when there is none yet.
fn issued(csr: &Csr) -> &[u8] {
    let certificate = csr.status.as_ref().and_then(|status| status.certificate.as_ref());
    certificate.map_or(&[], |certificate| certificate.0.as_slice())
}

fn usages(csr: &Csr) -> &[String] {
    csr.spec.usages.as_deref().unwrap_or_default()
}

/// The request in it. The API server has read it before, so no retry helps.
fn read(csr: &Csr) -> Result<CertificateRequest, Error> {
    let name = csr.metadata.name.as_deref().unwrap_or_default();
    CertificateRequest::read(&csr.spec.request.0)
        .map_err(|error| Error::terminal(format!("unable to parse csr {name:?}: {error}")))
}

#[cfg(test)]
mod tests {
    use kubewright_serve::authority::CertificateRequest;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    use serde_json::{Value, json};

    use super::Csr;

    /// A request in PEM for an organization, a common name and other names.
    pub(super) fn pem(organization: &str, name: &str, others: &[&str]) -> String {
        let others: Vec<_> = others.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(others).expect("names");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        params.serialize_request(&key).expect("a request").pem().expect("PEM")
    }

    pub(super) fn request(organization: &str, name: &str, others: &[&str]) -> CertificateRequest {
        CertificateRequest::read(pem(organization, name, others).as_bytes()).expect("a request")
    }

    pub(super) fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// A CertificateSigningRequest with this status for a request in PEM.
    pub(super) fn csr(signer: &str, pem: &str, usages: &[&str], status: &Value) -> Csr {
        let mut csr: Csr = kubewright_objects::from_value(json!({
            "metadata": {"name": "csr"},
            "spec": {"signerName": signer, "request": "", "usages": usages, "username": "system:node:a"},
            "status": status,
        }))
        .expect("a request");
        csr.spec.request = k8s_openapi::ByteString(pem.as_bytes().to_vec());
        csr
    }
}

//! Trust bundles of the cluster (`ValidateClusterTrustBundle` of `pkg/apis/certificates/validation`).

use std::collections::BTreeMap;

use kubewright_meta::FieldError;
use pem::Pem;
use serde_json::Value;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::at::At;
use super::errors::Errors;
use super::{Again, NameRule, Rules, pem_blocks, signers};

const MAX_BUNDLE: usize = 1024 * 1024;

/// The rules of trust bundles.
pub(crate) const fn rules() -> Rules {
    Rules {
        name: NameRule::TrustBundle,
        again: Again::Metadata,
        validate: |bundle| {
            Errors::of(|errors| {
                let spec = At::root(bundle).get("spec");
                check_signer(&spec, errors);
                check_certificates(&spec.get("trustBundle"), errors);
            })
        },
        validate_update: |new: &Value, old: &Value| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                check_signer(&new, errors);
                // What is there stays good, whatever is thought of certificates later.
                let certificates = new.get("trustBundle");
                if certificates.text() != old.get("trustBundle").text() {
                    check_certificates(&certificates, errors);
                }
                let signer = new.get("signerName");
                if signer.text() != old.get("signerName").text() {
                    errors.invalid_text(&signer, super::errors::IMMUTABLE);
                }
            })
        },
        ..Rules::none()
    }
}

fn check_signer(spec: &At<'_>, errors: &mut Errors) {
    let signer = spec.get("signerName");
    if !signer.is_empty() {
        signers::check(&signer, errors);
    }
}

/// That a bundle holds certificates of authorities, each once, and at least one (`validateTrustBundle`).
fn check_certificates(bundle: &At<'_>, errors: &mut Errors) {
    if bundle.text().len() > MAX_BUNDLE {
        return errors.push(FieldError::too_long(&bundle.path, MAX_BUNDLE));
    }
    let mut refuse = |why: String| errors.invalid_as(bundle, "<value omitted>", why);
    let blocks = pem_blocks::of(bundle.text());
    let mut good = true;
    let mut places: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (index, block) in blocks.iter().enumerate() {
        match trouble(block) {
            Some(why) => {
                good = false;
                refuse(format!("entry {index} {why}"));
            }
            None => places.entry(block.contents()).or_default().push(index),
        }
    }
    if !good {
        return;
    }
    if blocks.is_empty() {
        refuse("at least one trust anchor must be provided".to_owned());
    }
    let mut twice: Vec<_> = places.into_values().filter(|places| places.len() > 1).collect();
    twice.sort_unstable();
    for places in twice {
        let places: Vec<_> = places.iter().map(ToString::to_string).collect();
        refuse(format!("duplicate trust anchor (indices [{}])", places.join(" ")));
    }
}

/// Why a block is no certificate of an authority.
fn trouble(block: &Pem) -> Option<String> {
    if block.tag() != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.tag()));
    }
    if block.headers().iter().next().is_some() {
        return Some("has PEM block headers".to_owned());
    }
    let parsed = X509Certificate::from_der(block.contents()).ok().filter(|(rest, _)| rest.is_empty());
    let Some((_, certificate)) = parsed else { return Some("does not parse as X.509".to_owned()) };
    let constraints = certificate.basic_constraints().ok().flatten();
    let is_authority = constraints.is_some_and(|constraints| constraints.value.ca);
    (!is_authority).then(|| "does not have the CA bit set".to_owned())
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use serde_json::json;

    use super::*;

    fn certificate(is_authority: bool) -> String {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::default();
        if is_authority {
            parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        parameters.self_signed(&key).expect("a certificate").pem()
    }

    fn said(bundle: &str) -> Vec<String> {
        let object = json!({"metadata": {"name": "b"}, "spec": {"trustBundle": bundle}});
        rules().errors_on_create(&object, false).iter().map(ToString::to_string).collect()
    }

    fn refused(why: &str) -> Vec<String> {
        vec![format!("spec.trustBundle: Invalid value: \"<value omitted>\": {why}")]
    }

    #[test]
    fn a_bundle_holds_certificates_of_authorities_each_once() {
        let (one, other) = (certificate(true), certificate(true));
        assert_eq!(said(&format!("{one}a word\n{other}")), Vec::<String>::new());
        assert_eq!(said(""), refused("at least one trust anchor must be provided"));
        assert_eq!(said("junk"), refused("at least one trust anchor must be provided"));
        let twice = format!("{one}{other}{one}");
        assert_eq!(said(&twice), refused("duplicate trust anchor (indices [0 2])"));
        let leaf = format!("{one}{}", certificate(false));
        assert_eq!(said(&leaf), refused("entry 1 does not have the CA bit set"));
        let key = "-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n";
        assert_eq!(said(key), refused("entry 0 has bad block type: KEY"));
        let nothing = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(said(nothing), refused("entry 0 does not parse as X.509"));
        let headed = one.replace("CERTIFICATE-----\nM", "CERTIFICATE-----\na: b\n\nM");
        assert_eq!(said(&headed), refused("entry 0 has PEM block headers"));
        let long = "x".repeat(MAX_BUNDLE + 1);
        assert_eq!(said(&long), ["spec.trustBundle: Too long: may not be more than 1048576 bytes"]);
    }

    #[test]
    fn a_name_says_the_signer_and_the_signer_stays() {
        let bundle = |name: &str, signer: &str| json!({"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": certificate(true)}});
        let said = |object: &Value| -> Vec<String> {
            rules().errors_on_create(object, false).iter().map(ToString::to_string).collect()
        };
        let good = bundle("example.com:s:v1", "example.com/s");
        assert_eq!(said(&good), Vec::<String>::new());
        assert_eq!(
            said(&bundle("v1", "example.com/s")),
            [
                "metadata.name: Invalid value: \"v1\": ClusterTrustBundle for signerName example.com/s must be named with prefix example.com:s:"
            ]
        );
        assert_eq!(
            said(&bundle("a:b", "")),
            [
                "metadata.name: Invalid value: \"a:b\": ClusterTrustBundle without signer name must not have \":\" in its name"
            ]
        );
        let mut other = good.clone();
        other["spec"]["signerName"] = json!("example.com/t");
        let told = rules().errors_on_update(&other, &good, false);
        let told: Vec<_> = told.iter().map(ToString::to_string).collect();
        assert_eq!(
            told.last().map(String::as_str),
            Some("spec.signerName: Invalid value: \"example.com/t\": field is immutable")
        );
    }

    #[test]
    fn what_is_there_stays_good() {
        let old = json!({"metadata": {"name": "b"}, "spec": {"trustBundle": "junk"}});
        assert!(rules().errors_on_update(&old, &old, false).is_empty());
        let mut new = old.clone();
        new["spec"]["trustBundle"] = json!("other junk");
        assert_eq!(rules().errors_on_update(&new, &old, false).len(), 1);
    }
}

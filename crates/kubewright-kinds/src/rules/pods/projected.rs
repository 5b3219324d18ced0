//! Projected volumes: several sources as files of one directory (`validateProjectedVolumeSource`).

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::metadata::trust_bundle_name;
use super::super::pod_certificates::{check_user_annotations, longest_lifetime};
use super::super::{selector, signers};
use super::paths::{check_mode, check_not_reserved};
use super::volumes::{check_downward_item, check_key_to_path};

const SOURCES: [&str; 6] =
    ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
const CONFLICT: &str = "conflicting duplicate paths";

/// Checks a projected volume.
pub(super) fn check(volume: &At<'_>, errors: &mut Errors) {
    check_mode(&volume.get("defaultMode"), errors);
    let mut paths = BTreeSet::new();
    for source in volume.get("sources").items() {
        for key in ["secret", "configMap"] {
            check_object(volume, &source.get(key), &mut paths, errors);
        }
        let api = source.get("downwardAPI");
        for item in api.get("items").items() {
            check_downward_item(&At { path: api.path.clone(), ..item.clone() }, errors);
            claim(volume, item.get("path").text(), item.get("path").text(), &mut paths, errors);
        }
        check_token(volume, &source.get("serviceAccountToken"), errors);
        check_bundle(volume, &source.get("clusterTrustBundle"), &mut paths, errors);
        check_certificate(volume, &source.get("podCertificate"), &mut paths, errors);
        if SOURCES.iter().filter(|key| source.get(key).is_set()).count() > 1 {
            errors.forbidden(&source, "may not specify more than 1 volume type per source");
        }
    }
}

/// Takes a path for one source; `shown` is what the error shows when another has it.
fn claim<'a>(
    volume: &At<'_>,
    path: &'a str,
    shown: &str,
    paths: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    if !path.is_empty() && !paths.insert(path) {
        errors.invalid_as(volume, shown, CONFLICT);
    }
}

fn check_object<'a>(volume: &At<'_>, object: &At<'a>, paths: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    if !object.is_set() {
        return;
    }
    errors.need(&object.get("name"));
    for item in object.get("items").items() {
        check_key_to_path(&item, errors);
        claim(volume, item.get("path").text(), object.get("name").text(), paths, errors);
    }
}

fn check_token(volume: &At<'_>, token: &At<'_>, errors: &mut Errors) {
    if !token.is_set() {
        return;
    }
    let lifetime = token.get("expirationSeconds");
    let seconds = lifetime.number().unwrap_or_default();
    if seconds < 10 * 60 {
        errors.invalid_as(&lifetime, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds > 1 << 32 {
        errors.invalid(&lifetime, "may not specify a duration larger than 2^32 seconds");
    }
    let path = At { path: format!("{}.path", volume.path), ..token.get("path") };
    if errors.need(&path) {
        check_not_reserved(&path, errors);
    }
}

fn check_bundle<'a>(volume: &At<'_>, bundle: &At<'a>, paths: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    if !bundle.is_set() {
        return;
    }
    let (name, signer) = (bundle.get("name"), bundle.get("signerName"));
    match (name.is_set(), signer.is_set()) {
        (true, true) => {
            let error =
                FieldError::invalid(&bundle.path, Value::Null, "only one of name and signerName may be used");
            errors.push(error.printed(printed(bundle)));
        }
        (false, false) => errors.required(bundle, "either name or signerName must be specified"),
        (true, false) => {
            if name.is_empty() {
                errors.required(&name, "must be a valid object name");
            }
            let signer = name.text().rsplit_once(':').map(|(signer, _)| signer.replace(':', "/"));
            for why in trust_bundle_name(name.text(), &signer.unwrap_or_default(), false) {
                errors.invalid(&name, format!("not a valid clustertrustbundlename: {why}"));
            }
            if bundle.get("labelSelector").is_set() {
                errors.invalid(
                    &bundle.get("labelSelector"),
                    "labelSelector must be unset if name is specified",
                );
            }
        }
        (false, true) => {
            if signer.is_empty() {
                errors.required(&signer, "must be a valid signer name");
            }
            signers::check(&signer, errors);
            selector::check(&bundle.get("labelSelector"), errors);
        }
    }
    errors.need(&bundle.get("path"));
    check_not_reserved(&bundle.get("path"), errors);
    // Unlike elsewhere, an empty path counts.
    let path = bundle.get("path").text();
    if !paths.insert(path) {
        errors.invalid_as(volume, path, CONFLICT);
    }
}

/// A source as errors show it, with Go's own names.
fn printed(bundle: &At<'_>) -> String {
    let field = |name: &str| bundle.get(name).value.to_string();
    format!(
        "{{\"Name\":{},\"SignerName\":{},\"LabelSelector\":{},\"Optional\":{},\"Path\":{},\"User\":{}}}",
        field("name"),
        field("signerName"),
        field("labelSelector"),
        field("optional"),
        Value::from(bundle.get("path").text()),
        field("user"),
    )
}

fn check_certificate<'a>(
    volume: &At<'_>,
    certificate: &At<'a>,
    paths: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    if !certificate.is_set() {
        return;
    }
    let signer = certificate.get("signerName");
    signers::check(&signer, errors);
    check_user_annotations(&certificate.get("userAnnotations"), errors);
    let types = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    errors.one_of(&certificate.get("keyType"), &types);
    let lifetime = certificate.get("maxExpirationSeconds");
    if lifetime.number().is_some_and(|seconds| seconds < 3600) {
        errors.invalid(&lifetime, "if provided, maxExpirationSeconds must be >= 3600");
    }
    let longest = longest_lifetime(signer.text());
    if lifetime.number().is_some_and(|seconds| seconds > longest) {
        errors.invalid(&lifetime, format!("if provided, maxExpirationSeconds must be <= {longest}"));
    }
    let files =
        ["credentialBundlePath", "keyPath", "certificateChainPath"].map(|field| certificate.get(field));
    for file in files.iter().filter(|file| !file.is_empty()) {
        check_not_reserved(file, errors);
        claim(volume, file.text(), file.text(), paths, errors);
    }
    if files.iter().all(At::is_empty) {
        errors.required(
            certificate,
            "specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
        );
    }
}

//! Names of signers, `example.com/signer` (`ValidateSignerName` of `pkg/apis/core/validation/names.go`).

use kubewright_meta::FieldError;

use super::at::At;
use super::errors::Errors;
use super::text;

const MAX_DOMAIN: usize = 253;
/// A namespace, a dot and a name.
const MAX_PATH: usize = 63 + 1 + 253;

/// Checks a name, which has to be there.
pub(super) fn check(signer: &At<'_>, errors: &mut Errors) {
    if !errors.need(signer) {
        return;
    }
    let parts = signer.text().split_once('/').filter(|(_, path)| !path.contains('/'));
    let Some((domain, path)) = parts else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(signer, why);
    };
    if domain.len() > MAX_DOMAIN {
        errors.push(FieldError::too_long(&signer.path, MAX_DOMAIN));
    }
    check_parts(signer, domain, text::label, errors);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.invalid_as(signer, domain, why);
    }
    check_parts(signer, path, text::subdomain, errors);
    if signer.text().len() > MAX_DOMAIN + MAX_PATH + 1 {
        errors.push(FieldError::too_long(&signer.path, MAX_DOMAIN + MAX_PATH + 1));
    }
}

/// Tells what is wrong with the first bad one of the parts between dots.
fn check_parts(signer: &At<'_>, whole: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let bad = whole.split('.').map(|part| (part, rule(part))).find(|(_, wrong)| !wrong.is_empty());
    for (part, message) in bad.iter().flat_map(|(part, wrong)| wrong.iter().map(move |why| (part, why))) {
        errors.invalid_as(signer, whole, format!("validating label {part:?}: {message}"));
    }
}

/// Whether it is one of Kubernetes' own signers (`IsKubernetesSignerName`).
pub(super) fn is_of_kubernetes(signer: &str) -> bool {
    let host = signer.split('/').next().unwrap_or_default();
    host == "kubernetes.io" || host.ends_with(".kubernetes.io")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(name: &str) -> Vec<String> {
        let value = json!(name);
        let at = At::named("n", &value);
        Errors::of(|errors| check(&at, errors)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_signer_is_a_domain_and_a_path() {
        for good in ["example.com/a", "kubernetes.io/kube-apiserver-serving", "a.b/c.d"] {
            assert_eq!(said(good), Vec::<String>::new(), "{good}");
        }
        let form = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        assert_eq!(said(""), ["n: Required value"]);
        assert_eq!(said("a.b"), [format!("n: Invalid value: \"a.b\": {form}")]);
        assert_eq!(said("a.b/c/d"), [format!("n: Invalid value: \"a.b/c/d\": {form}")]);
        let alone = "should be a domain with at least two segments separated by dots";
        assert_eq!(said("a/c"), [format!("n: Invalid value: \"a\": {alone}")]);
        let [bad] = <[String; 1]>::try_from(said("A.b/c")).expect("one error");
        assert!(
            bad.starts_with("n: Invalid value: \"A.b\": validating label \"A\": a lowercase RFC 1123 label")
        );
        let [bad] = <[String; 1]>::try_from(said("a.b/")).expect("one error");
        assert!(
            bad.starts_with("n: Invalid value: \"\": validating label \"\": a lowercase RFC 1123 subdomain")
        );
    }
}

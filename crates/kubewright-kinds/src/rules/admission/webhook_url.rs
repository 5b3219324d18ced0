//! The address of a webhook outside of the cluster (`k8s.io/apiserver/pkg/util/webhook`, `ValidateWebhookURL`).

use kubewright_cel::Url;
use kubewright_meta::FieldError;

const FORM: &str = "; desired format: https://host[/path]";

/// What is wrong with the URL in a field.
pub(crate) fn errors(field: &str, url: &str) -> Vec<FieldError> {
    let url = match Url::parse(url) {
        Ok(url) => url,
        Err(why) => {
            return vec![FieldError::required(field, format!("url must be a valid URL: {why}{FORM}"))];
        }
    };
    let mut errors = Vec::new();
    let mut wrong = |value: &str, detail: String| errors.push(FieldError::invalid(field, value, detail));
    if url.scheme() != "https" {
        wrong(url.scheme(), format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host().is_empty() {
        wrong("", format!("host must be specified{FORM}"));
    }
    if let Some(user) = url.user() {
        wrong(user, "user information is not permitted in the URL".to_owned());
    }
    if !url.fragment().is_empty() {
        wrong(url.fragment(), "fragments are not permitted in the URL".to_owned());
    }
    if !url.query().is_empty() {
        wrong(url.query(), "query parameters are not permitted in the URL".to_owned());
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_as_go_reads_it() {
        let told = |url: &str| errors("url", url).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(told("https://a.b:8443/c"), Vec::<String>::new());
        assert_eq!(
            told("2026-01-01T00:00:00Z"),
            [
                "url: Required value: url must be a valid URL: parse \"2026-01-01T00:00:00Z\": first path segment in URL cannot contain colon; desired format: https://host[/path]"
            ]
        );
        assert_eq!(
            told("https://a:b@:x"),
            [
                "url: Required value: url must be a valid URL: parse \"https://a:b@:x\": invalid port \":x\" after host; desired format: https://host[/path]"
            ]
        );
        assert_eq!(told("https://u@a?b#c").len(), 3);
        assert_eq!(told("HTTPS:a").len(), 1, "its host stands behind no slashes");
        assert_eq!(told("/a").len(), 2);
    }
}

//! How servers behind this one find out whom to believe: what the ConfigMap `extension-apiserver-authentication` says
//! (`k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust`).

use std::collections::BTreeMap;

use super::FrontProxy;
use crate::trust::Bundle;

/// The data of the ConfigMap: the authorities of clients, and which proxy may speak for others. Empty when there is
/// neither; then there is no such ConfigMap.
#[must_use]
pub fn published(clients: Option<&Bundle>, proxy: Option<&FrontProxy>) -> BTreeMap<String, String> {
    let clients = clients.map(Bundle::to_pem).filter(|pem| !pem.is_empty());
    let mut data: BTreeMap<String, String> =
        clients.into_iter().map(|pem| ("client-ca-file".to_owned(), pem)).collect();
    data.extend(proxy.into_iter().flat_map(FrontProxy::published));
    data
}

/// What is said already, and what this server adds to it: nothing is taken back, as another server may have said it.
#[must_use]
pub fn combined(said: &BTreeMap<String, String>, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut all = said.clone();
    for (key, value) in own {
        let told = all.entry(key.clone()).or_default();
        *told = if key.ends_with("-ca-file") { both_bundles(told, value) } else { both_lists(told, value) };
    }
    all
}

fn both_bundles(told: &str, own: &str) -> String {
    match (told.is_empty(), told.contains(own.trim_end())) {
        (true, _) => own.to_owned(),
        (false, true) => told.to_owned(),
        (false, false) => format!("{}\n{own}", told.trim_end()),
    }
}

fn both_lists(told: &str, own: &str) -> String {
    let read = |text: &str| serde_json::from_str::<Vec<String>>(text).unwrap_or_default();
    let mut all = read(told);
    for one in read(own) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    list(&all)
}

/// A list as the ConfigMap has it: JSON in a text.
pub(super) fn list(texts: &[String]) -> String {
    serde_json::Value::from(texts.to_vec()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn without_authorities_there_is_nothing_to_say() {
        assert_eq!(published(None, None), BTreeMap::new());
        assert_eq!(published(Some(&Bundle::default()), None), BTreeMap::new());
    }

    #[test]
    fn the_headers_of_a_proxy_are_told_as_they_are_usually_written() {
        let proxy = FrontProxy::new(Bundle::default()).allowed_names(vec!["front".into()]);
        let told = published(None, Some(&proxy));
        assert_eq!(told.get("requestheader-allowed-names").map(String::as_str), Some(r#"["front"]"#));
        assert_eq!(
            told.get("requestheader-extra-headers-prefix").map(String::as_str),
            Some(r#"["X-Remote-Extra-"]"#)
        );
    }

    #[test]
    fn what_another_server_said_stays() {
        let said = data(&[("client-ca-file", "A\n"), ("requestheader-allowed-names", r#"["one"]"#)]);
        let own = data(&[("client-ca-file", "B\n"), ("requestheader-allowed-names", r#"["two","one"]"#)]);
        let both = combined(&said, &own);
        let wanted =
            data(&[("client-ca-file", "A\nB\n"), ("requestheader-allowed-names", r#"["one","two"]"#)]);
        assert_eq!(both, wanted);
        assert_eq!(combined(&both, &own), both);
    }
}

//! Flags of kube-apiserver whose meaning is missing here, and would be missed.

use crate::flags::Flags;

/// Flags that are told when they are given a value, with what does not happen.
const MISSED: [(&str, &str); 13] = [
    ("admission-control-config-file", "plugins have no configuration"),
    ("audit-log-path", "no audit log is written"),
    ("audit-policy-file", "no audit log is written"),
    ("audit-webhook-config-file", "nobody is told of audit events"),
    ("authentication-config", "nobody is authenticated by it"),
    ("cors-allowed-origins", "no such headers are sent"),
    ("egress-selector-config-file", "connections are made directly"),
    ("emulated-version", "KUBEWRIGHT_KUBERNETES_VERSION says which version is served"),
    ("encryption-provider-config", "everything is in memory, as it is"),
    ("goaway-chance", "connections are kept"),
    ("oidc-issuer-url", "its tokens are not known"),
    ("tls-sni-cert-key", "there is one certificate for all names"),
    ("tracing-config-file", "no traces are sent"),
];

/// What whoever gave these flags should know.
pub(super) fn warnings(flags: &Flags) -> Vec<String> {
    let given = |flag: &str| flags.text(flag).is_some_and(|value| !matches!(value, "false" | "0"));
    let missed = MISSED.iter().filter(|(flag, _)| given(flag));
    missed.map(|(flag, instead)| format!("--{flag} is not supported: {instead}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::KUBE_APISERVER;

    #[test]
    fn what_is_missed_is_told_only_when_it_was_asked_for() {
        let line = "--audit-log-path=/tmp/audit --goaway-chance=0 --oidc-issuer-url=";
        let flags = Flags::parse(&KUBE_APISERVER, line.split_whitespace().map(Into::into)).expect("flags");
        assert_eq!(warnings(&flags), ["--audit-log-path is not supported: no audit log is written"]);
    }

    #[test]
    fn only_flags_that_there_are_can_be_missed() {
        let known: Vec<&str> = KUBE_APISERVER.all().into_iter().map(|(name, _)| name).collect();
        for (flag, _) in MISSED {
            assert!(known.contains(&flag), "{flag}");
        }
    }
}

use super::*;

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";

fn remote(path: &str) -> Result<Remote, String> {
    if path == "/gone" {
        return Err("no such file".to_owned());
    }
    let text = "current-context: x\nclusters: [{name: c, cluster: {server: 'https://hook/authorize'}}]\n\
                users: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]";
    Remote::of_kubeconfig(text, &|_| Err(std::io::ErrorKind::NotFound.into())).map_err(|why| why.to_string())
}

fn modes(authorizers: &str) -> Result<Vec<String>, Vec<String>> {
    let read = Configuration::parse(&format!("{HEAD}authorizers: {authorizers}")).expect("a configuration");
    match read.modes(None, &remote) {
        Ok(modes) => {
            let name =
                |mode: &Mode| format!("{mode:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
            Ok(modes.iter().map(name).collect())
        }
        Err(BadConfiguration::Invalid(errors)) => Err(errors.iter().map(FieldError::to_string).collect()),
        Err(other) => Err(vec![other.to_string()]),
    }
}

/// A webhook with these members beside those that must be there.
fn webhook(more: &str) -> String {
    format!(
        "[{{type: RBAC, name: rbac}}, {{type: Webhook, name: a, webhook: {{timeout: 1s, failurePolicy: Deny, \
         subjectAccessReviewVersion: v1, connectionInfo: {{type: KubeConfigFile, kubeConfigFile: /k}}{more}}}}}]"
    )
}

#[test]
fn authorizers_are_asked_in_their_order_and_webhooks_as_often_as_there_are() {
    let ask = |name: &str| {
        format!(
            "{{type: Webhook, name: {name}, webhook: {{authorizedTTL: 1ns, unauthorizedTTL: 1ns, timeout: 1s, failurePolicy: Deny, \
             subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, \
             connectionInfo: {{type: KubeConfigFile, kubeConfigFile: /k}}, \
             matchConditions: [{{expression: \"'g' in request.groups\"}}]}}}}"
        )
    };
    let all = format!("[{{type: Node, name: n}}, {{type: RBAC, name: r}}, {}, {}]", ask("a"), ask("b"));
    let named = ["Node", "Rbac", "Webhook", "Webhook"].map(str::to_owned);
    assert_eq!(modes(&all), Ok(named.to_vec()));
}

/// The words and the paths are those of kube-apiserver, which leaves `webhook` out of them.
#[test]
fn all_that_is_wrong_is_told() {
    let wrong = |authorizers: &str| modes(authorizers).expect_err(authorizers);
    assert_eq!(wrong("[]"), ["authorizers: Required value: at least one authorization mode must be defined"]);
    assert_eq!(
        wrong(
            "[{name: a}, {type: Foo, name: b}, {type: RBAC, name: A_}, {type: RBAC, name: c}, {type: Node, name: A_, webhook: {}}]"
        ),
        [
            "authorizers[0].type: Required value",
            "authorizers[1].type: Unsupported value: \"Foo\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"",
            "authorizers[2].name: Invalid value: \"A_\": authorizer name is invalid: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            "authorizers[3].type: Duplicate value: \"RBAC\"",
            "authorizers[4].name: Duplicate value: \"A_\"",
            "authorizers[4].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook",
        ]
    );
    assert_eq!(
        wrong("[{type: Webhook, name: a, webhook: {}}]"),
        [
            "authorizers[0].timeout: Required value",
            "authorizers[0].subjectAccessReviewVersion: Required value",
            "authorizers[0].failurePolicy: Required value",
            "authorizers[0].connectionInfo.type: Required value",
        ]
    );
    for (more, told) in [
        (", authorizedTTL: -1s", "authorizers[1].authorizedTTL: Invalid value: \"-1s\": must be > 0s"),
        (
            ", matchConditions: [{expression: 'true'}]",
            "authorizers[1].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
        ),
        (
            ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: 'true'}, {expression: ' '}]",
            "authorizers[1].matchConditions[1].expression: Required value",
        ),
        (
            ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: 'true'}, {expression: 'true'}]",
            "authorizers[1].matchConditions[1].expression: Duplicate value: \"true\"",
        ),
        (
            ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: request.user}]",
            "authorizers[1].matchConditions[0].expression: Invalid value: \"request.user\": must evaluate to bool but got string",
        ),
    ] {
        assert_eq!(wrong(&webhook(more)), [told]);
    }
    let gone = webhook("").replace("/k}", "/gone}");
    assert_eq!(
        wrong(&gone),
        [
            "authorizers[1].connectionInfo.kubeConfigFile: Invalid value: \"/gone\": error loading file: no such file"
        ]
    );
    let late = webhook("").replace("timeout: 1s", "timeout: 31s");
    assert_eq!(wrong(&late), ["authorizers[1].timeout: Invalid value: \"31s\": must be > 0s and <= 30s"]);
}

#[test]
fn what_is_no_such_configuration_is_refused() {
    let refused = |text: &str| Configuration::parse(text).expect_err(text).to_string();
    assert_eq!(
        refused("{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration}"),
        "no kind \"AuthenticationConfiguration\" is registered for version \"apiserver.config.k8s.io/v1\""
    );
    assert_eq!(
        refused("{apiVersion: v1, kind: AuthorizationConfiguration}"),
        "no kind \"AuthorizationConfiguration\" is registered for version \"v1\""
    );
    assert!(refused(&format!("{HEAD}authorizer: []")).contains("authorizer"));
}

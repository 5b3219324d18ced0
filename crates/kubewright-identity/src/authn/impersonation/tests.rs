use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::*;
use crate::authz::Rbac;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let parse = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(parse).collect()
}

/// `bot` of `ns` holds these rules cluster-wide.
fn rights(rules: &Value) -> Rights {
    let rbac = Rbac::of_objects(&[
        json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "ns", "name": "bot"}]}),
    ]);
    rbac.into()
}

fn bot() -> User {
    User::service_account("ns", "bot", "").authenticated()
}

const LIST: Attributes<'_> = Attributes {
    verb: "list",
    group: "",
    version: "v1",
    resource: "configmaps",
    subresource: "",
    namespace: "ns",
    name: "",
    path: None,
    field_selector: "",
    label_selector: "",
};

fn act_as(rules: &Value, pairs: &[(&str, &str)]) -> Result<User, String> {
    let wanted = wanted(&headers(pairs)).unwrap().unwrap();
    impersonate(Version::DEFAULT, &rights(rules), &bot(), &wanted, &LIST).map_err(|error| error.message)
}

#[test]
fn headers_say_whom_to_act_as() {
    assert_eq!(wanted(&headers(&[("accept", "*/*")])), Ok(None));
    let user = wanted(&headers(&[
        ("Impersonate-User", "alice"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Extra-Example.com%2FScopes", "x"),
        ("Impersonate-Extra-example.com%2fscopes", "y"),
        ("Impersonate-Extra-100%", "z"),
    ]))
    .unwrap()
    .unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("alice", "1"));
    assert_eq!(user.groups, ["a", "b"]);
    assert_eq!(user.extra["example.com/scopes"], ["x", "y"]);
    assert_eq!(user.extra["100%"], ["z"]);
}

#[test]
fn groups_without_a_user_make_no_sense() {
    for header in ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-a"] {
        assert_eq!(wanted(&headers(&[(header, "x")])).unwrap_err().code, 400, "{header}");
    }
    assert_eq!(
        wanted(&headers(&[("Impersonate-Group", "g")])).unwrap_err().message,
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\"}, Extra:map[string][]string(nil)} \
         without impersonating a user name"
    );
}

#[test]
fn without_any_right_the_narrowest_mode_refuses() {
    let refusal = |pairs: &[(&str, &str)]| act_as(&json!([]), pairs).unwrap_err();
    let told = |mode: &str| {
        format!(
            "configmaps is forbidden: User \"system:serviceaccount:ns:bot\" cannot impersonate-on:{mode}:list resource \
             \"configmaps\" in API group \"\" in the namespace \"ns\""
        )
    };
    assert_eq!(refusal(&[("Impersonate-User", "boss")]), told("user-info"));
    assert_eq!(refusal(&[("Impersonate-User", "boss"), ("Impersonate-Group", "g")]), told("user-info"));
    assert_eq!(refusal(&[("Impersonate-User", "system:serviceaccount:ns:default")]), told("serviceaccount"));
    assert_eq!(refusal(&[("Impersonate-User", "system:node:n")]), told("arbitrary-node"));
}

#[test]
fn the_old_right_is_for_the_names_that_it_names() {
    let rules = json!([{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["boss"]}]);
    let boss = act_as(&rules, &[("Impersonate-User", "boss")]).unwrap();
    assert_eq!((boss.name.as_str(), boss.groups), ("boss", vec![AUTHENTICATED.to_owned()]));
    assert_eq!(
        act_as(&rules, &[("Impersonate-User", "carol")]).unwrap_err(),
        "users \"carol\" is forbidden: User \"system:serviceaccount:ns:bot\" cannot impersonate resource \"users\" in API \
         group \"\" at the cluster scope"
    );
    assert_eq!(
        act_as(&rules, &[("Impersonate-User", "boss"), ("Impersonate-Group", "g")]).unwrap_err(),
        "groups \"g\" is forbidden: User \"system:serviceaccount:ns:bot\" cannot impersonate resource \"groups\" in API \
         group \"\" at the cluster scope"
    );
}

#[test]
fn uid_and_extra_values_need_rights_of_their_own() {
    let all = json!([{"verbs": ["impersonate"], "apiGroups": ["", "authentication.k8s.io"],
        "resources": ["users", "uids", "userextras/scopes"]}]);
    let pairs = [("Impersonate-User", "a"), ("Impersonate-Uid", "1"), ("Impersonate-Extra-scopes", "x")];
    assert!(act_as(&all, &pairs).is_ok());
    for missing in ["uids", "userextras/scopes"] {
        let mut rules = all.clone();
        rules[0]["resources"].as_array_mut().unwrap().retain(|resource| resource != missing);
        let refusal = act_as(&rules, &pairs).unwrap_err();
        assert!(refusal.contains(&format!("cannot impersonate resource \"{missing}\"")), "{refusal}");
    }
}

#[test]
fn the_name_brings_its_groups_unless_groups_are_given() {
    let rules = json!([{"verbs": ["impersonate"], "apiGroups": ["*"], "resources": ["*"]}]);
    let groups = |pairs: &[(&str, &str)]| act_as(&rules, pairs).unwrap().groups;
    let account = ("Impersonate-User", "system:serviceaccount:ns:x");
    assert_eq!(groups(&[account]), ["system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED]);
    assert_eq!(groups(&[account, ("Impersonate-Group", "g")]), ["g", AUTHENTICATED]);
    assert_eq!(groups(&[("Impersonate-User", ANONYMOUS)]), [UNAUTHENTICATED]);
    let unauthenticated = ("Impersonate-Group", UNAUTHENTICATED);
    assert_eq!(groups(&[("Impersonate-User", "a"), unauthenticated]), [UNAUTHENTICATED]);
}

#[test]
fn a_narrow_right_is_for_one_kind_of_request() {
    let narrow = json!([
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users"]},
        {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["configmaps"]},
    ]);
    assert_eq!(act_as(&narrow, &[("Impersonate-User", "boss")]).unwrap().name, "boss");
    let rights = rights(&narrow);
    let boss = User::new("boss", [] as [&str; 0]);
    let delete = Attributes { verb: "delete", ..LIST };
    assert!(impersonate(Version::DEFAULT, &rights, &bot(), &boss, &delete).is_err());
    let before = impersonate(Version::V1_35, &rights, &bot(), &boss, &LIST).unwrap_err().message;
    assert!(before.contains("cannot impersonate resource \"users\""), "v1.35 has no narrow rights: {before}");
    let node = User::new("system:node:n", [] as [&str; 0]);
    assert!(
        impersonate(Version::DEFAULT, &rights, &bot(), &node, &LIST).is_err(),
        "nodes have a mode of their own"
    );
}

#[test]
fn a_narrow_right_never_makes_a_master() {
    let narrow = json!([
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["*"]},
        {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["configmaps"]},
    ]);
    let refusal =
        act_as(&narrow, &[("Impersonate-User", "boss"), ("Impersonate-Group", SYSTEM_MASTERS)]).unwrap_err();
    assert!(refusal.ends_with("impersonating the system:masters group is not allowed"), "{refusal}");
    let refusal = act_as(&narrow, &[("Impersonate-User", "boss"), ("Impersonate-Extra-k", "v")]).unwrap_err();
    assert!(refusal.contains("must be a domain-prefixed path"), "{refusal}");
}

#[test]
fn a_pods_account_may_act_as_the_pods_node_alone() {
    let rules = json!([
        {"verbs": ["impersonate:associated-node"], "apiGroups": ["authentication.k8s.io"], "resources": ["nodes"]},
        {"verbs": ["impersonate-on:associated-node:list"], "apiGroups": [""], "resources": ["configmaps"]},
    ]);
    let mut caller = bot();
    caller.extra.insert(NODE_NAME.to_owned(), vec!["n1".to_owned()]);
    let node = |name: &str| User::new(format!("system:node:{name}"), [] as [&str; 0]);
    let acting = impersonate(Version::DEFAULT, &rights(&rules), &caller, &node("n1"), &LIST).unwrap();
    assert_eq!(
        (acting.name.as_str(), acting.groups),
        ("system:node:n1", vec![NODES.to_owned(), AUTHENTICATED.to_owned()])
    );
    assert!(impersonate(Version::DEFAULT, &rights(&rules), &caller, &node("n2"), &LIST).is_err());
}

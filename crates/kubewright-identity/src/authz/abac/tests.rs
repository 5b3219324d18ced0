use super::*;

fn policies(text: &str) -> Policies {
    Policies::parse(text, "/p").unwrap()
}

fn v1(spec: &str) -> Policies {
    policies(&format!(r#"{{"apiVersion":"{VERSION}","kind":"Policy","spec":{{{spec}}}}}"#))
}

fn allows(policies: &Policies, user: &str, what: &Attributes<'_>) -> bool {
    policies.decide(&User::new(user, ["dev", AUTHENTICATED]), what).allowed()
}

fn on(
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    namespace: &'static str,
) -> Attributes<'static> {
    Attributes { verb, group, resource, namespace, ..Attributes::default() }
}

fn at(verb: &'static str, path: &'static str) -> Attributes<'static> {
    Attributes { verb, path: Some(path), ..Attributes::default() }
}

#[test]
fn a_policy_is_for_its_user_its_resource_and_its_namespace() {
    let all = v1(r#""user":"alice","apiGroup":"*","resource":"pods","namespace":"ns""#);
    assert!(allows(&all, "alice", &on("create", "", "pods", "ns")));
    assert!(!allows(&all, "bob", &on("create", "", "pods", "ns")));
    assert!(!allows(&all, "alice", &on("create", "", "pods", "other")));
    assert!(!allows(&all, "alice", &on("create", "", "nodes", "ns")));
    assert!(!allows(&all, "alice", &at("get", "/healthz")));
    let core = v1(r#""group":"dev","apiGroup":"","resource":"*","namespace":"*""#);
    assert!(allows(&core, "anyone", &on("delete", "", "nodes", "")));
    assert!(!allows(&core, "anyone", &on("delete", "apps", "deployments", "ns")));
    assert!(!allows(
        &v1(r#""resource":"*","namespace":"*","apiGroup":"*""#),
        "alice",
        &on("get", "", "pods", "ns")
    ));
}

#[test]
fn who_may_only_read_may_get_list_and_watch() {
    let read = v1(
        r#""user":"*","readonly":true,"apiGroup":"*","resource":"*","namespace":"*","nonResourcePath":"/v*""#,
    );
    for verb in ["get", "list", "watch"] {
        assert!(allows(&read, "anyone", &on(verb, "", "pods", "ns")), "{verb}");
    }
    assert!(!allows(&read, "anyone", &on("patch", "", "pods", "ns")));
    assert!(allows(&read, "anyone", &at("get", "/version")));
    assert!(!allows(&read, "anyone", &at("get", "/healthz")));
    assert!(
        !read.decide(&User::anonymous(), &at("get", "/version")).allowed(),
        "* is everyone who is somebody"
    );
    assert_eq!(read.decide(&User::anonymous(), &at("get", "/version")).reason, "No policy matched.");
}

#[test]
fn a_policy_without_a_version_allows_what_it_does_not_name() {
    let old = policies(
        "# who may what\n\n{\"user\":\"alice\"}\n{\"user\":\"bob\",\"namespace\":\"ns\",\"readonly\":true}\n",
    );
    assert!(allows(&old, "alice", &on("create", "apps", "deployments", "x")));
    assert!(allows(&old, "alice", &at("post", "/anything")));
    assert!(allows(&old, "bob", &on("get", "apps", "deployments", "ns")));
    assert!(!allows(&old, "bob", &at("get", "/anything")));
    assert!(allows(&policies("{}"), "carol", &on("create", "", "pods", "ns")));
}

#[test]
fn rules_say_the_same_as_policies() {
    let read = v1(
        r#""user":"alice","readonly":true,"apiGroup":"apps","resource":"deployments","namespace":"ns","nonResourcePath":"/x""#,
    );
    let rules = read.rules(&User::new("alice", ["g"]), "ns");
    assert_eq!(rules.len(), 2);
    assert_eq!((rules[0].verbs.len(), rules[0].resources.as_slice()), (3, &["deployments".to_owned()][..]));
    assert_eq!(rules[1].non_resource_urls, ["/x"]);
    assert!(read.rules(&User::new("alice", ["g"]), "other").is_empty());
}

#[test]
fn a_line_that_is_no_policy_is_told_with_its_number() {
    let error = Policies::parse("\n{\"user\": 1}\n", "/p").unwrap_err().to_string();
    assert!(error.starts_with("error reading policy file /p, line 2: {\"user\": 1}: "), "{error}");
    let error = Policies::parse(r#"{"apiVersion":"v9","kind":"Policy"}"#, "/p").unwrap_err().to_string();
    assert!(error.ends_with(r#"no kind "Policy" is registered for version "v9""#), "{error}");
}

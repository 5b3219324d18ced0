//! What the operator relies on in a cloud: one suite, for the fake and for the real servers.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use kubewright_security_group::{
    cloud::{Access, CloudError, Group, Network, Neutron, Session, Trust},
    rule::{Rule, WantedRule},
};
use serde_json::{Value, json};

/// A cloud with the projects demo and admin.
pub(crate) struct Lab {
    pub(crate) network: Arc<dyn Network>,
    pub(crate) demo: Access,
    pub(crate) admin: Access,
    /// Makes the names of this run its own.
    pub(crate) run: String,
}

/// One user of the cloud.
struct User {
    session: Arc<Session>,
    neutron: Neutron,
}

impl User {
    fn new(lab: &Lab, access: &Access) -> Self {
        let session = Arc::new(Session::new(access.clone(), &*lab.network).expect("a session"));
        Self { neutron: Neutron::new(Arc::clone(&session)), session }
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value, CloudError> {
        let body = (!body.is_null()).then_some(body);
        let answer = self.session.network(&method, path, body.as_ref(), &HeaderMap::new()).await?;
        Ok(serde_json::from_slice(&answer).unwrap_or_default())
    }

    /// What a request is refused with.
    async fn refusal(&self, method: Method, path: &str, body: Value) -> (u16, String) {
        match self.ask(method, path, body).await {
            Err(CloudError::Refused { status, kind, .. }) => (status, kind),
            other => panic!("{path} was not refused: {other:?}"),
        }
    }

    async fn post(&self, path: &str, name: &str, object: Value) -> Value {
        let mut answer = self.ask(Method::POST, path, json!({ name: object })).await.expect("it is made");
        answer[name].take()
    }

    async fn rule(&self, group: &Group, rule: Value) -> Result<Value, CloudError> {
        let mut rule = rule;
        rule["security_group_id"] = group.id.as_str().into();
        let mut answer =
            self.ask(Method::POST, "/security-group-rules", json!({"security_group_rule": rule})).await?;
        Ok(answer["security_group_rule"].take())
    }

    async fn refused_rule(&self, group: &Group, rule: Value) -> (u16, String) {
        match self.rule(group, rule.clone()).await {
            Err(CloudError::Refused { status, kind, .. }) => (status, kind),
            other => panic!("{rule} was not refused: {other:?}"),
        }
    }
}

fn refused(status: u16, kind: &str) -> (u16, String) {
    (status, kind.to_owned())
}

/// Everything.
pub(crate) async fn hold(lab: &Lab) {
    logins(lab).await;
    let (demo, admin) = (User::new(lab, &lab.demo), User::new(lab, &lab.admin));
    let project = demo.session.project().await.expect("a login").expect("a project");
    let quotas = format!("/quotas/{project}");
    let unlimited = json!({"quota": {"security_group": -1, "security_group_rule": -1}});
    admin.ask(Method::PUT, &quotas, unlimited).await.expect("quotas are set");
    groups(lab, &demo).await;
    rules(lab, &demo).await;
    ports(lab, &demo, &admin).await;
    over_quota(lab, &demo, &admin, &quotas).await;
    admin.ask(Method::DELETE, &quotas, Value::Null).await.expect("quotas are reset");
}

async fn logins(lab: &Lab) {
    let user = User::new(lab, &lab.demo);
    user.ask(Method::GET, "/ports?device_id=nobody", Value::Null).await.expect("a good login");
    let wrong =
        settings(lab, &[("OS_USERNAME", "demo"), ("OS_PASSWORD", "wrong"), ("OS_PROJECT_NAME", "demo")]);
    let error =
        User::new(lab, &wrong).ask(Method::GET, "/ports", Value::Null).await.expect_err("a wrong password");
    assert!(matches!(error, CloudError::Unauthorized(_)), "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");

    let (token, id) = log_in(lab).await;
    let path = format!("/users/{id}/application_credentials");
    let made =
        keystone(lab, Method::POST, &path, &token, json!({"application_credential": {"name": lab.run}}))
            .await;
    let credential = &made.1["application_credential"];
    let text = |name: &str| credential[name].as_str().expect("text").to_owned();
    let application = settings(
        lab,
        &[
            ("OS_APPLICATION_CREDENTIAL_ID", &text("id")),
            ("OS_APPLICATION_CREDENTIAL_SECRET", &text("secret")),
        ],
    );
    let user = User::new(lab, &application);
    user.ask(Method::GET, "/ports?device_id=nobody", Value::Null)
        .await
        .expect("an application credential is good");
    keystone(lab, Method::DELETE, &format!("{path}/{}", text("id")), &token, Value::Null).await;
    let error =
        User::new(lab, &application).ask(Method::GET, "/ports", Value::Null).await.expect_err("it is gone");
    assert!(matches!(error, CloudError::Unauthorized(_)), "404 there, and the same to us: {error}");
}

/// A token of demo, and the user's ID.
async fn log_in(lab: &Lab) -> (String, String) {
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {
            "name": "demo", "password": "secret", "domain": {"id": "default"}}}},
        "scope": {"project": {"name": "demo", "domain": {"id": "default"}}},
    }});
    let (token, body) = keystone(lab, Method::POST, "/auth/tokens", "", body).await;
    (token, body["token"]["user"]["id"].as_str().expect("an ID").to_owned())
}

async fn keystone(lab: &Lab, method: Method, path: &str, token: &str, body: Value) -> (String, Value) {
    let request = Request::builder()
        .method(method)
        .uri(format!("{}{path}", lab.demo.auth_url))
        .header(header::CONTENT_TYPE, "application/json")
        .header("x-auth-token", token)
        .body(if body.is_null() { Bytes::new() } else { body.to_string().into() })
        .expect("a request");
    let transport = lab.network.transport(&Trust::default()).expect("a transport");
    let answer = transport.send(request).await.expect("an answer");
    assert!(answer.status().is_success(), "{path}: {answer:?}");
    let token =
        answer.headers().get("x-subject-token").and_then(|token| token.to_str().ok()).unwrap_or_default();
    (token.to_owned(), serde_json::from_slice(answer.body()).unwrap_or_default())
}

fn settings(lab: &Lab, more: &[(&str, &str)]) -> Access {
    let url = lab.demo.auth_url.clone();
    let all = [("OS_AUTH_URL", url.as_str())].into_iter().chain(more.iter().copied());
    let all = all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Access::from_secret(&all, None).expect("it is enough")
}

async fn groups(lab: &Lab, demo: &User) {
    let (neutron, name, description) = (&demo.neutron, &lab.run, format!("a group of {}/x, uid 1", lab.run));
    let one = neutron.create_group(name, &description).await.expect("made");
    let two = neutron.create_group(name, &description).await.expect("two groups may have one name");
    assert_ne!(one.id, two.id);
    assert_eq!(one.rules.len(), 2, "a new group lets everything out");
    for rule in &one.rules {
        assert!(Rule::found(rule).expect("it is known").is_default_egress(), "{rule:?}");
    }
    let ids = |groups: Vec<Group>| groups.into_iter().map(|group| group.id).collect::<BTreeSet<_>>();
    let both = BTreeSet::from([one.id.clone(), two.id.clone()]);
    assert_eq!(ids(neutron.groups_described(&description).await.expect("a list")), both);
    assert_eq!(ids(neutron.groups_named(name).await.expect("a list")), both);
    let tag = format!("k8s-securitygroup={}", lab.run);
    assert_eq!(ids(neutron.groups_tagged(&tag).await.expect("a list")), BTreeSet::new());
    neutron.tag_group(&one.id, &[tag.clone(), "theirs".to_owned()].into()).await.expect("tagged");
    assert_eq!(ids(neutron.groups_tagged(&tag).await.expect("a list")), [one.id.clone()].into());
    neutron.rename_group(&one.id, &format!("{name}-new")).await.expect("renamed");
    let now = neutron.group(&one.id).await.expect("an answer").expect("it is there");
    assert_eq!((now.name.as_str(), now.tags.len()), (format!("{name}-new").as_str(), 2));
    assert!(now.created_at.is_some());

    let tagged = json!({"security_group": {"name": name, "tags": ["a"]}});
    assert_eq!(
        demo.refusal(Method::POST, "/security-groups", tagged).await.0,
        400,
        "a tag needs a second request"
    );
    let default = json!({"security_group": {"name": "Default"}});
    assert_eq!(demo.refusal(Method::POST, "/security-groups", default).await.0, 409);

    // Pages: the client follows the links.
    let path = format!(
        "/security-groups?description={}&limit=1",
        description.replace(' ', "%20").replace('/', "%2F")
    );
    let page = demo.ask(Method::GET, &path, Value::Null).await.expect("a page");
    assert_eq!(page["security_groups"].as_array().map(Vec::len), Some(1));
    assert!(
        page["security_groups_links"]
            .as_array()
            .is_some_and(|links| links.iter().any(|link| link["rel"] == "next"))
    );

    for id in both {
        assert_eq!(neutron.delete_group(&id).await, Ok(true));
        assert_eq!(neutron.delete_group(&id).await, Ok(false));
        assert_eq!(neutron.group(&id).await, Ok(None));
    }
}

async fn rules(lab: &Lab, demo: &User) {
    let group = demo.neutron.create_group(&lab.run, "rules").await.expect("made");
    let tcp = json!({"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 443,
                     "port_range_max": 443, "remote_ip_prefix": "10.1.0.0/16"});
    let with = |changes: Value| {
        let mut rule = tcp.clone();
        for (name, value) in changes.as_object().expect("fields") {
            rule[name] = value.clone();
        }
        rule
    };
    let made = demo.rule(&group, tcp.clone()).await.expect("made");
    let exists = refused(409, "SecurityGroupRuleExists");
    for same in
        [json!({}), json!({"description": "another"}), json!({"protocol": "6"}), json!({"protocol": "TCP"})]
    {
        assert_eq!(demo.refused_rule(&group, with(same.clone())).await, exists, "{same}");
    }
    demo.rule(&group, with(json!({"remote_ip_prefix": "10.1.2.3/16"})))
        .await
        .expect("not the same to Neutron");
    let all = demo.rule(
        &group,
        with(json!({"port_range_min": 1, "port_range_max": 65535, "remote_ip_prefix": "0.0.0.0/0"})),
    );
    let all = all.await.expect("made");
    assert_eq!((&all["port_range_min"], &all["port_range_max"]), (&Value::Null, &Value::Null));
    let same = json!({"port_range_min": null, "port_range_max": null, "remote_ip_prefix": null});
    assert_eq!(demo.refused_rule(&group, with(same)).await, exists);
    let host = demo.rule(&group, with(json!({"remote_ip_prefix": "192.0.2.7"}))).await.expect("made");
    assert_eq!(host["remote_ip_prefix"], "192.0.2.7/32");
    let icmp = json!({"direction": "ingress", "ethertype": "IPv6", "protocol": "icmp", "remote_ip_prefix": "2001:db8::1/64"});
    assert_eq!(demo.rule(&group, icmp).await.expect("made")["protocol"], "ipv6-icmp");
    let of_group =
        json!({"direction": "ingress", "ethertype": "IPv4", "protocol": "any", "remote_group_id": group.id});
    assert_eq!(demo.rule(&group, of_group).await.expect("made")["protocol"], Value::Null);
    for bad in [
        json!({"port_range_min": 0, "port_range_max": 0}),
        json!({"port_range_min": 444}),
        json!({"protocol": "gre"}),
        json!({"remote_ip_prefix": "2001:db8::/32"}),
        json!({"remote_group_id": group.id}),
    ] {
        assert_eq!(demo.refused_rule(&group, with(bad.clone())).await.0, 400, "{bad}");
    }
    let nowhere = Group { id: lab.nobody(), ..Group::default() };
    assert_eq!(demo.refused_rule(&nowhere, tcp.clone()).await.0, 404);
    let id = made["id"].as_str().expect("an ID");
    let path = format!("/security-group-rules/{id}");
    let put = demo.refusal(Method::PUT, &path, json!({"security_group_rule": {"port_range_max": 444}})).await;
    assert!(put.0 >= 400, "rules are never changed: {put:?}");

    // What the client makes of a rule is what it recognises afterwards, whatever was sent.
    let found = demo.neutron.group(&group.id).await.expect("an answer").expect("it is there");
    assert!(found.rules.iter().all(|rule| Rule::found(rule).is_some()));
    for rule in &found.rules {
        let wanted = WantedRule { rule: Rule::found(rule).expect("known"), description: String::new() };
        if demo.neutron.create_rule(&group.id, &wanted).await.expect("taken") {
            let spelling = rule.remote_ip_prefix.as_deref();
            assert!(
                ["10.1.2.3/16", "2001:db8::1/64"].map(Some).contains(&spelling),
                "only these are not the same to Neutron: {spelling:?}"
            );
        }
    }
    assert_eq!(demo.neutron.delete_rule(id).await, Ok(true));
    assert_eq!(demo.neutron.delete_rule(id).await, Ok(false));
    demo.neutron.delete_group(&group.id).await.expect("deleted");
}

async fn ports(lab: &Lab, demo: &User, admin: &User) {
    let neutron = &demo.neutron;
    let network = demo.post("/networks", "network", json!({"name": lab.run})).await;
    let subnet = json!({"network_id": network["id"], "ip_version": 4, "cidr": "10.99.0.0/24"});
    let subnet = demo.post("/subnets", "subnet", subnet).await;
    let server = lab.nobody();
    let wanted = json!({"network_id": network["id"], "device_id": server, "device_owner": "compute:nova"});
    let id = demo.post("/ports", "port", wanted).await["id"].as_str().expect("an ID").to_owned();
    let group = neutron.create_group(&lab.run, "ports").await.expect("made").id;

    let servers = [server.clone(), lab.nobody() + "0"].into();
    let found = neutron.ports_of_servers(&servers).await.expect("a list");
    let [port] = found.as_slice() else { panic!("one port: {found:?}") };
    assert_eq!(
        (port.id.as_str(), port.device_id.as_str(), port.security_groups.len()),
        (id.as_str(), server.as_str(), 1)
    );
    assert_eq!(Value::from(port.network_id.as_str()), network["id"]);
    assert_eq!(Value::from(port.fixed_ips[0].subnet_id.as_str()), subnet["id"]);
    assert!(port.port_security_enabled);
    assert_eq!(neutron.ports_in_group(&group).await.expect("a list"), []);

    let mut groups = port.security_groups.clone();
    groups.push(group.clone());
    neutron.set_groups_of_port(&id, &groups, port.revision_number).await.expect("nobody was faster");
    let same = neutron.set_groups_of_port(&id, &groups, port.revision_number).await;
    assert_eq!(same, Ok(()), "what changes nothing is not held to the condition");
    let stale = neutron.set_groups_of_port(&id, &[], port.revision_number).await.expect_err("somebody was");
    assert!(stale.is_stale(), "{stale}");
    let members = neutron.ports_in_group(&group).await.expect("a list");
    assert_eq!(members.iter().map(|port| port.id.as_str()).collect::<Vec<_>>(), [id.as_str()]);
    let in_use = neutron.delete_group(&group).await.expect_err("it has a member");
    assert!(in_use.is_in_use(), "{in_use}");

    let now = neutron.port(&id).await.expect("an answer").expect("it is there");
    let unknown = neutron.set_groups_of_port(&id, &[lab.nobody()], now.revision_number).await;
    assert!(unknown.as_ref().is_err_and(CloudError::is_not_found), "{unknown:?}");
    let open = json!({"port": {"security_groups": [], "port_security_enabled": false}});
    demo.ask(Method::PUT, &format!("/ports/{id}"), open).await.expect("port security can be off");
    let now = neutron.port(&id).await.expect("an answer").expect("it is there");
    assert!(!now.port_security_enabled);
    let open = neutron.set_groups_of_port(&id, std::slice::from_ref(&group), now.revision_number).await;
    assert!(matches!(open, Err(CloudError::Refused { status: 400, .. })), "{open:?}");
    assert_eq!(demo.refusal(Method::DELETE, &format!("/ports/{id}"), Value::Null).await.0, 403);

    neutron.delete_group(&group).await.expect("nobody is in it");
    admin.ask(Method::DELETE, &format!("/ports/{id}"), Value::Null).await.expect("an administrator may");
    assert_eq!(neutron.port(&id).await, Ok(None));
    let network = format!("/networks/{}", network["id"].as_str().expect("an ID"));
    demo.ask(Method::DELETE, &network, Value::Null).await.expect("deleted");
}

async fn over_quota(lab: &Lab, demo: &User, admin: &User, quotas: &str) {
    let group = demo.neutron.create_group(&lab.run, "quota").await.expect("made");
    // A quota below what there is already is refused.
    let all = demo.ask(Method::GET, "/security-groups", Value::Null).await.expect("a list");
    let all = all["security_groups"].as_array().expect("a list");
    let rules: usize =
        all.iter().filter_map(|group| group["security_group_rules"].as_array().map(Vec::len)).sum();
    let full = json!({"quota": {"security_group": all.len(), "security_group_rule": rules}});
    admin.ask(Method::PUT, quotas, full).await.expect("quotas are set");
    let error = demo.neutron.create_group(&lab.run, "one too many").await.expect_err("over quota");
    assert!(error.is_over_quota(), "{error}");
    let rule = kubewright::object::from_value(json!({"remoteIpPrefix": "10.0.0.0/8"})).expect("a rule");
    let rule = Rule::of(&rule, |_| None).expect("it makes sense");
    let wanted = WantedRule { rule, description: String::new() };
    let error = demo.neutron.create_rule(&group.id, &wanted).await.expect_err("over quota");
    assert!(error.is_over_quota(), "{error}");
    demo.neutron.delete_group(&group.id).await.expect("deleted");
}

impl Lab {
    /// An ID that nothing in the cloud has, and no other run.
    fn nobody(&self) -> String {
        let digits: String = self.run.chars().filter(char::is_ascii_digit).collect();
        format!("00000000-0000-4000-8000-{digits:0>12}")
    }
}

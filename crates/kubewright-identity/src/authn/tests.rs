use std::collections::BTreeMap;
use std::time::Duration;

use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::*;

/// The objects that a check finds.
type Objects = BTreeMap<(String, String), Bytes>;

fn objects(entries: &[(&str, &str, Value)]) -> Objects {
    let entry = |(collection, key, object): &(&str, &str, Value)| {
        (((*collection).to_owned(), (*key).to_owned()), Bytes::from(object.to_string()))
    };
    entries.iter().map(entry).collect()
}

/// An account `bot`, a pod `p` of it on node `n`, and a secret `s`.
fn cluster() -> Objects {
    objects(&[
        ("/serviceaccounts", "ns/bot", account()),
        (
            "/pods",
            "ns/p",
            json!({"metadata": {"name": "p", "namespace": "ns", "uid": "pod-1"},
            "spec": {"serviceAccountName": "bot", "nodeName": "n"}}),
        ),
        (
            "/pods",
            "ns/other",
            json!({"metadata": {"name": "other", "namespace": "ns", "uid": "pod-2"},
            "spec": {"serviceAccountName": "default"}}),
        ),
        ("/nodes", "n", json!({"metadata": {"name": "n", "uid": "node-1"}})),
        ("/secrets", "ns/s", json!({"metadata": {"name": "s", "namespace": "ns", "uid": "secret-1"}})),
    ])
}

fn account() -> Value {
    json!({"metadata": {"name": "bot", "namespace": "ns", "uid": "sa-1"}})
}

fn with<R>(objects: &Objects, run: impl FnOnce(Lookup<'_>) -> R) -> R {
    run(&|collection, key| objects.get(&(collection.to_owned(), key.to_owned())).cloned())
}

fn server() -> Authenticator {
    let admin = User::new("admin", [SYSTEM_MASTERS]);
    Authenticator::new(&World::simulated(1)).unwrap().with_token(&Secret::of("sesame"), admin)
}

fn issue(server: &Authenticator, spec: &Value) -> Result<Value, ApiError> {
    with(&cluster(), |lookup| server.issue_token(&account(), &json!({"spec": spec}), lookup, &mut Vec::new()))
}

fn token(server: &Authenticator, spec: &Value) -> String {
    issue(server, spec).unwrap()["status"]["token"].as_str().unwrap().to_owned()
}

fn check(server: &Authenticator, token: &str, objects: &Objects) -> Result<User, TokenError> {
    with(objects, |lookup| server.authenticate_token(token, &[], lookup)).map(|identity| identity.user)
}

fn request(server: &Authenticator, authorization: &str) -> Result<User, StatusCode> {
    let (parts, ()) = Request::builder().header(AUTHORIZATION, authorization).body(()).unwrap().into_parts();
    with(&cluster(), |lookup| server.authenticate(&parts, lookup)).map_err(|error| error.code)
}

#[tokio::test(start_paused = true)]
async fn credentials_are_good_or_refused_and_none_is_anonymous() {
    let server = server();
    let admin = request(&server, "Bearer sesame").unwrap();
    assert_eq!(
        (admin.name.as_str(), admin.groups),
        ("admin", vec![SYSTEM_MASTERS.into(), AUTHENTICATED.into()])
    );
    assert_eq!(request(&server, "bearer  sesame"), Ok(User::anonymous()), "an empty token, as in Kubernetes");
    for none in ["", "Bearer", "Bearer ", "Basic YTpi"] {
        assert_eq!(request(&server, none), Ok(User::anonymous()), "{none:?}");
    }
    for bad in
        ["Bearer nonsense", "Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJ4In0.AAAA", "Bearer ..."]
    {
        assert_eq!(request(&server, bad), Err(StatusCode::UNAUTHORIZED), "{bad:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_in_process_vouches_for_its_caller() {
    let (mut parts, ()) =
        Request::builder().header(AUTHORIZATION, "Bearer nonsense").body(()).unwrap().into_parts();
    parts.extensions.insert(User::new("controller", ["g"]));
    let user = with(&cluster(), |lookup| server().authenticate(&parts, lookup)).unwrap();
    assert_eq!((user.name.as_str(), user.groups), ("controller", vec!["g".into(), AUTHENTICATED.into()]));
}

#[tokio::test(start_paused = true)]
async fn a_bad_certificate_alone_is_refused_but_a_good_token_beside_it_is_not() {
    let (mut parts, ()) = Request::builder().body(()).unwrap().into_parts();
    parts.extensions.insert(PeerCertificate::new(vec![vec![1, 2, 3].into()]).unwrap());
    let server = server().with_client_ca(Bundle::default());
    let refused = with(&cluster(), |lookup| server.authenticate(&parts, lookup));
    assert_eq!(refused, Err(ApiError::unauthorized()));
    parts.headers.insert(AUTHORIZATION, "Bearer sesame".parse().unwrap());
    assert!(with(&cluster(), |lookup| server.authenticate(&parts, lookup)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_issued_token_speaks_for_its_account() {
    let server = server();
    let answer = issue(&server, &json!({})).unwrap();
    assert_eq!(
        answer["spec"],
        json!({"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": null})
    );
    assert_eq!(
        answer["metadata"],
        json!({"name": "bot", "namespace": "ns", "uid": "sa-1", "creationTimestamp": "2026-01-01T00:00:00Z"})
    );
    assert_eq!(answer["status"]["expirationTimestamp"], "2026-01-01T01:00:00Z");

    let user = check(&server, answer["status"]["token"].as_str().unwrap(), &cluster()).unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:ns:bot", "sa-1"));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED]);
    assert!(user.extra[CREDENTIAL_ID][0].starts_with("JTI="));
    assert_eq!(user.extra.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_time() {
    let server = server();
    let token = token(&server, &json!({"expirationSeconds": 600}));
    tokio::time::advance(Duration::from_secs(660)).await;
    assert!(check(&server, &token, &cluster()).is_ok(), "within the leeway of a minute");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(check(&server, &token, &cluster()), Err(TokenError::Expired));
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_account() {
    let server = server();
    let token = token(&server, &json!({}));
    assert!(matches!(check(&server, &token, &Objects::new()), Err(TokenError::Gone { .. })));
    let again =
        objects(&[("/serviceaccounts", "ns/bot", json!({"metadata": {"name": "bot", "uid": "sa-2"}}))]);
    assert!(matches!(check(&server, &token, &again), Err(TokenError::Replaced { .. })));
    let leaving = objects(&[(
        "/serviceaccounts",
        "ns/bot",
        json!({"metadata": {"name": "bot", "uid": "sa-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    )]);
    assert!(check(&server, &token, &leaving).is_ok());
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(matches!(check(&server, &token, &leaving), Err(TokenError::Gone { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_bound_token_tells_of_its_object_and_ends_with_it() {
    let server = server();
    let bind =
        |kind: &str, name: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}});
    for (kind, name, collection, key, told) in [
        (
            "Pod",
            "p",
            "/pods",
            "ns/p",
            json!({"node-name": "n", "node-uid": "node-1", "pod-name": "p", "pod-uid": "pod-1"}),
        ),
        ("Node", "n", "/nodes", "n", json!({"node-name": "n", "node-uid": "node-1"})),
        ("Secret", "s", "/secrets", "ns/s", json!({})),
    ] {
        let token = token(&server, &bind(kind, name));
        let user = check(&server, &token, &cluster()).unwrap();
        let extra: BTreeMap<&str, &str> = user
            .extra
            .iter()
            .filter(|(key, _)| *key != CREDENTIAL_ID)
            .map(|(key, values)| {
                (key.strip_prefix("authentication.kubernetes.io/").unwrap(), values[0].as_str())
            })
            .collect();
        assert_eq!(json!(extra), told, "{kind}");
        let mut without = cluster();
        without.remove(&(collection.to_owned(), key.to_owned()));
        assert!(matches!(check(&server, &token, &without), Err(TokenError::Gone { .. })), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn token_requests_that_break_the_rules_are_told_why() {
    let server = server();
    let refusal = |spec: Value| {
        let error = issue(&server, &spec).unwrap_err();
        (error.code.as_u16(), error.message)
    };
    let pod = |name: &str, uid: &str| json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}});
    assert_eq!(
        refusal(pod("p", "x")),
        (
            409,
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (x) does not match the \
             UID in record. The object might have been deleted and then recreated"
                .to_owned()
        )
    );
    assert_eq!(refusal(pod("gone", "")), (404, "pods \"gone\" not found".to_owned()));
    assert_eq!(refusal(pod("other", "")).0, 400, "a pod of another account");
    assert_eq!(
        refusal(pod("a/b", "")),
        (400, "Name parameter invalid: \"a/b\": may not contain '/'".to_owned())
    );
    let mut odd = pod("gone", "");
    odd["boundObjectRef"]["apiVersion"] = json!("a/b/c");
    assert_eq!(refusal(odd), (404, "pods \"gone\" not found".to_owned()), "it is of no group");
    assert_eq!(
        refusal(json!({"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}})),
        (400, "cannot bind token to object of type apps/v1, Kind=Deployment".to_owned())
    );
    assert_eq!(
        refusal(json!({"expirationSeconds": 599})),
        (
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not \
             specify a duration less than 10 minutes"
                .to_owned()
        )
    );
    assert_eq!(refusal(json!({"expirationSeconds": 1_i64 << 33})).0, 422);
    assert_eq!(refusal(json!({"expirationSeconds": "x"})).0, 400);
    let body = json!({"metadata": {"name": "else"}, "spec": {}});
    let other = super::token::match_account(&body, "default", "bot").unwrap_err();
    assert_eq!(
        other.message,
        "TokenRequest.authentication.k8s.io \"bot\" is invalid: metadata.name: Invalid value: \"else\": must match the \
         service account name if specified"
    );
}

fn review_token(server: &Authenticator, body: &Value) -> Result<String, ApiError> {
    let review::Question { token, audiences } = review::Question::read(body)?;
    let found = with(&cluster(), |lookup| server.authenticate_token(token.reveal(), &audiences, lookup));
    review::answer(body, &found)
}

fn value(answer: &str) -> Value {
    serde_json::from_str(answer).unwrap()
}

#[tokio::test(start_paused = true)]
async fn members_of_a_user_are_told_in_the_order_of_kubernetes() {
    let user = User { uid: "7".to_owned(), ..User::new("a", ["g"]) };
    let text = review::review_self(&user, server().now()).unwrap();
    assert!(text.contains(r#""userInfo":{"username":"a","uid":"7","groups":["g"]}"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_token_for_others_is_not_for_this_server() {
    let server = server();
    let token = token(&server, &json!({"audiences": ["golden"]}));
    assert!(matches!(check(&server, &token, &cluster()), Err(TokenError::Audience { .. })));
    assert_eq!(request(&server, &format!("Bearer {token}")), Err(StatusCode::UNAUTHORIZED));

    let review =
        |spec: Value| value(&review_token(&server, &json!({"spec": spec})).unwrap())["status"].clone();
    let known = review(json!({"token": token, "audiences": ["golden", "other"]}));
    assert_eq!((&known["authenticated"], &known["audiences"]), (&json!(true), &json!(["golden"])));
    assert_eq!(known["user"]["username"], "system:serviceaccount:ns:bot");
    for spec in [json!({"token": token}), json!({"token": "sesame", "audiences": ["golden"]})] {
        let unknown = review(spec);
        assert_eq!((&unknown["authenticated"], &unknown["user"]), (&Value::Null, &json!({})));
        assert!(unknown["error"].as_str().unwrap().contains("invalid for the target audiences"), "{unknown}");
    }
}

#[tokio::test(start_paused = true)]
async fn reviews_tell_whose_token_it_is_and_who_one_is() {
    let server = server();
    let review = |body: Value| review_token(&server, &body);
    let answer = value(&review(json!({"kind": "TokenReview", "spec": {"token": "sesame"}})).unwrap());
    assert_eq!(
        answer["status"],
        json!({"authenticated": true, "audiences": [ISSUER],
            "user": {"username": "admin", "groups": [SYSTEM_MASTERS, AUTHENTICATED]}})
    );
    assert_eq!(
        value(&review(json!({"spec": {"token": "x"}})).unwrap())["status"],
        json!({"user": {}, "error": "invalid bearer token"})
    );
    assert_eq!(
        review(json!({"spec": {}})).unwrap_err().message,
        "token is required for TokenReview in authentication"
    );
    for body in [json!([]), json!([{}]), json!("x"), json!({"spec": 1}), json!({"spec": {"token": 1}})] {
        assert_eq!(review(body.clone()).unwrap_err().code, 400, "{body}");
    }
    let own = value(&review::review_self(&User::anonymous(), server.now()).unwrap());
    assert_eq!(
        own,
        json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"userInfo": {"username": ANONYMOUS, "groups": [UNAUTHENTICATED]}}})
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_secret_is_shown_by_debug() {
    let shown = format!("{:?}", server());
    assert!(!shown.contains("sesame") && !shown.contains("pair"), "{shown}");
}

//! Faults of requests.

use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams};
use tokio::time::Instant;

use super::*;
use crate::admin::{Schedule, Verb};

#[tokio::test(start_paused = true)]
async fn a_conflict_says_what_a_real_one_says_and_the_next_try_succeeds() {
    let cluster = cluster().await;
    let (maps, old) = (maps(&cluster), create(&cluster, "a").await);
    let changed = json!({"data": {"key": "value"}});
    let now = maps.patch("a", &PatchParams::default(), &Patch::Merge(&changed)).await.unwrap();
    let real = maps.replace("a", &PostParams::default(), &old).await.unwrap_err();

    let id = admin(&cluster).inject(Rule::new(ApiFault::Conflict {}).on(Match::resource("configmaps")));
    let injected = maps.replace("a", &PostParams::default(), &now).await.unwrap_err();
    let (kube::Error::Api(real), kube::Error::Api(injected)) = (real, injected) else { panic!("answers") };
    assert_eq!(injected, real);
    assert_eq!(admin(&cluster).hits(id), Some(1));
    maps.replace("a", &PostParams::default(), &now).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_say_when_to_try_again() {
    let cluster = cluster().await;
    let rule =
        rule(&json!({"match": {"verbs": ["create"]}, "fault": {"tooManyRequests": {"retryAfter": 7}}}));
    admin(&cluster).inject(rule);
    let path = "/api/v1/namespaces/default/configmaps";
    let body = kubewright_objects::to_value(&map("a")).unwrap();
    let (status, retry_after, text) = send(&cluster, master(), Request::post(path), &body).await;
    assert_eq!((status.as_u16(), &*retry_after), (429, "7"));
    assert_eq!(text, "Too many requests, please try again later.\n");
    assert_eq!(send(&cluster, master(), Request::post(path), &body).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn an_error_has_the_words_of_its_code_or_its_own() {
    let cluster = cluster().await;
    for (fault, expected) in [
        (json!("error"), (500, "InternalError", "Internal error occurred: a fault")),
        (
            json!({"error": {"code": 503}}),
            (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        ),
        (
            json!({"error": {"code": 404}}),
            (404, "NotFound", "the server could not find the requested resource"),
        ),
        (
            json!({"error": {"code": 403, "reason": "Forbidden", "message": "not on Fridays"}}),
            (403, "Forbidden", "not on Fridays"),
        ),
    ] {
        admin(&cluster).inject(rule(&json!({"match": {"verbs": ["get"]}, "fault": fault})));
        let kube::Error::Api(status) = maps(&cluster).get("a").await.unwrap_err() else {
            panic!("an answer")
        };
        assert_eq!((status.code, &*status.reason, &*status.message), expected);
        assert_eq!(
            status.details.map(|details| (details.name, details.kind)),
            Some(("a".into(), "configmaps".into()))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_was_carried_out_or_was_not() {
    let cluster = cluster().await;
    for (done, answer, name) in
        [(false, "cut", "a"), (true, "cut", "b"), (false, "504", "c"), (true, "504", "d")]
    {
        let fault = json!({"timeout": {"done": done, "answer": answer}});
        admin(&cluster).inject(rule(&json!({"match": {"verbs": ["create"]}, "fault": fault})));
        let error = maps(&cluster).create(&PostParams::default(), &map(name)).await.unwrap_err();
        match answer {
            "cut" => assert!(matches!(error, kube::Error::Service(_)), "{error}"),
            _ => assert_eq!(code(&error), 504),
        }
        assert_eq!(maps(&cluster).get_opt(name).await.unwrap().is_some(), done, "{name}");
    }
    let log = admin(&cluster).requests(&Match::default().verbs([Verb::Create]), 10);
    let codes: Vec<_> = log.requests.iter().map(|request| request.code).collect();
    assert_eq!(codes, [None, None, Some(504), Some(504)]);
}

#[tokio::test(start_paused = true)]
async fn latency_is_cluster_time() {
    let cluster = cluster().await;
    let latency = rule(&json!({"fault": {"latency": {"by": "1h"}}, "match": {"verbs": ["create"]}}));
    admin(&cluster).inject(latency);
    let before = Instant::now();
    create(&cluster, "late").await;
    assert_eq!(before.elapsed(), Duration::from_secs(3600));
    create(&cluster, "soon").await;
    assert_eq!(before.elapsed(), Duration::from_secs(3600));
    let log = admin(&cluster).requests(&Match::default(), 10);
    assert!(log.requests[0].milliseconds >= 3_600_000.0 && log.requests[1].milliseconds == 0.0);
}

#[tokio::test(start_paused = true)]
async fn faults_by_chance_are_the_same_for_the_same_seed() {
    let run = async || {
        let cluster = cluster().await;
        let by_chance = Schedule::by_chance(0.5, 7);
        admin(&cluster)
            .inject(Rule::new(ApiFault::Error { code: 500, reason: None, message: None }).at(by_chance));
        let mut failed = Vec::new();
        for _ in 0..50 {
            failed.push(maps(&cluster).list(&ListParams::default()).await.is_err());
        }
        failed
    };
    let first = run().await;
    assert_eq!(first, run().await);
    assert!(first.contains(&true) && first.contains(&false));
}

#[tokio::test(start_paused = true)]
async fn a_rule_means_whoever_acts() {
    let cluster = cluster().await;
    let rule = rule(
        &json!({"match": {"user": "system:serviceaccount:default:web"}, "times": 0, "fault": {"error": {"code": 418}}}),
    );
    let id = admin(&cluster).inject(rule);
    let web: Api<ConfigMap> = Api::default_namespaced(cluster.client_of_service_account("default", "web"));
    assert_eq!(code(&web.get("a").await.unwrap_err()), 418);
    assert_eq!(code(&maps(&cluster).get("a").await.unwrap_err()), 404);
    // Rights count once the fault is over.
    assert!(admin(&cluster).remove_fault(id));
    assert_eq!(code(&web.get("a").await.unwrap_err()), 403);
}

#[tokio::test(start_paused = true)]
async fn a_list_does_not_go_on_when_its_history_is_gone() {
    let cluster = cluster().await;
    for name in ["a", "b", "c"] {
        create(&cluster, name).await;
    }
    let first = maps(&cluster).list(&ListParams::default().limit(1)).await.unwrap();
    let next = ListParams::default().limit(1).continue_token(first.metadata.continue_.as_deref().unwrap());
    maps(&cluster).list(&next).await.unwrap();
    create(&cluster, "d").await;
    admin(&cluster).inject(Rule::new(ApiFault::ExpireWatch {}));
    assert_eq!(code(&maps(&cluster).list(&next).await.unwrap_err()), 410);
}

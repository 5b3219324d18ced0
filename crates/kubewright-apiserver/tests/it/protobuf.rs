//! Bodies in protobuf, byte by byte as client-go v0.36 encodes them.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Api};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// `web`: 0 replicas of one container of nginx; what Go's types have no pointers for is there as zero.
const DEPLOYMENT: &str = "\
    6b3873000a150a07617070732f7631120a4465706c6f796d656e74129d010a130a0377656212001a0022002a00320038\
    00420012780800120c0a0a0a0361707012037765621a5e0a1c0a0012001a0022002a003200380042005a0a0a03617070\
    1203776562123e12200a0377656212056e67696e782a0042006a007200800100880100900100a201001a00320042004a\
    0052005800600068008201008a01009a0100c2010022020a00280038001a0c0800100018002000280038001a002200";

/// To 3 replicas of `web`.
const SCALE: &str = "\
    6b3873000a170a0e6175746f7363616c696e672f763112055363616c6512260a1a0a0377656212001a0764656661756c\
    7422002a00320038004200120208031a04080012001a002200";

/// A SelfSubjectAccessReview: `list pods` in `default`.
const REVIEW: &str = "\
    6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a65637441636365\
    7373526576696577123d0a100a0012001a0022002a00320038004200121f0a1d0a0764656661756c7412046c6973741a\
    0022002a04706f647332003a001a08080012001a0020001a002200";

/// `propagationPolicy: Foreground`, in the version `apps/v1`.
const DELETE_OPTIONS: &str = "\
    6b3873000a180a07617070732f7631120d44656c6574654f7074696f6e73120c220a466f726567726f756e641a002200";

/// For 7200 seconds.
const TOKEN_REQUEST: &str = "\
    6b3873000a280a1861757468656e7469636174696f6e2e6b38732e696f2f7631120c546f6b656e52657175657374121d\
    0a100a0012001a0022002a00320038004200120320a0381a040a0012001a002200";

/// Of the pod `a`, at once.
const EVICTION: &str = "\
    6b3873000a150a09706f6c6963792f763112084576696374696f6e121e0a180a016112001a0764656661756c7422002a\
    00320038004200120208001a002200";

/// Of the pod `a` to the node `n`.
const BINDING: &str = "\
    6b3873000a0d0a027631120742696e64696e67122f0a180a016112001a0764656661756c7422002a0032003800420012\
    130a044e6f646512001a016e22002a0032003a001a002200";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.as_bytes().chunks(2).map(digits).collect()
}

async fn send(api: &Api, method: Method, path: &str, hex: &str) -> Answer {
    api.send(method, path, &[("content-type", PROTOBUF)], bytes(hex)).await
}

async fn with_pod() -> Api {
    let api = Api::start().await;
    api.post("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}}))
        .await
        .expect(201);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post(PODS, pod).await.expect(201);
    api
}

#[tokio::test(start_paused = true)]
async fn an_object_in_protobuf_becomes_what_the_same_object_in_json_does() {
    let api = Api::start().await;
    let made = send(&api, Method::POST, DEPLOYMENTS, DEPLOYMENT).await.expect(201);
    let json = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx", "resources": {}}]},
            },
        },
    });
    api.delete(&format!("{DEPLOYMENTS}/web")).await.expect(200);
    let same = api.post(DEPLOYMENTS, json).await.expect(201);
    let without_identity = |mut object: Value| {
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            object["metadata"][field] = Value::Null;
        }
        object
    };
    let spec = &made["spec"];
    assert_eq!(spec["replicas"], 0, "a zero that was set stays");
    assert_eq!(
        spec["template"]["spec"]["schedulerName"], "default-scheduler",
        "one that was not is defaulted"
    );
    assert_eq!(spec["progressDeadlineSeconds"], 600);
    assert_eq!(without_identity(made), without_identity(same));
}

#[tokio::test(start_paused = true)]
async fn subresources_take_protobuf() {
    let api = with_pod().await;
    send(&api, Method::POST, DEPLOYMENTS, DEPLOYMENT).await.expect(201);
    let scale = send(&api, Method::PUT, &format!("{DEPLOYMENTS}/web/scale"), SCALE).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 3);

    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = send(&api, Method::POST, path, TOKEN_REQUEST).await.expect(201);
    assert_eq!(token["spec"]["expirationSeconds"], 7200);

    send(&api, Method::POST, &format!("{PODS}/a/binding"), BINDING).await.expect(201);
    assert_eq!(api.get(&format!("{PODS}/a")).await.expect(200)["spec"]["nodeName"], "n");
    send(&api, Method::POST, &format!("{PODS}/a/eviction"), EVICTION).await.expect(201);
    api.get(&format!("{PODS}/a")).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_review_takes_protobuf() {
    let api = Api::start().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = send(&api, Method::POST, path, REVIEW).await.expect(201);
    assert_eq!(review["spec"]["resourceAttributes"]["resource"], "pods");
    assert_eq!(review["status"]["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_takes_its_options_in_protobuf() {
    let api = Api::start().await;
    send(&api, Method::POST, DEPLOYMENTS, DEPLOYMENT).await.expect(201);
    let path = format!("{DEPLOYMENTS}/web");
    send(&api, Method::DELETE, &path, DELETE_OPTIONS).await.expect(200);
    let waiting = api.get(&path).await.expect(200);
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_type_is_refused() {
    let api = with_pod().await;
    for path in ["/api/v1/namespaces/default/configmaps".to_owned(), format!("{PODS}/a/eviction")] {
        let message = send(&api, Method::POST, &path, DEPLOYMENT).await.refused(400, "BadRequest");
        assert!(message.contains("(apps/v1, Deployment)"), "{message}");
    }
    api.get(&format!("{PODS}/a")).await.expect(200);
}

/// What is read in protobuf is made once and kept: it has to be of the object that is there now.
#[tokio::test(start_paused = true)]
async fn what_is_read_in_protobuf_is_what_is_there() {
    let api = Api::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let read = async |path: &str| api.send(Method::GET, path, &[("accept", PROTOBUF)], "").await.bytes;
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let map = |value: &str| json!({"metadata": {"name": "a"}, "data": {"key": value}});
    api.post(maps, map("first value")).await.expect(201);
    let one = format!("{maps}/a");
    for _ in 0..2 {
        assert!(holds(&read(&one).await, "first value"));
        assert!(holds(&read(maps).await, "first value"));
    }
    api.put(&one, map("second value")).await.expect(200);
    for path in [&one, maps] {
        let bytes = read(path).await;
        assert!(holds(&bytes, "second value") && !holds(&bytes, "first value"), "{path}");
    }
    // A version that the object is not stored in has a message of its own.
    let scaler = json!({"metadata": {"name": "web"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
    api.post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", scaler).await.expect(201);
    for version in ["v2", "v1", "v2"] {
        let path = format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/web");
        let bytes = read(&path).await;
        assert!(holds(&bytes, &format!("autoscaling/{version}")), "{version}");
        assert_eq!(holds(&bytes, "autoscaling.alpha.kubernetes.io/metrics"), version == "v1");
    }
    // The event of a deletion has the version of the deletion, and all else of the object before.
    let version = api.get(&one).await.expect(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let _ = read(&one).await;
    api.delete(&one).await.expect(200);
    let watch = format!("{maps}?watch=true&resourceVersion={version}&timeoutSeconds=1");
    let bytes = read(&watch).await;
    assert!(holds(&bytes, "DELETED") && holds(&bytes, "second value"));
    // `metadata.resourceVersion` is the sixth field of the metadata, with its length.
    let before = format!("2{}{version}", char::from(u8::try_from(version.len()).unwrap()));
    assert!(!holds(&bytes, &before), "the version of the deletion is a later one");
}

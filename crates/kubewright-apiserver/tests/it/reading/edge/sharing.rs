//! What is shared by all who read it.

use ::http::Method;
use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use kubewright_apiserver::http::ResponseBody;
use serde_json::json;

use crate::support::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The largest of the pieces that are there.
fn largest(mut body: ResponseBody) -> Bytes {
    let (mut pieces, mut waits) = (Vec::new(), 0);
    // Between two pieces others have a turn; who waits twice has no more.
    while waits < 2 {
        match body.frame().now_or_never() {
            Some(Some(frame)) => {
                pieces.extend(frame.expect("there is time").into_data());
                waits = 0;
            }
            Some(None) => break,
            None => waits += 1,
        }
    }
    pieces.into_iter().max_by_key(Bytes::len).expect("a piece")
}

#[tokio::test(start_paused = true)]
async fn what_is_large_is_shared_by_all_who_read_it() {
    let api = Api::start().await;
    let before = api.open(Method::GET, &format!("{MAPS}?watch=1"), &[], "").await.into_body();
    let large = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(500_000)}});
    api.post(MAPS, large).await.expect(201);
    let mut read = vec![largest(before)];
    for path in [format!("{MAPS}?watch=1"), format!("{MAPS}?watch=1"), MAPS.to_owned(), MAPS.to_owned()] {
        read.push(largest(api.open(Method::GET, &path, &[], "").await.into_body()));
    }
    let end = |bytes: &Bytes| bytes.as_ptr().wrapping_add(bytes.len());
    assert!(read.iter().all(|bytes| bytes.len() > 500_000 && end(bytes) == end(&read[0])), "one memory");
}

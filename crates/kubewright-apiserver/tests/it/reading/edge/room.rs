//! A server whose store has no room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use kubewright_store::{Name, NoRoom};
use serde_json::json;

use crate::support::Api;
use crate::support::hooked::{Hook, Hooked};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A store has no room while it is told so.
struct Full(Arc<AtomicBool>);

fn no_room() -> NoRoom {
    NoRoom("/data/store/: No space left on device (os error 28)".into())
}

impl Hook for Full {
    fn before(&self, _key: &Name) -> Result<(), NoRoom> {
        if self.0.load(Ordering::Relaxed) { Err(no_room()) } else { Ok(()) }
    }

    fn health(&self) -> Result<(), Arc<str>> {
        self.before(&"".into()).map_err(|error| error.to_string().into())
    }
}

async fn text(api: &Api, path: &str) -> (StatusCode, String) {
    let answer = api.get(path).await;
    (answer.code, String::from_utf8_lossy(&answer.bytes).into_owned())
}

#[tokio::test(start_paused = true)]
async fn a_server_without_room_says_so_to_writers_and_to_who_asks_for_its_health() {
    let full = Arc::new(AtomicBool::new(false));
    let api = Api::start_on(Hooked::new(Full(Arc::clone(&full)))).await;
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    api.post(MAPS, map("first")).await.expect(201);

    full.store(true, Ordering::Relaxed);
    let why = "the store has no room: /data/store/: No space left on device (os error 28)";
    let refused = api.post(MAPS, map("second")).await.refused(500, "InternalError");
    assert_eq!(refused, format!("Internal error occurred: {why}"));
    api.get(&format!("{MAPS}/first")).await.expect(200);
    for of in ["healthz", "livez", "readyz"] {
        let (code, told) = text(&api, &format!("/{of}")).await;
        assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR, "{told}");
        assert!(
            told.contains("[+]ping ok\n") && told.contains("[-]etcd failed: reason withheld\n"),
            "{told}"
        );
        assert!(told.ends_with(&format!("{of} check failed\n")), "{told}");
        assert_eq!(told.contains("[-]etcd-readiness failed"), of == "readyz", "{told}");
        let one = text(&api, &format!("/{of}/etcd")).await;
        assert_eq!(one, (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n")));
        let (code, told) = text(&api, &format!("/{of}?exclude=etcd&exclude=etcd-readiness")).await;
        assert_eq!(code, StatusCode::OK, "{told}");
    }

    full.store(false, Ordering::Relaxed);
    api.post(MAPS, map("second")).await.expect(201);
    assert_eq!(text(&api, "/readyz").await, (StatusCode::OK, "ok".to_owned()));
    assert_eq!(text(&api, "/livez/etcd").await, (StatusCode::OK, "ok".to_owned()));
}

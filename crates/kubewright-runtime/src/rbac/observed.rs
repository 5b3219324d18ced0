//! What a client asks for, and is refused for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use kube::{Client, api::DynamicObject, client::Body, core::Status};
use parking_lot::Mutex;
use tower::{BoxError, service_fn};

use super::{Missing, Report, Right, Rights, Verb, refusal, roles};
use crate::Error;

/// How many names of objects are kept for each right.
const MOST_NAMES: usize = 16;

/// Writes down which rights the requests of [clients](Observed::client) take, and which they were refused for. Clones share
/// what they know. It knows no objects, so what it holds grows with kinds and namespaces only.
///
/// What is asked of an API server as somebody else ([`Controller::acting_as`](crate::Controller::acting_as)) is not
/// observed, unless that client is wrapped too.
#[derive(Clone, Default)]
pub struct Observed(Arc<Mutex<State>>);

/// Rights without names, and the names that they were asked for with.
type RequestedRights = BTreeMap<Right, Names>;

#[derive(Default)]
struct State {
    /// What was asked for and not refused.
    used: RequestedRights,
    missing: RequestedRights,
}

/// Names of objects, as many as there may be a rule for.
#[derive(Default)]
struct Names {
    names: BTreeSet<String>,
    /// Whether there was a request about no single object.
    unnamed: bool,
}

impl Names {
    fn add(&mut self, name: Option<String>) {
        self.unnamed |= name.is_none();
        if self.names.len() < MOST_NAMES {
            self.names.extend(name);
        }
    }

    /// Whether this one may be among them; more are not kept.
    fn may_hold(&self, name: &str) -> bool {
        self.names.len() == MOST_NAMES || self.names.contains(name)
    }

    /// The only one.
    fn only(&self) -> Option<String> {
        self.names.first().filter(|_| self.names.len() == 1 && !self.unnamed).cloned()
    }
}

/// Notes that a right was asked for.
fn note(rights: &mut RequestedRights, right: Right) {
    let (name, right) = (right.name.clone(), Right { name: None, ..right });
    rights.entry(right).or_default().add(name);
}

impl Observed {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A client whose requests are written down, and are `client`'s.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn client(&self, client: &Client) -> Client {
        let (observed, inner) = (self.clone(), client.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (observed, client) = (observed.clone(), inner.clone());
            async move {
                let asked = Right::of(request.method(), request.uri());
                // A clone of what is sent is cheap: it is in one piece.
                let body = request.body().try_clone();
                let answer = client.send(request).await.map_err(BoxError::from)?;
                match asked {
                    Some(asked) => observed.note(asked, body, answer).await,
                    None => Ok(answer),
                }
            }
        });
        Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
    }

    /// Notes what became of a request, and gives the answer back.
    async fn note(
        &self,
        asked: Right,
        body: Option<Body>,
        answer: Response<Body>,
    ) -> Result<Response<Body>, BoxError> {
        let code = answer.status();
        if code != StatusCode::FORBIDDEN {
            // Who is told one of the others was not asked for rights yet, or perhaps not.
            let may = !matches!(code, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS)
                && !code.is_server_error();
            if may {
                self.note_use(asked, code == StatusCode::CREATED);
            }
            return Ok(answer);
        }
        let (parts, refusal) = answer.into_parts();
        let refusal = refusal.collect_bytes().await?;
        let body = match body {
            Some(body) => body.collect_bytes().await?,
            None => Bytes::new(),
        };
        let status: Status = serde_json::from_slice(&refusal).unwrap_or_default();
        let missing = refusal::refused_for(&asked, &body, &Status { code: 403, ..status });
        if missing.is_empty() {
            // It was allowed, and refused for another reason.
            self.note_use(asked, false);
        } else {
            let mut state = self.0.lock();
            missing.into_iter().for_each(|missing| note(&mut state.missing, missing.right));
        }
        Ok(Response::from_parts(parts, Body::from(refusal)))
    }

    fn note_use(&self, asked: Right, created: bool) {
        let used = &mut self.0.lock().used;
        if created && matches!(asked.verb, Verb::Patch | Verb::Update) {
            // Who makes an object by an apply may create, too.
            note(used, Right { verb: Verb::Create, ..asked.clone() });
        }
        note(used, asked);
    }

    /// The rights that were used, sorted; without names of objects.
    #[must_use]
    pub fn used(&self) -> Vec<Right> {
        self.0.lock().used.keys().cloned().collect()
    }

    /// The rights that requests were refused for, sorted. Those for several objects of a namespace are one, without a name.
    #[must_use]
    pub fn missing(&self) -> Vec<Missing> {
        let state = self.0.lock();
        let one = |(right, names): (&Right, &Names)| Missing {
            right: Right { name: names.only(), ..right.clone() },
        };
        state.missing.iter().map(one).collect()
    }

    /// The rights that the author declared and that nothing used. Those that come with others (a
    /// [controller's](crate::Controller::rights) to record events, say) are not among them.
    #[must_use]
    pub fn unused(&self, declared: &Rights) -> Rights {
        let state = self.0.lock();
        declared.without_use(|subject, verb| {
            state.used.iter().any(|(right, names)| {
                right.verb == verb
                    && (right.group == subject.group && right.resource == subject.resource)
                    && subject.name.as_ref().is_none_or(|name| names.may_hold(name))
            })
        })
    }

    /// What a test is to end with: what was missing, and what was declared and never used.
    #[must_use]
    pub fn report(&self, declared: &Rights) -> Report {
        Report { missing: self.missing(), unused: self.unused(declared), declared: declared.clone() }
    }

    /// The least roles that would have been enough, all called `name`, of an operator that lives in the namespace `home`.
    ///
    /// What was asked for cluster-wide is in a ClusterRole. What was asked for in a namespace is in a Role there; but of an
    /// operator that looks at objects of a kind in all namespaces, only what it did in `home` alone is, and the rest is in the
    /// ClusterRole, as the next object may be anywhere.
    #[must_use]
    pub fn roles(&self, name: &str, home: &str) -> Vec<DynamicObject> {
        roles::of(&self.used(), name, home)
    }

    /// [The roles](Observed::roles) as YAML documents.
    ///
    /// # Errors
    /// [`Error::Failed`] for a name that YAML cannot hold; no name of Kubernetes is one.
    pub fn yaml(&self, name: &str, home: &str) -> Result<String, Error> {
        roles::yaml(&self.roles(name, home))
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("used", &self.used()).field("missing", &self.missing()).finish()
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret},
    };
    use serde_json::json;

    use super::*;

    const SCALE: &str = "/apis/apps/v1/namespaces/a/deployments/web/scale";

    /// A server that refuses to scale, has no ConfigMaps, and makes what is applied.
    fn server() -> Client {
        let service = service_fn(|request: Request<Body>| async move {
            let refused = json!({"code": 403, "status": "Failure", "reason": "Forbidden", "details": {"name": "web"},
                "message": r#"deployments.apps "web" is forbidden: User "u" cannot patch resource "deployments/scale" in API group "apps" in the namespace "a""#});
            let (code, body) = match (request.method().as_str(), request.uri().path()) {
                ("PATCH", SCALE) => (403, refused.to_string()),
                ("PATCH", _) => (201, "{}".to_owned()),
                (_, path) if path.contains("configmaps") => (404, "{}".to_owned()),
                _ => (200, "{}".to_owned()),
            };
            Ok::<_, BoxError>(Response::builder().status(code).body(Body::from(body.into_bytes()))?)
        });
        Client::new(service, "home")
    }

    async fn send(client: &Client, method: Method, uri: &str) -> Result<StatusCode, Error> {
        let request = Request::builder().method(method).uri(uri).body(Body::empty()).map_err(Error::new)?;
        Ok(client.send(request).await?.status())
    }

    #[tokio::test]
    async fn use_and_refusals_are_told_and_the_answers_are_the_same() -> Result<(), Error> {
        let observed = Observed::new();
        let client = observed.client(&server());
        assert_eq!(client.default_namespace(), "home");
        assert_eq!(send(&client, Method::PATCH, SCALE).await?, 403);
        let request = Request::patch(SCALE).body(Vec::new()).map_err(Error::new)?;
        let error = Error::from(client.request::<serde_json::Value>(request).await.expect_err("refused"));
        assert!(error.to_string().contains("cannot patch"), "the answer is there to be read: {error}");
        send(&client, Method::GET, "/api/v1/namespaces/a/configmaps/x").await?;
        send(&client, Method::PATCH, "/api/v1/namespaces/a/secrets/s").await?;
        send(&client, Method::GET, "/version").await?;

        let mut declared = Rights::default();
        declared.add::<ConfigMap>([Verb::Get, Verb::Delete]).add::<Secret>([Verb::Create, Verb::Patch]);
        declared.add_named::<Secret>("s", [Verb::Patch]).add_named::<Secret>("t", [Verb::Patch]);
        declared.add_subresource::<Deployment>("finalizers", [Verb::Update]);
        let report = observed.report(&declared);
        let missing: Vec<String> = report.missing.iter().map(ToString::to_string).collect();
        assert_eq!(missing, ["add: apps/deployments/scale patch (in the namespace a, on web)"]);
        let unused: Vec<_> = report.unused.iter().collect();
        let body = |text: &str, verbs: &str| (text.to_owned(), verbs.to_owned());
        assert_eq!(unused, [body("configmaps", "delete"), body("secrets[t]", "patch")]);
        let text = report.to_string();
        assert!(
            text.contains("add: apps/deployments/scale patch") && text.contains("configmaps delete"),
            "{text}"
        );
        Ok(())
    }
}

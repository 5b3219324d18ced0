//! Layers of a client: what is done to each request before it leaves.

use std::{
    borrow::Cow,
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use http::{Method, Request, Response, Uri, request::Parts, uri::PathAndQuery};
use kube::{Client, client::Body, core::Status};
use serde_json::{Value, json};
use tower::{BoxError, Layer, Service, service_fn};

use crate::rbac::{Right, Verb};

/// A layer of a client: changes each request before it leaves, or answers it. What controller-runtime's dry-run, namespaced and
/// interceptor clients do.
///
/// It is a tower layer, for [`kube::client::ClientBuilder::with_layer`]; [`ClientLayer::client`] puts it around a client that is
/// there, and [`Controller::client_layer`](crate::Controller::client_layer) around that of one controller.
///
/// ```
/// use http::Method;
/// use kube::core::Status;
/// use kubewright_runtime::ClientLayer;
/// # fn example(client: kube::Client) {
/// let own_namespace = ClientLayer::one_namespace("shop");
/// let no_deletions = ClientLayer::intercepting(|request| match request.method {
///     Method::DELETE => Err(Status::failure("not on Fridays", "Forbidden").with_code(403).boxed()),
///     _ => Ok(()),
/// });
/// let client = no_deletions.client(own_namespace.client(client));
/// # }
/// ```
#[derive(Clone)]
pub struct ClientLayer {
    what: Cow<'static, str>,
    change: Change,
    is_dry_run: bool,
}

type Change = Arc<dyn Fn(&mut Parts) -> Result<(), Box<Status>> + Send + Sync>;

impl ClientLayer {
    fn new(
        what: impl Into<Cow<'static, str>>,
        change: impl Fn(&mut Parts) -> Result<(), Box<Status>> + Send + Sync + 'static,
    ) -> Self {
        Self { what: what.into(), change: Arc::new(change), is_dry_run: false }
    }

    /// Lets the server do nothing: each write is a dry run (`dryRun=All`), whatever it asks for. The server still validates, and calls those
    /// webhooks that have no side effects. A controller's cache must know of it: there it is [`Controller::dry_run`](crate::Controller::dry_run).
    #[must_use]
    pub fn dry_run() -> Self {
        let change = |request: &mut Parts| match is_write(&request.method) {
            true => add_to_query(&mut request.uri, "dryRun", "All"),
            false => Ok(()),
        };
        Self { is_dry_run: true, ..Self::new("dry run", change) }
    }

    /// Notes the fields that are written as those of this owner (`fieldManager`), where the write names none itself.
    pub fn field_owner(owner: impl Into<String>) -> Self {
        let owner = owner.into();
        Self::new(format!("field owner {owner}"), move |request| match has_field_owner(&request.method) {
            true => add_to_query(&mut request.uri, "fieldManager", &owner),
            false => Ok(()),
        })
    }

    /// Refuses what is asked of other namespaces than this, with 403 and without asking the server; what is asked of all namespaces, or of
    /// kinds that live in none, too. What a kind is cannot be seen from a request, so that this is no way to fill namespaces in.
    pub fn one_namespace(namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        Self::new(format!("namespace {namespace}"), move |request| {
            let Some(right) = Right::of(&request.method, &request.uri) else { return Ok(()) };
            let is_itself = right.resource == "namespaces" && right.name.as_ref() == Some(&namespace);
            if right.namespace.as_ref() == Some(&namespace) || is_itself && right.verb == Verb::Get {
                return Ok(());
            }
            let message =
                format!("{right}: this client is for the namespace {namespace} alone; nothing was sent");
            Err(Status::failure(&message, "Forbidden").with_code(403).boxed())
        })
    }

    /// Looks at each request, and changes it, or answers it with this Status: for tests of what an operator does about errors, and for
    /// rules of one's own. It is called on the thread that sends, and must not block.
    pub fn intercepting(
        intercept: impl Fn(&mut Parts) -> Result<(), Box<Status>> + Send + Sync + 'static,
    ) -> Self {
        Self::new("interceptor", intercept)
    }

    /// A client whose requests pass through this layer, and are then `client`'s.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn client(&self, client: Client) -> Client {
        let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
        let service = service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        Client::new(self.layer(service), namespace).with_valid_until(valid_until)
    }

    /// Whether nothing comes of what is written through it.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }
}

impl fmt::Debug for ClientLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientLayer").field(&self.what).finish()
    }
}

impl<S> Layer<S> for ClientLayer {
    type Service = Layered<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Layered { layer: self.clone(), inner }
    }
}

/// A client's stack with a [`ClientLayer`].
#[derive(Clone, Debug)]
pub struct Layered<S> {
    layer: ClientLayer,
    inner: S,
}

impl<S, A> Service<Request<Body>> for Layered<S>
where
    S: Service<Request<Body>, Response = Response<A>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    A: Send + 'static,
{
    type Response = Response<A>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<A>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let is_dry_deletion = self.layer.is_dry_run && head.method == Method::DELETE;
        let changed = (self.layer.change)(&mut head);
        match changed.and_then(|()| if is_dry_deletion { as_dry_run(body) } else { Ok(body) }) {
            Ok(body) => {
                let answer = self.inner.call(Request::from_parts(head, body));
                Box::pin(async move { answer.await.map_err(Into::into) })
            }
            // kube's client finds its own errors again.
            Err(status) => Box::pin(ready(Err(kube::Error::Api(status).into()))),
        }
    }
}

/// The options of a deletion, as those of a dry run: where there is a body, the server does not look at the query
/// (`k8s.io/apiserver/pkg/endpoints/handlers/delete.go`).
fn as_dry_run(body: Body) -> Result<Body, Box<Status>> {
    // What a client sends is in one piece, which is there at once.
    let options = body.collect_bytes().now_or_never().and_then(Result::ok).unwrap_or_default();
    let options = if options.is_empty() { Ok(json!({})) } else { serde_json::from_slice(&options) };
    match options {
        Ok(Value::Object(mut options)) => {
            options.insert("dryRun".to_owned(), json!(["All"]));
            Ok(Body::from(Value::Object(options).to_string().into_bytes()))
        }
        _ => Err(refusal(
            "the options of a deletion are no JSON: it cannot be made a dry run, and was not sent",
        )),
    }
}

fn refusal(message: &str) -> Box<Status> {
    Status::failure(message, "BadRequest").with_code(400).boxed()
}

fn is_write(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE)
}

/// Whether a request can say who owns what it writes: a deletion cannot.
fn has_field_owner(method: &Method) -> bool {
    is_write(method) && *method != Method::DELETE
}

/// Adds a parameter to the query, unless it is there.
fn add_to_query(uri: &mut Uri, name: &str, value: &str) -> Result<(), Box<Status>> {
    let query = uri.query().unwrap_or_default();
    if form_urlencoded::parse(query.as_bytes()).any(|(key, _)| key == name) {
        return Ok(());
    }
    let mut pairs = form_urlencoded::Serializer::for_suffix(query.to_owned(), 0);
    let query = pairs.append_pair(name, value).finish();
    let wrong = |error: &dyn fmt::Display| refusal(&format!("the request cannot be changed: {error}"));
    let path: PathAndQuery = format!("{}?{query}", uri.path()).parse().map_err(|error| wrong(&error))?;
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = Some(path);
    *uri = Uri::from_parts(parts).map_err(|error| wrong(&error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
    use kube::{
        Api,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    };
    use parking_lot::Mutex;

    use super::*;

    /// A client whose requests are written down and answered with an empty object.
    fn recording(layer: &ClientLayer) -> (Client, Arc<Mutex<Vec<String>>>) {
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let requests = sent.clone();
        let service = service_fn(move |request: Request<Body>| {
            // kube writes `?` and `?&` where there is no parameter before.
            let told = format!("{} {}", request.method(), request.uri()).replace("?&", "?");
            let told = told.trim_end_matches('?').to_owned();
            let is_deletion = request.method() == Method::DELETE;
            let body =
                request.into_body().collect_bytes().now_or_never().and_then(Result::ok).unwrap_or_default();
            let body =
                if is_deletion { format!(" {}", String::from_utf8_lossy(&body)) } else { String::new() };
            requests.lock().push(told + &body);
            let answer = Response::new(Body::from(br#"{"metadata": {"name": "a"}, "items": []}"#.to_vec()));
            ready(Ok::<_, BoxError>(answer))
        });
        (layer.client(Client::new(service, "default")), sent)
    }

    fn code<T>(answer: kube::Result<T>) -> Option<u16> {
        match answer {
            Err(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    #[tokio::test]
    async fn each_write_is_a_dry_run_and_no_read_is() {
        let (client, sent) = recording(&ClientLayer::dry_run());
        let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
        let map = ConfigMap::default();
        maps.get("a").await.expect("an answer");
        maps.create(&PostParams::default(), &map).await.expect("an answer");
        let params = PostParams { dry_run: true, field_manager: Some("me".into()) };
        maps.create(&params, &map).await.expect("an answer");
        maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({}))).await.expect("an answer");
        maps.delete("a", &DeleteParams::background()).await.expect("an answer");
        let maps = "/api/v1/namespaces/shop/configmaps";
        assert_eq!(
            *sent.lock(),
            [
                format!("GET {maps}/a"),
                format!("POST {maps}?dryRun=All"),
                format!("POST {maps}?dryRun=All&fieldManager=me"),
                format!("PATCH {maps}/a?dryRun=All"),
                format!(
                    r#"DELETE {maps}/a?dryRun=All {{"dryRun":["All"],"propagationPolicy":"Background"}}"#
                ),
            ]
        );
    }

    #[tokio::test]
    async fn an_owner_is_named_where_the_write_names_none() {
        let (client, sent) = recording(&ClientLayer::field_owner("the shop"));
        let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
        maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({}))).await.expect("an answer");
        maps.patch("a", &PatchParams::apply("me"), &Patch::Apply(json!({}))).await.expect("an answer");
        maps.delete("a", &DeleteParams::default()).await.expect("an answer");
        let map = "/api/v1/namespaces/shop/configmaps/a";
        assert_eq!(
            *sent.lock(),
            [
                format!("PATCH {map}?fieldManager=the+shop"),
                format!("PATCH {map}?fieldManager=me"),
                format!("DELETE {map} {{}}"),
            ]
        );
    }

    #[tokio::test]
    async fn what_is_outside_of_the_namespace_is_refused_and_not_sent() {
        let (client, sent) = recording(&ClientLayer::one_namespace("shop"));
        let shop: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
        shop.list(&ListParams::default()).await.expect("it is in the namespace");
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.get("shop").await.expect("it is the namespace");
        assert_eq!(code(namespaces.delete("shop", &DeleteParams::default()).await), Some(403));
        assert_eq!(code(Api::<ConfigMap>::namespaced(client.clone(), "other").get("a").await), Some(403));
        assert_eq!(code(Api::<ConfigMap>::all(client.clone()).list(&ListParams::default()).await), Some(403));
        let refused = Api::<Node>::all(client.clone()).get("a").await.expect_err("a kind of the cluster");
        assert!(
            refused
                .to_string()
                .contains("nodes get (cluster-wide, on a): this client is for the namespace shop alone"),
            "{refused}"
        );
        // It is sent, whatever the answer says.
        drop(client.apiserver_version().await);
        let sent = sent.lock();
        assert_eq!(
            *sent,
            ["GET /api/v1/namespaces/shop/configmaps", "GET /api/v1/namespaces/shop", "GET /version"]
        );
    }

    #[tokio::test]
    async fn an_interceptor_changes_a_request_or_answers_it() {
        let layer = ClientLayer::intercepting(|request| {
            if request.method == Method::DELETE {
                return Err(Status::failure("no", "Conflict").with_code(409).boxed());
            }
            request.headers.insert("x-shop", http::HeaderValue::from_static("1"));
            Ok(())
        });
        let (client, sent) = recording(&layer);
        let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
        maps.get("a").await.expect("an answer");
        assert_eq!(code(maps.delete("a", &DeleteParams::default()).await), Some(409));
        assert_eq!(sent.lock().len(), 1);
        assert_eq!(format!("{layer:?}"), r#"ClientLayer("interceptor")"#);
    }
}

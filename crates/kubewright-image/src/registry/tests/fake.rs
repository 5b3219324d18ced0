//! A registry that keeps what it is given in memory, and fails where a test says so.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    fs, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Digest;

pub(super) const USER: &str = "somebody";
pub(super) const PASSWORD: &str = "open-sesame";
pub(super) const TOKEN: &str = "the-token";

/// What goes wrong with the next request of a method; with `/v2/` nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is answered by this status, and nothing is done.
    Status(&'static str, u16),
    /// Half of what is sent or received gets through, then the line breaks.
    Truncated(&'static str),
    /// The line breaks before anything is done.
    Gone(&'static str),
    /// It is done, and the line breaks.
    Lost(&'static str),
}

impl Fault {
    fn method(self) -> &'static str {
        let (Self::Status(method, _) | Self::Truncated(method) | Self::Gone(method) | Self::Lost(method)) =
            self;
        method
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asks {
    #[default]
    Nothing,
    Tokens,
    Passwords,
}

#[derive(Debug, Default)]
struct State {
    asks: Asks,
    address: String,
    blobs: BTreeMap<String, Bytes>,
    manifests: BTreeMap<(String, String), (String, Bytes)>,
    uploads: Vec<Option<Vec<u8>>>,
    faults: VecDeque<Fault>,
    requests: Vec<String>,
    scopes: Vec<String>,
    told_who: bool,
    damage: &'static str,
    elsewhere: Option<String>,
}

#[derive(Debug)]
pub(super) struct Fake {
    pub(super) address: String,
    state: Arc<Mutex<State>>,
}

type Body = BoxBody<Bytes, io::Error>;

impl Fake {
    pub(super) async fn start() -> Self {
        Self::asking(Asks::Nothing).await
    }

    pub(super) async fn with_tokens() -> Self {
        Self::asking(Asks::Tokens).await
    }

    pub(super) async fn with_passwords() -> Self {
        Self::asking(Asks::Passwords).await
    }

    async fn asking(asks: Asks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let state = State { asks, address: address.clone(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { address, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn faults(&self, faults: &[Fault]) {
        self.state().faults = faults.iter().copied().collect();
    }

    pub(super) fn faults_left(&self) -> usize {
        self.state().faults.len()
    }

    pub(super) fn damage(&self, what: &'static str) {
        self.state().damage = what;
    }

    pub(super) fn send_elsewhere(&self, address: &str) {
        self.state().elsewhere = Some(address.to_owned());
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.state().requests.iter().filter(|request| *request == method).count()
    }

    pub(super) fn scopes(&self) -> Vec<String> {
        self.state().scopes.clone()
    }

    pub(super) fn was_told_who(&self) -> bool {
        self.state().told_who
    }

    /// Takes over all the blobs of a layout, and what a descriptor points to as a tag.
    pub(super) fn take(&self, layout: &Path, repository: &str, tag: &str, descriptor: &Value) {
        let mut state = self.state();
        for entry in fs::read_dir(layout.join("blobs/sha256")).expect("a layout").flatten() {
            let bytes = Bytes::from(fs::read(entry.path()).expect("a blob"));
            let digest = Digest::of(&bytes).to_string();
            let media_type =
                if descriptor["digest"] == *digest { crate::oci::INDEX } else { crate::oci::MANIFEST };
            let manifest = (media_type.to_owned(), bytes.clone());
            if descriptor["digest"] == *digest {
                state.manifests.insert((repository.to_owned(), tag.to_owned()), manifest.clone());
            }
            state.manifests.insert((repository.to_owned(), digest.clone()), manifest);
            state.blobs.insert(digest, bytes);
        }
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(Arc::clone(&state), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// Answers, or breaks the line.
async fn answer(state: Arc<Mutex<State>>, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let (answer, fault) = state.lock().unwrap_or_else(PoisonError::into_inner).answer(&parts, body);
    match fault {
        None => Ok(answer),
        Some(Fault::Truncated("GET")) => Ok(half(answer).await),
        Some(_) => Err(io::ErrorKind::ConnectionReset.into()),
    }
}

impl State {
    /// The answer, and what happens to it on its way.
    fn answer(&mut self, parts: &http::request::Parts, mut body: Bytes) -> (Response<Body>, Option<Fault>) {
        self.requests.push(parts.method.to_string());
        let authorization = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
        let authorization = authorization.unwrap_or_default().to_owned();
        self.told_who |= !authorization.is_empty();
        let path = parts.uri.path().to_owned();
        let query: BTreeMap<String, String> =
            form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        if path == "/token" {
            return (self.token(&query, &authorization), None);
        }
        if let Some(refused) = self.refused(&authorization) {
            return (refused, None);
        }
        if path == "/v2/" {
            return (with(200, &[], ""), None);
        }
        let fault = self.faults.front().copied().filter(|fault| fault.method() == parts.method.as_str());
        if fault.is_some() {
            self.faults.pop_front();
        }
        match fault {
            Some(Fault::Status(_, status)) => return (refusal(status), None),
            Some(Fault::Gone(_)) => return (refusal(500), fault),
            Some(Fault::Truncated("PATCH")) => body.truncate(body.len() / 2),
            _ => {}
        }
        (self.route(parts, &path, &query, &body), fault)
    }

    fn token(&mut self, query: &BTreeMap<String, String>, authorization: &str) -> Response<Body> {
        if !authorization.is_empty() && !is_known(authorization) {
            return with(401, &[], r#"{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}"#);
        }
        self.scopes.extend(query.get("scope").filter(|_| is_known(authorization)).cloned());
        let token = if is_known(authorization) { TOKEN } else { "nobody" };
        with(200, &[], &json!({"token": token}).to_string())
    }

    /// The answer to who has not said who he is.
    fn refused(&self, authorization: &str) -> Option<Response<Body>> {
        let (challenge, known) = match self.asks {
            Asks::Nothing => return None,
            Asks::Passwords => ("Basic realm=x".to_owned(), is_known(authorization)),
            Asks::Tokens => (
                format!(
                    r#"Bearer realm="http://{}/token",service="fake",scope="repository:app:pull""#,
                    self.address
                ),
                authorization == format!("Bearer {TOKEN}"),
            ),
        };
        let body = r#"{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}"#;
        (!known).then(|| with(401, &[("www-authenticate", &challenge)], body))
    }

    fn route(
        &mut self,
        parts: &http::request::Parts,
        path: &str,
        query: &BTreeMap<String, String>,
        body: &Bytes,
    ) -> Response<Body> {
        let rest = path.trim_start_matches("/v2/");
        if let Some((repository, "")) = rest.split_once("/blobs/uploads/") {
            self.uploads.push(Some(Vec::new()));
            return with(202, &[("location", &upload(repository, self.uploads.len() - 1))], "");
        }
        if let Some((repository, id)) = rest.split_once("/blobs/uploads/") {
            return self.upload(&parts.method, repository, id, query, body);
        }
        if let Some((_, digest)) = rest.split_once("/blobs/") {
            return self.blob(&parts.method, path, digest);
        }
        let Some((repository, place)) = rest.split_once("/manifests/") else { return refusal(404) };
        self.manifest(parts, repository, place, body)
    }

    fn upload(
        &mut self,
        method: &Method,
        repository: &str,
        id: &str,
        query: &BTreeMap<String, String>,
        body: &[u8],
    ) -> Response<Body> {
        let at: usize = id.parse().unwrap_or(usize::MAX);
        let Some(Some(received)) = self.uploads.get_mut(at) else { return refusal(404) };
        received.extend_from_slice(body);
        let range = format!("0-{}", received.len().saturating_sub(1));
        let place = upload(repository, at);
        let told = [("location", &*place), ("range", &*range)];
        match *method {
            Method::PATCH => with(202, &told, ""),
            Method::GET => with(204, &told, ""),
            _ => {
                let whole = Bytes::from(self.uploads[at].take().unwrap_or_default());
                let digest = Digest::of(&whole).to_string();
                if query.get("digest") != Some(&digest) {
                    return with(400, &[], r#"{"errors":[{"code":"DIGEST_INVALID"}]}"#);
                }
                self.blobs.insert(digest.clone(), whole);
                with(201, &[("docker-content-digest", &digest)], "")
            }
        }
    }

    fn blob(&self, method: &Method, path: &str, digest: &str) -> Response<Body> {
        let Some(blob) = self.blobs.get(digest) else { return refusal(404) };
        if *method == Method::HEAD {
            return with(200, &[], "");
        }
        if let Some(elsewhere) = &self.elsewhere {
            return with(307, &[("location", &format!("http://{elsewhere}{path}"))], "");
        }
        let mut blob = blob.to_vec();
        match self.damage {
            "blobs/" => blob.iter_mut().for_each(|byte| *byte ^= 1),
            "endless" => blob.extend([0; 100_000]),
            _ => {}
        }
        bytes(200, &[], blob.into())
    }

    fn manifest(
        &mut self,
        parts: &http::request::Parts,
        repository: &str,
        place: &str,
        body: &Bytes,
    ) -> Response<Body> {
        if parts.method == Method::PUT {
            let digest = Digest::of(body).to_string();
            let media_type = parts.headers["content-type"].to_str().unwrap_or_default().to_owned();
            for place in [place, &digest] {
                let place = (repository.to_owned(), place.to_owned());
                self.manifests.insert(place, (media_type.clone(), body.clone()));
            }
            let told =
                if self.damage == "told digest" { format!("sha256:{}", "0".repeat(64)) } else { digest };
            return with(201, &[("docker-content-digest", &told)], "");
        }
        let Some((media_type, manifest)) = self.manifests.get(&(repository.to_owned(), place.to_owned()))
        else {
            return with(
                404,
                &[],
                r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#,
            );
        };
        let mut manifest = manifest.to_vec();
        if self.damage.starts_with("manifests/") {
            manifest.push(b' ');
        }
        bytes(200, &[("content-type", media_type)], manifest.into())
    }
}

fn upload(repository: &str, id: usize) -> String {
    format!("/v2/{repository}/blobs/uploads/{id}?_state=x")
}

fn is_known(authorization: &str) -> bool {
    authorization == format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")))
}

fn refusal(status: u16) -> Response<Body> {
    let body = match status {
        403 => r#"{"errors":[{"code":"DENIED","message":"not yours"}]}"#,
        404 => r#"{"errors":[{"code":"BLOB_UNKNOWN"}]}"#,
        _ => "on fire",
    };
    with(status, &[("retry-after", "0")], body)
}

fn with(status: u16, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    bytes(status, headers, Bytes::copy_from_slice(body.as_bytes()))
}

fn bytes(status: u16, headers: &[(&str, &str)], body: Bytes) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let body = http_body_util::Full::new(body).map_err(|error: Infallible| match error {}).boxed();
    response.body(body).expect("a response")
}

/// The first half of an answer, and then no more although more was announced.
async fn half(answer: Response<Body>) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    let whole = body.collect().await.expect("in memory").to_bytes();
    parts.headers.insert("content-length", whole.len().into());
    let frames =
        [Ok(Frame::data(whole.slice(..whole.len() / 2))), Err(io::ErrorKind::ConnectionReset.into())];
    Response::from_parts(parts, BodyExt::boxed(StreamBody::new(futures::stream::iter(frames))))
}

//! Holding a conversation with one server.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::Result;
use http::Request;
use regex::Regex;
use serde_json::{Value, json};

use crate::conversation::{Ask, Conversation, Payload};
use crate::proto;
use crate::side::{Answer, Side, Stream};

/// How long no event comes before a watch is taken to have said all.
const QUIET: Duration = Duration::from_millis(300);

#[expect(clippy::expect_used, reason = "a constant, compiled by each run")]
static NAMED_UID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"@uid\.([a-z0-9-]+)@").expect("a pattern"));

/// What a request got.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) media: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Vec<u8>,
    /// How long the answer took, to its last byte.
    pub(crate) took: Duration,
    /// The request as this server was sent it.
    pub(crate) sent: Sent,
}

/// A request as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
}

#[derive(Default)]
struct Heard {
    objects: BTreeMap<String, Value>,
    list: String,
    token: String,
}

/// Holds it, under the name of a run: an answer for each request.
///
/// # Errors
/// Where the server does not answer.
pub(crate) async fn hold(side: &Side, conversation: &Conversation, run: &str) -> Result<Vec<Got>> {
    prepare(side, run).await?;
    let mut heard = Heard::default();
    let mut got: Vec<Option<Got>> = Vec::new();
    let mut streams: Vec<(usize, Sent, Stream)> = Vec::new();
    for (at, ask) in conversation.asks.iter().enumerate() {
        let sent = heard.fill(ask, run);
        if ask.stream {
            let stream = side.stream(request(&sent)?).await?;
            streams.push((at, sent, stream));
            got.push(None);
            continue;
        }
        let mut began = Instant::now();
        let mut answer = side.send(request(&sent)?).await?;
        let mut left = 100;
        while ask.until_ok && answer.status != 200 && left > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            began = Instant::now();
            answer = side.send(request(&sent)?).await?;
            left -= 1;
        }
        let took = began.elapsed();
        if ask.pause > 0 {
            tokio::time::sleep(Duration::from_millis(ask.pause)).await;
        }
        heard.listen(ask, run, &answer);
        got.push(Some(got_of(answer, sent, took)));
    }
    rest(&streams).await;
    for (at, sent, stream) in streams {
        let status = stream.status;
        let (media, warnings, took) = (String::new(), Vec::new(), Duration::ZERO);
        got[at] = Some(Got { status, media, warnings, body: stream.end(), took, sent });
    }
    clean(side, conversation, run).await;
    Ok(got.into_iter().flatten().collect())
}

/// A number for the names of a run, which another run has not: seconds.
pub(crate) fn began() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() % 100_000)
}

/// Sends one request.
///
/// # Errors
/// Where the server does not answer.
pub(crate) async fn exchange(side: &Side, sent: Sent) -> Result<Got> {
    let began = Instant::now();
    let answer = side.send(request(&sent)?).await?;
    Ok(got_of(answer, sent, began.elapsed()))
}

async fn prepare(side: &Side, run: &str) -> Result<()> {
    let post = |path: String, body: Value| {
        Request::post(path).header("Content-Type", "application/json").body(body.to_string().into_bytes())
    };
    side.send(post("/api/v1/namespaces".into(), json!({"metadata": {"name": run}}))?).await?;
    side.send(post(
        format!("/api/v1/namespaces/{run}/serviceaccounts"),
        json!({"metadata": {"name": "default"}}),
    )?)
    .await?;
    Ok(())
}

/// Removes what is not in the namespace, and what would hold a definition that goes. What cannot be removed is left: its name is never used again.
async fn clean(side: &Side, conversation: &Conversation, run: &str) {
    let mut gone = Vec::new();
    for ask in conversation.asks.iter().filter(|ask| !ask.place.name.is_empty()) {
        let resource = &ask.place.resource;
        if !resource.namespaced || resource.group.contains("@run@") {
            let path = format!("{}/{}", resource.path(Some(run)), ask.place.name).replace("@run@", run);
            if !gone.contains(&path) {
                gone.push(path);
            }
        }
    }
    gone.push(format!("/api/v1/namespaces/{run}"));
    gone.sort_by_key(|path| path.contains("customresourcedefinitions"));
    for path in gone {
        let free = Request::patch(&path)
            .header("Content-Type", "application/merge-patch+json")
            .body(br#"{"metadata":{"finalizers":null}}"#.to_vec());
        let delete = Request::delete(&path).body(Vec::new());
        for request in [free, delete].into_iter().flatten() {
            let _ = side.send(request).await;
        }
    }
}

async fn rest(streams: &[(usize, Sent, Stream)]) {
    let size = || streams.iter().map(|(_, _, stream)| stream.size()).sum::<usize>();
    let mut before = usize::MAX;
    for _ in 0..20 {
        if streams.iter().all(|(_, _, stream)| !stream.is_open()) || size() == before {
            return;
        }
        before = size();
        tokio::time::sleep(QUIET).await;
    }
}

fn request(sent: &Sent) -> Result<Request<Vec<u8>>> {
    let mut request = Request::builder().method(sent.method).uri(&sent.path);
    for (name, value) in &sent.headers {
        request = request.header(name, value);
    }
    let in_protobuf = sent
        .headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case("content-type") && proto::is_meant(value));
    let body = sent.body.clone().unwrap_or_default();
    Ok(request.body(if in_protobuf { proto::write(&body) } else { body.into_bytes() })?)
}

fn got_of(answer: Answer, sent: Sent, took: Duration) -> Got {
    let text = |name: &str| {
        answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let warnings = answer
        .headers
        .get_all("warning")
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    Got { status: answer.status, media: text("content-type"), warnings, body: answer.body, took, sent }
}

impl Heard {
    fn fill(&self, ask: &Ask, run: &str) -> Sent {
        let place = key_of(ask);
        let last = self.objects.get(&place);
        let of =
            |key: &str| last.and_then(|object| object["metadata"][key].as_str()).unwrap_or("none").to_owned();
        let fill = |text: &str| {
            let text = NAMED_UID.replace_all(text, |found: &regex::Captures<'_>| self.uid_of(&found[1]));
            text.replace("@run@", run)
                .replace("@ns@", run)
                .replace("@rv@", &of("resourceVersion"))
                .replace("@uid@", &of("uid"))
                .replace("@list@", if self.list.is_empty() { "0" } else { &self.list })
                .replace("@continue@", &self.token)
        };
        let mut headers: Vec<(String, String)> =
            ask.headers.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        for (name, value) in [("Accept", "application/json"), ("User-Agent", "differ/1")] {
            if ask.header_value(name).is_none() {
                headers.push((name.to_owned(), value.to_owned()));
            }
        }
        let body = match &ask.payload {
            Payload::None => None,
            Payload::Json(body) => Some(fill(&body.to_string())),
            Payload::Text(text) => Some(fill(text)),
            Payload::Changed { otherwise, edits } => {
                let mut object = last.cloned().unwrap_or_else(|| otherwise.clone());
                edits.iter().for_each(|edit| edit.apply(&mut object));
                Some(fill(&object.to_string()))
            }
        };
        if body.is_some() && ask.header_value("Content-Type").is_none() {
            headers.push(("Content-Type".into(), "application/json".into()));
        }
        let query: Vec<String> =
            ask.query.iter().map(|(key, value)| format!("{key}={}", escaped(&fill(value)))).collect();
        let path = fill(&ask.path());
        let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
        Sent { method: ask.method, path, headers, body }
    }

    /// The uid of the object of a name, whatever its kind.
    fn uid_of(&self, name: &str) -> String {
        let suffix = format!("/{name}");
        let object = self.objects.iter().find(|(key, _)| key.ends_with(&suffix)).map(|(_, object)| object);
        object.and_then(|object| object["metadata"]["uid"].as_str()).unwrap_or("none").to_owned()
    }

    fn listen(&mut self, ask: &Ask, run: &str, answer: &Answer) {
        let _ = run;
        if answer.status >= 300 {
            return;
        }
        let read = serde_json::from_slice::<Value>(&answer.body).ok();
        let Some(body) = read.or_else(|| proto::read(&answer.body)) else { return };
        if body["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) {
            // One that names a revision may come from a watch cache, which tells the last change that it has heard of.
            if !ask.query.iter().any(|(key, _)| key == "resourceVersion") {
                body["metadata"]["resourceVersion"].as_str().unwrap_or_default().clone_into(&mut self.list);
            }
            body["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut self.token);
            return;
        }
        let whole = body["kind"] == ask.place.resource.kind.as_str() && body["metadata"]["uid"].is_string();
        let dry = ask.query.iter().any(|(key, _)| key == "dryRun");
        if whole && !dry && ask.method != "DELETE" {
            self.objects.insert(key_of(ask), body);
        }
    }
}

/// A value of a query.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

fn key_of(ask: &Ask) -> String {
    format!("{}/{}/{}", ask.place.resource.api_version(), ask.place.resource.plural, ask.place.name)
}

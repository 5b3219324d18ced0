//! The data of the page.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bytes::Bytes;
use futures::stream;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, Limited, StreamBody};
use kubewright_control_plane::admin::Admin;
use kubewright_control_plane::recording::{Did, Revision};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::View;
use crate::answer::{Body, Refusal, json as answer_json, streamed};
use crate::besides::{self, Reports, RequestRow};
use crate::change::Change;
use crate::fields;
use crate::row::Row;
use crate::secrets::Secrets;

/// The most rows of an answer, and how many there are unless fewer are wanted.
const ROWS: usize = 5_000;
/// The most changes of an answer, each with its lines.
const CHANGES: usize = 50;
/// The most requests of an answer.
const REQUESTS: usize = 1_000;
/// The largest body of a request.
const LARGEST: usize = 64 << 10;
/// The largest answer of the control plane that is passed on.
const LARGEST_ANSWER: usize = 4 << 20;

/// Answers a request for data at a path below `/api/`.
pub(crate) async fn answer<B>(
    view: &View,
    path: &str,
    parts: &Parts,
    body: B,
) -> Result<Response<Body>, Refusal>
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let query = Query::of(parts);
    match (&parts.method, path) {
        (&Method::GET, "about") => Ok(answer_json(&about(view))),
        (&Method::GET, "objects") => Ok(answer_json(&objects(view, &query)?)),
        (&Method::GET, "writes") => Ok(answer_json(&writes(view, &query)?)),
        (&Method::GET, "object") => Ok(answer_json(&object(view, &query)?)),
        (&Method::GET, "history") => Ok(answer_json(&history(view, &query)?)),
        (&Method::GET, "requests") => Ok(answer_json(&requests(view, &query)?)),
        (&Method::GET, "reconcile") => Ok(answer_json(&reconcile(view, &query)?)),
        (&Method::GET, "reconciles") => Ok(answer_json(&reconciles(view, &query)?)),
        (&Method::GET, "events") => events(view),
        (&Method::GET | &Method::DELETE | &Method::POST, path) if is_passed_on(&parts.method, path) => {
            let body = Limited::new(Box::pin(body), LARGEST).collect().await;
            let body =
                body.map_err(|_| Refusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large".into()))?;
            pass_on(view, parts.method.clone(), path, body.to_bytes()).await
        }
        _ => Err(Refusal::missing(format!("there is no {} /api/{path}", parts.method))),
    }
}

/// A query string.
struct Query(BTreeMap<String, String>);

impl Query {
    fn of(parts: &Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str, default: u64) -> Result<u64, Refusal> {
        match self.text(name) {
            "" => Ok(default),
            text => text.parse().map_err(|_| Refusal::bad(format!("{name}: {text:?} is no number"))),
        }
    }

    /// A limit, not over `most`.
    fn limit(&self, most: usize) -> Result<usize, Refusal> {
        let limit = self.number("limit", most as u64)?;
        Ok(usize::try_from(limit).unwrap_or(most).clamp(1, most))
    }

    fn revision(&self, name: &str, default: Revision) -> Result<Revision, Refusal> {
        self.number(name, default.0).map(Revision)
    }

    fn secrets(&self) -> Secrets {
        if self.text("secrets") == "shown" { Secrets::Shown } else { Secrets::Hidden }
    }
}

/// What is shown, and how far it goes.
fn about(view: &View) -> Value {
    let (through, last, missed) =
        view.history(|history| (history.through().0, history.last().0, history.missed()));
    let admin = view.admin();
    json!({
        "title": view.title(),
        "live": view.live().is_some(),
        "through": through,
        "last": last,
        "missed": missed,
        "now": view.now().map(jiff::Timestamp::as_millisecond),
        "admin": admin.is_some(),
        "requests": admin.is_some() || !view.besides().requests.is_empty(),
        "canAdvance": admin.is_some_and(Admin::can_advance),
    })
}

/// The objects of the beginning, page by page.
fn objects(view: &View, query: &Query) -> Result<Value, Refusal> {
    let skip = usize::try_from(query.number("skip", 0)?).unwrap_or(usize::MAX);
    let limit = query.limit(ROWS)?;
    let (through, found) = view.history(|history| (history.through().0, history.base(skip, limit)));
    let rows: Vec<Row> = found.iter().map(|write| Row::from(&**write)).collect();
    Ok(json!({"through": through, "rows": rows, "more": rows.len() == limit}))
}

/// The writes after a revision, page by page.
fn writes(view: &View, query: &Query) -> Result<Value, Refusal> {
    let (after, limit) = (query.revision("after", Revision(0))?, query.limit(ROWS)?);
    let (through, last, missed, found) = view.history(|history| {
        (history.through().0, history.last().0, history.missed(), history.after(after, limit))
    });
    let rows: Vec<Row> = found.iter().map(|write| Row::from(&**write)).collect();
    let now = view.now().map(jiff::Timestamp::as_millisecond);
    Ok(json!({"through": through, "last": last, "missed": missed, "now": now, "rows": rows}))
}

fn place(query: &Query) -> Result<(&str, &str), Refusal> {
    match (query.text("collection"), query.text("key")) {
        ("", _) => Err(Refusal::bad("collection: which one, such as apps/deployments?")),
        (_, "") => Err(Refusal::bad("key: which object, such as default/web?")),
        place => Ok(place),
    }
}

/// An object as it was at a revision, with who owns its fields.
fn object(view: &View, query: &Query) -> Result<Value, Refusal> {
    let ((collection, key), at) = (place(query)?, query.revision("at", Revision(u64::MAX))?);
    let found = view.history(|history| history.of(collection, key, at));
    let Some(write) = found.first() else {
        return Err(Refusal::missing(format!("{collection} {key} was not there yet, or is not known")));
    };
    let shown = query.secrets().shown(collection, write.object());
    let (managers, lines) = fields::lines(&shown);
    Ok(json!({
        "row": Row::from(&**write),
        "gone": write.did == Did::Delete,
        "managers": managers,
        "lines": lines,
        "secret": collection == "/secrets",
    }))
}

/// What changed an object, newest first.
fn history(view: &View, query: &Query) -> Result<Value, Refusal> {
    let ((collection, key), at) = (place(query)?, query.revision("at", Revision(u64::MAX))?);
    let limit = query.limit(CHANGES)?;
    let found = view.history(|history| history.of(collection, key, at));
    let changes: Vec<Change> = found
        .iter()
        .enumerate()
        .take(limit)
        .map(|(place, write)| Change::new(write, found.get(place + 1), query.secrets()))
        .collect();
    Ok(json!({"more": found.len() > changes.len(), "changes": changes}))
}

/// The last requests that a filter means, newest first.
fn requests(view: &View, query: &Query) -> Result<Value, Refusal> {
    let limit = query.limit(REQUESTS)?;
    let wanted = RequestFilter::of(query)?;
    let (found, total, forgotten) =
        besides::requests(view.admin(), view.besides(), |row| wanted.matches(row), limit);
    Ok(json!({"total": total, "forgotten": forgotten, "requests": found}))
}

/// What operators have told of their reconciles and queues, and what was done to the cluster, after two positions.
fn reconciles(view: &View, query: &Query) -> Result<Reports, Refusal> {
    let (after, marks) = (query.number("after", 0)?, query.number("marksAfter", 0)?);
    let limit = query.limit(ROWS)?;
    Ok(match view.admin() {
        Some(admin) => besides::live(admin, after, marks, limit),
        None => view.besides().reports(after, marks, limit),
    })
}

/// What a reconcile read and wrote: that of a position, as the list of them counts it.
fn reconcile(view: &View, query: &Query) -> Result<Value, Refusal> {
    let position = query.number("position", 0)?;
    let found = match view.admin() {
        Some(admin) => admin.reconcile_at(position),
        None => {
            usize::try_from(position).ok().and_then(|place| view.besides().reconciles.get(place).cloned())
        }
    };
    let Some(found) = found else {
        return Err(Refusal::missing(format!("the reconcile {position} is not known, or not any more")));
    };
    Ok(json!({"accesses": found.accesses, "leftOut": found.accesses_left_out}))
}

/// Which requests are shown. What is empty means all.
struct RequestFilter<'a> {
    who: &'a str,
    verb: &'a str,
    /// A class of codes, or one code, or `fault`.
    status: &'a str,
    what: &'a str,
}

impl<'a> RequestFilter<'a> {
    fn of(query: &'a Query) -> Result<Self, Refusal> {
        let status = query.text("status");
        let known = matches!(status, "" | "fault" | "2xx" | "3xx" | "4xx" | "5xx" | "cut")
            || status.parse::<u16>().is_ok();
        if !known {
            return Err(Refusal::bad(format!(
                "status: {status:?} is none of 2xx, 3xx, 4xx, 5xx, cut, fault, or a code"
            )));
        }
        Ok(Self { who: query.text("who"), verb: query.text("verb"), status, what: query.text("what") })
    }

    fn matches(&self, row: &RequestRow) -> bool {
        let who = self.who.is_empty() || row.user.contains(self.who) || row.user_agent.contains(self.who);
        let verb = self.verb.is_empty() || row.verb == self.verb;
        let status = match (self.status, row.code) {
            ("", _) => true,
            ("fault", _) => row.fault.is_some(),
            ("cut", code) => code.is_none(),
            (class, Some(code)) => match class.strip_suffix("xx") {
                Some(hundreds) => (code / 100).to_string() == hundreds,
                None => code.to_string() == class,
            },
            (_, None) => false,
        };
        who && verb && status && (row.what.contains(self.what) || row.key.contains(self.what))
    }
}

/// A line with the newest revision whenever there is one, or operators have told of something. It is made when there is room for it, so a
/// page that is slow gets fewer.
fn events(view: &View) -> Result<Response<Body>, Refusal> {
    let Some(mut changes) = view.changes() else {
        return Err(Refusal::missing("events are of a cluster that runs, and not of a recording"));
    };
    changes.mark_changed();
    let reports = view.admin().map(Admin::reconciled);
    let lines = stream::unfold((changes, reports), |(mut changes, mut reports)| async move {
        tokio::select! {
            changed = changes.changed() => changed.ok()?,
            () = reported(reports.as_mut()) => {}
        }
        let revision = changes.borrow_and_update().0;
        let line = Bytes::from(format!("{revision}\n"));
        Some((Ok::<_, Infallible>(Frame::data(line)), (changes, reports)))
    });
    Ok(streamed("text/plain; charset=utf-8", StreamBody::new(lines).boxed_unsync()))
}

/// Waits until operators have told of something.
async fn reported(reports: Option<&mut watch::Receiver<u64>>) {
    if let Some(reports) = reports
        && reports.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Whether the control plane itself answers.
fn is_passed_on(method: &Method, path: &str) -> bool {
    let one_fault = path.strip_prefix("faults/").is_some_and(|id| id.parse::<u64>().is_ok());
    match *method {
        Method::GET => matches!(path, "clock" | "faults"),
        Method::POST => matches!(path, "clock/advance" | "faults"),
        _ => path == "faults" || one_fault,
    }
}

/// Asks the control plane, as its administrator, at the path under `/kubewright`.
async fn pass_on(view: &View, method: Method, path: &str, body: Bytes) -> Result<Response<Body>, Refusal> {
    let Some(live) = view.live() else {
        return Err(Refusal::missing("a recording has no clock and no faults"));
    };
    let request = Request::builder().method(method).uri(format!("/kubewright/{path}"));
    let request =
        request.body(kube::client::Body::from(body)).map_err(|error| Refusal::bad(error.to_string()))?;
    let unavailable = |why: String| Refusal(StatusCode::BAD_GATEWAY, why);
    let response = live.client.send(request).await.map_err(|error| unavailable(error.to_string()))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
    let body = body.map_err(|error| unavailable(error.to_string()))?.to_bytes();
    if status.is_success() {
        return Ok(crate::answer::bytes("application/json", body));
    }
    let told: Value = serde_json::from_slice(&body).unwrap_or_default();
    Err(Refusal(status, told["message"].as_str().unwrap_or("the control plane refuses").to_owned()))
}

//! Which errors of reconciles people are shown on the object, and how: as a condition, as an Event, or not at all.

mod write;

use std::{fmt, sync::Arc};

pub(crate) use self::write::{OnKind, ShowFailures};
use crate::{Error, EventType, Key, NewEvent, conditions::Status};

/// The condition of [`ErrorPolicy::default`]: kstatus' word for "it does not get on" (`sigs.k8s.io/cli-utils/pkg/kstatus`).
const STALLED: &str = "Stalled";
/// From which try in a row on an error is shown that another try may well cure.
const TRANSIENT_FROM: u32 = 10;
/// From which try in a row on any other error is shown.
const SHOWN_FROM: u32 = 3;
/// How much of an error is shown, in bytes: as much as an Event takes.
const LONGEST_MESSAGE: usize = 1024;

/// A reconcile that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// Why. A panic is an [`Error::Panicked`]; a reconcile that took too long has the reason `TimedOut`.
    pub error: &'a Error,
    /// How often it has failed in a row, this time included. A [terminal](Error::Terminal) error is always the first one, as nothing
    /// is tried again.
    pub attempts: u32,
    /// Which object was reconciled.
    pub key: &'a Key,
}

/// What people are shown of a failure. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    condition: Option<(String, String)>,
    event: Option<NewEvent>,
}

impl Shown {
    /// The error as condition and as Warning Event, with its [reason](Error::condition_reason). The message has at most 1024 bytes, and
    /// of an object that the API server calls invalid the names of the fields alone: its own words quote what is in them.
    #[must_use]
    pub fn of(failure: &Failure<'_>) -> Self {
        let (reason, message) = (failure.error.condition_reason(), message_of(failure.error));
        let event = NewEvent::new(EventType::Warning, reason, message.clone());
        Self::default().event(event).condition(reason, message)
    }

    /// Shows it as the condition that the policy says, with this reason (a CamelCase word) and message.
    #[must_use]
    pub fn condition(mut self, reason: impl Into<String>, message: impl Into<String>) -> Self {
        self.condition = Some((reason.into(), shortened(message.into())));
        self
    }

    /// Shows it as this Event.
    #[must_use]
    pub fn event(mut self, event: NewEvent) -> Self {
        self.event = Some(event);
        self
    }

    /// Shows it as no Event.
    #[must_use]
    pub fn without_event(mut self) -> Self {
        self.event = None;
        self
    }
}

type Decide = Arc<dyn Fn(&Failure<'_>) -> Shown + Send + Sync>;

/// Which errors of reconciles are shown on the object, and how; declared by [`Controller::on_error`](crate::Controller::on_error).
///
/// By default:
/// - A [terminal](Error::Terminal) error is shown at once. Any other one from the third try in a row on; one that
///   [is transient](Error::is_transient), such as a conflict, from the tenth on, which is after some seconds. That a namespace is
///   ending, that an owner is gone, and that this replica leads no more is never shown: nobody can do anything about it.
/// - It is shown as a Warning Event and as the condition `Stalled`, which is `True` then and `False` after the next success.
///
/// ```
/// use kubewright_runtime::{Error, ErrorPolicy, Failure, Key, Shown};
///
/// let policy = ErrorPolicy::default().sets_false("Ready").deciding(|failure| match failure.attempts {
///     1..5 => Shown::default(),
///     _ => Shown::of(failure).without_event(),
/// });
/// let (error, key) = (Error::new("no answer").reason("BucketUnavailable"), Key::namespaced("shop", "a"));
/// assert_eq!(policy.shown(&Failure { error: &error, attempts: 4, key: &key }), Shown::default());
/// let shown = Shown::default().condition("BucketUnavailable", "no answer");
/// assert_eq!(policy.shown(&Failure { error: &error, attempts: 5, key: &key }), shown);
/// ```
#[derive(Clone)]
pub struct ErrorPolicy {
    condition: Option<Shape>,
    decide: Decide,
}

/// The condition that shows failures.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    type_: String,
    failed: Status,
}

impl Default for ErrorPolicy {
    fn default() -> Self {
        Self { condition: None, decide: Arc::new(decide) }.sets_true(STALLED)
    }
}

impl ErrorPolicy {
    /// Shows failures by a condition of this type, instead of `Stalled`: `True` while it fails, and `False` after the next success. The
    /// reconciler leaves it alone.
    #[must_use]
    pub fn sets_true(self, type_: impl Into<String>) -> Self {
        self.shaped(type_.into(), Status::True)
    }

    /// Shows failures by a condition of this type, such as `Ready`, that the reconciler writes when it succeeds: a failure makes it
    /// `False`, and what it is after a success is the reconciler's to say.
    #[must_use]
    pub fn sets_false(self, type_: impl Into<String>) -> Self {
        self.shaped(type_.into(), Status::False)
    }

    /// Shows failures by Events alone, for a kind without conditions or whose status is somebody else's. It takes no right to the
    /// status.
    #[must_use]
    pub fn events_only(mut self) -> Self {
        self.condition = None;
        self
    }

    /// Decides by this function what is shown of a failure. It must be pure, as it is asked again each time: what it says is written
    /// only when it differs from what is there.
    #[must_use]
    pub fn deciding(mut self, decide: impl Fn(&Failure<'_>) -> Shown + Send + Sync + 'static) -> Self {
        self.decide = Arc::new(decide);
        self
    }

    /// What is shown of a failure.
    #[must_use]
    pub fn shown(&self, failure: &Failure<'_>) -> Shown {
        let mut shown = (self.decide)(failure);
        if self.condition.is_none() {
            shown.condition = None;
        }
        shown
    }

    fn shaped(mut self, type_: String, failed: Status) -> Self {
        self.condition = Some(Shape { type_, failed });
        self
    }

    /// Whether it writes conditions.
    pub(crate) fn writes_conditions(&self) -> bool {
        self.condition.is_some()
    }

    /// What is wrong with it.
    pub(crate) fn mistake(&self) -> Option<String> {
        let type_ = &self.condition.as_ref()?.type_;
        (!is_condition_type(type_)).then(|| {
            format!(
                "on_error: {type_:?} is no type of a condition: take a CamelCase word such as \"Stalled\""
            )
        })
    }
}

impl fmt::Debug for ErrorPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorPolicy").field("condition", &self.condition).finish_non_exhaustive()
    }
}

/// What is shown unless an author decides otherwise.
fn decide(failure: &Failure<'_>) -> Shown {
    match shown_from(failure.error) {
        Some(first) if failure.attempts >= first => Shown::of(failure),
        _ => Shown::default(),
    }
}

/// From which try in a row on an error is worth to be shown.
fn shown_from(error: &Error) -> Option<u32> {
    if error.is_namespace_ending() || error.fenced().is_some() || matches!(error, Error::OwnerGone(_)) {
        None
    } else if error.is_terminal() {
        Some(1)
    } else if error.is_transient() {
        Some(TRANSIENT_FROM)
    } else {
        Some(SHOWN_FROM)
    }
}

/// What is shown of an error. The API server's words about an invalid object quote the object.
fn message_of(error: &Error) -> String {
    let details =
        error.status().filter(|status| status.code == 422).and_then(|status| status.details.as_ref());
    let Some(details) = details else { return shortened(error.to_string()) };
    let mut fields: Vec<&str> = details.causes.iter().map(|cause| cause.field.as_str()).collect();
    fields.retain(|field| !field.is_empty());
    fields.dedup();
    let which = if fields.is_empty() { "the log says why".to_owned() } else { fields.join(", ") };
    shortened(format!("the API server refused {} {:?} as invalid: {which}", details.kind, details.name))
}

fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
    message
}

/// As `metav1.Condition` has it: a qualified name, at most 316 bytes.
fn is_condition_type(text: &str) -> bool {
    let is_word = |word: &str| {
        let ends = word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.ends_with(|c: char| c.is_ascii_alphanumeric());
        ends && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    text.len() <= 316
        && match text.split_once('/') {
            None => is_word(text),
            Some((prefix, word)) => is_word(prefix) && is_word(word),
        }
}

#[cfg(test)]
mod tests {
    use kube::core::Status as Answer;
    use serde_json::json;

    use super::*;

    fn refused(answer: serde_json::Value) -> Error {
        let answer = kubewright_objects::from_value::<Answer>(answer).expect("a Status").boxed();
        kube::Error::Api(answer).into()
    }

    /// From which try on something is shown, of the first thirty.
    fn first_shown(error: &Error) -> Option<u32> {
        let (policy, key) = (ErrorPolicy::default(), Key::cluster_scoped("a"));
        let is_shown = |attempts| policy.shown(&Failure { error, attempts, key: &key }) != Shown::default();
        let first = (1..30).find(|attempts| is_shown(*attempts))?;
        assert!((first..30).all(is_shown), "what is shown stays");
        Some(first)
    }

    #[test]
    fn what_another_try_cures_is_shown_late_and_what_none_cures_at_once() {
        assert_eq!(first_shown(&Error::terminal("no")), Some(1));
        assert_eq!(first_shown(&Error::new("no")), Some(3));
        assert_eq!(first_shown(&refused(json!({"code": 409, "reason": "Conflict"}))), Some(10));
        assert_eq!(first_shown(&refused(json!({"code": 503, "reason": "ServiceUnavailable"}))), Some(10));
        assert_eq!(first_shown(&refused(json!({"code": 403, "reason": "Forbidden"}))), Some(3));
        assert_eq!(first_shown(&Error::OwnerGone("a".into())), None);
        let causes = json!([{"reason": "NamespaceTerminating"}]);
        let ending = json!({"code": 403, "reason": "Forbidden", "details": {"causes": causes}});
        assert_eq!(first_shown(&Error::terminal(refused(ending))), None);
    }

    fn shown(error: &Error) -> (String, String) {
        let key = Key::cluster_scoped("a");
        Shown::of(&Failure { error, attempts: 1, key: &key }).condition.expect("a condition")
    }

    #[test]
    fn the_reason_is_the_authors_or_the_servers() {
        assert_eq!(shown(&Error::new("away").reason("BucketUnavailable")).0, "BucketUnavailable");
        assert_eq!(shown(&refused(json!({"code": 403, "reason": "Forbidden"}))).0, "Forbidden");
    }

    #[test]
    fn what_an_invalid_object_says_is_not_shown_and_messages_are_bounded() {
        let causes =
            json!([{"field": "data.password", "message": "Invalid value: \"secret\": no", "reason": "x"}]);
        let details = json!({"kind": "Vault", "name": "a", "causes": causes});
        let message = "Vault \"a\" is invalid: data.password: Invalid value: \"secret\": no";
        let invalid =
            refused(json!({"code": 422, "reason": "Invalid", "message": message, "details": details}));
        let told = "the API server refused Vault \"a\" as invalid: data.password";
        assert_eq!(shown(&Error::terminal(invalid)), ("Invalid".to_owned(), told.to_owned()));
        assert_eq!(shown(&Error::new("ä".repeat(2000))).1.len(), LONGEST_MESSAGE);
    }

    #[test]
    fn without_a_condition_there_are_events_alone() {
        let (error, key) = (Error::terminal("no"), Key::cluster_scoped("a"));
        let shown =
            ErrorPolicy::default().events_only().shown(&Failure { error: &error, attempts: 1, key: &key });
        assert!(shown.condition.is_none() && shown.event.is_some());
    }

    #[test]
    fn a_type_of_a_condition_is_a_qualified_name() {
        assert!(ErrorPolicy::default().mistake().is_none());
        assert!(ErrorPolicy::default().sets_false("example.com/Ready").mistake().is_none());
        for wrong in ["", "Not ready", "/Ready", "a/b/c", "Ready-"] {
            assert!(ErrorPolicy::default().sets_false(wrong).mistake().is_some(), "{wrong}");
        }
    }
}

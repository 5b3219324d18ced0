//! Stories as data: what a user and a kubelet do, one step after the other, to the objects of one namespace.

use serde_json::Value;

/// A story. In paths and bodies `@run@` is its name, which is that of its namespace, too.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) seed: u64,
    pub(crate) kinds: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

/// An object whose name a server made: the one at a place among those with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) kind: &'static str,
    pub(crate) label: Option<(String, String)>,
    pub(crate) nth: usize,
}

/// A request. `@pick@` is the name of what is picked, `@now@` the time, `@uid:Kind/name@` the uid of an object.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// What it does: `Deployment/scale`.
    pub(crate) what: String,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) media: &'static str,
    pub(crate) body: Option<Value>,
    pub(crate) pick: Option<Pick>,
    /// For how many milliseconds nothing is written before both sides are taken to be at rest.
    pub(crate) quiet: u64,
    /// Whether to wait for rest and to compare after it.
    pub(crate) compared: bool,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// How long a namespace is quiet, where no controller waits by itself.
pub(crate) const QUIET: u64 = 2500;

impl Step {
    fn new(what: String, method: &'static str, path: String) -> Self {
        Self { what, method, path, media: JSON, body: None, pick: None, quiet: QUIET, compared: true }
    }

    pub(crate) fn create(kind: &str, body: Value) -> Self {
        let step = Self::new(format!("{kind}/create"), "POST", crate::controllers::kinds::collection(kind));
        Self { body: Some(body), ..step }
    }

    /// Makes an object of a kind, with these fields beside its name.
    pub(crate) fn object(kind: &str, name: &str, mut fields: Value) -> Self {
        fields["kind"] = kind.into();
        fields["apiVersion"] = crate::controllers::kinds::kind(kind).map_or("v1", |kind| kind.version).into();
        fields["metadata"]["name"] = name.into();
        Self::create(kind, fields)
    }

    pub(crate) fn patch(kind: &str, what: &str, name: &str, body: Value) -> Self {
        let path = format!("{}/{name}", crate::controllers::kinds::collection(kind));
        let step = Self::new(format!("{kind}/{what}"), "PATCH", path);
        Self { media: MERGE, body: Some(body), ..step }
    }

    pub(crate) fn delete(kind: &str, name: &str, policy: Option<&str>) -> Self {
        let path = format!("{}/{name}", crate::controllers::kinds::collection(kind));
        let what = format!("{kind}/delete{}", policy.unwrap_or_default());
        let body = policy.map(|policy| {
            serde_json::json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})
        });
        Self { body, ..Self::new(what, "DELETE", path) }
    }

    pub(crate) fn picking(mut self, pick: Pick) -> Self {
        self.pick = Some(pick);
        self
    }

    pub(crate) fn sub(mut self, name: &str) -> Self {
        self.path = format!("{}/{name}", self.path);
        self
    }

    pub(crate) fn media(mut self, media: &'static str) -> Self {
        self.media = media;
        self
    }

    pub(crate) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn quiet(mut self, quiet: u64) -> Self {
        self.quiet = self.quiet.max(quiet);
        self
    }

    /// The request in one line.
    pub(crate) fn line(&self) -> String {
        let pick = self.pick.as_ref().map_or_else(String::new, |pick| {
            let label =
                pick.label.as_ref().map_or_else(String::new, |(key, value)| format!(" {key}={value}"));
            format!(" [{}{label} #{}]", pick.kind, pick.nth)
        });
        let body = self.body.as_ref().map_or_else(String::new, |body| format!(" {body}"));
        format!("{}: {} {}{pick}{body}", self.what, self.method, self.path)
    }
}

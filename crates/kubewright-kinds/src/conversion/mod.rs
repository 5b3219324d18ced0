//! The conversion of custom resources between versions by a webhook
//! (`apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`): what is asked, and what of the answer is
//! taken. Who is called, and when, is not here.

mod metadata;

use kubewright_identity::webhook::Target;
use serde_json::{Value, json};

use super::definition::text;

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";

/// A webhook that converts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where it listens, or why it cannot be called.
    pub target: Result<Target, String>,
    /// The version of the review that it understands; none when the definition names none that this server knows.
    version: Option<&'static str>,
}

impl Webhook {
    /// The webhook of a definition, when it has one.
    #[must_use]
    pub fn of(definition: &Value) -> Option<Self> {
        let conversion = &definition["spec"]["conversion"];
        if text(conversion, "strategy") != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let known = |version: &Value| ["v1", "v1beta1"].into_iter().find(|known| version == known);
        let versions = webhook["conversionReviewVersions"].as_array();
        Some(Self {
            target: Target::read(&webhook["clientConfig"]),
            version: versions.into_iter().flatten().find_map(known),
        })
    }

    /// A review that asks for `objects`, none of which is of the version `wanted` (`group/version`).
    ///
    /// # Errors
    /// When the webhook understands no review that this server knows.
    pub fn review<'a>(&self, uid: String, wanted: &str, objects: &'a [Value]) -> Result<Review<'a>, String> {
        let version = self.version.ok_or("no supported conversion review versions")?;
        Ok(Review { version, uid, wanted: wanted.to_owned(), objects })
    }
}

/// One question to a webhook.
#[derive(Debug)]
pub struct Review<'a> {
    version: &'static str,
    uid: String,
    wanted: String,
    objects: &'a [Value],
}

impl Review<'_> {
    /// The body of the request.
    #[must_use]
    pub fn request(&self) -> Value {
        json!({
            "kind": KIND,
            "apiVersion": format!("{GROUP}/{}", self.version),
            "request": {"uid": self.uid, "desiredAPIVersion": self.wanted, "objects": self.objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}}
        })
    }

    /// The objects that an answer has, with their own metadata but for labels and annotations.
    ///
    /// # Errors
    /// What is wrong with the answer, in the words of kube-apiserver.
    pub fn converted(&self, answer: &[u8]) -> Result<Vec<Value>, String> {
        let objects = self.objects_of(answer).map_err(|why| self.failed(&why))?;
        if objects.len() != self.objects.len() {
            let (found, expected) = (objects.len(), self.objects.len());
            return Err(format!("{} returned {found} objects, expected {expected}", self.who()));
        }
        let pairs = self.objects.iter().zip(objects).enumerate();
        pairs.map(|(index, (original, converted))| self.one(index, original, converted)).collect()
    }

    /// Why the call gave no answer.
    #[must_use]
    pub fn failed(&self, why: &str) -> String {
        format!("{} failed: {why}", self.who())
    }

    fn who(&self) -> String {
        let first = self.objects.first().unwrap_or(&Value::Null);
        format!("conversion webhook for {}, Kind={}", text(first, "apiVersion"), text(first, "kind"))
    }

    fn objects_of(&self, answer: &[u8]) -> Result<Vec<Value>, String> {
        // What is no JSON is read as YAML by kube-apiserver: a text.
        let answer: Value = serde_json::from_slice(answer).unwrap_or_else(|_| "".into());
        if !answer.is_object() {
            let found = kubewright_codec::json::type_name(&answer);
            return Err(unreadable(&format!("json: cannot unmarshal {found} into {TYPE}")));
        }
        self.is_review(&answer)?;
        let response = match &answer["response"] {
            Value::Null => return Err("no response provided".to_owned()),
            response => response,
        };
        if self.version == "v1" && text(response, "uid") != self.uid {
            return Err(format!("expected response.uid={:?}, got {:?}", self.uid, text(response, "uid")));
        }
        let result = &response["result"];
        match (text(result, "status"), text(result, "message")) {
            ("Success", _) => {}
            (status, "") => return Err(format!("response.result.status was '{status}', not 'Success'")),
            (_, message) => return Err(message.to_owned()),
        }
        Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default())
    }

    /// An answer says what it is; only the older review need not.
    fn is_review(&self, answer: &Value) -> Result<(), String> {
        let (api_version, kind) = (text(answer, "apiVersion"), text(answer, "kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if api_version.is_empty() || kind.is_empty() {
            return if self.version == "v1" {
                Err(format!(
                    "expected webhook response of {GROUP}/v1, Kind={KIND}, got {group}/{version}, Kind={kind}"
                ))
            } else {
                Ok(())
            };
        }
        if group != GROUP || kind != KIND {
            return Err(format!(
                "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
            ));
        }
        if version != self.version {
            let own = self.version;
            return Err(format!("converting ({version}.{KIND}) to ({own}.{KIND}): unknown conversion"));
        }
        Ok(())
    }

    fn one(&self, index: usize, original: &Value, mut converted: Value) -> Result<Value, String> {
        if !converted.is_object() {
            let found = kubewright_codec::json::type_name(&converted);
            return Err(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            ));
        }
        let kind = text(&converted, "kind");
        if kind.is_empty() {
            return Err(format!("Object 'Kind' is missing in '{converted}'"));
        }
        let who = self.who();
        let (expected, received) = (self.wanted.as_str(), text(&converted, "apiVersion"));
        if expected != received {
            return Err(format!(
                "{who} returned invalid object at index {index}: invalid groupVersion (expected {expected}, received {received})"
            ));
        }
        let expected = text(original, "kind");
        if expected != kind {
            return Err(format!(
                "{who} returned invalid object at index {index}: invalid kind (expected {expected}, received {kind})"
            ));
        }
        metadata::is_same(original, &converted)
            .map_err(|why| format!("{who} returned invalid object: {why}"))?;
        metadata::restore(original, &mut converted)
            .map_err(|why| format!("{who} returned invalid metadata: {why}"))?;
        Ok(converted)
    }
}

/// What Go reads the type of an object into.
const TYPE: &str = r#"Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

fn unreadable(why: &str) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

#[cfg(test)]
mod tests;

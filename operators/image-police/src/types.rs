//! The kinds: WhiteList for a namespace, ClusterWhiteList for many.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which images the workloads of a namespace may use, and what becomes of those that use others. Several lists of a
/// namespace add up: what one of them allows is allowed, and the strictest of their enforcements holds.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "police.foo.bar",
    version = "v1beta1",
    kind = "WhiteList",
    plural = "whitelists",
    category = "police",
    namespaced,
    status = "WhiteListStatus",
    derive = "PartialEq",
    doc = "A WhiteList names the images that the workloads of its namespace may use.",
    printcolumn(name = "Enforcement", type_ = "string", json_path = ".spec.enforcement"),
    printcolumn(name = "Violations", type_ = "integer", json_path = ".status.violationCount"),
    printcolumn(
        name = "Enforced",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Enforced')].reason"
    ),
    printcolumn(name = "Last-Action", type_ = "string", json_path = ".status.lastAction.text", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WhiteListSpec {
    /// The images that may be used.
    #[schemars(length(max = 200))]
    pub images: Vec<AllowedImage>,
    /// What becomes of a workload that uses another image.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// What becomes of workloads that were there before this list.
    #[serde(default)]
    pub existing: Existing,
    /// Who refuses, where the enforcement is Deny.
    #[serde(default)]
    pub deny_by: DenyBy,
    /// Whether a workload may be exempt by its annotations `police.foo.bar/exempt` (the reason) and
    /// `police.foo.bar/exempt-until` (RFC 3339).
    #[serde(default)]
    pub exemptions: Exemptions,
    /// How many workloads of the namespace may be deleted in a minute; what is beyond is only reported.
    #[serde(default = "max_deletions")]
    #[schemars(range(min = 0, max = 1000))]
    pub max_deletions_per_minute: u32,
    /// Whether this list holds in kube-system, kube-node-lease and the police's own namespace too.
    #[serde(default)]
    pub enforce_in_system_namespace: bool,
}

fn max_deletions() -> u32 {
    10
}

/// Images of one name.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("!self.name.matches(':[^/]*$')").message("the name of an image has no tag: tags go to `tags`"),
    validation = Rule::new("self.match == 'Glob' || !self.name.matches('[*?]')").message("a name with * or ? needs `match: Glob`"),
    validation = Rule::new("self.match == 'Glob' || !self.tags.exists(tag, tag.matches('[*?]'))").message("a tag with * or ? needs `match: Glob`")
)]
#[serde(rename_all = "camelCase")]
pub struct AllowedImage {
    /// The name, without tag and digest: `nginx`, `gcr.io/busybox`, `localhost:5000/nginx`.
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[A-Za-z0-9\[*?][A-Za-z0-9._:/\[\]*?-]*$"))]
    pub name: String,
    /// The tags. An image without a tag has the tag `latest`; one with a digest is judged by `digests` alone.
    #[schemars(
        length(max = 100),
        inner(length(max = 128), regex(pattern = r"^[A-Za-z0-9_*?][A-Za-z0-9_.*?-]*$"))
    )]
    pub tags: Vec<String>,
    /// The digests, such as `sha256:...`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(
            length(max = 140),
            regex(pattern = r"^(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$")
        )
    )]
    pub digests: Vec<String>,
    /// Ranges of semantic versions, such as `>=1.14, <1.16`: a tag that is a version (`1.14.2`, `v1.14.2`) in one of them
    /// is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 100), regex(pattern = r"^[0-9A-Za-z.+*<>=^~, -]+$")))]
    pub versions: Vec<String>,
    /// How name and tags are compared.
    #[serde(default, rename = "match")]
    pub matching: Matching,
}

/// How a name and its tags are compared with those of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub enum Matching {
    /// As they are written, letter by letter.
    #[default]
    Exact,
    /// As what they mean: `nginx` is `docker.io/library/nginx`.
    Normalized,
    /// As patterns of what the image means: `docker.io/library/*`, `1.14.*`. A `*` in a name stops at a slash, `**` does not.
    Glob,
}

/// What becomes of a workload that uses an image which is not allowed; each is stricter than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
pub enum Enforcement {
    /// It is reported.
    Audit,
    /// It is refused when it is created or gets the image; what was there before is reported.
    Deny,
    /// It is scaled to zero or suspended, where that is possible.
    ScaleToZero,
    /// It is deleted.
    #[default]
    Delete,
}

/// What becomes of workloads that were there before the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub enum Existing {
    /// The same as of others.
    #[default]
    Enforce,
    /// They are reported.
    Report,
}

/// Who refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub enum DenyBy {
    /// The API server itself, by a ValidatingAdmissionPolicy that the police keeps. It knows no versions.
    #[default]
    Policy,
    /// The police's webhook.
    Webhook,
}

/// Whether workloads may be exempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub enum Exemptions {
    /// By annotations, with a reason and an end.
    #[default]
    Annotated,
    /// Not at all.
    None,
}

/// What the police last saw in the namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WhiteListStatus {
    /// The `metadata.generation` of the list that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many uses of images there are that no list of the namespace allows.
    #[serde(default)]
    pub violation_count: i64,
    /// The first fifty of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// The first fifty workloads that use such an image and are exempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt: Vec<Exempt>,
    /// How many workloads were deleted or scaled to zero while this list was there.
    #[serde(default)]
    pub actions: i64,
    /// The last of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action: Option<LastAction>,
    /// `Accepted`, `Enforced` and `Compliant`, each at most once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// A use of an image that no list allows.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The kind of the workload that answers for it: of a pod that a Deployment made, the Deployment.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The container, or `volume NAME` for an image that is a volume.
    pub container: String,
    /// The image, as a container runtime takes it: `docker.io/library/nginx:1.15.7`.
    pub image: String,
    /// The image as it is written, if that is another text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// `NameNotListed`, `TagNotListed`, `VersionNotListed`, `DigestNotListed` or `Unreadable`.
    pub reason: String,
    /// When it was first seen.
    pub first_seen: Time,
}

/// A workload that uses an image which no list allows, and is exempt.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exempt {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Why, as its annotation says.
    pub reason: String,
    /// Until when.
    pub until: Time,
}

/// What was last done about a workload.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastAction {
    /// When.
    pub time: Time,
    /// What, for people.
    pub text: String,
}

/// A list for many namespaces: what it allows is allowed in every namespace; what it enforces, in those that it selects.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "police.foo.bar",
    version = "v1beta1",
    kind = "ClusterWhiteList",
    plural = "clusterwhitelists",
    category = "police",
    status = "ClusterWhiteListStatus",
    derive = "PartialEq",
    doc = "A ClusterWhiteList names images that may be used everywhere, and the namespaces in which no others may.",
    printcolumn(name = "Enforcement", type_ = "string", json_path = ".spec.enforcement"),
    printcolumn(name = "Namespaces", type_ = "integer", json_path = ".status.namespaces"),
    printcolumn(name = "Violations", type_ = "integer", json_path = ".status.violationCount"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterWhiteListSpec {
    /// As in a WhiteList.
    #[serde(flatten)]
    pub list: WhiteListSpec,
    /// The namespaces in which this list is enforced, by their labels: `{}` for all. Without it, none: it only allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}

/// What the police last saw in the namespaces of a ClusterWhiteList.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterWhiteListStatus {
    /// The `metadata.generation` of the list that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many namespaces it is enforced in.
    #[serde(default)]
    pub namespaces: i64,
    /// How many uses of images there are in them that no list allows.
    #[serde(default)]
    pub violation_count: i64,
    /// `Accepted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

//! Names of groups, versions, kinds and projects: what may be said on the command line, and what becomes of it in Rust.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::Error;

/// The most bytes of a DNS label (`k8s.io/apimachinery/pkg/util/validation`).
const LABEL_MAX: usize = 63;
/// The most bytes of a DNS subdomain (the same).
const SUBDOMAIN_MAX: usize = 253;

/// Defines a name that is a checked text.
macro_rules! checked {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
    };
}

checked! {
    /// The part of a group in front of the project's domain: a DNS-1123 subdomain such as `police`. For built-in kinds it is
    /// the whole group, and `core` the one without a name.
    Group
}

checked! {
    /// A version such as `v1`, `v1beta1`, `v2alpha3`.
    Version
}

checked! {
    /// A kind such as `WhiteList`.
    Kind
}

checked! {
    /// The plural of a kind, under which it is served: a DNS-1035 label such as `whitelists`.
    Plural
}

checked! {
    /// A domain: a DNS-1123 subdomain such as `foo.bar`.
    Domain
}

checked! {
    /// The name of a project: a DNS-1035 label, so that it can be that of a crate, a Deployment and a namespace too.
    ProjectName
}

impl Group {
    /// # Errors
    /// When it is no DNS-1123 subdomain.
    pub fn new(text: &str) -> Result<Self, Error> {
        if is_subdomain(text) {
            return Ok(Self(text.to_owned()));
        }
        let wanted =
            "must be a DNS-1123 subdomain: lower case letters, digits, \"-\" and \".\", such as police";
        Err(Error::Usage(format!("group {wanted} (was {text:?})")))
    }

    /// The module of its kinds.
    #[must_use]
    pub fn module(&self) -> String {
        identifier(&self.0.replace(['-', '.'], "_"))
    }
}

impl Version {
    /// # Errors
    /// When it is no version of an API.
    pub fn new(text: &str) -> Result<Self, Error> {
        if is_version(text) && text.len() <= LABEL_MAX {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::Usage(format!(
            "version must match ^v\\d+(alpha\\d+|beta\\d+)?$, such as v1alpha1 (was {text:?})"
        )))
    }
}

impl Kind {
    /// # Errors
    /// When it is not in camel case, or is too long for a name of a resource.
    pub fn new(text: &str) -> Result<Self, Error> {
        let expected = camel_case(text);
        if text != expected || !text.starts_with(|first: char| first.is_ascii_uppercase()) {
            let expected = if expected.is_empty() { "letters and digits".to_owned() } else { expected };
            return Err(Error::Usage(format!("Kind must be camelcase (expected {expected} was {text})")));
        }
        if text.len() > LABEL_MAX {
            return Err(Error::Usage(format!("Kind must have at most {LABEL_MAX} letters (was {text})")));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name of a type of Rust for a kind of somebody else's: `Postgresql` for `postgresql`, and `OperatorObject` for
    /// `Operator`, which every file of a kind uses for something else.
    ///
    /// # Errors
    /// When no server has such a kind: in lower case it is a DNS-1035 label
    /// (`apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go`).
    pub fn for_foreign(kind: &str) -> Result<Self, Error> {
        if !is_label(&kind.to_ascii_lowercase())
            || !kind.starts_with(|first: char| first.is_ascii_alphabetic())
        {
            return Err(Error::Usage(format!("kind must be a DNS-1035 label in mixed case (was {kind:?})")));
        }
        let name = Self::new(&camel_case(kind))?;
        Ok(if name.check_own().is_ok() { name } else { Self(name.0 + "Object") })
    }

    /// Whether a project can have it as a kind of its own.
    ///
    /// # Errors
    /// When it is called as what its files use.
    pub fn check_own(&self) -> Result<(), Error> {
        if !TAKEN.contains(&self.as_str()) {
            return Ok(());
        }
        let why = "is the name of a type that every file of a kind uses";
        Err(Error::Usage(format!("Kind must not be {self}: it {why}; choose another")))
    }

    /// As it is in names of files and objects: `whitelist`.
    #[must_use]
    pub fn lower(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// The module of the kind.
    #[must_use]
    pub fn module(&self) -> String {
        identifier(&self.lower())
    }

    /// The plural as Kubernetes guesses it (`UnsafeGuessKindToResource` in `k8s.io/apimachinery/pkg/api/meta`), with `-es`
    /// where English wants it, as kubebuilder does.
    #[must_use]
    pub fn plural(&self) -> Plural {
        let lower = self.lower();
        let consonant = |c: char| !"aeiou".contains(c);
        let plural = match lower.strip_suffix('y') {
            Some(stem) if stem.ends_with(consonant) => format!("{stem}ies"),
            _ if ["s", "x", "z", "ch", "sh"].iter().any(|end| lower.ends_with(end)) => format!("{lower}es"),
            _ => format!("{lower}s"),
        };
        Plural(plural)
    }
}

impl Plural {
    /// # Errors
    /// When it is no DNS-1035 label.
    pub fn new(text: &str) -> Result<Self, Error> {
        if is_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase()) {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::Usage(format!("plural must be a DNS-1035 label, such as whitelists (was {text:?})")))
    }
}

impl Domain {
    /// # Errors
    /// When it is no DNS-1123 subdomain.
    pub fn new(text: &str) -> Result<Self, Error> {
        if is_subdomain(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::Usage(format!("domain must be a DNS-1123 subdomain, such as example.com (was {text:?})")))
    }
}

impl ProjectName {
    /// # Errors
    /// When it is no DNS-1035 label of at most 50 letters (`<name>-system` and the names of its objects are labels too), or
    /// cannot be the name of a crate.
    pub fn new(text: &str) -> Result<Self, Error> {
        let wanted = "project name must be a DNS-1035 label of at most 50 letters, such as my-operator";
        if !is_label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) || text.len() > 50 {
            return Err(Error::Usage(format!("{wanted} (was {text:?}); say another with --project-name")));
        }
        if KEYWORDS.contains(&text) || CRATES.contains(&text.replace('-', "_").as_str()) {
            let why = "no crate that uses Kubewright can be called so";
            return Err(Error::Usage(format!(
                "project name {text:?}: {why}; say another with --project-name"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// What the name of a folder makes of a project's.
    ///
    /// # Errors
    /// When nothing of it can be one.
    pub fn of_folder(folder: &str) -> Result<Self, Error> {
        let lower = folder.to_ascii_lowercase();
        let name: String = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Self::new(name.trim_matches('-'))
            .map_err(|_| Error::Usage(format!("the name of this folder ({folder:?}) cannot be that of a project: say one with --project-name")))
    }

    /// The name of the crate in Rust.
    #[must_use]
    pub fn crate_name(&self) -> String {
        self.0.replace('-', "_")
    }
}

/// Whether a text is a DNS-1123 label.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= LABEL_MAX
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && text.split('.').all(is_label)
}

fn is_version(text: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let major = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let (head, tail) = rest.split_at(rest.len() - major.len());
    number(head)
        && (tail.is_empty()
            || ["alpha", "beta"].iter().any(|stage| tail.strip_prefix(stage).is_some_and(number)))
}

/// The name of a kind that is nearest to a text.
fn camel_case(text: &str) -> String {
    let mut camel = String::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        let word =
            if camel.is_empty() { word.trim_start_matches(|c: char| c.is_ascii_digit()) } else { word };
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.extend(letters);
    }
    camel
}

/// A name as Rust takes it for a module.
fn identifier(name: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("_{name}");
    }
    let is_taken = KEYWORDS.contains(&name) || CRATES.contains(&name);
    if is_taken { format!("{name}_") } else { name.to_owned() }
}

/// The name of a field of Rust for one of JSON: `secret_name` of `secretName`.
pub(crate) fn field(name: &str) -> String {
    let mut snake = String::new();
    let mut after_small = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && after_small {
            snake.push('_');
        }
        after_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        snake.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
    }
    if snake.chars().all(|letter| letter == '_') {
        snake = format!("field{snake}");
    }
    if snake.starts_with(|first: char| first.is_ascii_digit()) {
        snake.insert(0, '_');
    }
    if KEYWORDS.contains(&snake.as_str()) { format!("{snake}_") } else { snake }
}

/// A part of the name of a type for a field of JSON: `SecretName` of `secretName`.
pub(crate) fn camel(name: &str) -> String {
    camel_case(&format!("x{name}"))[1..]
        .split_at_checked(1)
        .map_or_else(String::new, |(first, rest)| first.to_ascii_uppercase() + rest)
}

/// Rust's keywords, of the edition 2024 and reserved ones.
const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "test", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use",
    "virtual", "where", "yield",
];

/// Crates that every project has already.
const CRATES: [&str; 13] = [
    "alloc",
    "build",
    "core",
    "deps",
    "k8s_openapi",
    "kube",
    "kubewright",
    "schemars",
    "serde",
    "serde_json",
    "std",
    "tokio",
    "tracing",
];

/// Types that the files of a kind use by these names.
const TAKEN: [&str; 46] = [
    "Box",
    "Capabilities",
    "Clone",
    "Condition",
    "Container",
    "ContainerPort",
    "Context",
    "Controller",
    "Conversion",
    "CustomResource",
    "Debug",
    "Default",
    "Defaulter",
    "Defaults",
    "Denied",
    "Deployment",
    "DeploymentSpec",
    "Deserialize",
    "Err",
    "Error",
    "ErrorPolicy",
    "EventType",
    "From",
    "Into",
    "Key",
    "KubeSchema",
    "LabelSelector",
    "NewCondition",
    "None",
    "ObjectMeta",
    "Ok",
    "Operator",
    "Option",
    "Outcome",
    "PodSpec",
    "Reconciler",
    "Request",
    "ResourceExt",
    "Result",
    "Self",
    "Serialize",
    "Some",
    "String",
    "Vec",
    "Verb",
    "Written",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal<T: fmt::Debug>(result: Result<T, Error>) -> String {
        result.expect_err("refused").to_string()
    }

    #[test]
    fn kb_12_bad_names_are_refused_with_what_they_must_be_and_what_they_were() {
        let group = refusal(Group::new("Po-lice"));
        assert!(group.starts_with("group must be") && group.ends_with("(was \"Po-lice\")"), "{group}");
        let version = refusal(Version::new("1beta"));
        assert_eq!(
            version,
            "version must match ^v\\d+(alpha\\d+|beta\\d+)?$, such as v1alpha1 (was \"1beta\")"
        );
        assert_eq!(
            refusal(Kind::new("whiteList")),
            "Kind must be camelcase (expected WhiteList was whiteList)"
        );
    }

    #[test]
    fn os_03_bad_kinds_and_versions_of_the_operator_sdk_are_refused() {
        assert_eq!(
            refusal(Kind::new("appService")),
            "Kind must be camelcase (expected AppService was appService)"
        );
        assert!(refusal(Version::new("1")).contains("such as v1alpha1"));
        assert!(Group::new("").is_err());
    }

    #[test]
    fn versions_are_those_of_kubernetes() {
        for good in ["v1", "v2", "v10", "v1alpha1", "v1beta12"] {
            assert!(Version::new(good).is_ok(), "{good}");
        }
        for bad in ["", "v", "1", "v1beta", "v1gamma1", "v1alpha1beta1", "V1", "v1 ", "v1.0", "vbeta1", "v٣"]
        {
            assert!(Version::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn groups_are_subdomains() {
        for good in ["police", "my-group", "a.b", "3scale"] {
            assert!(Group::new(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a..b", ".a", "a_b", "../a", "a/b", &"a".repeat(64)] {
            assert!(Group::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn kinds_that_their_own_files_could_not_name_are_refused() {
        for taken in ["Option", "String", "Deployment", "Self"] {
            let kind = Kind::new(taken).expect("a kind of somebody's");
            assert!(refusal(kind.check_own()).contains("choose another"), "{taken}");
        }
        assert!(TAKEN.is_sorted() && KEYWORDS.is_sorted() && CRATES.is_sorted());
    }

    /// As the operator of postgresql.acid.zalan.do calls its kind, and that of OLM.
    #[test]
    fn kinds_of_others_have_types_with_names_of_rust() {
        for (kind, name) in [
            ("postgresql", "Postgresql"),
            ("whiteList", "WhiteList"),
            ("my-kind-2", "MyKind2"),
            ("HTTPRoute", "HTTPRoute"),
            ("Operator", "OperatorObject"),
            ("self", "SelfObject"),
        ] {
            assert_eq!(Kind::for_foreign(kind).expect(kind).as_str(), name);
        }
        for bad in ["", "-", "a-", "2a", "a.b", "a b", &"a".repeat(64)] {
            assert!(Kind::for_foreign(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn plurals_are_what_kubectl_would_guess() {
        for (kind, plural) in [
            ("WhiteList", "whitelists"),
            ("At", "ats"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Box2", "box2s"),
            ("Switch", "switches"),
        ] {
            assert_eq!(Kind::new(kind).expect(kind).plural().as_str(), plural);
        }
    }

    #[test]
    fn modules_are_identifiers() {
        assert_eq!(Group::new("3scale.my-net").expect("a group").module(), "_3scale_my_net");
        assert_eq!(Kind::new("Type").expect("a kind").module(), "type_");
        assert_eq!(Group::new("core").expect("a group").module(), "core_");
        assert_eq!(Kind::new("WhiteList").expect("a kind").module(), "whitelist");
    }

    #[test]
    fn a_folder_names_its_project() {
        assert_eq!(ProjectName::of_folder("My Operator_2").expect("a name").as_str(), "my-operator-2");
        assert!(refusal(ProjectName::of_folder("42")).contains("--project-name"));
        assert!(refusal(ProjectName::new("core")).contains("no crate"));
        assert!(refusal(ProjectName::new("kube")).contains("no crate"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_name_panic(text in "\\PC{0,80}") {
            let _ = (Group::new(&text), Version::new(&text), Kind::new(&text), Plural::new(&text));
            let _ = (Domain::new(&text), ProjectName::new(&text), ProjectName::of_folder(&text));
        }

        /// What is expected instead of a bad kind is a good one, or nothing.
        #[test]
        fn the_expected_kind_is_one(text in "[a-zA-Z0-9_ -]{1,40}") {
            let expected = camel_case(&text);
            prop_assert!(expected.is_empty() || Kind::new(&expected).is_ok());
        }

        /// Whatever server takes a kind, there is a type for it.
        #[test]
        fn every_kind_of_others_has_a_type(kind in "[a-zA-Z]([a-zA-Z0-9-]{0,40}[a-zA-Z0-9])?") {
            let name = Kind::for_foreign(&kind).expect("a type");
            prop_assert!(name.check_own().is_ok() && syn::parse_str::<syn::Ident>(name.as_str()).is_ok());
        }

        /// Every kind has a plural that Kubernetes takes, and a module that Rust takes.
        #[test]
        fn every_kind_has_a_plural_and_a_module(text in "[A-Z][a-zA-Z0-9]{0,50}") {
            if let Ok(kind) = Kind::new(&text) {
                prop_assert!(Plural::new(kind.plural().as_str()).is_ok());
                prop_assert!(syn::parse_str::<syn::Ident>(&kind.module()).is_ok());
            }
        }

        #[test]
        fn every_group_has_a_module(text in "[a-z0-9][a-z0-9.-]{0,20}") {
            if let Ok(group) = Group::new(&text) {
                prop_assert!(syn::parse_str::<syn::Ident>(&group.module()).is_ok());
            }
        }
    }
}

//! Which built-in versions are served (`--runtime-config`; `k8s.io/apiserver/pkg/server/resourceconfig`).

use super::{Kind, Kinds};
use kubewright_spec::Version;

/// Versions and resources that are switched on or off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    matching: Vec<(Matching, bool)>,
    versions: Vec<(String, String, bool)>,
    resources: Vec<(String, String, String, bool)>,
}

/// The keys that name many versions, in the order in which they are heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Matching {
    All,
    Stable,
    Beta,
    Alpha,
}

impl Matching {
    fn named(key: &str) -> Option<Self> {
        match key {
            "api/all" => Some(Self::All),
            "api/ga" => Some(Self::Stable),
            "api/beta" => Some(Self::Beta),
            "api/alpha" => Some(Self::Alpha),
            _ => None,
        }
    }

    fn matches(self, version: &str) -> bool {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(rest) = version.strip_prefix('v') else { return false };
        let pre = |word: &str| rest.split_once(word).is_some_and(|(one, two)| digits(one) && digits(two));
        match self {
            Self::All => true,
            Self::Stable => digits(rest),
            Self::Beta => pre("beta"),
            Self::Alpha => pre("alpha"),
        }
    }
}

impl RuntimeConfig {
    /// Reads `key=value` pairs: `api/all`, `api/ga`, `api/beta`, `api/alpha`, `group/version`, `group/version/resource`, and
    /// `v1` for the core group; a key without a value is switched on. Gives warnings, too: of what is switched on and not
    /// served.
    ///
    /// # Errors
    /// What kube-apiserver says of keys and values that it cannot read.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<(Self, Vec<String>), String> {
        let mut config = Self::default();
        let mut warnings = Vec::new();
        let mut count = 0;
        for pair in pairs.into_iter().map(str::trim).filter(|pair| !pair.is_empty()) {
            count += 1;
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            // How the core group was always written.
            let key = if key == "v1" { "api/v1" } else { key };
            config.add(key, value, &mut warnings)?;
        }
        if count == 1 && config.matching == [(Matching::All, false)] {
            return Err("invalid runtime-config with only api/all=false".to_owned());
        }
        config.matching.sort();
        Ok((config, warnings))
    }

    fn add(&mut self, key: &str, value: &str, warnings: &mut Vec<String>) -> Result<(), String> {
        if let Some(matching) = Matching::named(key) {
            let on = match value {
                "true" => true,
                "false" => false,
                _ => return Err(format!("invalid value {key}={value}")),
            };
            self.matching.push((matching, on));
            return Ok(());
        }
        let on = match value {
            "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
            _ => {
                return Err(format!(
                    "invalid value of {key}: {value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax"
                ));
            }
        };
        let parts: Vec<&str> = key.split('/').collect();
        let group = |group: &str| if group == "api" { String::new() } else { group.to_owned() };
        let kinds = Kinds::built_in();
        match parts.as_slice() {
            [of, version] => {
                let of = group(of);
                if on && kinds.in_version(&of, version).next().is_none() {
                    warnings.push(format!("runtime-config: {key} is not served"));
                }
                self.versions.push((of, (*version).to_owned(), on));
            }
            [of, version, resource] => {
                if resource.to_lowercase() != **resource {
                    return Err(format!(
                        "invalid key {key}: group/version/resource and resource is always lowercase plural, not {resource:?}"
                    ));
                }
                let of = group(of);
                if on && kinds.get(&of, version, resource).is_none() {
                    warnings.push(format!("runtime-config: {key} is not served"));
                }
                self.resources.push((of, (*version).to_owned(), (*resource).to_owned(), on));
            }
            _ => return Err(format!("runtime-config invalid key {key}")),
        }
        Ok(())
    }

    /// Whether a built-in kind is served: what names it most closely decides.
    fn serves(&self, kind: &Kind) -> bool {
        let of_resource = self.resources.iter().rfind(|(group, version, resource, _)| {
            (group, version, resource) == (&kind.group, &kind.version, &kind.plural)
        });
        let of_version = self
            .versions
            .iter()
            .rfind(|(group, version, _)| (group, version) == (&kind.group, &kind.version));
        let matching = self.matching.iter().rfind(|(matching, _)| matching.matches(&kind.version));
        of_resource
            .map(|(.., on)| *on)
            .or(of_version.map(|(.., on)| *on))
            .or(matching.map(|(_, on)| *on))
            .unwrap_or(true)
    }

    /// The built-in kinds of a version of Kubernetes that are served.
    #[must_use]
    pub fn kinds(&self, version: Version) -> Kinds {
        let all = Kinds::of_version(version);
        if *self == Self::default() {
            return all;
        }
        all.with(all.iter().filter(|kind| self.serves(kind)).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(pairs: &[&str]) -> Kinds {
        RuntimeConfig::parse(pairs.iter().copied()).expect("it can be read").0.kinds(Version::DEFAULT)
    }

    #[test]
    fn versions_and_resources_are_switched_off_and_the_closest_key_decides() {
        let kinds = served(&["batch/v1=false", "apps/v1/deployments=false"]);
        assert!(kinds.get("batch", "v1", "jobs").is_none());
        assert!(kinds.get("apps", "v1", "deployments").is_none());
        assert!(kinds.get("apps", "v1", "replicasets").is_some());
        let kinds = served(&["api/all=false", "v1=true", "apps/v1"]);
        assert!(kinds.get("", "v1", "pods").is_some());
        assert!(kinds.get("apps", "v1", "deployments").is_some());
        assert!(kinds.get("batch", "v1", "jobs").is_none());
        let kinds = served(&["api/ga=true", "api/all=true", "api/beta=false"]);
        assert_eq!(kinds.iter().count(), Kinds::built_in().iter().count());
    }

    #[test]
    fn what_is_switched_on_and_not_served_is_warned_of() {
        let (_, warnings) =
            RuntimeConfig::parse(["resource.k8s.io/v1beta1=true", "batch/v1=true", "x.y/v1=false"])
                .expect("it can be read");
        assert_eq!(warnings, ["runtime-config: resource.k8s.io/v1beta1 is not served"]);
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_kube_apiserver() {
        let told = |pairs: &[&str]| RuntimeConfig::parse(pairs.iter().copied()).expect_err("a mistake");
        assert_eq!(told(&["api/all=false"]), "invalid runtime-config with only api/all=false");
        assert_eq!(told(&["api/all=maybe"]), "invalid value api/all=maybe");
        assert_eq!(told(&["a/b/c/d=true"]), "runtime-config invalid key a/b/c/d");
        assert_eq!(
            told(&["apps/v1=x"]),
            "invalid value of apps/v1: x, err: strconv.ParseBool: parsing \"x\": invalid syntax"
        );
    }
}

//! What the labels of a namespace ask for (`k8s.io/pod-security-admission/api`).

use std::fmt;

use kubewright_meta::FieldError;

/// The newest version that differs from the one before.
const NEWEST: u32 = 35;

/// How careful pods have to be, from less to more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Anything goes.
    Privileged,
    /// No known ways out of a container.
    Baseline,
    /// Hardened.
    Restricted,
}

impl Level {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "privileged" => Ok(Self::Privileged),
            "baseline" => Ok(Self::Baseline),
            "restricted" => Ok(Self::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

/// A version of Kubernetes, whose rules are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// The newest, whichever that is.
    Latest,
    /// `v1.` and this.
    Minor(u32),
}

impl Version {
    fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "must be \"latest\" or \"v1.x\"";
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let number = text.strip_prefix("v1.").ok_or(WRONG)?;
        let plain =
            number.bytes().all(|byte| byte.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
        if !plain {
            return Err(WRONG);
        }
        number.parse().map(Self::Minor).map_err(|_| WRONG)
    }

    /// The minor version whose rules are used.
    pub(super) fn minor(self) -> u32 {
        match self {
            Self::Latest => NEWEST,
            Self::Minor(minor) => minor.min(NEWEST),
        }
    }
}

/// A level in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standard {
    pub level: Level,
    pub version: Version,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Privileged => "privileged:",
            Level::Baseline => "baseline:",
            Level::Restricted => "restricted:",
        })?;
        match self.version {
            Version::Latest => f.write_str("latest"),
            Version::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

/// What is asked of the pods of a namespace. (What is audited shows nowhere here: there is no audit log.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Pods that break it are refused.
    pub enforce: Standard,
    /// Who breaks it is warned.
    pub warn: Standard,
}

impl Policy {
    /// The policy that labels ask for, and what is wrong with them. Of a wrong level the strictest is enforced, and
    /// nothing is warned of.
    pub(super) fn of<'a>(label: impl Fn(&str) -> Option<&'a str>) -> (Self, Vec<FieldError>) {
        let nothing = Standard { level: Level::Privileged, version: Version::Latest };
        let mut policy = Self { enforce: nothing, warn: nothing };
        let mut errors = Vec::new();
        let mut warns = false;
        let mut warns_version = false;
        let mut enforces = false;
        if let Some(level) =
            read(label("pod-security.kubernetes.io/enforce"), "enforce", Level::parse, &mut errors)
        {
            enforces = level.is_some();
            policy.enforce.level = level.unwrap_or(Level::Restricted);
        }
        if let Some(version) = read(
            label("pod-security.kubernetes.io/enforce-version"),
            "enforce-version",
            Version::parse,
            &mut errors,
        ) {
            policy.enforce.version = version.unwrap_or(Version::Latest);
        }
        read(label("pod-security.kubernetes.io/audit"), "audit", Level::parse, &mut errors);
        read(label("pod-security.kubernetes.io/audit-version"), "audit-version", Version::parse, &mut errors);
        if let Some(level) = read(label("pod-security.kubernetes.io/warn"), "warn", Level::parse, &mut errors)
        {
            warns = true;
            policy.warn.level = level.unwrap_or(Level::Privileged);
        }
        if let Some(version) = read(
            label("pod-security.kubernetes.io/warn-version"),
            "warn-version",
            Version::parse,
            &mut errors,
        ) {
            warns_version = true;
            policy.warn.version = version.unwrap_or(Version::Latest);
        }
        if !warns && enforces && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !warns_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }
}

/// A label: nothing where it is not there, and nothing in it where it is wrong.
fn read<T>(
    text: Option<&str>,
    name: &str,
    parse: fn(&str) -> Result<T, &'static str>,
    errors: &mut Vec<FieldError>,
) -> Option<Option<T>> {
    let text = text?;
    match parse(text) {
        Ok(value) => Some(Some(value)),
        Err(why) => {
            let field = format!("metadata.labels[pod-security.kubernetes.io/{name}]");
            errors.push(FieldError::invalid(field, text, why));
            Some(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(all: &[(&str, &'static str)]) -> (Policy, Vec<FieldError>) {
        Policy::of(|label| {
            let name = label.strip_prefix("pod-security.kubernetes.io/")?;
            all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        })
    }

    fn describe(all: &[(&str, &'static str)]) -> (String, String, usize) {
        let (policy, errors) = policy(all);
        (policy.enforce.to_string(), policy.warn.to_string(), errors.len())
    }

    #[test]
    fn what_is_enforced_is_warned_of_unless_something_else_is_said() {
        let all = |enforce: &str, warn: &str| (enforce.to_owned(), warn.to_owned(), 0);
        assert_eq!(describe(&[]), all("privileged:latest", "privileged:latest"));
        assert_eq!(describe(&[("enforce", "baseline")]), all("baseline:latest", "baseline:latest"));
        assert_eq!(
            describe(&[("enforce", "restricted"), ("enforce-version", "v1.24")]),
            all("restricted:v1.24", "restricted:v1.24")
        );
        assert_eq!(
            describe(&[("enforce", "baseline"), ("warn", "privileged")]),
            all("baseline:latest", "privileged:latest")
        );
    }

    #[test]
    fn a_wrong_label_is_told_and_enforced_strictly() {
        let (policy, errors) = policy(&[("enforce", "extreme"), ("warn-version", "1.2")]);
        assert_eq!((policy.enforce.level, policy.warn.level), (Level::Restricted, Level::Privileged));
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"extreme\": must be one of privileged, baseline, restricted",
                "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"1.2\": must be \"latest\" or \"v1.x\"",
            ]
        );
    }

    #[test]
    fn versions_are_latest_or_of_major_one() {
        for good in ["latest", "v1.0", "v1.36", "v1.999"] {
            assert!(Version::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "v1", "v2.0", "v1.01", "v1.-1", "v1.x", "v1.99999999999"] {
            assert!(Version::parse(bad).is_err(), "{bad}");
        }
    }
}

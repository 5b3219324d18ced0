//! What an image is built for, and which of several builds is the one for this machine.

use std::{env::consts::ARCH, fmt};

use serde::{Deserialize, Serialize};

/// What an image is built for, in Go's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Platform {
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) variant: Option<String>,
}

impl Platform {
    /// That of the containers of this machine.
    pub(crate) fn here() -> Self {
        let architecture = match ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "loongarch64" => "loong64",
            "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
            "powerpc64" => "ppc64",
            same => same,
        };
        Self { architecture: architecture.to_owned(), os: "linux".to_owned(), variant: None }
    }

    /// How well what is built for `built` runs on a machine like this: the lower the better, `None` for not at all.
    ///
    /// Which variant the processor is, is not asked: the one that every processor of the architecture runs is the best.
    pub(crate) fn rank(&self, built: &Self) -> Option<usize> {
        if (&self.os, &self.architecture) != (&built.os, &built.architecture) {
            return None;
        }
        let variants: &[&str] = match self.architecture.as_str() {
            "amd64" => &["v1", "v2"],
            "arm64" => &["v8"],
            "arm" => &["v6", "v7", "v5"],
            _ => &[],
        };
        match built.variant.as_deref() {
            None | Some("") => Some(0),
            Some(variant) => {
                let known = variants.iter().position(|known| *known == variant);
                Some(known.unwrap_or(variants.len()) + 1)
            }
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_unknown = |part: &str| if part.is_empty() { "unknown".to_owned() } else { part.to_owned() };
        write!(f, "{}/{}", or_unknown(&self.os), or_unknown(&self.architecture))?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platform(text: &str) -> Platform {
        let mut parts = text.split('/').map(str::to_owned);
        let (os, architecture) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        Platform { architecture, os, variant: parts.next() }
    }

    #[test]
    fn the_build_that_runs_everywhere_is_the_best() {
        let best = |here: &str, built: &[&str]| {
            let ranked = built.iter().filter_map(|text| Some((platform(here).rank(&platform(text))?, *text)));
            ranked.min().map(|(_, text)| text.to_owned())
        };
        assert_eq!(
            best("linux/amd64", &["linux/arm64", "linux/amd64/v2", "linux/amd64"]).as_deref(),
            Some("linux/amd64")
        );
        assert_eq!(
            best("linux/arm64", &["linux/arm/v7", "linux/arm64/v8"]).as_deref(),
            Some("linux/arm64/v8")
        );
        assert_eq!(
            best("linux/arm", &["linux/arm/v5", "linux/arm/v7", "linux/arm/v6"]).as_deref(),
            Some("linux/arm/v6")
        );
        assert_eq!(best("linux/amd64", &["windows/amd64", "unknown/unknown"]), None);
        assert_eq!(
            best("linux/amd64", &["linux/amd64/v4", "linux/arm64"]).as_deref(),
            Some("linux/amd64/v4")
        );
    }

    #[test]
    fn platforms_read_as_people_write_them() {
        assert_eq!(platform("linux/arm/v7").to_string(), "linux/arm/v7");
        assert_eq!(Platform::default().to_string(), "unknown/unknown");
    }
}

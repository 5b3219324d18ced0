//! Where a `Cargo.toml` says that the SDK comes from.

use crate::project::Sdk;

/// The file.
pub(crate) const MANIFEST: &str = "Cargo.toml";
/// The package.
const SDK: &str = "kubewright";

/// Where Cargo finds the SDK, as the inside of a table.
pub(crate) fn dependency(sdk: &Sdk) -> String {
    match sdk {
        Sdk::Version(version) => format!("version = {version:?}"),
        Sdk::Path(path) => format!("path = {:?}", path.display().to_string()),
        Sdk::Git { url, rev: None } => format!("git = {url:?}"),
        Sdk::Git { url, rev: Some(rev) } => format!("git = {url:?}, rev = {rev:?}"),
    }
}

/// A manifest in which the SDK comes from `to` wherever it came from `from`: in a line of its own
/// (`kubewright = { version = "0.1.0", ... }`, `kubewright = "0.1.0"`), or in a table (`[dependencies.kubewright]`).
pub(crate) fn raised(text: &str, from: &Sdk, to: &Sdk) -> String {
    let (old, new) = (dependency(from), dependency(to));
    let mut in_table = false;
    let mut raised = String::new();
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            in_table = trimmed.trim_end_matches(']').rsplit('.').next() == Some(SDK);
        }
        let is_of_sdk = in_table || trimmed.split('=').next().is_some_and(|key| key.trim() == SDK);
        raised += &match (is_of_sdk, from) {
            (true, Sdk::Version(version)) if trimmed == format!("{SDK} = {version:?}") => {
                let short = match to {
                    Sdk::Version(version) => format!("{version:?}"),
                    Sdk::Path(_) | Sdk::Git { .. } => format!("{{ {new} }}"),
                };
                line.replace(&format!("{version:?}"), &short)
            }
            (true, _) => line.replace(&old, &new),
            (false, _) => line.to_owned(),
        };
    }
    raised
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_is_raised_however_it_is_written_and_nothing_else_is() {
        let version = |text: &str| Sdk::Version(text.to_owned());
        let manifest = "[package]\nversion = \"0.1.0\"\n\n[dependencies]\nkubewright = { version = \"0.1.0\", features = [\"a\"] }\n\
                        kubewright-more = { version = \"0.1.0\" }\n\n[dev-dependencies.kubewright]\nversion = \"0.1.0\"\n\n[x]\nversion = \"0.1.0\"\n";
        let expected = "[package]\nversion = \"0.1.0\"\n\n[dependencies]\nkubewright = { version = \"0.2.0\", features = [\"a\"] }\n\
                        kubewright-more = { version = \"0.1.0\" }\n\n[dev-dependencies.kubewright]\nversion = \"0.2.0\"\n\n[x]\nversion = \"0.1.0\"\n";
        assert_eq!(raised(manifest, &version("0.1.0"), &version("0.2.0")), expected);
        let short = |to: &Sdk| raised("kubewright = \"0.1.0\"\n", &version("0.1.0"), to);
        assert_eq!(short(&version("0.2.0")), "kubewright = \"0.2.0\"\n");
        assert_eq!(short(&Sdk::Path("../k".into())), "kubewright = { path = \"../k\" }\n");
        let git = Sdk::Git { url: "https://x".to_owned(), rev: Some("a".to_owned()) };
        assert_eq!(
            raised("kubewright = { path = \"../k\" }\n", &Sdk::Path("../k".into()), &git),
            "kubewright = { git = \"https://x\", rev = \"a\" }\n"
        );
    }
}

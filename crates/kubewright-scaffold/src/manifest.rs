//! Where a `Cargo.toml` says that the SDK comes from.

use std::cmp::Ordering;

use toml_edit::{DocumentMut, InlineTable, Item, TableLike, Value};

use crate::project::Sdk;

/// The file.
pub(crate) const MANIFEST: &str = "Cargo.toml";
/// The package.
const SDK: &str = "kubewright";

/// The keys of a dependency that say where Cargo finds the SDK, with their values.
fn keys(sdk: &Sdk) -> Vec<(&'static str, String)> {
    match sdk {
        Sdk::Version(version) => vec![("version", version.clone())],
        Sdk::Path(path) => vec![("path", path.display().to_string())],
        Sdk::Git { url, rev: None } => vec![("git", url.clone())],
        Sdk::Git { url, rev: Some(rev) } => vec![("git", url.clone()), ("rev", rev.clone())],
    }
}

/// Where Cargo finds the SDK, as the inside of an inline table.
pub(crate) fn dependency(sdk: &Sdk) -> String {
    let said: Vec<String> = keys(sdk).into_iter().map(|(key, value)| said(key, &value)).collect();
    said.join(", ")
}

/// A key of TOML with a string as its value: `license = "MIT"`.
pub(crate) fn said(key: &str, value: &str) -> String {
    format!("{key} = {}", Value::from(value))
}

/// A manifest in which the SDK comes from `to` wherever it came from `from`: in all tables of dependencies, whether as a string
/// (`kubewright = "0.1.0"`), an inline table or a table (`[dependencies.kubewright]`). All else stays as it is written, as does
/// a text that is no TOML.
pub(crate) fn raised(text: &str, from: &Sdk, to: &Sdk) -> String {
    let Ok(mut manifest) = text.parse::<DocumentMut>() else { return text.to_owned() };
    if raise(manifest.as_table_mut(), from, to) { manifest.to_string() } else { text.to_owned() }
}

/// Raises it in the tables of dependencies below this one; whether there was something to raise.
fn raise(table: &mut dyn TableLike, from: &Sdk, to: &Sdk) -> bool {
    let mut is_raised = false;
    for (key, item) in table.iter_mut() {
        let holds_dependencies = key.get().ends_with("dependencies");
        let Some(below) = item.as_table_like_mut() else { continue };
        is_raised |= match below.get_mut(SDK) {
            Some(entry) if holds_dependencies => raise_entry(entry, from, to),
            // `[workspace.dependencies]`, `[target.x.dependencies]`
            _ => raise(below, from, to),
        };
    }
    is_raised
}

/// Raises one entry of a table of dependencies, if it says `from`.
fn raise_entry(entry: &mut Item, from: &Sdk, to: &Sdk) -> bool {
    if let Some(version) = entry.as_str() {
        let is_it = *from == Sdk::Version(version.to_owned());
        if let (true, Item::Value(value)) = (is_it, entry) {
            let decor = value.decor().clone();
            *value = match to {
                Sdk::Version(version) => version.as_str().into(),
                Sdk::Path(_) | Sdk::Git { .. } => InlineTable::from_iter(keys(to)).into(),
            };
            *value.decor_mut() = decor;
        }
        return is_it;
    }
    let Some(table) = entry.as_table_like_mut() else { return false };
    let says = |(key, value): &(&str, String)| table.get(key).and_then(Item::as_str) == Some(value);
    if !keys(from).iter().all(says) {
        return false;
    }
    let order: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for (key, value) in keys(to) {
        match table.get_mut(key) {
            Some(Item::Value(there)) => {
                let decor = there.decor().clone();
                *there = value.into();
                *there.decor_mut() = decor;
            }
            _ => {
                table.insert(key, toml_edit::value(value));
            }
        }
    }
    let is_kept = |key: &str| keys(to).iter().any(|(kept, _)| *kept == key);
    for (key, _) in keys(from) {
        if !is_kept(key) {
            table.remove(key);
        }
    }
    // What is new stands where what it replaces stood.
    let first = order.iter().position(|key| keys(from).iter().any(|(old, _)| old == key)).unwrap_or_default();
    let place = |key: &str| order.iter().position(|there| there == key).map_or((first, 1), |at| (at, 0));
    let by_place = |one: &str, other: &str| -> Ordering { place(one).cmp(&place(other)) };
    match entry {
        Item::Table(table) => table.sort_values_by(|one, _, other, _| by_place(one, other)),
        Item::Value(Value::InlineTable(table)) => {
            table.sort_values_by(|one, _, other, _| by_place(one, other));
        }
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Sdk {
        Sdk::Version(text.to_owned())
    }

    #[test]
    fn the_sdk_is_raised_however_it_is_written_and_nothing_else_is() {
        let manifest = "[package]\nversion = \"0.1.0\"\n\n[dependencies]\nkubewright = { version = \"0.1.0\", features = [\"a\"] }\n\
                        kubewright-more = { version = \"0.1.0\" }\n\n[dev-dependencies.kubewright]\nversion = \"0.1.0\"\n\n[x]\nversion = \"0.1.0\"\n";
        let expected = "[package]\nversion = \"0.1.0\"\n\n[dependencies]\nkubewright = { version = \"0.2.0\", features = [\"a\"] }\n\
                        kubewright-more = { version = \"0.1.0\" }\n\n[dev-dependencies.kubewright]\nversion = \"0.2.0\"\n\n[x]\nversion = \"0.1.0\"\n";
        assert_eq!(raised(manifest, &version("0.1.0"), &version("0.2.0")), expected);
        let short = |to: &Sdk| raised("[dependencies]\nkubewright = \"0.1.0\"\n", &version("0.1.0"), to);
        assert_eq!(short(&version("0.2.0")), "[dependencies]\nkubewright = \"0.2.0\"\n");
        assert_eq!(short(&Sdk::Path("../k".into())), "[dependencies]\nkubewright = { path = \"../k\" }\n");
        let git = Sdk::Git { url: "https://x".to_owned(), rev: Some("a".to_owned()) };
        assert_eq!(
            raised("[dependencies]\nkubewright = { path = \"../k\" }\n", &Sdk::Path("../k".into()), &git),
            "[dependencies]\nkubewright = { git = \"https://x\", rev = \"a\" }\n"
        );
    }

    #[test]
    fn what_replaces_a_key_stands_in_its_place_and_comments_stay() {
        let manifest = "# Mine.\n[workspace.dependencies]\n  kubewright = { features = [\"a\"], version = '0.1.0', optional = true } # why\n\n\
                        [target.\"cfg(unix)\".dependencies.kubewright]\nversion = \"0.1.0\" # and why\nfeatures = []\n\n\
                        [dependencies]\nkubewright.version = \"0.1.0\"\nkubewright.features = []\n";
        let git = Sdk::Git { url: "https://x".to_owned(), rev: Some("a".to_owned()) };
        let raised = raised(manifest, &version("0.1.0"), &git);
        for line in [
            "# Mine.",
            "  kubewright = { features = [\"a\"], git = \"https://x\", rev = \"a\", optional = true } # why",
            "[target.\"cfg(unix)\".dependencies.kubewright]\ngit = \"https://x\"\nrev = \"a\"\nfeatures = []",
            "[dependencies]\nkubewright.git = \"https://x\"\nkubewright.rev = \"a\"\nkubewright.features = []",
        ] {
            assert!(raised.contains(line), "{line}\n---\n{raised}");
        }
        assert!(raised.parse::<DocumentMut>().is_ok(), "{raised}");
    }

    #[test]
    fn what_says_something_else_or_is_no_toml_stays_as_it_is() {
        for manifest in [
            "[dependencies]\nkubewright = { version = \"0.3.0\" }\n",
            "[dependencies]\nkubewright = { workspace = true }\n",
            "[dependencies]\nother = { version = \"0.1.0\", features = [ \"a\",\n ] }\n",
            "[package.metadata]\nkubewright = \"0.1.0\"\n",
            "[dependencies\nkubewright = \"0.1.0\"\n",
        ] {
            assert_eq!(raised(manifest, &version("0.1.0"), &version("0.2.0")), manifest);
        }
    }
}

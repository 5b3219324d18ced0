//! A new version of a kind: its types begin as those of another version, with conversions between the two.

use std::{collections::BTreeSet, ops::Range};

use proc_macro2::{Literal, TokenStream, TokenTree};
use syn::{Fields, Item, ItemStruct, Visibility, spanned::Spanned};

use crate::{
    Error,
    names::{Kind, Version},
};

/// The types of a version, as its file has them.
pub(crate) struct Types<'a> {
    path: &'a str,
    source: &'a str,
    version: &'a Version,
    /// Where the file says its version.
    literal: Range<usize>,
    spec: Struct,
    status: Option<Struct>,
    items: Vec<Item>,
}

/// A struct, and the names of its fields.
struct Struct {
    name: String,
    fields: Vec<String>,
}

impl<'a> Types<'a> {
    /// Reads the file of a version.
    ///
    /// # Errors
    /// When it is no Rust, or its types cannot be found in it.
    pub(crate) fn read(path: &'a str, source: &'a str, version: &'a Version) -> Result<Self, Error> {
        let file = syn::parse_file(source).map_err(|error| {
            let line = error.span().start().line;
            Error::Refused(format!("{path}:{line} is no Rust ({error}): mend it, and run the command again"))
        })?;
        let wanted = format!("\"{version}\"");
        let is_of =
            |item: &&ItemStruct| value(item, "version").is_some_and(|found| found.to_string() == wanted);
        let structs = || {
            file.items.iter().filter_map(|item| if let Item::Struct(item) = item { Some(item) } else { None })
        };
        let Some(spec) = structs().find(is_of) else {
            let why = format!("there is no struct with #[kube(version = \"{version}\")] in it");
            return Err(Error::Refused(format!("{path} cannot be copied: {why}")));
        };
        let literal = value(spec, "version").map(|found| found.span().byte_range()).unwrap_or_default();
        let status = match value(spec, "status").map(|name| name.to_string().trim_matches('"').to_owned()) {
            None => None,
            Some(name) => match structs().find(|item| item.ident == name) {
                Some(item) => Some(Struct::of(path, item)?),
                None => {
                    return Err(Error::Refused(format!(
                        "{path} cannot be copied: its status {name} is no struct in it"
                    )));
                }
            },
        };
        let spec = Struct::of(path, spec)?;
        Ok(Self { path, source, version, literal, spec, status, items: file.items })
    }

    /// The same types in the version `to`. Types that are parts of them are shared.
    ///
    /// # Errors
    /// When one that would be shared is private.
    pub(crate) fn copied(&self, to: &Version) -> Result<String, Error> {
        let mut shared = BTreeSet::new();
        let mut left_out: Vec<Range<usize>> = Vec::new();
        let mut after_imports = 0;
        for item in &self.items {
            let range = item.span().byte_range();
            match item {
                Item::Use(_) => after_imports = range.end,
                Item::Struct(ItemStruct { vis, ident, .. })
                | Item::Enum(syn::ItemEnum { vis, ident, .. })
                | Item::Type(syn::ItemType { vis, ident, .. })
                    if !self.is_own(&ident.to_string()) =>
                {
                    if !matches!(vis, Visibility::Public(_)) {
                        let why =
                            format!("{ident} would be shared by two versions and is private: make it pub");
                        return Err(Error::Refused(format!("{} cannot be copied: {why}", self.path)));
                    }
                    shared.insert(ident.to_string());
                    left_out.push(range);
                }
                Item::Impl(item) if !self.is_of_own(&item.self_ty) => left_out.push(range),
                Item::Mod(_) => left_out.push(range),
                _ => {}
            }
        }
        let mut edits: Vec<(Range<usize>, String)> =
            left_out.into_iter().map(|range| (range, String::new())).collect();
        edits.push((self.literal.clone(), format!("\"{to}\"")));
        if !shared.is_empty() {
            let names: Vec<String> = shared.into_iter().collect();
            let names = if names.len() == 1 { names.concat() } else { format!("{{{}}}", names.join(", ")) };
            edits.push((after_imports..after_imports, format!("\n\nuse super::{}::{names};", self.version)));
        }
        Ok(self.with_version(&edited(self.source, edits), to))
    }

    /// What the head of the file says of its version.
    fn with_version(&self, text: &str, to: &Version) -> String {
        let (from, to) = (format!(" in {}:", self.version), format!(" in {to}:"));
        let lines = text
            .lines()
            .map(|line| if line.starts_with("//!") { line.replace(&from, &to) } else { line.to_owned() });
        let text: Vec<String> = lines.collect();
        // Where something was left out there are several empty lines.
        let mut kept: Vec<&str> = Vec::new();
        for line in text.iter().map(String::as_str) {
            if !(line.is_empty() && kept.last().is_some_and(|last| last.is_empty())) {
                kept.push(line);
            }
        }
        format!("{}\n", kept.join("\n").trim_end())
    }

    fn is_own(&self, name: &str) -> bool {
        self.spec.name == name || self.status.as_ref().is_some_and(|status| status.name == name)
    }

    fn is_of_own(&self, of: &syn::Type) -> bool {
        let syn::Type::Path(path) = of else { return false };
        path.path.get_ident().is_some_and(|name| self.is_own(&name.to_string()))
    }

    /// The conversions between this version of `kind` and a copy of it.
    pub(crate) fn conversions(&self, kind: &Kind, to: &Version) -> String {
        let from = self.version;
        format!(
            "//! Between {from} and {to} of {kind}: a field that is in both is carried over. Change this when they part.\n\n\
             use super::{{{from}, {to}}};\n\n{}\n{}",
            self.conversion(kind, from, to),
            self.conversion(kind, to, from)
        )
    }

    fn conversion(&self, kind: &Kind, from: &Version, to: &Version) -> String {
        let mut text = format!(
            "impl From<{from}::{kind}> for {to}::{kind} {{\n    fn from(old: {from}::{kind}) -> Self {{\n        Self {{\n            \
             metadata: old.metadata,\n            spec: {},\n",
            self.spec.literal(to, "old.spec")
        );
        if let Some(status) = &self.status {
            let closure = if status.fields.is_empty() { "_" } else { "status" };
            text += &format!(
                "            status: old.status.map(|{closure}| {}),\n",
                status.literal(to, "status")
            );
        }
        text + "        }\n    }\n}\n"
    }
}

/// The conversions between `one` and `other` of `kind`, by way of a third version.
pub(crate) fn by_way_of(kind: &Kind, one: &Version, other: &Version, way: &Version) -> String {
    let conversion = |from: &Version, to: &Version| {
        format!(
            "impl From<{from}::{kind}> for {to}::{kind} {{\n    fn from(old: {from}::{kind}) -> Self {{\n        \
             Self::from({way}::{kind}::from(old))\n    }}\n}}\n"
        )
    };
    format!(
        "//! Between {one} and {other} of {kind}, by way of {way}.\n\nuse super::{{{one}, {other}, {way}}};\n\n{}\n{}",
        conversion(one, other),
        conversion(other, one)
    )
}

impl Struct {
    fn of(path: &str, item: &ItemStruct) -> Result<Self, Error> {
        let name = item.ident.to_string();
        match &item.fields {
            Fields::Named(fields) => {
                let fields = fields.named.iter().filter_map(|field| field.ident.as_ref());
                Ok(Self { name, fields: fields.map(ToString::to_string).collect() })
            }
            Fields::Unnamed(_) | Fields::Unit => {
                Err(Error::Refused(format!("{path} cannot be copied: {name} has no fields with names")))
            }
        }
    }

    /// It, in the module `version`, of the fields of the value `of`.
    fn literal(&self, version: &Version, of: &str) -> String {
        if self.fields.is_empty() {
            return format!("{version}::{} {{}}", self.name);
        }
        if let [field] = self.fields.as_slice() {
            return format!("{version}::{} {{ {field}: {of}.{field} }}", self.name);
        }
        let fields: String =
            self.fields.iter().map(|field| format!("                {field}: {of}.{field},\n")).collect();
        format!("{version}::{} {{\n{fields}            }}", self.name)
    }
}

/// What an attribute `#[kube(name = "value")]` of a struct says.
fn value(item: &ItemStruct, name: &str) -> Option<Literal> {
    let lists = item.attrs.iter().filter(|attribute| attribute.path().is_ident("kube"));
    lists
        .filter_map(|attribute| attribute.meta.require_list().ok())
        .find_map(|list| find(list.tokens.clone(), name))
}

fn find(tokens: TokenStream, name: &str) -> Option<Literal> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.windows(3).find_map(|three| match three {
        [TokenTree::Ident(ident), TokenTree::Punct(equals), TokenTree::Literal(literal)]
            if *ident == name && equals.as_char() == '=' =>
        {
            Some(literal.clone())
        }
        _ => None,
    })
}

/// A text with parts of it replaced, which do not overlap.
fn edited(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let (mut result, mut at) = (String::new(), 0);
    for (range, new) in edits {
        result += text.get(at..range.start).unwrap_or_default();
        result += &new;
        at = range.end;
    }
    result + text.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"//! The kind Box in v1: what users write.

use kube::{CustomResource, KubeSchema};

/// Größe (a letter of two bytes in front of what is replaced).
#[derive(CustomResource, KubeSchema)]
#[kube(group = "a.b", version = "v1", kind = "Crate", status = "CrateStatus")]
pub struct CrateSpec {
    pub size: Size,
    pub label: Option<String>,
}

impl CrateSpec {
    fn own() {}
}

/// How large.
pub enum Size {
    Small,
}

impl Default for Size {
    fn default() -> Self {
        Self::Small
    }
}

pub struct CrateStatus {}

#[cfg(test)]
mod tests {}
"#;

    fn version(text: &str) -> Version {
        Version::new(text).expect("a version")
    }

    #[test]
    fn a_copy_has_its_own_spec_and_status_and_shares_the_rest() {
        let (v1, v2) = (version("v1"), version("v2"));
        let types = Types::read("v1.rs", SOURCE, &v1).expect("types");
        let copied = types.copied(&v2).expect("copied");
        assert!(copied.starts_with("//! The kind Box in v2:"), "{copied}");
        assert!(copied.contains("version = \"v2\", kind = \"Crate\""), "{copied}");
        assert!(
            copied.contains("use kube::{CustomResource, KubeSchema};\n\nuse super::v1::Size;\n"),
            "{copied}"
        );
        assert!(copied.contains("fn own()") && copied.contains("pub struct CrateStatus {}"), "{copied}");
        for left_out in ["enum", "How large", "impl Default", "mod tests", "\n\n\n"] {
            assert!(!copied.contains(left_out), "{left_out}: {copied}");
        }
        syn::parse_file(&copied).expect("Rust");
    }

    #[test]
    fn conversions_carry_every_field_over() {
        let (v1, v2) = (version("v1"), version("v2"));
        let types = Types::read("v1.rs", SOURCE, &v1).expect("types");
        let text = types.conversions(&Kind::new("Crate").expect("a kind"), &v2);
        syn::parse_file(&text).expect("Rust");
        for part in [
            "impl From<v1::Crate> for v2::Crate",
            "impl From<v2::Crate> for v1::Crate",
            "size: old.spec.size,\n",
            "label: old.spec.label,\n",
            "status: old.status.map(|_| v2::CrateStatus {}),\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_cannot_be_copied_is_told_with_its_place() {
        let v1 = version("v1");
        let told = |source: &str| match Types::read("v1.rs", source, &v1)
            .and_then(|types| types.copied(&version("v2")))
        {
            Ok(text) => panic!("copied: {text}"),
            Err(error) => error.to_string(),
        };
        assert!(told("struct {").starts_with("v1.rs:1 is no Rust"));
        assert!(
            told(&SOURCE.replace("\"v1\"", "\"v3\"")).contains("no struct with #[kube(version = \"v1\")]")
        );
        assert!(told(&SOURCE.replace("pub enum Size", "enum Size")).contains("Size would be shared"));
        assert!(told(&SOURCE.replace("pub struct CrateStatus {}", "")).contains("its status CrateStatus"));
    }
}

//! Which package and which program, of what `cargo metadata` tells.

use std::path::Path;

use serde_json::Value;

use super::{Needed, Usage};

/// The package of this name, or the nearest to a folder, or the only one that is what is needed.
pub(super) fn package<'a>(
    metadata: &'a Value,
    wanted: Option<&str>,
    near: &Path,
    needed: Needed,
) -> Result<&'a Value, Usage> {
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let fitting: Vec<&Value> = packages.iter().copied().filter(|package| fits(package, needed)).collect();
    let choice = || fitting.iter().map(|package| name(package)).collect::<Vec<_>>().join(", ");
    let kinds = match needed {
        Needed::Program => "packages with a program",
        Needed::Operator => "operators",
    };
    if let Some(wanted) = wanted {
        let found = packages.iter().copied().find(|package| package["name"] == wanted);
        let found = found.ok_or_else(|| {
            Usage(format!("there is no package {wanted} here; the {kinds} are: {}", none(&choice())))
        })?;
        return checked(found, needed);
    }
    let distance = |package: &Value| {
        let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
        near.starts_with(folder).then(|| folder.components().count())
    };
    let nearest = packages.iter().copied().filter_map(|package| Some((distance(package)?, package)));
    if let Some((_, package)) = nearest.max_by_key(|(depth, _)| *depth) {
        return checked(package, needed);
    }
    match (&fitting[..], needed) {
        ([one], _) => Ok(one),
        ([], Needed::Operator) => {
            Err(Usage("no package of this workspace is an operator: none depends on kubewright".to_owned()))
        }
        ([], Needed::Program) => Err(Usage("no package of this workspace has a program".to_owned())),
        _ => Err(Usage(format!("there are several {kinds} here: name one with --package: {}", choice()))),
    }
}

fn checked(package: &Value, needed: Needed) -> Result<&Value, Usage> {
    let name = package["name"].as_str().unwrap_or_default();
    match (fits(package, needed), needed) {
        (true, _) => Ok(package),
        (false, Needed::Program) => Err(Usage(format!("the package {name} has no program: a src/main.rs"))),
        (false, Needed::Operator) => Err(Usage(format!(
            "the package {name} is no operator: it does not depend on kubewright, or has no program"
        ))),
    }
}

fn fits(package: &Value, needed: Needed) -> bool {
    let list = |key: &str| package[key].as_array().into_iter().flatten();
    let has_program = list("targets").any(|target| target["kind"][0] == "bin");
    // Those of tests have a kind.
    let is_sdk = |dependency: &Value| {
        (dependency["name"] == "kubewright" || dependency["name"] == "kubewright-runtime")
            && dependency["kind"].is_null()
    };
    has_program && (needed == Needed::Program || list("dependencies").any(is_sdk))
}

/// The program of this name, or the only one, or the one that `default-run` names.
pub(super) fn bin(package: &Value, wanted: Option<&str>) -> Result<String, Usage> {
    let is_bin = |target: &&Value| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
    };
    let targets = package["targets"].as_array().into_iter().flatten().filter(is_bin);
    let bins: Vec<&str> = targets.filter_map(|target| target["name"].as_str()).collect();
    let of = package["name"].as_str().unwrap_or_default();
    match (wanted, &bins[..], package["default_run"].as_str()) {
        (Some(wanted), _, _) if bins.contains(&wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _, _) => Err(Usage(format!(
            "the package {of} has no program {wanted}; its programs are: {}",
            none(&bins.join(", "))
        ))),
        (None, [one], _) => Ok((*one).to_owned()),
        (None, _, Some(default)) => Ok(default.to_owned()),
        (None, _, None) => Err(Usage(format!(
            "the package {of} has several programs: name one with --bin: {}",
            bins.join(", ")
        ))),
    }
}

fn none(list: &str) -> &str {
    if list.is_empty() { "(none)" } else { list }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workspace() -> Value {
        let package = |name: &str, folder: &str, sdk: &str, bins: &[&str]| {
            let targets: Vec<Value> = bins.iter().map(|bin| json!({"name": bin, "kind": ["bin"]})).collect();
            json!({
                "name": name, "manifest_path": format!("{folder}/Cargo.toml"), "targets": targets,
                "dependencies": [{"name": sdk}],
            })
        };
        json!({"packages": [
            package("web", "/w/web", "kubewright", &["web"]),
            package("two", "/w/two", "kubewright", &["a", "b"]),
            package("lib", "/w/lib", "kubewright", &[]),
            package("tool", "/w/tool", "serde", &["tool"]),
        ]})
    }

    fn found(wanted: Option<&str>, near: &str) -> Result<String, String> {
        let workspace = workspace();
        let found =
            package(&workspace, wanted, Path::new(near), Needed::Operator).map_err(|usage| usage.0)?;
        Ok(found["name"].as_str().expect("a name").to_owned())
    }

    #[test]
    fn the_package_is_the_nearest_or_the_one_that_is_named() {
        assert_eq!(found(None, "/w/web/src").as_deref(), Ok("web"));
        assert_eq!(found(Some("two"), "/w/web").as_deref(), Ok("two"));
    }

    #[test]
    fn what_is_no_operator_has_a_program_all_the_same() {
        let workspace = workspace();
        let found = |near: &str| package(&workspace, None, Path::new(near), Needed::Program);
        assert!(found("/w/tool").is_ok_and(|package| package["name"] == "tool"));
        assert_eq!(
            found("/w/lib").expect_err("no program").0,
            "the package lib has no program: a src/main.rs"
        );
    }

    #[test]
    fn where_it_is_not_clear_which_one_the_choice_is_told() {
        for (wanted, near, choice) in [
            (None, "/w", "several operators here: name one with --package: web, two"),
            (Some("none"), "/w", "no package none here; the operators are: web, two"),
            (None, "/w/lib", "the package lib is no operator"),
            (None, "/w/tool", "the package tool is no operator"),
        ] {
            let refused = found(wanted, near).expect_err(choice);
            assert!(refused.contains(choice), "{refused}");
        }
    }

    #[test]
    fn the_program_is_the_only_one_or_the_one_that_is_named() {
        let workspace = workspace();
        let of = |name: &str| {
            package(&workspace, Some(name), Path::new("/"), Needed::Operator).expect("an operator")
        };
        assert_eq!(bin(of("web"), None).map_err(|usage| usage.0).as_deref(), Ok("web"));
        assert_eq!(bin(of("two"), Some("b")).map_err(|usage| usage.0).as_deref(), Ok("b"));
        let refused = |name: &str, wanted: Option<&str>| bin(of(name), wanted).expect_err(name).0;
        assert!(refused("two", None).ends_with("name one with --bin: a, b"));
        assert!(refused("two", Some("c")).ends_with("its programs are: a, b"));
    }
}

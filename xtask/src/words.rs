//! Banned words: names do not have those that Kubernetes, client-go and controller-runtime have another word for
//! (docs/glossary.md).

use std::path::{Path, PathBuf};

/// The Rust files below a folder.
pub(crate) fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::rust_files;
    use crate::run::workspace;

    /// Words of public names, each with what it is called.
    const BANNED: [(&str, &str); 16] = [
        ("befall", "inject"),
        ("mishap", "fault"),
        ("weather", "fault injector"),
        ("crew", "runners"),
        ("wish", "desired"),
        ("begun", "dynamic watches"),
        ("ears", "sink"),
        ("hear", "handle"),
        ("residents", "pods"),
        ("told", "what it is"),
        ("audience", "recipients"),
        ("news", "events"),
        ("hand", "skew or options"),
        ("blueprint", "spec or containers"),
        ("surroundings", "environment, listers or context"),
        ("aftermath", "final checks"),
    ];
    /// Words of types, public or not.
    const BANNED_TYPES: [(&str, &str); 13] = [
        ("asked", "request info"),
        ("attempt", "active reconcile"),
        ("audience", "attached streams"),
        ("begun", "started"),
        ("blueprint", "containers"),
        ("course", "state"),
        ("keeper", "decoder, shim or reconciler"),
        ("losses", "lost objects"),
        ("news", "events"),
        ("reached", "connection"),
        ("surroundings", "environment, listers or context"),
        ("told", "event, revisions, or what it is"),
        ("way", "options or address"),
    ];
    /// First words of functions, public or not: so that tests may say what is told.
    const BANNED_VERBS: [(&str, &str); 5] = [
        ("befall", "inject"),
        ("hear", "handle"),
        ("meet", "handle"),
        ("tell", "record, report, print or set"),
        ("told", "describe"),
    ];
    const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];
    const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "mod", "const", "static", "union"];

    /// The name of the public item that a line declares: `pub async fn start_up(` is `start_up`.
    fn public_name(line: &str) -> Option<&str> {
        let mut words = line.trim_start().strip_prefix("pub ")?.split_whitespace();
        words.find(|word| ITEMS.contains(word))?;
        identifier(words.next()?)
    }

    /// What a line declares, public or not: `pub(super) struct Plan {` is `struct` and `Plan`.
    fn declared(line: &str) -> Option<(&str, &str)> {
        let mut words = line
            .split_whitespace()
            .skip_while(|word| word.starts_with("pub") || matches!(*word, "async" | "const" | "unsafe"));
        let item = words.next().filter(|word| *word == "fn" || TYPES.contains(word))?;
        Some((item, identifier(words.next()?)?))
    }

    fn identifier(text: &str) -> Option<&str> {
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .next()
            .filter(|name| !name.is_empty())
    }

    /// What to say instead of the words of a name.
    fn instead<'a>(words: &'a [String], banned: &'a [(&str, &str)]) -> impl Iterator<Item = String> + 'a {
        let found = words.iter().flat_map(|word| banned.iter().filter(move |(banned, _)| banned == word));
        found.map(|(word, instead)| format!("say {instead}, not {word}"))
    }

    /// The words of a name: of `FaultPlan`, and of `fault_plan`, they are `fault` and `plan`.
    fn words(name: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for letter in name.chars() {
            if letter == '_' || letter.is_uppercase() {
                words.push(String::new());
            }
            words.last_mut().expect("there is one").extend(letter.to_lowercase().filter(|one| *one != '_'));
        }
        words
    }

    #[test]
    fn no_public_name_has_a_word_that_kubernetes_has_another_one_for() {
        assert_eq!(public_name("    pub async fn start_up<T>("), Some("start_up"));
        assert_eq!(public_name("    pub(crate) fn weather()"), None);
        assert_eq!(words("FaultPlan_of")[1..], ["fault", "plan", "of"]);
        let mut all = Vec::new();
        for folder in ["crates", "operators"] {
            rust_files(&workspace().join(folder), &mut all);
        }
        let (mut wrong, mut names) = (Vec::new(), 0);
        for file in all {
            let text = fs::read_to_string(&file).expect("a file");
            let mut before = "";
            for line in text.lines() {
                // What somebody may still have keeps its old name for one release.
                let name = public_name(line).filter(|_| !before.trim_start().starts_with("#[deprecated"));
                for (word, instead) in name.iter().flat_map(|name| words(name)).flat_map(|word| {
                    BANNED.iter().filter(move |(banned, _)| *banned == word).collect::<Vec<_>>()
                }) {
                    wrong.push(format!("{}: {}: say {instead}, not {word}", file.display(), line.trim()));
                }
                names += usize::from(name.is_some());
                before = line;
            }
        }
        assert_eq!(wrong, [] as [String; 0]);
        assert!(names > 2000, "only {names} names were found");
    }

    #[test]
    fn no_type_and_no_function_has_a_name_that_says_nothing_of_it() {
        assert_eq!(declared("    pub(crate) async fn tell<T>("), Some(("fn", "tell")));
        assert_eq!(declared("struct Told(u8);"), Some(("struct", "Told")));
        assert_eq!(declared("    told.type = true;"), None);
        let mut all = Vec::new();
        for folder in ["crates", "operators"] {
            rust_files(&workspace().join(folder), &mut all);
        }
        let (mut wrong, mut names) = (Vec::new(), 0);
        for file in &all {
            let text = fs::read_to_string(file).expect("a file");
            let mut before = "";
            for line in text.lines() {
                let declared = declared(line).filter(|_| !before.trim_start().starts_with("#[deprecated"));
                if let Some((item, name)) = declared {
                    let words = words(name);
                    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
                    let said: Vec<String> = match item {
                        "fn" => instead(&words[..words.len().min(1)], &BANNED_VERBS).collect(),
                        _ => instead(&words, &BANNED_TYPES).collect(),
                    };
                    wrong.extend(
                        said.iter().map(|said| format!("{}: {}: {said}", file.display(), line.trim())),
                    );
                    names += 1;
                }
                before = line;
            }
        }
        assert_eq!(wrong, [] as [String; 0]);
        assert!(names > 10_000, "only {names} names were found");
    }
}

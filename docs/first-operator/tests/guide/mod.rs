//! Whether the guide says what is here.

mod pages;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use http::{Request, header::ACCEPT};
use kubewright::testing::Cluster;
use serde_json::Value;

use super::{home, operator};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// A block of the guide, and the line of text before it.
struct Block {
    before: String,
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let guide = fs::read_to_string(here().with_extension("md")).expect("the guide is there");
    let (mut blocks, mut before, mut open) = (Vec::new(), String::new(), None::<Block>);
    for line in guide.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block {
                    before: before.clone(),
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) if !line.is_empty() => line.clone_into(&mut before),
            (None, None) => {}
        }
    }
    blocks
}

/// What a reader of the guide types into each file.
fn typed() -> BTreeMap<String, String> {
    let (mut file, mut files) = (None, BTreeMap::<String, String>::new());
    for block in blocks() {
        if let Some(named) = block.before.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
            file = Some(named.to_owned());
        }
        if ["rust", "yaml"].contains(&&*block.language) {
            let file = file.clone().expect("a file is named before its first block");
            *files.entry(file).or_default() += &block.text;
        }
    }
    files
}

/// Lines that say something to a reader of the guide: not those that tie the files to this repository.
fn lines(text: &str) -> Vec<&str> {
    let is_ours =
        |line: &&str| line.starts_with("//!") || line.starts_with("#![expect") || *line == "mod guide;";
    text.lines().filter(|line| !line.is_empty() && !is_ours(line)).collect()
}

#[test]
fn who_types_in_the_guide_has_these_files() {
    let typed = typed();
    for (file, text) in &typed {
        let there = fs::read_to_string(here().join(file)).expect(file);
        assert_eq!(lines(text), lines(&there), "{file}");
    }
    let mut sources: Vec<_> = fs::read_dir(here().join("src")).expect("a folder").flatten().collect();
    sources.retain(|source| !typed.contains_key(&format!("src/{}", source.file_name().display())));
    assert_eq!(sources.len(), 0, "{sources:?} are not in the guide");
    assert_eq!(typed.len(), 7);
}

/// What a console shows: each command with what it printed.
fn console() -> Vec<(String, String)> {
    let consoles = blocks().into_iter().filter(|block| block.language == "console");
    let split = |block: Block| {
        let (command, output) = block.text.split_once('\n')?;
        Some((command.strip_prefix("$ ")?.to_owned(), output.to_owned()))
    };
    consoles.map(|block| split(block).expect("a command and what it prints")).collect()
}

#[test]
fn the_program_prints_what_the_guide_says() {
    let mut ran = 0;
    for (command, printed) in console() {
        let Some(arguments) = command.strip_prefix("cargo run -q -- ") else { continue };
        let program = env!("CARGO_BIN_EXE_website-operator");
        let output = Command::new(program).args(arguments.split(' ')).output().expect("it starts");
        let output = String::from_utf8_lossy(&output.stdout);
        // What is left out is a line of three dots.
        for part in printed.split("...\n") {
            assert!(output.contains(part), "{command} does not print\n{part}but\n{output}");
        }
        ran += 1;
    }
    assert_eq!(ran, 2);
}

#[kubewright::test]
async fn kubectl_prints_what_the_guide_says(cluster: Cluster) {
    let _operator = cluster.run(operator).await;
    cluster.create(&home()).await;
    cluster.settle().await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = Request::get("/apis/example.com/v1/namespaces/default/websites").header(ACCEPT, table);
    let request = request.body(Vec::new()).expect("a request");
    let table: Value = cluster.client().request(request).await.expect("a table");
    let cell = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let head =
        list(&table["columnDefinitions"]).iter().map(|one| cell(&one["name"]).to_uppercase()).collect();
    let mut lines: Vec<Vec<String>> = vec![head];
    lines.extend(list(&table["rows"]).iter().map(|row| list(&row["cells"]).iter().map(cell).collect()));
    let printed = console().into_iter().find(|(command, _)| command == "kubectl get websites");
    let printed = printed.expect("the guide shows it").1;
    let printed: Vec<Vec<String>> =
        printed.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    assert_eq!(lines, printed);
}

//! Folding: differences of one sort are one finding.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::compare::Difference;
use crate::conversation::Ask;
use crate::hold::Sent;

/// Differences that look alike.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    by_sort: BTreeMap<String, Finding>,
}

/// One sort of difference.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) sort: String,
    pub(crate) times: usize,
    pub(crate) seeds: Vec<u64>,
    /// The first one: which request of the conversation, and what differs.
    pub(crate) at: usize,
    pub(crate) first: Difference,
    pub(crate) request: String,
}

impl Finding {
    /// Prints it, with the first request that shows it.
    pub(crate) fn print(&self) {
        let Self { sort, times, seeds, first, request, .. } = self;
        println!("\n{times} × in seeds {seeds:?}\n  {sort}\n  {request}");
        println!("    reference  {}\n    ours       {}", first.reference, first.ours);
    }
}

#[expect(clippy::expect_used, reason = "constants, compiled by the tests")]
static VOLATILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"d\d+r\d+|\d+|"[^"]*"|'[^']*'"#).expect("a pattern"));
#[expect(clippy::expect_used, reason = "constants, compiled by the tests")]
static INDEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\.\d+|event\d+").expect("a pattern"));

impl Findings {
    pub(crate) fn add(&mut self, seed: u64, at: usize, ask: &Ask, sent: &str, difference: &Difference) {
        self.add_sort(seed, at, sort_of(ask, difference), sent, difference);
    }

    /// The same of a sort that is known.
    pub(crate) fn add_sort(
        &mut self,
        seed: u64,
        at: usize,
        sort: String,
        sent: &str,
        difference: &Difference,
    ) {
        let finding = self.by_sort.entry(sort.clone()).or_insert_with(|| Finding {
            sort,
            times: 0,
            seeds: Vec::new(),
            at,
            first: difference.clone(),
            request: sent.to_owned(),
        });
        finding.times += 1;
        if finding.seeds.last() != Some(&seed) && finding.seeds.len() < 20 {
            finding.seeds.push(seed);
        }
    }

    /// The most frequent first.
    pub(crate) fn sorted(&self) -> Vec<Finding> {
        let mut all: Vec<Finding> = self.by_sort.values().cloned().collect();
        all.sort_by_key(|finding| std::cmp::Reverse(finding.seeds.len() * 1000 + finding.times));
        all
    }
}

/// What is alike in differences of one cause: the place and the shape of both values, whatever object it was and which verb.
pub(crate) fn sort_of(ask: &Ask, difference: &Difference) -> String {
    let kind =
        if ask.place.resource.group.contains("@run@") { "custom" } else { ask.place.resource.kind.as_str() };
    sort_of_kind(kind, difference)
}

/// The same for an object of a kind.
pub(crate) fn sort_of_kind(kind: &str, difference: &Difference) -> String {
    format!("{kind} {}", shape_of(difference))
}

/// Where two answers differ, without indices.
pub(crate) fn place_of(difference: &Difference) -> String {
    INDEX.replace_all(&difference.path, "").into_owned()
}

/// How two answers differ, without indices, numbers and names.
pub(crate) fn shape_of(difference: &Difference) -> String {
    let shape = |text: &str| match text.split_once(' ') {
        Some((status, _)) if difference.path == "status" && status.starts_with('2') => status.to_owned(),
        _ => VOLATILE.replace_all(&text.chars().take(160).collect::<String>(), "#").into_owned(),
    };
    format!("{} {} → {}", place_of(difference), shape(&difference.reference), shape(&difference.ours))
}

/// A request as it was sent, for a person.
pub(crate) fn text_of(sent: &Sent) -> String {
    let body: String = sent.body.as_deref().unwrap_or_default().chars().take(1500).collect();
    format!("{} {} {body}", sent.method, sent.path)
}
